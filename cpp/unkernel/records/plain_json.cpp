#include "unkernel/records/plain_json.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "unkernel/data/decimal.hpp"

namespace unkernel::records {
namespace {

constexpr std::ptrdiff_t most_digits = 15;  // integers with at most 15 digits are exact as doubles

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
      has_plain_names_(std::all_of(keys_.begin(), keys_.end(), [](const JsonKey& key) {
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
  // Compares with the expected name first, without searching for the end of the key.
  if (has_plain_names_ && expected_ < keys_.size()) {
    const std::string& name = keys_[expected_].name;
    const auto remaining = static_cast<std::size_t>(end_ - at_);
    if (name.size() < remaining && at_[name.size()] == '"' &&
        std::memcmp(at_, name.data(), name.size()) == 0) {
      at_ += name.size() + 1;
      key = &keys_[expected_++];
      return true;
    }
  }
  std::string_view name;
  if (!read_text(name)) return false;
  const auto place = std::ranges::find(keys_, name, &JsonKey::name);
  if (place == keys_.end()) return true;
  expected_ = static_cast<std::size_t>(place - keys_.begin()) + 1;
  key = &*place;
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
  const auto take_constant = [&](std::string_view word, const Cell& value) {
    cell = value;
    return take_word(word);
  };
  if (*at_ == 'n') return take_constant("null", Cell::none());
  if (*at_ == 't') return take_constant("true", Cell::of(1.0));
  if (*at_ == 'f') return take_constant("false", Cell::of(0.0));
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
  const bool is_integer = point == end_ || (*point != '.' && *point != 'e' && *point != 'E');
  if (is_integer && point - digits > most_digits) return false;
  if (!is_integer && *point == '.' && (point + 1 == end_ || !data::is_digit(point[1]))) return false;
  const char* const end_of_number = data::read_long_decimal(at_, end_, number);
  if (end_of_number == nullptr || end_of_number > end_) return false;
  at_ = end_of_number;
  return true;
}

}  // namespace unkernel::records
