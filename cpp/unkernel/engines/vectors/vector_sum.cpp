#include "unkernel/engines/vectors/vector_sum.hpp"

#include <array>
#include <limits>
#include <stdexcept>
#include <string>

#include "unkernel/engines/vectors/pair_scores.hpp"

namespace unkernel::engines {
namespace {

// The coefficients of some support vectors, and the kernel values of some rows with these vectors.
struct VectorBlock {
  const double* coefficients;  // vectors x width
  std::size_t width;
  std::size_t vectors;
  const double* values;  // rows x vectors, VectorSum::tile_stride apart
  std::size_t rows;
};

// Adds sum_j b[j][s] k[j] to out[s] for `Scores` scores, which stay in registers. Uses four sums per score,
// because additions to a single sum would wait for each other.
template <std::size_t Scores>
void add_few_scores(const double* b, std::size_t width, std::span<const double> k, double* out) {
  double sums[4][Scores] = {};
  std::size_t j = 0;
  for (; j + 4 <= k.size(); j += 4, b += 4 * width) {
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t s = 0; s < Scores; ++s) sums[i][s] += b[i * width + s] * k[j + i];
    }
  }
  for (; j < k.size(); ++j, b += width) {
    for (std::size_t s = 0; s < Scores; ++s) sums[0][s] += b[s] * k[j];
  }
  for (std::size_t s = 0; s < Scores; ++s) out[s] += (sums[0][s] + sums[1][s]) + (sums[2][s] + sums[3][s]);
}

void add_narrow(const VectorBlock& block, double* out, std::size_t out_stride) {
  for (std::size_t row = 0; row < block.rows; ++row, out += out_stride) {
    const std::span k(block.values + row * VectorSum::tile_stride, block.vectors);
    std::size_t s = 0;
    for (; s + 4 <= block.width; s += 4) add_few_scores<4>(block.coefficients + s, block.width, k, out + s);
    for (; s + 2 <= block.width; s += 2) add_few_scores<2>(block.coefficients + s, block.width, k, out + s);
    if (s < block.width) add_few_scores<1>(block.coefficients + s, block.width, k, out + s);
  }
}

// Adds the sums for many scores, with the coefficients as columns of a DenseBlock. Processes as many scores
// at a time as fit into the cache.
void add_wide(const VectorBlock& block, double* out, std::size_t out_stride) {
  std::array<const double*, max_block_width + 4> columns;
  const std::size_t count = (block.vectors + 3) / 4 * 4;
  for (std::size_t s = 0; s < block.width; s += max_block_width) {
    for (std::size_t j = 0; j < count; ++j)
      columns[j] = j < block.vectors ? block.coefficients + j * block.width + s : zero_column.data();
    add_products({block.rows, block.values, VectorSum::tile_stride, std::span(columns).first(count),
                  std::min(max_block_width, block.width - s), out + s, out_stride});
  }
}

void add_block(const VectorBlock& block, double* out, std::size_t out_stride) {
  constexpr std::size_t min_wide = 8;  // scores
  block.width < min_wide ? add_narrow(block, out, out_stride) : add_wide(block, out, out_stride);
}

[[noreturn]] void fail_sum(const char* what) {
  throw std::invalid_argument(std::string("not a valid table of support vectors: ") + what);
}

void check_classes(const VectorSumTables& tables) {
  const auto& begins = tables.class_begins;
  constexpr std::size_t most_classes = std::size_t{1} << 20;
  if (begins.size() < 3 || begins.size() > most_classes || begins.front() != 0 ||
      !std::is_sorted(begins.begin(), begins.end()) ||
      tables.scores() != tables.classes() * (tables.classes() - 1) / 2 ||
      tables.coefficients.size() != std::size_t{begins.back()} * tables.width())
    fail_sum("the numbers of vectors by class do not fit the coefficients");
}

}  // namespace

void check(const VectorSumTables& tables) {
  if (tables.scores() == 0) fail_sum("no scores");
  if (tables.has_classes()) check_classes(tables);
  if (tables.coefficients.size() % tables.width() != 0) fail_sum("the number of coefficients does not fit");
  if (!tables.norms.empty() && tables.norms.size() != tables.vectors())
    fail_sum("the number of norms does not fit");
  if (tables.kernel.type == KernelFunction::Type::rbf) {
    if (tables.norms.size() != tables.vectors()) fail_sum("there are no norms");
    if (!(tables.kernel.gamma >= 0.0)) fail_sum("the gamma of an RBF kernel is negative");
  }
  for (const double norm : tables.norms) {
    if (!(norm >= 0.0 && norm <= std::numeric_limits<double>::max())) fail_sum("a norm is out of range");
  }
}

VectorSum::VectorSum(const VectorSumTables& tables, bool binary) : tables_(tables) {
  if (!binary || !uses_distances()) return;
  for (const double norm : tables.norms) {
    sizes_.push_back(static_cast<std::uint32_t>(norm));
    largest_size_ = std::max<std::size_t>(largest_size_, sizes_.back());
  }
}

void VectorSum::extend_table(std::vector<double>& kernel_values_by_overlap, std::size_t row_size) const {
  const std::size_t needed = row_size + (uses_distances() ? largest_size_ : 0) + 1;
  while (kernel_values_by_overlap.size() < needed) {
    const auto argument = static_cast<double>(kernel_values_by_overlap.size());
    kernel_values_by_overlap.push_back(uses_distances() ? tables_.kernel(0.0, argument, 0.0)
                                                        : tables_.kernel(argument, 0.0, 0.0));
  }
}

template <class Count>
void VectorSum::sum_overlaps(const Count* overlaps, std::size_t row_size, VectorSumScratch& scratch,
                             double* out) const {
  extend_table(scratch.kernel_values_by_overlap, row_size);
  const double* value = scratch.kernel_values_by_overlap.data();
  const auto by_size = [&](std::size_t first, std::size_t count, double* tile) {
    const std::uint32_t* sizes = sizes_.data();
    for (std::size_t j = first; j < first + count; ++j)
      tile[j - first] = value[row_size + sizes[j] - 2 * std::size_t{overlaps[j]}];
  };
  const auto by_overlap = [&](std::size_t first, std::size_t count, double* tile) {
    for (std::size_t j = first; j < first + count; ++j) tile[j - first] = value[overlaps[j]];
  };
  uses_distances() ? sum(1, by_size, scratch, out) : sum(1, by_overlap, scratch, out);
}

template void VectorSum::sum_overlaps(const std::uint8_t*, std::size_t, VectorSumScratch&, double*) const;
template void VectorSum::sum_overlaps(const std::uint16_t*, std::size_t, VectorSumScratch&, double*) const;

void VectorSum::sum_products(const double* products, double row_norm, VectorSumScratch& scratch,
                             double* out) const {
  const auto fill = [&](std::size_t first, std::size_t count, double* tile) {
    fill_arguments(products, row_norm, first, count, tile);
    kernels::kernel_values(tables_.kernel, tile, count);
  };
  sum(1, fill, scratch, out);
}

void VectorSum::fill_arguments(const double* products, double row_norm, std::size_t first, std::size_t count,
                               double* out) const {
  const double* norms = tables_.norms.data() + first;
  if (!uses_distances()) {
    products == nullptr ? std::fill_n(out, count, 0.0) : std::copy_n(products + first, count, out);
  } else if (products == nullptr) {
    for (std::size_t j = 0; j < count; ++j) out[j] = row_norm + norms[j];
  } else {
    for (std::size_t j = 0; j < count; ++j)
      out[j] = std::max(row_norm + norms[j] - 2.0 * products[first + j], 0.0);
  }
}

void VectorSum::add(std::size_t first, std::size_t count, std::size_t rows, VectorSumScratch& scratch,
                    double* out) const {
  const double* values = scratch.tile.data();
  if (!tables_.has_classes())
    return add_block(
        {tables_.coefficients.data() + first * tables_.width(), tables_.width(), count, values, rows}, out,
        tables_.scores());
  const auto& begins = tables_.class_begins;
  auto class_index =
      static_cast<std::size_t>(std::upper_bound(begins.begin(), begins.end(), first) - begins.begin());
  for (std::size_t begin = first; begin < first + count; ++class_index) {
    const std::size_t end = std::min<std::size_t>(begins[class_index], first + count);
    if (end > begin)
      add_vectors_of_class(class_index - 1, begin, end - begin, rows, values + (begin - first), scratch, out);
    begin = end;
  }
}

void VectorSum::add_vectors_of_class(std::size_t class_index, std::size_t first, std::size_t count,
                                     std::size_t rows, const double* values, VectorSumScratch& scratch,
                                     double* out) const {
  const std::size_t width = tables_.width();
  scratch.sums.assign(rows * width, 0.0);
  add_block({tables_.coefficients.data() + first * width, width, count, values, rows}, scratch.sums.data(),
            width);
  for (std::size_t row = 0; row < rows; ++row)
    add_pair_sums(scratch.sums.data() + row * width, class_index, tables_.classes(),
                  out + row * tables_.scores());
}

}  // namespace unkernel::engines
