// One value of a record, as a plan reads it. A cell owns no memory: texts, lists and dicts are views of the
// record's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace unkernel::records {

enum class CellKind : std::uint8_t {
  absent,  // the record does not have the column
  none,    // None, or a null of Arrow
  number,  // a number or a truth value
  moment,  // a date, or a date and a time (dates.hpp)
  text,
  strings,  // a list of strings, or the n-grams of a text that Python analysed
  pairs,    // a dict
};

struct Pair;

// Only 32 bytes, because each record is read cell by cell.
class Cell {
 public:
  Cell() = default;
  static Cell of(double number) { return {CellKind::number, number, nullptr, 0}; }
  static Cell of(std::string_view text) { return {CellKind::text, 0.0, text.data(), text.size()}; }
  static Cell of(std::span<const std::string_view> strings) {
    return {CellKind::strings, 0.0, strings.data(), strings.size()};
  }
  static Cell of(std::span<const Pair> pairs);
  static Cell moment(double seconds) { return {CellKind::moment, seconds, nullptr, 0}; }
  static Cell none() { return {CellKind::none, 0.0, nullptr, 0}; }

  CellKind kind() const { return kind_; }
  double number() const { return number_; }
  std::string_view text() const { return {static_cast<const char*>(data_), size_}; }
  std::span<const std::string_view> strings() const {
    return {static_cast<const std::string_view*>(data_), size_};
  }
  std::span<const Pair> pairs() const;

 private:
  Cell(CellKind kind, double number, const void* data, std::size_t size)
      : kind_(kind), number_(number), data_(data), size_(size) {}

  CellKind kind_ = CellKind::absent;
  double number_ = 0.0;
  const void* data_ = nullptr;
  std::size_t size_ = 0;
};

// An entry of a dict: a number, a text or several texts.
struct Pair {
  std::string_view key;
  Cell value;
};

inline Cell Cell::of(std::span<const Pair> pairs) {
  return {CellKind::pairs, 0.0, pairs.data(), pairs.size()};
}
inline std::span<const Pair> Cell::pairs() const { return {static_cast<const Pair*>(data_), size_}; }

}  // namespace unkernel::records
