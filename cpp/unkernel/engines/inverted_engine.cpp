#include "unkernel/engines/inverted_engine.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include "unkernel/engines/ranking.hpp"

namespace unkernel::engines {
namespace {

struct InvertedScratch {
  std::vector<std::uint16_t> overlaps;
  std::vector<double> products;
  std::vector<double> kernel_values;
};

class InvertedEngine final : public EngineOf<InvertedEngine, InvertedScratch> {
 public:
  explicit InvertedEngine(const InvertedTables& tables)
      : tables_(tables), sum_(tables.sum, tables.list_values.empty()), ranking_(tables.columns) {}

  std::size_t scores() const override { return tables_.sum.scores(); }
  std::size_t bytes() const override {
    return sum_.bytes() + ranking_.bytes() + tables_.columns.size_bytes() + tables_.list_begins.size_bytes() +
           tables_.lists.size_bytes() + tables_.list_values.size_bytes();
  }
  InvertedScratch make_scratch() const { return {}; }

  template <class Index>
  void score_range(const RowRange<Index>& range, InvertedScratch& scratch, double* out) const {
    for (std::size_t row = range.first; row < range.last; ++row, out += scores()) score_row(range[row], scratch, out);
  }

  template <class Index>
  void score_row(const RowView<Index>& row, InvertedScratch& scratch, double* out) const {
    const bool ones = row.values == nullptr || all_ones(row.values, row.columns.size());
    if (ones && tables_.list_values.empty() && row.columns.size() < std::numeric_limits<std::uint16_t>::max()) {
      score_overlaps(row, scratch, out);
    } else {
      score_products(row, scratch, out);
    }
  }

 private:
  template <class Index>
  void score_overlaps(const RowView<Index>& row, InvertedScratch& scratch, double* out) const {
    scratch.overlaps.assign(tables_.sum.vectors(), 0);
    std::uint16_t* overlaps = scratch.overlaps.data();
    for (const Index column : row.columns) {
      const Rank rank = ranking_.of(column);
      if (rank == unknown) continue;
      for (std::uint32_t i = tables_.list_begins[rank]; i < tables_.list_begins[rank + 1]; ++i) ++overlaps[tables_.lists[i]];
    }
    sum_.of_overlaps(overlaps, row.columns.size(), scratch.kernel_values, out);
  }

  template <class Index>
  void score_products(const RowView<Index>& row, InvertedScratch& scratch, double* out) const {
    scratch.products.assign(tables_.sum.vectors(), 0.0);
    double norm = 0.0;
    for (std::size_t k = 0; k < row.columns.size(); ++k) {
      const double x = row.values == nullptr ? 1.0 : row.values[k];
      norm += x * x;
      const Rank rank = ranking_.of(row.columns[k]);
      if (rank != unknown) add_list(rank, x, scratch.products.data());
    }
    sum_.of_products(scratch.products.data(), norm, out);
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
};

// Of binary vectors: distances that index a table are only such if they are.
bool sizes_are_norms(const InvertedTables& tables) {
  if (!tables.list_values.empty() || tables.sum.norms.empty()) return true;
  std::vector<double> sizes(tables.sum.vectors(), 0.0);
  for (const std::uint32_t vector : tables.lists) sizes[vector] += 1.0;
  return std::equal(sizes.begin(), sizes.end(), tables.sum.norms.begin());
}

void check_lists(const InvertedTables& tables) {
  const auto& begins = tables.list_begins;
  bool sound = begins.size() == tables.columns.size() + 1 && begins.front() == 0 && begins.back() == tables.lists.size() &&
               std::is_sorted(begins.begin(), begins.end()) &&
               (tables.list_values.empty() || tables.list_values.size() == tables.lists.size());
  const std::size_t vectors = tables.sum.vectors();
  for (std::size_t i = 0; sound && i < tables.lists.size(); ++i) sound = tables.lists[i] < vectors;
  // An overlap counts a vector once per feature; a list that names it twice would count more than there is.
  for (std::size_t rank = 0; sound && rank < tables.columns.size(); ++rank) {
    for (std::uint32_t i = begins[rank] + 1; sound && i < begins[rank + 1]; ++i) sound = tables.lists[i - 1] < tables.lists[i];
  }
  if (!sound || !sizes_are_norms(tables)) throw std::invalid_argument("not a sound table of support vectors: the lists do not fit");
}

}  // namespace

std::unique_ptr<Engine> make_inverted_engine(const InvertedTables& tables) {
  check(tables.sum);
  check_lists(tables);
  return std::make_unique<InvertedEngine>(tables);
}

}  // namespace unkernel::engines
