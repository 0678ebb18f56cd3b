// Reads plain records from JSON: objects of numbers, truth values, null, and strings of ASCII without
// escapes.
//
// Most records that programs send are plain, and are read without creating Python objects. If a record is not
// plain, the caller reads the text with a slower reader, which also reports errors. Both readers give the
// same cells for plain records.
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
  std::vector<std::size_t> cells;  // several if several steps read the column
};

class PlainJson {
 public:
  // With `skips_unknown`, keys that are not in `keys` are skipped; otherwise records with unknown keys are
  // not plain.
  PlainJson(std::vector<JsonKey> keys, bool skips_unknown);

  // Starts reading a text, which must outlive the cells. The byte after the text must be readable and not a
  // digit. With `lines`, line ends separate records and occur nowhere else.
  void begin(std::string_view text, bool lines);

  // Reads a record into `cells`, which must all be absent. Returns whether the record is plain.
  bool read(std::span<Cell> cells);

  // Skips blanks. Then takes the next byte if it is `expected`. Returns whether it was taken.
  bool take(char expected) {
    skip_blanks();
    if (at_ == end_ || *at_ != expected) return false;
    ++at_;
    return true;
  }

  // Skips blanks. Returns whether the end of the text is reached.
  bool at_end();

  // Skips blanks and line ends. Returns false unless there is a line end or the text ends.
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
  bool has_plain_names_;  // whether all keys need no escapes in JSON
  bool lines_ = false;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::size_t expected_ = 0;  // the key that comes next if all records have the same order of keys
};

}  // namespace unkernel::records
