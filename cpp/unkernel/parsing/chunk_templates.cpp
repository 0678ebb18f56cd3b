#include "unkernel/parsing/chunk_templates.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "unkernel/base/error.hpp"

namespace unkernel::parsing {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
bool is_small(char c) { return c >= 'a' && c <= 'z'; }
bool continues_letter(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::string_view first_letters(std::string_view word, int letters) {
  std::size_t end = 0;
  for (int k = 0; k < letters && end < word.size(); ++k) {
    ++end;
    while (end < word.size() && continues_letter(word[end])) ++end;
  }
  return word.substr(0, end);
}

class TemplateReader {
 public:
  TemplateReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  ChunkTemplates read() {
    while (begin_ <= text_.size()) {
      const std::size_t end = std::min(text_.find('\n', begin_), text_.size());
      ++number_;
      read_line(text_.substr(begin_, end - begin_));
      begin_ = end + 1;
    }
    if (seen_.empty()) throw FormatError(file_, 0, 0, "there is no template: a line such as word[0] is one");
    return std::move(templates_);
  }

 private:
  void read_line(std::string_view line) {
    line_ = line.substr(0, line.find('#'));
    at_ = 0;
    skip_spaces();
    if (at_ == line_.size()) return;
    const std::size_t start = at_;
    ChunkTemplate made{read_address()};
    for (skip_spaces(); at_ < line_.size() && line_[at_] == '+'; skip_spaces()) {
      ++at_;
      skip_spaces();
      made.push_back(read_address());
    }
    if (at_ < line_.size()) refuse(at_, "a template ends with its line; join values with +, as word[0]+pos[0]");
    keep(std::move(made), start);
  }

  void keep(ChunkTemplate&& made, std::size_t start) {
    if (made.size() > most_joined) refuse(start, "a template joins at most " + std::to_string(most_joined) + " values");
    if (seen_.size() == most_templates) refuse(start, "there are more than " + std::to_string(most_templates) + " templates");
    if (std::ranges::find(seen_, made) != seen_.end()) refuse(start, "this template has been given before");
    seen_.push_back(made);
    const bool dynamic = std::ranges::any_of(made, [](const ChunkAddress& address) { return address.attribute == tag_attribute; });
    (dynamic ? templates_.dynamic : templates_.fixed).push_back(std::move(made));
  }

  ChunkAddress read_address() {
    const std::size_t start = at_;
    const ChunkAttribute attribute = read_attribute();
    if (at_ == line_.size() || line_[at_] != '[') refuse(at_, "after the name there must be a position, as in word[-1]");
    ++at_;
    const int offset = read_offset();
    if (attribute.kind != ChunkAttributeKind::tag) return {number_of(attribute), offset};
    if (offset >= 0) refuse(start, "only words before this one have a tag: tag[-1], tag[-2] and so on");
    return {tag_attribute, offset};
  }

  ChunkAttribute read_attribute() {
    const std::size_t start = at_;
    while (at_ < line_.size() && (is_small(line_[at_]) || is_digit(line_[at_]))) ++at_;
    const std::string_view name = line_.substr(start, at_ - start);
    constexpr std::pair<std::string_view, ChunkAttributeKind> plain[] = {{"word", ChunkAttributeKind::word},
                                                                         {"lower", ChunkAttributeKind::lower},
                                                                         {"pos", ChunkAttributeKind::pos},
                                                                         {"shape", ChunkAttributeKind::shape},
                                                                         {"tag", ChunkAttributeKind::tag}};
    for (const auto& [word, kind] : plain) {
      if (name == word) return {kind, 0};
    }
    for (const auto& [word, kind] : {std::pair{std::string_view("prefix"), ChunkAttributeKind::prefix}, {"suffix", ChunkAttributeKind::suffix}}) {
      if (name.size() == 7 && name.starts_with(word) && name[6] >= '1' && name[6] <= '9') return {kind, name[6] - '0'};
    }
    refuse(start, std::string("'").append(name.empty() ? first_letters(line_.substr(start), 1) : name)
                      .append("' is no attribute: there are word, lower, pos, shape, prefix1 to prefix9, suffix1 to suffix9 and tag"));
  }

  int read_offset() {
    const std::size_t start = at_;
    if (at_ < line_.size() && line_[at_] == '+') ++at_;
    int offset = 0;
    const char* const from = line_.data() + at_;
    const auto [end, error] = std::from_chars(from, line_.data() + line_.size(), offset);
    const bool twice_signed = at_ > start && *from == '-';
    at_ += static_cast<std::size_t>(end - from);
    if (error != std::errc() || twice_signed || offset < -farthest_offset || offset > farthest_offset) {
      refuse(start, "a position is a whole number from -" + std::to_string(farthest_offset) + " to " + std::to_string(farthest_offset));
    }
    if (at_ == line_.size() || line_[at_] != ']') refuse(at_, "a ] must close the position");
    ++at_;
    return offset;
  }

  std::size_t number_of(const ChunkAttribute& attribute) {
    auto& all = templates_.attributes;
    const auto found = std::ranges::find(all, attribute);
    if (found != all.end()) return static_cast<std::size_t>(found - all.begin());
    all.push_back(attribute);
    return all.size() - 1;
  }

  void skip_spaces() {
    while (at_ < line_.size() && is_space(line_[at_])) ++at_;
  }

  [[noreturn]] void refuse(std::size_t at, const std::string& why) const {
    throw FormatError(file_, number_, static_cast<std::int64_t>(at) + 1, why);
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t begin_ = 0;
  std::int64_t number_ = 0;
  std::string_view line_;
  std::size_t at_ = 0;
  ChunkTemplates templates_;
  std::vector<ChunkTemplate> seen_;
};

char small(char c) { return is_capital(c) ? static_cast<char>(c + ('a' - 'A')) : c; }

void append_small(std::string_view word, std::string& to) {
  for (const char c : word) to.push_back(small(c));
}

std::string_view last_letters(std::string_view word, int letters) {
  std::size_t begin = word.size();
  for (int k = 0; k < letters && begin > 0; ++k) {
    --begin;
    while (begin > 0 && continues_letter(word[begin])) --begin;
  }
  return word.substr(begin);
}

void append_shape(std::string_view word, std::string& to) {
  char last = 0;
  for (const char c : word) {
    const bool beyond_ascii = static_cast<unsigned char>(c) >= 0x80;
    const char kind = is_capital(c) ? 'X' : is_small(c) || beyond_ascii ? 'x' : is_digit(c) ? 'd' : c;
    if (kind != last) to.push_back(kind);
    last = kind;
  }
}

}  // namespace

ChunkTemplates read_chunk_templates(std::string_view text, const std::string& file) { return TemplateReader(text, file).read(); }

void append_value(const ChunkAttribute& attribute, std::string_view word, std::string_view pos, std::string& to) {
  switch (attribute.kind) {
    case ChunkAttributeKind::word: to.append(word); break;
    case ChunkAttributeKind::lower: append_small(word, to); break;
    case ChunkAttributeKind::pos: to.append(pos); break;
    case ChunkAttributeKind::shape: append_shape(word, to); break;
    case ChunkAttributeKind::prefix: append_small(first_letters(word, attribute.letters), to); break;
    case ChunkAttributeKind::suffix: append_small(last_letters(word, attribute.letters), to); break;
    case ChunkAttributeKind::tag: break;
  }
}

}  // namespace unkernel::parsing
