#include "unkernel/engines/vectors/inverted_engine.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include "unkernel/base/cpu.hpp"
#include "unkernel/engines/ranking.hpp"

namespace unkernel::engines {
namespace {

struct InvertedScratch {
  std::vector<std::uint16_t> overlaps;
  std::vector<double> products;
  std::vector<double> kernel_values;
  std::vector<const double*> wholes;  // of the row, and its values there
  std::vector<double> whole_values;
  std::vector<double> distances;  // along dense columns
};

// products[j] += sum of x[i] columns[i][j] over four columns, so that a product is loaded once for all four.
UNKERNEL_CLONES void add_four_columns(const double* const* columns, const double* x, double* products,
                                      std::size_t count) {
  const double *c0 = columns[0], *c1 = columns[1], *c2 = columns[2], *c3 = columns[3];
  const double x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
  for (std::size_t j = 0; j < count; ++j)
    products[j] += (x0 * c0[j] + x1 * c1[j]) + (x2 * c2[j] + x3 * c3[j]);
}

// distances[j] += (x - column[j])^2
UNKERNEL_CLONES void add_distances(const double* column, double x, double* distances, std::size_t count) {
  for (std::size_t j = 0; j < count; ++j) distances[j] += (x - column[j]) * (x - column[j]);
}

UNKERNEL_CLONES void add_column(const double* column, double x, double* products, std::size_t count) {
  for (std::size_t j = 0; j < count; ++j) products[j] += x * column[j];
}

class InvertedEngine final : public EngineOf<InvertedEngine, InvertedScratch> {
 public:
  explicit InvertedEngine(const InvertedTables& tables)
      : tables_(tables),
        sum_(tables.sum, is_binary(tables)),
        ranking_(tables.columns),
        wholes_(
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
    for (std::size_t row = range.first; row < range.last; ++row, out += scores())
      score_row(range[row], scratch, out);
  }

  template <class Index>
  void score_row(const SparseRow<Index>& row, InvertedScratch& scratch, double* out) const {
    const bool ones = row.values == nullptr || all_ones(row.values, row.columns.size());
    if (ones && is_binary(tables_) && row.columns.size() < std::numeric_limits<std::uint16_t>::max()) {
      score_overlaps(row, scratch, out);
    } else {
      score_products(row, scratch, out);
    }
  }

 private:
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
    sum_.of_overlaps(overlaps, row.columns.size(), scratch.kernel_values, out);
  }

  template <class Index>
  void score_products(const SparseRow<Index>& row, InvertedScratch& scratch, double* out) const {
    scratch.products.assign(tables_.sum.vectors(), 0.0);
    const bool by_distance = tables_.sum.kernel.type == KernelFunction::Type::rbf;
    scratch.wholes.clear();
    scratch.whole_values.assign(by_distance ? wholes_ : 0, 0.0);
    double norm = 0.0;
    for (std::size_t k = 0; k < row.columns.size(); ++k) {
      const double x = row.values == nullptr ? 1.0 : row.values[k];
      const Rank rank = ranking_.of(row.columns[k]);
      if (rank >= wholes_) {
        norm += x * x;
        if (rank != unknown) add_list(rank - wholes_, x, scratch.products.data());
      } else if (by_distance) {
        scratch.whole_values[rank] = x;
      } else {
        scratch.wholes.push_back(tables_.whole.data() + rank * tables_.sum.vectors());
        scratch.whole_values.push_back(x);
      }
    }
    if (by_distance && wholes_ > 0) {
      sum_distances(scratch);
      sum_.of_products(scratch.products.data(), norm, scratch.distances.data(), out);
    } else {
      add_wholes(scratch);
      sum_.of_products(scratch.products.data(), norm, nullptr, out);
    }
  }

  void sum_distances(InvertedScratch& scratch) const {
    const std::size_t vectors = tables_.sum.vectors();
    scratch.distances.assign(vectors, 0.0);
    for (Rank rank = 0; rank < wholes_; ++rank) {
      add_distances(tables_.whole.data() + rank * vectors, scratch.whole_values[rank],
                    scratch.distances.data(), vectors);
    }
  }

  // Processes a range of vectors at a time, which stays in the cache while all columns pass over it.
  void add_wholes(InvertedScratch& scratch) const {
    constexpr std::size_t stretch = 1024;
    const std::size_t vectors = tables_.sum.vectors();
    for (std::size_t first = 0; first < vectors; first += stretch) {
      const std::size_t count = std::min(stretch, vectors - first);
      double* products = scratch.products.data() + first;
      std::size_t k = 0;
      for (; k + 4 <= scratch.wholes.size(); k += 4) {
        const double* four[4];
        for (std::size_t i = 0; i < 4; ++i) four[i] = scratch.wholes[k + i] + first;
        add_four_columns(four, scratch.whole_values.data() + k, products, count);
      }
      for (; k < scratch.wholes.size(); ++k)
        add_column(scratch.wholes[k] + first, scratch.whole_values[k], products, count);
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
  Rank wholes_;  // number of ranks with dense columns
};

// For binary vectors: distances index a table, which requires that sizes equal norms.
bool sizes_are_norms(const InvertedTables& tables) {
  if (!InvertedEngine::is_binary(tables) || tables.sum.norms.empty()) return true;
  std::vector<double> sizes(tables.sum.vectors(), 0.0);
  for (const std::uint32_t vector : tables.lists) sizes[vector] += 1.0;
  return std::equal(sizes.begin(), sizes.end(), tables.sum.norms.begin());
}

void check_lists(const InvertedTables& tables) {
  const auto& begins = tables.list_begins;
  const std::size_t vectors = tables.sum.vectors();
  const std::size_t wholes = vectors == 0 ? 0 : tables.whole.size() / vectors;
  bool sound = wholes * vectors == tables.whole.size() && wholes <= tables.columns.size() &&
               begins.size() == tables.columns.size() - wholes + 1 && begins.front() == 0 &&
               begins.back() == tables.lists.size() && std::is_sorted(begins.begin(), begins.end()) &&
               (tables.list_values.empty() || tables.list_values.size() == tables.lists.size());
  for (std::size_t i = 0; sound && i < tables.lists.size(); ++i) sound = tables.lists[i] < vectors;
  // An overlap counts a vector once per feature; a list that names it twice would overflow the table.
  for (std::size_t rank = 0; sound && rank + 1 < begins.size(); ++rank) {
    for (std::uint32_t i = begins[rank] + 1; sound && i < begins[rank + 1]; ++i)
      sound = tables.lists[i - 1] < tables.lists[i];
  }
  if (!sound || !sizes_are_norms(tables))
    throw std::invalid_argument("not a valid table of support vectors: the lists do not fit");
}

}  // namespace

std::unique_ptr<Engine> make_inverted_engine(const InvertedTables& tables) {
  check(tables.sum);
  check_lists(tables);
  return std::make_unique<InvertedEngine>(tables);
}

}  // namespace unkernel::engines
