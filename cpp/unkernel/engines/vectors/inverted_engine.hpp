// The inverted index (PKI of Kudo & Matsumoto 2003): for each feature, a list of the support vectors that
// contain it. A row is compared only with vectors that share features with it. A feature that occurs in most
// vectors, with values other than 1, is stored as a dense column, including zeros. Exact for every kernel and
// any values. For RBF, the squared differences of dense columns are summed, because |x|^2 + |s|^2 - 2 x's
// would suffer from cancellation for points far from 0.
//
// Bytes   4 per entry of a support vector, 8 more if values are not all 1; 8 per vector and dense column; and
//         the coefficients.
// Query   one addition per entry that shares a feature with the row. Per support vector, one multiplication
//         for each dense column, then one lookup (or, for values other than 1, one evaluation of the kernel).
//         A batch goes through dense columns in blocks of rows, so that a value is loaded once for several
//         rows. The scores of a row do not depend on the other rows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "unkernel/engines/engine.hpp"
#include "unkernel/engines/vectors/vector_sum.hpp"

namespace unkernel::engines {

struct InvertedTables {
  VectorSumTables sum;
  std::span<const std::int64_t> columns;       // rank -> column; the ranks of dense columns come first
  std::span<const double> whole;               // dense columns x vectors; norms do not include them
  std::span<const std::uint32_t> list_begins;  // number of ranks without dense columns, + 1
  std::span<const std::uint32_t> lists;        // vectors, by rank
  std::span<const double> list_values;         // empty if all values are 1
};

// Checks the tables, which must outlive the engine; throws std::invalid_argument.
std::unique_ptr<Engine> make_inverted_engine(const InvertedTables& tables);

}  // namespace unkernel::engines
