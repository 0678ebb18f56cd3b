// Encodes the records of a table: turns columns into rows in CSR format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/records/column.hpp"
#include "unkernel/records/plan.hpp"

namespace unkernel::records {

struct EncodedRows {
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> columns;
  std::vector<double> values;
};

// Encodes a table with one column per column of the plan. The result does not depend on the number of
// threads. Throws std::invalid_argument, with the number of the row, for a record that cannot be encoded.
EncodedRows encode_rows(const Plan& plan, std::span<const Column> columns, std::size_t rows, Threads threads);

// Appends rows to `all`.
void append(EncodedRows&& rows, EncodedRows& all);

}  // namespace unkernel::records
