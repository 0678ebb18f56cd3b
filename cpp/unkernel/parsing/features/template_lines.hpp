// What readers of templates share: lines and what stands between separators, white space, names and their
// values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace unkernel::parsing {

inline bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// What stands between the separators: one piece more than there are of them.
inline std::vector<std::string_view> pieces(std::string_view text, char separator) {
  std::vector<std::string_view> found;
  for (;;) {
    const std::size_t end = text.find(separator);
    found.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return found;
    text.remove_prefix(end + 1);
  }
}

// take(line, number) of each line without its comment, which # begins; the first one is number 1.
template <class Take>
void for_each_line(std::string_view text, const Take& take) {
  std::int64_t number = 0;
  for (const std::string_view line : pieces(text, '\n')) take(line.substr(0, line.find('#')), ++number);
}

template <class Value, std::size_t count>
std::optional<Value> named(const std::pair<std::string_view, Value> (&names)[count], std::string_view name) {
  for (const auto& [known, value] : names) {
    if (known == name) return value;
  }
  return std::nullopt;
}

// Where it is among all; it is added if it is not there.
template <class Value>
std::size_t place_among(std::vector<Value>& all, const Value& wanted) {
  const auto found = std::ranges::find(all, wanted);
  if (found != all.end()) return static_cast<std::size_t>(found - all.begin());
  all.push_back(wanted);
  return all.size() - 1;
}

}  // namespace unkernel::parsing
