#include "unkernel/data/rows/svmlight_reasons.hpp"

#include <algorithm>
#include <array>

#include "unkernel/data/decimal.hpp"

namespace unkernel::data::reasons {
namespace {

// Returns the text in quotes, truncated if it is long, with unprintable bytes as \xNN.
std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 40;
  constexpr std::string_view hexadecimal = "0123456789abcdef";
  std::string result = "'";
  for (const char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      result += c;
    } else {
      result += {'\\', 'x', hexadecimal[byte >> 4], hexadecimal[byte & 15]};
    }
  }
  return result + (text.size() > longest ? "...'" : "'");
}

bool contains(std::string_view text, char c) { return text.find(c) != std::string_view::npos; }

std::string_view without_sign(std::string_view text) {
  return !text.empty() && (text[0] == '+' || text[0] == '-') ? text.substr(1) : text;
}

bool is_word_for_non_finite(std::string_view text) {
  std::string lower(without_sign(text));
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  constexpr std::array<std::string_view, 3> words = {"nan", "inf", "infinity"};
  return std::ranges::find(words, lower) != words.end();
}

std::string_view without_digits(std::string_view text) {
  while (!text.empty() && is_digit(text[0])) text.remove_prefix(1);
  return text;
}

// Returns whether the text is a decimal number. If such a number was refused, it is too large for a double.
bool is_decimal(std::string_view text) {
  const std::string_view number = without_sign(text);
  std::string_view remaining = without_digits(number);
  if (remaining.starts_with('.')) remaining = without_digits(remaining.substr(1));
  if (remaining.size() == number.size()) return false;
  if (remaining.starts_with('e') || remaining.starts_with('E')) {
    const std::string_view exponent = without_sign(remaining.substr(1));
    return !exponent.empty() && without_digits(exponent).empty();
  }
  return remaining.empty();
}

std::string non_finite(std::string_view text) {
  return quoted(text) + " is not a finite number; leave the row or the entry out, or write a number for it";
}

std::string overflowing(std::string_view text) {
  return quoted(text) + " is too large for a double; the largest is about 1.8e308";
}

}  // namespace

std::string bad_label(std::string_view text) {
  if (contains(text, ':')) {
    return "the line starts with " + quoted(text) + " and has no label; put a number first, 0 if it has none";
  }
  if (contains(text, ',')) return quoted(text) + " is more than one label; keep one per line";
  if (is_word_for_non_finite(text)) return non_finite(text);
  if (is_decimal(text)) return overflowing(text);
  return quoted(text) + " is not a label; expected a number such as 1, -1 or 0.5";
}

std::string bad_index_field(std::string_view text) {
  if (!contains(text, ':')) return quoted(text) + " has no value; expected index:value, such as 12:0.5";
  return quoted(text) + " does not start with a whole index; expected index:value, such as 12:0.5";
}

std::string bad_named_field(std::string_view text) {
  if (text.size() > 1 && text[0] == '-' && is_digit(text[1])) {
    return quoted(text) + " has a negative index; indices start at 0 or 1";
  }
  return quoted(text) + " is not a feature; expected index:value, such as 12:0.5";
}

std::string bad_value(std::string_view text) {
  if (text.empty()) return "there is no value after the colon; expected index:value, such as 12:0.5";
  if (is_word_for_non_finite(text)) return non_finite(text);
  if (is_decimal(text)) return overflowing(text);
  return quoted(text) + " is not a value; expected a decimal number such as 1 or 0.25";
}

std::string bad_query(std::string_view text) {
  return quoted(text) + " is not a query number; expected a whole number of at most 64 bits, such as qid:7";
}

std::string second_query() { return "the line has a second qid; keep one"; }

std::string uneven_queries(bool present) {
  return std::string(present ? "the line has a qid, but the rows before it have none"
                             : "the line has no qid, but the rows before it have one") +
         "; give one to all rows or to none";
}

std::string index_too_large(std::string_view digits) {
  return "index " + quoted(digits) + " does not fit into 64 bits; number the features from 1";
}

std::string index_too_small(std::uint64_t index, std::int64_t smallest) {
  return "index " + std::to_string(index) + " is below " + std::to_string(smallest) +
         ", the first index that this file may have; read it as zero-based";
}

std::string index_beyond(std::uint64_t index, std::int64_t largest) {
  return "index " + std::to_string(index) + " is beyond " + std::to_string(largest) +
         ", the last that the given number of features allows; allow more features";
}

std::string repeated_index(std::int64_t index) {
  return "index " + std::to_string(index) + " is in this line twice; keep one of the two";
}

}  // namespace unkernel::data::reasons
