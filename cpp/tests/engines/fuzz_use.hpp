// Scores rows decoded from the input of a fuzz target, in every way that an engine offers.
#pragma once

#include <cstdint>
#include <vector>

#include "check.hpp"
#include "fuzz_bytes.hpp"
#include "random_rows.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/engines/engine.hpp"

// Adds a row with ones or other values. Its columns ascend, or are in any order and may be repeated or
// unknown.
inline void fuzz_row(FuzzBytes& bytes, std::int64_t features, Rows<std::int32_t>& rows) {
  const std::uint8_t kind = bytes.byte();
  std::vector<std::int32_t> columns;
  std::vector<double> values;
  for (std::size_t left = kind % 12; left > 0; --left) {
    columns.push_back(static_cast<std::int32_t>(bytes.below(static_cast<std::size_t>(features) + 2)) - 1);
    values.push_back((kind & 0x40) != 0 ? 0.25 * (bytes.byte() - 100) : 1.0);
  }
  if ((kind & 0x80) == 0) {
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    values.resize(columns.size());
  }
  rows.add(columns, values);
}

inline void use_engine(const unkernel::engines::Engine& engine, FuzzBytes& bytes, std::int64_t features) {
  using unkernel::engines::SparseRow;
  Rows<std::int32_t> rows;
  rows.features = features;
  for (int row = 0; row < 3; ++row) fuzz_row(bytes, features, rows);
  if (bytes.flag()) {
    std::vector<double> all(3 * engine.scores());
    const unkernel::Monitor monitor;
    engine.score(rows.view(), all, {1, &monitor});
  }
  const auto worker = engine.worker();
  std::vector<double> out(engine.scores());
  for (std::size_t row = 0; row < 3; ++row) {
    const auto columns = std::span(rows.columns).subspan(rows.begin(row), rows.end(row) - rows.begin(row));
    engine.score(SparseRow<std::int32_t>{columns, rows.values.data() + rows.begin(row)}, *worker, out.data());
    engine.score_until_decided(SparseRow<std::int32_t>{columns, nullptr}, *worker, out.data());
    const std::vector<std::int64_t> wide(columns.begin(), columns.end());
    engine.score(SparseRow<std::int64_t>{wide, nullptr}, *worker, out.data());
  }
}
