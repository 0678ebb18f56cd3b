#include "unkernel/engines/vectors/inverted_engine.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <vector>

#include "unkernel/engines/ranking.hpp"
#include "unkernel/engines/vectors/dense_block.hpp"

namespace unkernel::engines {
namespace {

constexpr std::size_t max_block_rows = 16;
constexpr std::size_t max_block_products = 1 << 17;  // rows x vectors

struct InvertedScratch {
  std::vector<std::uint16_t> overlaps;
  std::vector<double> products;    // rows x vectors, over the columns with lists
  std::vector<double> norms;       // squared norms of the rows, without dense columns
  std::vector<Rank> needed_ranks;  // of the dense columns that the rows of a block need
  std::vector<Rank> place;         // by rank of a dense column: its index in `needed_ranks`
  std::vector<double> x;           // rows x needed ranks
  std::vector<const double*> columns;
  VectorSumScratch sum;
};

class InvertedEngine final : public EngineOf<InvertedEngine, InvertedScratch> {
 public:
  explicit InvertedEngine(const InvertedTables& tables)
      : tables_(tables),
        sum_(tables.sum, is_binary(tables)),
        ranking_(tables.columns),
        dense_columns_(
            static_cast<Rank>(tables.sum.vectors() == 0 ? 0 : tables.whole.size() / tables.sum.vectors())) {}

  static bool is_binary(const InvertedTables& tables) {
    return tables.list_values.empty() && tables.whole.empty();
  }

  std::size_t scores() const override { return tables_.sum.scores(); }
  std::size_t bytes() const override {
    return sum_.bytes() + ranking_.bytes() + tables_.columns.size_bytes() + tables_.whole.size_bytes() +
           tables_.list_begins.size_bytes() + tables_.lists.size_bytes() + tables_.list_values.size_bytes();
  }
  InvertedScratch make_scratch() const { return {}; }

  template <class Index>
  void score_range(const RowRange<Index>& range, InvertedScratch& scratch, double* out) const {
    const std::size_t block_rows = choose_block_rows();
    std::array<SparseRow<Index>, max_block_rows> rows;
    for (std::size_t row = range.first; row < range.last; row += block_rows, out += block_rows * scores()) {
      const std::size_t count = std::min(block_rows, range.last - row);
      for (std::size_t r = 0; r < count; ++r) rows[r] = range[row + r];
      count == 1 ? score_row(rows[0], scratch, out)
                 : score_products(std::span<const SparseRow<Index>>(rows.data(), count), scratch, out);
    }
  }

  template <class Index>
  void score_row(const SparseRow<Index>& row, InvertedScratch& scratch, double* out) const {
    const bool ones = row.values == nullptr || all_ones(row.values, row.columns.size());
    if (ones && is_binary(tables_) && row.columns.size() < std::numeric_limits<std::uint16_t>::max()) {
      score_overlaps(row, scratch, out);
    } else {
      score_products(std::span<const SparseRow<Index>>(&row, 1), scratch, out);
    }
  }

 private:
  bool has_lists() const { return !tables_.lists.empty(); }

  // Returns how many rows to process together. More than one row helps only if there are dense columns.
  std::size_t choose_block_rows() const {
    if (dense_columns_ == 0) return 1;
    return has_lists()
               ? std::clamp<std::size_t>(max_block_products / tables_.sum.vectors(), 1, max_block_rows)
               : max_block_rows;
  }

  template <class Index>
  void score_overlaps(const SparseRow<Index>& row, InvertedScratch& scratch, double* out) const {
    scratch.overlaps.assign(tables_.sum.vectors(), 0);
    std::uint16_t* overlaps = scratch.overlaps.data();
    for (const Index column : row.columns) {
      const Rank rank = ranking_.of(column);
      if (rank == unknown) continue;
      for (std::uint32_t i = tables_.list_begins[rank]; i < tables_.list_begins[rank + 1]; ++i)
        ++overlaps[tables_.lists[i]];
    }
    sum_.sum_overlaps(overlaps, row.columns.size(), scratch.sum, out);
  }

  template <class Index>
  void score_products(std::span<const SparseRow<Index>> rows, InvertedScratch& scratch, double* out) const {
    find_needed_ranks(rows, scratch);
    spread_values(rows, scratch);
    const std::size_t vectors = tables_.sum.vectors(), depth = scratch.columns.size();
    const auto fill = [&](std::size_t first, std::size_t count, double* tile) {
      constexpr std::size_t stride = VectorSum::tile_stride;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        sum_.fill_arguments(has_lists() ? scratch.products.data() + r * vectors : nullptr, scratch.norms[r],
                            first, count, tile + r * stride);
      }
      for (std::size_t c = 0; c < scratch.needed_ranks.size(); ++c)
        scratch.columns[c] = tables_.whole.data() + scratch.needed_ranks[c] * vectors + first;
      const DenseBlock block{rows.size(), scratch.x.data(), depth, scratch.columns, count, tile, stride};
      sum_.uses_distances() ? add_squared_differences(block) : add_products(block);
      for (std::size_t r = 0; r < rows.size(); ++r)
        kernels::kernel_values(tables_.sum.kernel, tile + r * stride, count);
    };
    sum_.sum(rows.size(), fill, scratch.sum, out);
  }

  // Lists the dense columns that the rows need: for distances all of them, for products only those in which a
  // row has a value.
  template <class Index>
  void find_needed_ranks(std::span<const SparseRow<Index>> rows, InvertedScratch& scratch) const {
    scratch.needed_ranks.clear();
    scratch.place.assign(dense_columns_, sum_.uses_distances() ? 0 : unknown);
    for (const SparseRow<Index>& row : rows) {
      if (sum_.uses_distances()) break;
      for (const Index column : row.columns) {
        const Rank rank = ranking_.of(column);
        if (rank < dense_columns_) scratch.place[rank] = 0;
      }
    }
    for (Rank rank = 0; rank < dense_columns_; ++rank) {
      if (scratch.place[rank] == unknown) continue;
      scratch.place[rank] = static_cast<Rank>(scratch.needed_ranks.size());
      scratch.needed_ranks.push_back(rank);
    }
    scratch.columns.assign((scratch.needed_ranks.size() + 3) / 4 * 4, zero_column.data());
  }

  // Collects the values of the rows at dense columns, and adds up the products over the other columns.
  template <class Index>
  void spread_values(std::span<const SparseRow<Index>> rows, InvertedScratch& scratch) const {
    const std::size_t depth = scratch.columns.size(), vectors = tables_.sum.vectors();
    scratch.x.assign(rows.size() * depth, 0.0);
    scratch.norms.assign(rows.size(), 0.0);
    scratch.products.assign(has_lists() ? rows.size() * vectors : 0, 0.0);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (std::size_t k = 0; k < rows[r].columns.size(); ++k) {
        const double x = rows[r].values == nullptr ? 1.0 : rows[r].values[k];
        const Rank rank = ranking_.of(rows[r].columns[k]);
        if (rank < dense_columns_) {
          scratch.x[r * depth + scratch.place[rank]] = x;
          continue;
        }
        scratch.norms[r] += x * x;
        if (rank != unknown && has_lists())
          add_list(rank - dense_columns_, x, scratch.products.data() + r * vectors);
      }
    }
  }

  void add_list(Rank rank, double x, double* products) const {
    const double* values = tables_.list_values.empty() ? nullptr : tables_.list_values.data();
    for (std::uint32_t i = tables_.list_begins[rank]; i < tables_.list_begins[rank + 1]; ++i) {
      products[tables_.lists[i]] += values == nullptr ? x : x * values[i];
    }
  }

  InvertedTables tables_;
  VectorSum sum_;
  Ranking ranking_;
  Rank dense_columns_;  // number of ranks that have dense columns
};

// Returns whether the norms equal the sizes of binary vectors: distances computed from norms are indices into
// a table.
bool sizes_are_norms(const InvertedTables& tables) {
  if (!InvertedEngine::is_binary(tables) || tables.sum.norms.empty()) return true;
  std::vector<double> sizes(tables.sum.vectors(), 0.0);
  for (const std::uint32_t vector : tables.lists) sizes[vector] += 1.0;
  return std::equal(sizes.begin(), sizes.end(), tables.sum.norms.begin());
}

void check_lists(const InvertedTables& tables) {
  const auto& begins = tables.list_begins;
  const std::size_t vectors = tables.sum.vectors();
  const std::size_t dense_columns = vectors == 0 ? 0 : tables.whole.size() / vectors;
  bool valid = dense_columns * vectors == tables.whole.size() && dense_columns <= tables.columns.size() &&
               begins.size() == tables.columns.size() - dense_columns + 1 && begins.front() == 0 &&
               begins.back() == tables.lists.size() && std::is_sorted(begins.begin(), begins.end()) &&
               (tables.list_values.empty() || tables.list_values.size() == tables.lists.size());
  for (std::size_t i = 0; valid && i < tables.lists.size(); ++i) valid = tables.lists[i] < vectors;
  // A vector that occurs twice in a list would get an overlap beyond the table of kernel values.
  for (std::size_t rank = 0; valid && rank + 1 < begins.size(); ++rank) {
    for (std::uint32_t i = begins[rank] + 1; valid && i < begins[rank + 1]; ++i)
      valid = tables.lists[i - 1] < tables.lists[i];
  }
  if (!valid || !sizes_are_norms(tables))
    throw std::invalid_argument("not a valid table of support vectors: the lists do not fit the columns");
}

}  // namespace

std::unique_ptr<Engine> make_inverted_engine(const InvertedTables& tables) {
  check(tables.sum);
  check_lists(tables);
  return std::make_unique<InvertedEngine>(tables);
}

}  // namespace unkernel::engines
