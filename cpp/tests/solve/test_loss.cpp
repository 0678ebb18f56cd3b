// Compares all losses with their definitions: g(u) = min_f loss(f) + u f, and the best u with a search.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "solve/static_loss.hpp"
#include "unkernel/base/random.hpp"

namespace {

using unkernel::Random;
using namespace static_loss;

// Returns the argument at which a concave function is largest, by ternary search.
double find_maximum(const std::function<double(double)>& concave, double low, double high) {
  for (int i = 0; i < 300; ++i) {
    const double left = low + (high - low) / 3.0;
    const double right = high - (high - low) / 3.0;
    (concave(left) < concave(right) ? low : high) = concave(left) < concave(right) ? left : right;
  }
  return 0.5 * (low + high);
}

double uniform(Random& random, double low, double high) {
  return low + (high - low) * (random.below(1'000'001) / 1e6);
}

constexpr double search_limit = 100.0;

template <class LossKind>
double low(const Costs& c) {
  return std::max(LossKind::low(c), -search_limit);
}
template <class LossKind>
double high(const Costs& c) {
  return std::min(LossKind::high(c), search_limit);
}

const std::vector<Costs> costs_to_test = {{1.0, 0.0}, {0.0, 1.0}, {0.3, 0.0},   {0.0, 12.0}, {1.0, 1.0},
                                          {2.0, 0.5}, {0.1, 7.0}, {1e-3, 1e-3}, {5.0, 1e-6}};

template <class LossKind>
void test_losses_and_duals_equal_their_definitions() {
  const auto plain = LossKind::plain;
  Random random(1);
  for (const Costs& c : costs_to_test) {
    for (int i = 0; i < 40; ++i) {
      const double f = uniform(random, -4.0, 4.0);
      CHECK(close(LossKind::loss(c, f), plain(c, f)));
      const double u = uniform(random, low<LossKind>(c), high<LossKind>(c));
      // At the minimum over f, the loss has slope -u. The absolute value of this f is below the search
      // radius.
      const double search_radius = 2.0 + search_limit / std::min(c.positive > 0 ? c.positive : c.negative,
                                                                 c.negative > 0 ? c.negative : c.positive);
      const double minimiser =
          find_maximum([&](double t) { return -plain(c, t) - u * t; }, -search_radius, search_radius);
      CHECK(close(LossKind::dual(c, u), plain(c, minimiser) + u * minimiser, 1e-7));
    }
  }
}

// Includes curvature 0 (an empty row with coef0 = 0), where the step is not a division.
template <class LossKind>
void test_best_maximises_the_dual_of_one_row() {
  Random random(2);
  for (const Costs& c : costs_to_test) {
    for (const double curvature : {0.0, 1e-9, 0.01, 1.0, 300.0}) {
      for (double score_without_row :
           {-3.0, -1.0, -0.999, 0.0, 0.3, 1.0, 1.001, 5.0, uniform(random, -2, 2), uniform(random, -2, 2)}) {
        const auto dual = [&](double u) {
          return LossKind::dual(c, u) - u * score_without_row - 0.5 * curvature * u * u;
        };
        const double best = LossKind::best(c, score_without_row, curvature);
        CHECK(best >= LossKind::low(c) && best <= LossKind::high(c));
        const double searched = find_maximum(dual, low<LossKind>(c), high<LossKind>(c));
        CHECK(dual(best) >= dual(searched) - 1e-9 * std::max(1.0, std::abs(dual(searched))));
      }
    }
  }
}

template <class LossKind>
double gap_term(const Costs& c, double u, double f) {
  return LossKind::loss(c, f) - LossKind::dual(c, u) + u * f;
}

template <class LossKind>
void test_gap_terms_are_nonnegative_and_zero_at_the_optimum() {
  Random random(3);
  for (const Costs& c : costs_to_test) {
    for (int i = 0; i < 300; ++i) {
      const double u = uniform(random, low<LossKind>(c), high<LossKind>(c));
      const double f = uniform(random, -6.0, 6.0);
      CHECK(gap_term<LossKind>(c, u, f) >= -1e-9 * std::max(1.0, std::abs(u * f)));
      const double curvature = uniform(random, 0.0, 5.0);
      const double best = LossKind::best(c, f, curvature);
      CHECK(close(gap_term<LossKind>(c, best, f + curvature * best), 0.0, 1e-9));
    }
  }
}

template <class LossKind>
void test_slopes_equal_differences_of_the_dual() {
  Random random(4);
  constexpr double h = 1e-6;
  for (const Costs& c : costs_to_test) {
    const double width = LossKind::has_box ? c.positive + c.negative : 4.0;
    std::vector<double> points;
    for (int i = 0; i < 20; ++i) {
      const double u = uniform(random, std::max(LossKind::low(c), -2.0), std::min(LossKind::high(c), 2.0));
      // A difference across the kink would equal neither slope.
      if (std::abs(u - LossKind::kink(c)) > h * width) points.push_back(u);
    }
    points.push_back(LossKind::kink(c));
    for (const double u : points) {
      const double step = h * width;
      // With targets, the curvature of g is that of the side where u lies.
      const double side = u > 0.0 ? c.positive : c.negative;
      const double cost = LossKind::has_targets ? side : std::max(c.positive, c.negative);
      const double scale = 1.0 + (LossKind::has_box || cost == 0.0 ? 0.0 : width / cost);
      if (u + step <= LossKind::high(c)) {
        const double slope = (LossKind::dual(c, u + step) - LossKind::dual(c, u)) / step;
        CHECK(std::abs(LossKind::right_slope(c, u) - slope) <= 2e-3 * scale * std::max(1.0, std::abs(slope)));
      }
      if (u - step >= LossKind::low(c)) {
        const double slope = (LossKind::dual(c, u) - LossKind::dual(c, u - step)) / step;
        CHECK(std::abs(LossKind::left_slope(c, u) - slope) <= 2e-3 * scale * std::max(1.0, std::abs(slope)));
      }
    }
  }
}

// The textbook steps for a row with one label.
void test_steps_equal_those_of_textbooks() {
  CHECK(Hinge::best({1.0, 0.0}, 0.0, 2.0) == 0.5);
  CHECK(Hinge::best({0.25, 0.0}, 0.0, 2.0) == 0.25);
  CHECK(Hinge::best({1.0, 0.0}, 3.0, 2.0) == 0.0);
  CHECK(Hinge::best({0.0, 1.0}, 0.0, 2.0) == -0.5);
  CHECK(Hinge::best({1.0, 0.0}, 0.0, 0.0) == 1.0);
  CHECK(close(SquaredHinge::best({1.0, 0.0}, 0.0, 2.0), 1.0 / (2.0 + 0.5)));
  CHECK(SquaredHinge::best({1.0, 0.0}, 3.0, 2.0) == 0.0);
  CHECK(close(SquaredHinge::best({1.0, 0.0}, 0.0, 0.0), 2.0));
  // Ho & Lin 2012: the step leads to the nearer end of the tube.
  CHECK(Insensitive::best({1.0, 1.0}, -1.3, 2.0) == 0.5);
  CHECK(Insensitive::best({1.0, 1.0}, 9.0, 2.0) == -1.0);
  CHECK(Insensitive::best({1.0, 1.0}, 0.2, 2.0) == 0.0);
  CHECK(close(Squares::best({1.0, 1.0}, -3.0, 2.0), 3.0 / (2.0 + 0.5)));
}

}  // namespace

int main() {
  for_all_losses([]<class LossKind>(LossKind) {
    test_losses_and_duals_equal_their_definitions<LossKind>();
    test_best_maximises_the_dual_of_one_row<LossKind>();
    test_gap_terms_are_nonnegative_and_zero_at_the_optimum<LossKind>();
    test_slopes_equal_differences_of_the_dual<LossKind>();
  });
  test_steps_equal_those_of_textbooks();
  return 0;
}
