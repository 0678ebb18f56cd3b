// Steps over whole vectors, dense or sparse.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "unkernel/records/step.hpp"

namespace unkernel::records {

// Concatenates blocks. The result is dense if all blocks are dense.
std::unique_ptr<Step> concatenate(std::vector<Input> inputs);

// Moves column k to column places[k]; -1 drops the column.
std::unique_ptr<Step> select(Input input, std::vector<std::int32_t> places, std::int32_t width);

// Makes a block dense: all columns, including zeros.
std::unique_ptr<Step> densify(Input input);

// Divides the vector by its norm.
enum class Norm { l1, l2, max };
std::unique_ptr<Step> normalize(Input input, Norm norm);

// Replaces counts by log(count) + 1 if `sublinear`, and multiplies the result by idf unless idf is empty. The
// block must be sparse.
std::unique_ptr<Step> tfidf(Input input, bool sublinear, std::vector<double> idf);

}  // namespace unkernel::records
