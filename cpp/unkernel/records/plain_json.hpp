// Reads plain records from JSON: objects of numbers, truth values, null, and strings of ASCII without
// escapes.
//
// Most records that programs send are plain, and are read without making objects of them. Other text is left
// to the slower reader of the caller, which also reports errors. Both read plain records alike.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/records/cell.hpp"

namespace unkernel::records {

// The cells that receive the value of a key.
struct JsonKey {
  std::string name;
  std::vector<std::size_t> cells;  // one, or several where steps read a column in several ways
};

class PlainJson {
 public:
  // Skips the values of other keys with `skips_unknown`; else a record with other keys is not plain.
  PlainJson(std::vector<JsonKey> keys, bool skips_unknown);

  // Starts reading a text, which must outlive the cells. The byte after the text must be readable and not a
  // digit. With `lines`, line ends separate records and occur nowhere else.
  void begin(std::string_view text, bool lines);

  // Reads a record into `cells`, which must all be absent; returns false if the record is not plain.
  bool read(std::span<Cell> cells);

  // Skips blanks, and takes the next byte if it is this one.
  bool take(char expected) {
    skip_blanks();
    if (at_ == end_ || *at_ != expected) return false;
    ++at_;
    return true;
  }

  // Returns whether nothing but blanks is left.
  bool at_end();

  // Skips line ends; returns false if anything else comes first.
  bool take_line_ends();

 private:
  void skip_blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || (*at_ == '\n' && !lines_))) ++at_;
  }
  bool read_text(std::string_view& text);
  bool read_number(double& number);
  bool read_value(Cell& cell);
  bool take_word(std::string_view word);
  bool read_key(const JsonKey*& key);

  std::vector<JsonKey> keys_;
  bool skips_unknown_;
  bool plain_names_;  // whether all keys are written in JSON without escapes
  bool lines_ = false;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::size_t expected_ = 0;  // keys mostly come in the same order
};

}  // namespace unkernel::records
