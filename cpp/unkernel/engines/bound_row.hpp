// Scores rows that share a part: sums the contribution of the shared part only once.
//
// A score f of degree 2 is a sum over columns and pairs of columns. If a shared part s and another part x
// have no column in common,
//
//   f(s + x)  =  f(s) + f(x) - f(0) + sum_j x_j c_j,    c_j = f(s + e_j) - f(s) - f(e_j) + f(0)
//
// where e_j is a row with a single 1, in column j. c_j covers all pairs of column j with shared columns. It
// is computed when column j first occurs. Scores of degree 1 have no pairs. For other scores, the two parts
// are merged and scored as one row.
//
// Query   the score of x alone, and one addition per column of x and score.
// Bytes   4 per column; 8 per score of each column that has occurred.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "unkernel/engines/engine.hpp"

namespace unkernel::engines {

// Selects the terms that are summed once for the shared part: scores of degree 1 are linear, scores of degree
// 2 have pairs, and all others share nothing.
enum class Sharing { linear, pairs, nothing };

// Scores rows with one shared part. Not thread-safe, because it has buffers. The engine must outlive it.
class BoundRow {
 public:
  struct Shared {
    std::vector<std::int32_t> columns;  // ascending
    std::vector<double> values;
  };

  // All columns must be below `width`. Throws std::invalid_argument if the shared part is not a valid row.
  BoundRow(const Engine& engine, Shared shared, std::int32_t width, Sharing sharing);

  // Computes the scores of the shared part merged with the row. The row's columns must ascend, and none may
  // be in the shared part.
  void score(const SparseRow<std::int32_t>& row, double* out);

 private:
  void score_merged(const SparseRow<std::int32_t>& row, double* out);
  std::vector<double> compute_scores(const SparseRow<std::int32_t>& row);
  // Returns c_j of column j, one value per score.
  const double* pairs_with(std::int32_t column);

  const Engine& engine_;
  std::unique_ptr<Worker> worker_;
  Shared shared_;
  Sharing sharing_;
  std::vector<double> scores_of_shared_;  // f(s)
  std::vector<double> scores_of_empty_;   // f(0)
  std::vector<std::int32_t> pair_rows_;   // by column: its row in pairs_; -1 if it has not occurred yet
  std::vector<double> pairs_;             // c_j x scores
  Shared merged_;
};

}  // namespace unkernel::engines
