// A step of a plan: it reads cells of the record, or the blocks of earlier steps, and writes one block.
//
// A block is a vector of `width` numbers. Dense blocks have one value per column. Sparse blocks list the
// columns that may differ from zero, in ascending order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/records/cell.hpp"

namespace unkernel::records {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();  // a missing number

struct Block {
  std::vector<std::int32_t> ids;  // empty if the block is dense
  std::vector<double> values;

  void clear() {
    ids.clear();
    values.clear();
  }
  void add(std::int32_t id, double value) {
    ids.push_back(id);
    values.push_back(value);
  }
};

// Returns a text for messages, with \x00 for NUL: NUL would end the message of an exception, which is a C
// string.
inline std::string escape_nul(std::string_view text) {
  std::string result;
  for (const char byte : text) {
    if (byte == '\0') {
      result += "\\x00";
    } else {
      result += byte;
    }
  }
  return result;
}

// The record that is being encoded, and the names of its columns for messages.
struct Record {
  std::span<const Cell> cells;
  std::span<const std::string> names;

  [[noreturn]] void fail(std::size_t column, const std::string& what) const {
    throw std::invalid_argument("column '" + escape_nul(names[column]) + "': " + what);
  }
};

// Returns a text in quotes, for messages. Long texts are cut off after a whole character of UTF-8.
inline std::string quote(std::string_view text) {
  constexpr std::size_t max_bytes = 40;
  std::size_t size = text.size() < max_bytes ? text.size() : max_bytes;
  while (size > 0 && size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return std::string("'").append(escape_nul(text.substr(0, size))).append(size < text.size() ? "...'" : "'");
}

// Throws std::invalid_argument with this message unless `is_valid`.
void check_plan(bool is_valid, const char* what);

struct Shape {
  std::int32_t width;
  bool dense;
};

struct RowBatch;

// An array for the features of a batch: place p of row r is first[r * stride + p].
struct CodeOutput {
  std::int32_t* first;
  std::size_t stride;
};

class Step {
 public:
  explicit Step(Shape shape) : shape_(shape) { check_plan(shape.width >= 0, "a step has a negative width"); }
  virtual ~Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  Shape shape() const { return shape_; }
  // Writes the block of this step to `out`, which is empty. `blocks` are the blocks of all earlier steps.
  virtual void run(const Record& record, std::span<const Block> blocks, Block& out) const = 0;

  // Returns the number of places of a row if the step can encode batches column by column: if each place has
  // at most one feature, with the value 1, and features ascend. Returns 0 for all other steps.
  virtual std::size_t places() const { return 0; }
  // Writes the feature of each row and place, or -1 for no feature. Returns false if a row must be encoded by
  // `run`, which may throw.
  virtual bool write_codes(const RowBatch&, const CodeOutput&) const { return false; }
  // Returns whether the block is dense and each value comes from one column, so that compute_column_values
  // can be used.
  virtual bool has_column_values() const { return false; }
  // Computes value k of the block for the rows of a batch; missing values are NaN. Returns false if a row
  // must be encoded by `run`, which may throw.
  virtual bool compute_column_values(const RowBatch&, std::size_t, std::span<double>) const { return false; }

 private:
  Shape shape_;
};

// A reference to an earlier step.
struct Input {
  std::size_t step;
  Shape shape;
  const Step* producer;
};

}  // namespace unkernel::records
