#include "unkernel/engines/vectors/vector_sum.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace unkernel::engines {
namespace {

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
  for (std::size_t j = 0; j < vectors; ++j, b += width) {
    const double k = value(j);
    for (std::size_t s = 0; s < width; ++s) out[s] += b[s] * k;
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
