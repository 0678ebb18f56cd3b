#include "unkernel/parsing/features/template_text.hpp"

#include <charconv>
#include <stdexcept>
#include <system_error>

#include "unkernel/base/error.hpp"
#include "unkernel/data/text/utf8.hpp"

namespace unkernel::parsing {
namespace {

// A syntax error: its reason, and its position in the line, counted from 0.
struct Mistake {
  std::size_t at;
  std::string reason;
};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool ends_name(char c) { return is_space(c) || c == '.' || c == '+' || c == '[' || c == ']'; }

// Parses one line without its comment; throws Mistake.
class LineScanner {
 public:
  LineScanner(std::string_view line, const TemplateLimits& limits) : line_(line), limits_(limits) {
    while (!line_.empty() && is_space(line_.back())) line_.remove_suffix(1);
    skip_spaces();
  }

  bool at_end() const { return at_ == line_.size(); }
  std::int64_t column() const { return static_cast<std::int64_t>(at_) + 1; }
  std::string_view rest() const { return line_.substr(at_); }

  std::vector<TemplatePath> read_paths() {
    const std::size_t start = at_;
    std::vector<TemplatePath> paths{read_path()};
    for (skip_spaces(); !at_end() && line_[at_] == '+'; skip_spaces()) {
      ++at_;
      skip_spaces();
      paths.push_back(read_path());
    }
    if (!at_end()) throw Mistake{at_, "a template ends with its line; join values with +, as in a.b + c.d"};
    if (paths.size() > limits_.most_joined)
      throw Mistake{start,
                    message({"a template joins at most ", std::to_string(limits_.most_joined), " values"})};
    return paths;
  }

  TemplatePath read_path() {
    const std::size_t start = at_;
    TemplatePath path{{read_name()}, std::nullopt, {}, static_cast<std::int64_t>(start) + 1, 0};
    if (next_is('[')) path.position = read_position();
    std::size_t end = at_;
    while (next_is('.')) {
      skip_spaces();
      ++at_;
      skip_spaces();
      path.names.push_back(read_name());
      if (next_is('[')) throw Mistake{at_, "only the first name of a value has a position"};
      end = at_;
    }
    path.text = line_.substr(start, end - start);
    path.end_column = static_cast<std::int64_t>(end) + 1;
    at_ = end;
    return path;
  }

 private:
  void skip_spaces() {
    while (at_ < line_.size() && is_space(line_[at_])) ++at_;
  }

  // Returns whether this character comes next, after any spaces.
  bool next_is(char c) {
    std::size_t next = at_;
    while (next < line_.size() && is_space(line_[next])) ++next;
    return next < line_.size() && line_[next] == c;
  }

  TemplateName read_name() {
    const std::size_t start = at_;
    while (at_ < line_.size() && !ends_name(line_[at_])) ++at_;
    if (at_ > start) return {line_.substr(start, at_ - start), static_cast<std::int64_t>(start) + 1};
    if (at_end()) throw Mistake{start, "expected a name, not the end of the line"};
    throw Mistake{start, message({"expected a name, not '", data::first_characters(rest(), 1), "'"})};
  }

  std::int32_t read_position() {
    skip_spaces();
    const std::size_t start = ++at_;
    if (at_ < line_.size() && line_[at_] == '+') ++at_;
    std::int32_t position = 0;
    const char* const from = line_.data() + at_;
    const auto [end, error] = std::from_chars(from, line_.data() + line_.size(), position);
    const bool twice_signed = at_ > start && end != from && *from == '-';
    at_ += static_cast<std::size_t>(end - from);
    if (error != std::errc() || twice_signed || position < limits_.lowest_position ||
        position > limits_.highest_position) {
      throw Mistake{start,
                    message({"a position is a whole number from ", std::to_string(limits_.lowest_position),
                             " to ", std::to_string(limits_.highest_position)})};
    }
    if (at_end() || line_[at_] != ']') throw Mistake{at_, "a position must end with ]"};
    ++at_;
    return position;
  }

  std::string_view line_;
  TemplateLimits limits_;
  std::size_t at_ = 0;
};

TemplateLine read_template_line(LineScanner& scanner, std::int64_t number) {
  TemplateLine line{number, scanner.column(), {}, {}};
  if (scanner.rest().front() == '[') {
    line.heading = scanner.rest();
  } else {
    line.paths = scanner.read_paths();
  }
  return line;
}

}  // namespace

TemplateText::TemplateText(const std::string& file, std::string_view text, const TemplateLimits& limits)
    : file_(file) {
  for (std::int64_t number = 1;; ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    LineScanner scanner(line.substr(0, line.find('#')), limits);
    try {
      if (!scanner.at_end()) lines_.push_back(read_template_line(scanner, number));
    } catch (const Mistake& mistake) {
      throw FormatError(file_, number, static_cast<std::int64_t>(mistake.at) + 1, mistake.reason);
    }
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

void TemplateText::fail(const TemplateLine& line, std::int64_t column, const std::string& reason) const {
  throw FormatError(file_, line.number, column, reason);
}

void TemplateText::fail(const std::string& reason) const { throw FormatError(file_, 0, 0, reason); }

TemplatePath read_template_path(std::string_view text, const TemplateLimits& limits) {
  try {
    LineScanner scanner(text, limits);
    TemplatePath path = scanner.read_path();
    if (!scanner.at_end() || path.text != text)
      throw Mistake{0, message({"'", text, "' is not a plain name"})};
    return path;
  } catch (const Mistake& mistake) { throw std::invalid_argument(mistake.reason); }
}

std::string message(std::initializer_list<std::string_view> texts) {
  std::string joined;
  for (const std::string_view text : texts) joined.append(text);
  return joined;
}

std::string joined_text(const TemplateLine& line) {
  std::string text;
  for (const TemplatePath& path : line.paths) text.append(text.empty() ? "" : " + ").append(path.text);
  return text;
}

}  // namespace unkernel::parsing
