// The inverted index (PKI of Kudo & Matsumoto 2003): for each feature the support vectors that have it, so
// that a row touches only what it shares features with. Features that most vectors have with values other
// than 1 are kept as whole columns instead, zeros and all. Exact for every kernel and any values; for RBF,
// distances along whole columns are summed up difference by difference, as |x|^2 + |s|^2 - 2 x's would
// lose what is near in what is far from 0.
//
// Bytes   4 per entry of a support vector, 8 more where values are not all 1; 8 per vector and whole
//         column; 8 m per vector.
// Query   one addition per entry that shares a feature with the row, then one look-up (or, for values
//         other than 1, one evaluation of the kernel) per support vector.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "unkernel/engines/engine.hpp"
#include "unkernel/engines/vectors/vector_sum.hpp"

namespace unkernel::engines {

struct InvertedTables {
  VectorSumTables sum;
  std::span<const std::int64_t> columns;       // rank -> column; those of whole columns come first
  std::span<const double> whole;               // whole columns x vectors; the norms are without them
  std::span<const std::uint32_t> list_begins;  // the other ranks + 1
  std::span<const std::uint32_t> lists;        // vectors, by rank
  std::span<const double> list_values;         // theirs; empty where all are 1
};

// Checks the tables, which must outlive the engine; throws std::invalid_argument.
std::unique_ptr<Engine> make_inverted_engine(const InvertedTables& tables);

}  // namespace unkernel::engines
