#include <cmath>
#include <initializer_list>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "engines/brute_force.hpp"
#include "unkernel/kernels/feature_map.hpp"

namespace {

using unkernel::kernels::Basis;
using unkernel::kernels::FeatureMap;
using unkernel::kernels::SetFactors;
using Kind = FeatureMap::Kind;

std::vector<FeatureMap> list_maps() {
  std::vector<FeatureMap> maps;
  for (int degree = 1; degree <= 4; ++degree) {
    for (const double gamma : {1.0, 0.3, 7.0}) {
      for (const double coef0 : {0.0, 1.0, 2.5, -0.4}) maps.push_back({degree, Kind::kernel, gamma, coef0});
    }
    maps.push_back({degree, Kind::plain, 1.0, 1.0});
  }
  return maps;
}

void check_sets(const FeatureMap& map, std::initializer_list<double> expected) {
  int size = 0;
  for (const double value : expected) CHECK(map.set(size++) == value);
}

void test_known_weights_of_sets() {
  check_sets({1, Kind::kernel, 1.0, 1.0}, {1, 1, 0, 0, 0});
  check_sets({2, Kind::kernel, 1.0, 1.0}, {1, 3, 2, 0, 0});
  check_sets({3, Kind::kernel, 1.0, 1.0}, {1, 7, 12, 6, 0});
  check_sets({4, Kind::kernel, 1.0, 1.0}, {1, 15, 50, 60, 24});
  check_sets({3, Kind::plain, 5.0, 5.0}, {1, 3, 3, 1, 0});
  check_sets({4, Kind::plain, 5.0, 5.0}, {1, 4, 6, 4, 1});
}

// D_k = sum_j (-1)^(k-j) C(k,j) (gamma j + r)^d
void test_sets_are_finite_differences_of_the_kernel() {
  for (const FeatureMap& map : list_maps()) {
    if (map.kind == Kind::plain) continue;
    for (int size = 0; size <= 4; ++size) {
      double difference = 0.0;
      for (int j = 0; j <= size; ++j) {
        const double binomial =
            brute_force::factorial(size) / (brute_force::factorial(j) * brute_force::factorial(size - j));
        difference +=
            ((size - j) % 2 == 0 ? 1.0 : -1.0) * binomial * std::pow(map.gamma * j + map.coef0, map.degree);
      }
      CHECK(close(map.set(size), difference));
    }
  }
}

double dot(const std::vector<double>& x, const std::vector<double>& z, int power) {
  double sum = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += std::pow(x[i] * z[i], power);
  return sum;
}

// Returns phi(x)'phi(z), conjunction by conjunction.
double explicit_kernel(const FeatureMap& map, Basis basis, const std::vector<double>& x,
                       const std::vector<double>& z) {
  double sum = 0.0;
  for (const auto& ranks : brute_force::all_conjunctions(x.size(), map.degree, basis)) {
    double product = brute_force::squared_constant(map, basis, ranks);
    for (const auto rank : ranks) product *= x[rank] * z[rank];
    sum += product;
  }
  return sum;
}

void test_kernels_equal_products_of_explicit_maps() {
  const std::vector<double> x{1.5, -2.0, 0.0, 0.25, 3.0};
  const std::vector<double> z{-1.0, 0.5, 4.0, 2.0, 0.75};
  const std::vector<double> a{1, 1, 0, 1, 1};
  const std::vector<double> b{1, 1, 1, 0, 1};
  for (const FeatureMap& map : list_maps()) {
    CHECK(close(explicit_kernel(map, Basis::monomials, a, b), explicit_kernel(map, Basis::sets, a, b)));
    if (map.kind == Kind::plain && map.degree == 4) continue;  // needs a fourth power sum
    CHECK(close(map.kernel(dot(x, z, 1), dot(x, z, 2), dot(x, z, 3)),
                explicit_kernel(map, Basis::monomials, x, z)));
    const double overlap = dot(a, b, 1);
    CHECK(close(map.kernel(overlap, overlap, overlap), explicit_kernel(map, Basis::sets, a, b)));
  }
}

// A set's factor is the mean of its monomials, in the proportions of the kernel's expansion.
void test_factors_of_sets_are_means_of_monomials() {
  const std::vector<double> values{-2.0, 0.7, 3.0, 0.5};
  const std::vector<double> ones(4, 1.0);
  for (const FeatureMap& map : list_maps()) {
    const SetFactors factors(map);
    for (int size = 1; size <= map.degree; ++size) {
      if (map.set(size) == 0.0) continue;
      CHECK(close(factors(ones.data(), size), 1.0));
      for (std::size_t first = 0; first + static_cast<std::size_t>(size) <= values.size(); ++first) {
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
        const std::vector<double> subset(begin, begin + size);
        CHECK(close(factors(subset.data(), size), brute_force::factor(map, Basis::sets, subset)));
      }
    }
    if (map.set(2) == 0.0) CHECK(factors.pair(3.0, 0.7) == 0.0);
    if (map.set(3) == 0.0) CHECK(factors.triple(3.0, 0.7, 2.0) == 0.0);
  }
}

}  // namespace

int main() {
  test_known_weights_of_sets();
  test_sets_are_finite_differences_of_the_kernel();
  test_kernels_equal_products_of_explicit_maps();
  test_factors_of_sets_are_means_of_monomials();
  return 0;
}
