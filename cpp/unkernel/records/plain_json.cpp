#include "unkernel/records/plain_json.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "unkernel/data/decimal.hpp"

namespace unkernel::records {
namespace {

constexpr std::ptrdiff_t most_digits = 15;  // whole numbers with so few digits are exact as doubles

// Returns whether a character is ASCII and needs no escape. The conversion is needed because `char` is signed
// on some machines.
bool is_plain_character(char c) {
  const auto code = static_cast<unsigned char>(c);
  return code >= 0x20 && code < 0x80 && c != '"' && c != '\\';
}

}  // namespace

PlainJson::PlainJson(std::vector<JsonKey> keys, bool skips_unknown)
    : keys_(std::move(keys)),
      skips_unknown_(skips_unknown),
      plain_names_(std::all_of(keys_.begin(), keys_.end(), [](const JsonKey& key) {
        return std::all_of(key.name.begin(), key.name.end(), is_plain_character);
      })) {}

void PlainJson::begin(std::string_view text, bool lines) {
  lines_ = lines;
  at_ = text.data();
  end_ = at_ + text.size();
}

bool PlainJson::at_end() {
  skip_blanks();
  return at_ == end_;
}

bool PlainJson::take_line_ends() {
  if (at_end()) return true;
  if (!take('\n')) return false;
  while (take('\n')) {}
  return true;
}

bool PlainJson::read(std::span<Cell> cells) {
  if (!take('{')) return false;
  expected_ = 0;
  if (take('}')) return true;
  do {
    const JsonKey* key = nullptr;
    Cell value;
    if (!take('"') || !read_key(key) || !take(':') || !read_value(value)) return false;
    if (key == nullptr && !skips_unknown_) return false;
    if (key == nullptr) continue;
    for (const std::size_t cell : key->cells) cells[cell] = value;
  } while (take(','));
  return take('}');
}

// Reads a key; sets `key` to null if it is unknown.
bool PlainJson::read_key(const JsonKey*& key) {
  if (plain_names_ &&
      expected_ <
          keys_.size()) {  // compares with the expected name first, without looking for the end of the key
    const std::string& name = keys_[expected_].name;
    const auto left = static_cast<std::size_t>(end_ - at_);
    if (name.size() < left && at_[name.size()] == '"' && std::memcmp(at_, name.data(), name.size()) == 0) {
      at_ += name.size() + 1;
      key = &keys_[expected_++];
      return true;
    }
  }
  std::string_view name;
  if (!read_text(name)) return false;
  const auto found =
      std::find_if(keys_.begin(), keys_.end(), [&](const JsonKey& one) { return one.name == name; });
  if (found == keys_.end()) return true;
  expected_ = static_cast<std::size_t>(found - keys_.begin()) + 1;
  key = &*found;
  return true;
}

bool PlainJson::read_value(Cell& cell) {
  skip_blanks();
  if (at_ == end_) return false;
  if (*at_ == '"') {
    ++at_;
    std::string_view text;
    if (!read_text(text)) return false;
    cell = Cell::of(text);
    return true;
  }
  if (*at_ == 'n' || *at_ == 't' || *at_ == 'f') {
    cell = *at_ == 'n' ? Cell::none() : Cell::of(*at_ == 't' ? 1.0 : 0.0);
    return take_word(*at_ == 'n' ? "null" : *at_ == 't' ? "true" : "false");
  }
  double number = 0.0;
  if (!read_number(number)) return false;
  cell = Cell::of(number);
  return true;
}

bool PlainJson::take_word(std::string_view word) {
  if (std::string_view(at_, static_cast<std::size_t>(end_ - at_)).substr(0, word.size()) != word)
    return false;
  at_ += word.size();
  return true;
}

bool PlainJson::read_text(std::string_view& text) {
  const char* const begin = at_;
  while (at_ != end_ && is_plain_character(*at_)) ++at_;
  text = {begin, static_cast<std::size_t>(at_ - begin)};
  return at_ != end_ && *at_++ == '"';
}

// JSON has no plus sign, no leading zeros, and digits on both sides of a point.
bool PlainJson::read_number(double& number) {
  const char* const digits = at_ + (*at_ == '-' ? 1 : 0);
  if (digits == end_ || !data::is_digit(*digits)) return false;
  if (*digits == '0' && digits + 1 != end_ && data::is_digit(digits[1])) return false;
  const char* point = digits;
  while (point != end_ && data::is_digit(*point)) ++point;
  const bool whole = point == end_ || (*point != '.' && *point != 'e' && *point != 'E');
  if (whole && point - digits > most_digits) return false;
  if (!whole && *point == '.' && (point + 1 == end_ || !data::is_digit(point[1]))) return false;
  const char* const behind = data::read_long_decimal(at_, end_, number);
  if (behind == nullptr || behind > end_) return false;
  at_ = behind;
  return true;
}

}  // namespace unkernel::records
