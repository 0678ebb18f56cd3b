// Writes the columns m_T(x_i) of conjunctions T: the rows that contain all features of T, with the product of
// their values.
//
// The rows of the rarest feature are kept if they contain the other features. A table of the rows that
// contain a feature answers this, and is kept for the next conjunction: so conjunctions are best written in
// the order that `writing_order` returns. If the feature occurs in many more rows than are left, and its rows
// are not in the table yet, each row is searched for the feature instead.
//
// Memory   1 byte per row and feature of a conjunction but the first, 8 to 16 per row of the rarest feature.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/poly/conjunction_search.hpp"
#include "unkernel/solve/sparse_columns.hpp"

namespace unkernel::poly {

class ConjunctionSearch::ColumnWriter {
 public:
  explicit ColumnWriter(const ConjunctionSearch& search) : search_(search) {}

  // Appends the entries without the constant c_T; the caller completes the column.
  void append_entries(kernels::Key key, solve::SparseColumns& columns);
  // Appends the column phi_T(x_i).
  void append(kernels::Key key, solve::SparseColumns& columns) {
    append_entries(key, columns);
    columns.finish(search_.constant_of(key));
  }

 private:
  static constexpr std::size_t no_rank = static_cast<std::size_t>(-1);

  // The rows that contain a feature.
  struct Holders {
    std::size_t rank = no_rank;
    std::vector<std::uint8_t> contain;  // by row
  };

  bool pays_off(const Holders& holders, std::size_t rank) const;
  void list(Holders& holders, std::size_t rank) const;
  // Returns the position of a feature in a row, or -1.
  std::int32_t find(std::size_t rank, const Occurrences::Place& place) const;
  void keep_rows_with(std::size_t rank, Holders& holders);

  const ConjunctionSearch& search_;
  std::array<Holders, 2> holders_;          // of the second and of the third feature
  std::vector<Occurrences::Place> places_;  // the rows that are left, and where they have the rarest feature
  std::vector<double> products_;            // of the values of these rows; empty if rows are binary
};

}  // namespace unkernel::poly
