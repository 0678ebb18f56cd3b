// Reads the language of feature templates, for all parsers.
//
//   [moves]                    a heading; its meaning depends on the parser
//   stack[1].head.word         a path of names; the first may have a position in brackets
//   word[0] + pos[-1]          several paths, joined into one feature
//   # a comment
//
// TemplateText splits a text into these kinds of lines, and each parser interprets the names. Throws a
// FormatError with line and column.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace unkernel::parsing {

// A name, and the column of its first byte, counted from 1.
struct TemplateName {
  std::string_view text;
  std::int64_t column;
};

// Names separated by dots. The first may have a position.
struct TemplatePath {
  std::vector<TemplateName> names;  // at least one, none of them empty
  std::optional<std::int32_t> position;
  std::string_view text;
  std::int64_t column;      // of its first byte
  std::int64_t end_column;  // after its last byte
};

// A line that is not empty: a heading, or joined paths.
struct TemplateLine {
  std::int64_t number;
  std::int64_t column;
  std::string_view heading;  // such as "[moves]"; empty for paths
  std::vector<TemplatePath> paths;
};

struct TemplateLimits {
  std::int32_t lowest_position;
  std::int32_t highest_position;
  std::size_t most_joined;  // paths per line
};

class TemplateText {
 public:
  TemplateText(const std::string& file, std::string_view text, const TemplateLimits& limits);

  const std::vector<TemplateLine>& lines() const { return lines_; }

  // Throw a FormatError for a column of a line, or for the whole file.
  [[noreturn]] void fail(const TemplateLine& line, std::int64_t column, const std::string& reason) const;
  [[noreturn]] void fail(const std::string& reason) const;

 private:
  std::string file_;
  std::vector<TemplateLine> lines_;
};

// Reads a single path that is not in a file. Throws std::invalid_argument.
TemplatePath read_template_path(std::string_view text, const TemplateLimits& limits);

// Concatenates the parts of a message.
std::string message(std::initializer_list<std::string_view> texts);

// Returns the paths of a line as one text, such as "stack.xpos + input.xpos".
std::string joined_text(const TemplateLine& line);

// Returns the value of a name in a table, or nullopt if the name is missing.
template <class Value, std::size_t count>
std::optional<Value> find_named(const std::pair<std::string_view, Value> (&names)[count],
                                std::string_view name) {
  for (const auto& [known, value] : names) {
    if (known == name) return value;
  }
  return std::nullopt;
}

// Returns the names of a table, separated by commas, for messages.
template <class Value, std::size_t count>
std::string join_names(const std::pair<std::string_view, Value> (&names)[count]) {
  std::string list;
  for (const auto& [name, value] : names) list.append(list.empty() ? "" : ", ").append(name);
  return list;
}

// Returns the position of a value in a list. Appends the value if it is missing.
template <class Value>
std::size_t find_or_append(std::vector<Value>& list, const Value& value) {
  const auto place = std::ranges::find(list, value);
  if (place != list.end()) return static_cast<std::size_t>(place - list.begin());
  list.push_back(value);
  return list.size() - 1;
}

}  // namespace unkernel::parsing
