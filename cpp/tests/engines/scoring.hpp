// Helpers for tests of engines: rows in the forms that users provide, and comparison of scores with scores of
// a slow twin.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "check.hpp"
#include "random_rows.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/engines/engine.hpp"

namespace scoring {

using unkernel::Random;
using unkernel::engines::Engine;
using unkernel::engines::SparseRow;

// A sum, and the sum of the absolute values of its terms, to which rounding errors are relative.
struct Sum {
  double value = 0.0;
  double size = 0.0;

  void add(double term) { add(term, std::abs(term)); }
  void add(double term, double term_size) {
    value += term;
    size += term_size;
  }
};

using Sums = std::vector<Sum>;               // by score
using Row = std::map<std::int64_t, double>;  // column -> value
using Entries = std::vector<std::pair<std::int64_t, double>>;

// Returns a row as a map; the values of repeated columns are added.
template <class Index>
Row row_of(const Rows<Index>& rows, std::size_t row) {
  Row result;
  for (std::size_t k = rows.begin(row); k < rows.end(row); ++k) result[rows.columns[k]] += rows.values[k];
  return result;
}

template <class Index>
void add_entries(const Entries& entries, Rows<Index>& rows) {
  for (const auto& [column, value] : entries) {
    rows.columns.push_back(static_cast<Index>(column));
    rows.values.push_back(value);
  }
  rows.offsets.push_back(static_cast<Index>(rows.columns.size()));
}

// Adds a row with its entries in random order. Some entries are split into two, and columns that no model has
// are added.
template <class Index>
void add_unordered_row(Entries entries, std::int64_t unknown_column, Random& random, Rows<Index>& rows) {
  for (std::size_t k = 0, count = entries.size(); k < count; ++k) {
    if (random.below(3) != 0) continue;
    entries[k].second -= 0.25;
    entries.emplace_back(entries[k].first, 0.25);
  }
  entries.emplace_back(unknown_column, 1.0);
  entries.emplace_back(std::numeric_limits<Index>::max(), 1.0);
  entries.emplace_back(-1 - static_cast<std::int64_t>(random.below(5)), 1.0);
  random.shuffle(std::span(entries));
  add_entries(entries, rows);
}

template <class Index>
std::vector<double> scores_of(const Engine& engine, const Rows<Index>& rows, int threads) {
  std::vector<double> out(static_cast<std::size_t>(rows.size()) * engine.scores(), std::nan(""));
  const unkernel::Monitor monitor;
  engine.score(rows.view(), out, {threads, &monitor});
  return out;
}

inline void check_near(std::span<const double> scores, const Sums& expected, double tolerance) {
  CHECK(scores.size() == expected.size());
  for (std::size_t s = 0; s < expected.size(); ++s) {
    CHECK(std::abs(scores[s] - expected[s].value) <= tolerance * expected[s].size);
  }
}

// Checks that a decision has the sign of the only score, or the same largest score, unless the difference is
// within rounding errors.
inline void check_decision(std::span<const double> decision, const Sums& expected, double tolerance) {
  if (expected.size() == 1) {
    CHECK(std::abs(expected[0].value) <= 1e-9 + tolerance * expected[0].size ||
          (decision[0] > 0.0) == (expected[0].value > 0.0));
    return;
  }
  const auto best =
      static_cast<std::size_t>(std::max_element(decision.begin(), decision.end()) - decision.begin());
  for (const Sum& other : expected) {
    CHECK(expected[best].value >= other.value - 1e-9 - tolerance * (expected[best].size + other.size));
  }
}

// Compares the engine's scores with slow(Row), which returns Sums: the scores of all rows in one call, and
// those of single rows, whose decisions (score_until_decided) are also checked.
template <class Index, class Slow>
void check_scores(const Engine& engine, const Rows<Index>& rows, double tolerance, const Slow& slow) {
  const std::size_t n_scores = engine.scores();
  const std::vector<double> all_scores = scores_of(engine, rows, 1);
  const auto worker = engine.worker();
  std::vector<double> row_scores(n_scores);
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows.size()); ++row) {
    const Sums expected = slow(row_of(rows, row));
    check_near(std::span(all_scores).subspan(row * n_scores, n_scores), expected, tolerance);
    const SparseRow<Index> view{
        std::span(rows.columns).subspan(rows.begin(row), rows.end(row) - rows.begin(row)),
        rows.values.data() + rows.begin(row)};
    if constexpr (sizeof(Index) == sizeof(std::int32_t)) {
      engine.score_until_decided(view, *worker, row_scores.data());
      check_decision(row_scores, expected, tolerance);
    }
    engine.score(view, *worker, row_scores.data());
    check_near(row_scores, expected, tolerance);
  }
}

}  // namespace scoring
