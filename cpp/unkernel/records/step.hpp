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
  std::vector<std::int32_t> ids;  // empty where the block is dense
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

// Returns a text for messages, with NUL spelt out: it would end the C string that an exception keeps.
inline std::string without_nul(std::string_view text) {
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
    throw std::invalid_argument("column '" + without_nul(names[column]) + "': " + what);
  }
};

// Returns the beginning of a text in quotes, for messages: whole characters of UTF-8.
inline std::string quote(std::string_view text) {
  constexpr std::size_t most = 40;
  std::size_t size = text.size() < most ? text.size() : most;
  while (size > 0 && size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return std::string("'").append(without_nul(text.substr(0, size))).append(size < text.size() ? "...'" : "'");
}

// Throws std::invalid_argument unless the plan is sound.
void check_plan(bool sound, const char* what);

struct Shape {
  std::int32_t width;
  bool dense;
};

struct RowBatch;

// The output for the features of a batch: place p of row r is first[r * stride + p].
struct CodeRoom {
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
  // `out` is empty. `blocks` are those of all earlier steps.
  virtual void run(const Record& record, std::span<const Block> blocks, Block& out) const = 0;

  // Steps whose rows have at most one 1 per place, in ascending order, can encode batches column by column.
  // Others have no places.
  virtual std::size_t places() const { return 0; }
  // Writes the feature of each row and place, or -1 for none. Returns false if a row needs `run`, which may
  // throw.
  virtual bool write_codes(const RowBatch&, const CodeRoom&) const { return false; }
  // Returns whether each value of a dense block comes from one column, so that it can be read column by
  // column.
  virtual bool by_columns() const { return false; }
  // Computes value k of the block for the rows of a batch, NaN where it is missing. Returns false if a row
  // needs `run`, which may throw.
  virtual bool column_values(const RowBatch&, std::size_t, std::span<double>) const { return false; }

 private:
  Shape shape_;
};

// A reference to an earlier step.
struct Input {
  std::size_t step;
  Shape shape;
  const Step* made;
};

}  // namespace unkernel::records
