// The language that the feature templates of all parsers are written in.
//
//   [moves]                    a heading; what it means is up to the parser
//   stack[1].head.word         a path of names; the first one may have a position in brackets
//   word[0] + pos[-1]          several paths, joined into one feature
//   # a comment
//
// TemplateText splits a text into such lines, and each parser gives the names their meaning. Whatever is
// wrong is a FormatError with its line and column.
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

// Names with dots between them; the first one may have a position.
struct TemplatePath {
  std::vector<TemplateName> names;  // at least one; none is empty
  std::optional<std::int32_t> position;
  std::string_view text;
  std::int64_t column;      // of its first byte
  std::int64_t end_column;  // behind its last byte
};

// A line that is not empty: a heading, or paths that are joined.
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

  // These throw FormatError: at a column of a line, and for the whole file.
  [[noreturn]] void fail(const TemplateLine& line, std::int64_t column, const std::string& reason) const;
  [[noreturn]] void fail(const std::string& reason) const;

 private:
  std::string file_;
  std::vector<TemplateLine> lines_;
};

// A single path that is not in a file. Throws std::invalid_argument.
TemplatePath read_template_path(std::string_view text, const TemplateLimits& limits);

// One text of several, for messages.
std::string message(std::initializer_list<std::string_view> texts);

// The paths of a line as one text, such as "stack.xpos + input.xpos".
std::string joined_text(const TemplateLine& line);

// The value of a name in a table, if the table has it.
template <class Value, std::size_t count>
std::optional<Value> named(const std::pair<std::string_view, Value> (&names)[count], std::string_view name) {
  for (const auto& [known, value] : names) {
    if (known == name) return value;
  }
  return std::nullopt;
}

// The names of a table, for messages.
template <class Value, std::size_t count>
std::string listed(const std::pair<std::string_view, Value> (&names)[count]) {
  std::string list;
  for (const auto& [name, value] : names) list.append(list.empty() ? "" : ", ").append(name);
  return list;
}

// The place of a value in a list, to which it is added if it is not there.
template <class Value>
std::size_t place_among(std::vector<Value>& all, const Value& wanted) {
  const auto found = std::ranges::find(all, wanted);
  if (found != all.end()) return static_cast<std::size_t>(found - all.begin());
  all.push_back(wanted);
  return all.size() - 1;
}

}  // namespace unkernel::parsing
