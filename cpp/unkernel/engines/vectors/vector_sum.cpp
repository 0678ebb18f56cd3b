#include "unkernel/engines/vectors/vector_sum.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

namespace unkernel::engines {
namespace {

// Adds sum_j b[j][s] k[j] to out[s] for `Scores` scores, which stay in registers. Two sums per score, because
// the additions of a single one would wait for each other.
template <std::size_t Scores>
void add_few_scores(const double* b, std::size_t width, std::span<const double> k, double* out) {
  double even[Scores] = {}, odd[Scores] = {};
  std::size_t j = 0;
  for (; j + 2 <= k.size(); j += 2, b += 2 * width) {
    for (std::size_t s = 0; s < Scores; ++s) even[s] += b[s] * k[j];
    for (std::size_t s = 0; s < Scores; ++s) odd[s] += b[width + s] * k[j + 1];
  }
  if (j < k.size()) {
    for (std::size_t s = 0; s < Scores; ++s) even[s] += b[s] * k[j];
  }
  for (std::size_t s = 0; s < Scores; ++s) out[s] += even[s] + odd[s];
}

// The same for more scores than registers hold: coefficients are read in the order of memory, four vectors at
// a time, so that a score is loaded and stored once for all four.
void add_many_scores(const double* b, std::size_t width, std::span<const double> k, double* out) {
  std::size_t j = 0;
  for (; j + 4 <= k.size(); j += 4, b += 4 * width) {
    const double k0 = k[j], k1 = k[j + 1], k2 = k[j + 2], k3 = k[j + 3];
    const double *b0 = b, *b1 = b0 + width, *b2 = b1 + width, *b3 = b2 + width;
    for (std::size_t s = 0; s < width; ++s) out[s] += (b0[s] * k0 + b1[s] * k1) + (b2[s] * k2 + b3[s] * k3);
  }
  for (; j < k.size(); ++j, b += width) {
    for (std::size_t s = 0; s < width; ++s) out[s] += b[s] * k[j];
  }
}

void add_scores(const double* b, std::size_t width, std::span<const double> k, double* out) {
  if (width >= 16) return add_many_scores(b, width, k, out);
  std::size_t s = 0;
  for (; s + 4 <= width; s += 4) add_few_scores<4>(b + s, width, k, out + s);
  for (; s + 2 <= width; s += 2) add_few_scores<2>(b + s, width, k, out + s);
  if (s < width) add_few_scores<1>(b + s, width, k, out + s);
}

// sum_j coefficients[j] value(j) for each score.
template <class Value>
void weighted_sum(const VectorSumTables& tables, const Value& value, double* out) {
  const std::size_t vectors = tables.vectors();
  const std::size_t width = tables.scores();
  const double* b = tables.coefficients.data();
  std::copy(tables.intercept.begin(), tables.intercept.end(), out);
  if (width == 1) {
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
    std::size_t j = 0;
    for (; j + 4 <= vectors; j += 4) {
      s0 += b[j] * value(j);
      s1 += b[j + 1] * value(j + 1);
      s2 += b[j + 2] * value(j + 2);
      s3 += b[j + 3] * value(j + 3);
    }
    for (; j < vectors; ++j) s0 += b[j] * value(j);
    out[0] += (s0 + s1) + (s2 + s3);
    return;
  }
  std::array<double, 128> k;  // kernel values of some vectors; with their coefficients they stay in the cache
  for (std::size_t first = 0; first < vectors; first += k.size()) {
    const std::size_t count = std::min(k.size(), vectors - first);
    for (std::size_t j = 0; j < count; ++j) k[j] = value(first + j);
    add_scores(b + first * width, width, std::span(k).first(count), out);
  }
}

}  // namespace

void check(const VectorSumTables& tables) {
  const auto fail = [](const char* what) {
    throw std::invalid_argument(std::string("not a valid table of support vectors: ") + what);
  };
  if (tables.scores() == 0) fail("no scores");
  if (tables.coefficients.size() % tables.scores() != 0) fail("the number of coefficients does not fit");
  if (!tables.norms.empty() && tables.norms.size() != tables.vectors())
    fail("the number of norms does not fit");
  if (tables.kernel.type == KernelFunction::Type::rbf && tables.norms.size() != tables.vectors())
    fail("there are no norms");
  for (const double norm : tables.norms) {
    if (!(norm >= 0.0 && norm <= std::numeric_limits<double>::max())) fail("a norm is out of range");
  }
}

VectorSum::VectorSum(const VectorSumTables& tables, bool binary) : tables_(tables) {
  if (!binary || !by_distance()) return;
  for (const double norm : tables.norms) {
    sizes_.push_back(static_cast<std::uint32_t>(norm));
    largest_ = std::max<std::size_t>(largest_, sizes_.back());
  }
}

void VectorSum::extend(std::vector<double>& values, std::size_t row_size) const {
  const std::size_t needed = row_size + (by_distance() ? largest_ : 0) + 1;
  while (values.size() < needed) {
    const auto at = static_cast<double>(values.size());
    values.push_back(by_distance() ? tables_.kernel(0.0, at, 0.0) : tables_.kernel(at, 0.0, 0.0));
  }
}

template <class Count>
void VectorSum::of_overlaps(const Count* overlaps, std::size_t row_size, std::vector<double>& values,
                            double* out) const {
  extend(values, row_size);
  const double* value = values.data();
  if (by_distance()) {
    const std::uint32_t* sizes = sizes_.data();
    weighted_sum(
        tables_, [&](std::size_t j) { return value[row_size + sizes[j] - 2 * std::size_t{overlaps[j]}]; },
        out);
  } else {
    weighted_sum(tables_, [&](std::size_t j) { return value[overlaps[j]]; }, out);
  }
}

template void VectorSum::of_overlaps(const std::uint8_t*, std::size_t, std::vector<double>&, double*) const;
template void VectorSum::of_overlaps(const std::uint16_t*, std::size_t, std::vector<double>&, double*) const;

void VectorSum::of_products(const double* products, double row_norm, const double* distances,
                            double* out) const {
  if (!by_distance())
    return weighted_sum(tables_, [&](std::size_t j) { return tables_.kernel(products[j], 0.0, 0.0); }, out);
  const double* norms = tables_.norms.data();
  const auto distance = [&](std::size_t j) {
    const double near = std::max(row_norm + norms[j] - 2.0 * products[j], 0.0);
    return distances == nullptr ? near : near + distances[j];
  };
  weighted_sum(tables_, [&](std::size_t j) { return tables_.kernel(0.0, distance(j), 0.0); }, out);
}

}  // namespace unkernel::engines
