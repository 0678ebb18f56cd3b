// Steps from numbers to numbers. The input of all steps except `numbers` is a dense block, or a sparse block
// if the comment of the step allows it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "unkernel/records/step.hpp"

namespace unkernel::records {

// Reads columns of the record as numbers; None and absent columns give NaN.
std::unique_ptr<Step> numbers(std::vector<std::int32_t> columns);

// Computes ((x - subtract) / divide) * multiply + add, clipped to [least, most], and skips operations with
// empty lists. A sparse block can only be divided, multiplied, and clipped to a range that contains 0.
struct Scaling {
  std::vector<double> subtract, divide, multiply, add;
  std::optional<double> least, most;
};
std::unique_ptr<Step> scale(Input input, Scaling scaling);

// Replaces `missing` (NaN or a number) in column k by fill[k].
std::unique_ptr<Step> impute(Input input, double missing, std::vector<double> fill);

// Makes a sparse block whose value k is 1 if columns[k] is missing.
std::unique_ptr<Step> indicate(Input input, double missing, std::vector<std::int32_t> columns);

// Maps numbers to intervals: column k has the ascending edges edges[begins[k] .. begins[k + 1]), and one more
// interval than edges. A number that equals an edge belongs to the interval above the edge.
struct Bins {
  std::vector<double> edges;
  std::vector<std::int32_t> begins;
  std::vector<std::int32_t> missing;  // by column: the interval number of NaN, or a value of Unknown
  bool one_hot;                       // false: a dense block with the numbers of the intervals
  std::vector<std::string> names;     // of the columns, for messages
};
std::unique_ptr<Step> bins(Input input, Bins bins);

// Writes 1 where x > threshold, else 0; throws for NaN and infinity. A sparse block needs a nonnegative
// threshold.
std::unique_ptr<Step> binarize(Input input, double threshold);

// Products of columns: output k is the product of the columns columns[begins[k] .. begins[k + 1]), which may
// repeat a column.
struct Factors {
  std::vector<std::int32_t> begins;
  std::vector<std::int32_t> columns;
  bool dense;
};
std::unique_ptr<Step> products(Input input, Factors factors);
// Multiplies columns as older files describe it: output k is the product of all x[j]^powers[k * width + j].
// The result is dense.
std::unique_ptr<Step> products(Input input, const std::vector<std::int32_t>& powers);

}  // namespace unkernel::records
