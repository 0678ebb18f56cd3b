#include "unkernel/parsing/chunks/templates.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "unkernel/base/error.hpp"
#include "unkernel/data/decimal.hpp"
#include "unkernel/data/text/utf8.hpp"
#include "unkernel/parsing/features/template_lines.hpp"
#include "unkernel/parsing/features/word_pieces.hpp"

namespace unkernel::parsing {
namespace {

constexpr std::pair<std::string_view, ChunkAttributeKind> plain_names[] = {
    {"word", ChunkAttributeKind::word},
    {"lower", ChunkAttributeKind::lower},
    {"pos", ChunkAttributeKind::pos},
    {"shape", ChunkAttributeKind::shape},
    {"tag", ChunkAttributeKind::tag}};
constexpr std::pair<std::string_view, ChunkAttributeKind> counted_names[] = {
    {"prefix", ChunkAttributeKind::prefix}, {"suffix", ChunkAttributeKind::suffix}};

class TemplateReader {
 public:
  TemplateReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  ChunkTemplates read() {
    for_each_line(text_, [&](std::string_view line, std::int64_t number) {
      line_ = line;
      number_ = number;
      read_line();
    });
    if (seen_.empty()) throw FormatError(file_, 0, 0, "there is no template: a line such as word[0] is one");
    return std::move(templates_);
  }

 private:
  void read_line() {
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
    if (at_ < line_.size())
      refuse(at_, "a template ends with its line; join values with +, as word[0]+pos[0]");
    keep(std::move(made), start);
  }

  void keep(ChunkTemplate&& made, std::size_t start) {
    if (made.size() > most_joined)
      refuse(start, "a template joins at most " + std::to_string(most_joined) + " values");
    if (seen_.size() == most_templates)
      refuse(start, "there are more than " + std::to_string(most_templates) + " templates");
    if (std::ranges::find(seen_, made) != seen_.end()) refuse(start, "this template has been given before");
    seen_.push_back(made);
    const bool dynamic = std::ranges::any_of(
        made, [](const ChunkAddress& address) { return address.attribute == tag_attribute; });
    (dynamic ? templates_.dynamic : templates_.fixed).push_back(std::move(made));
  }

  ChunkAddress read_address() {
    const std::size_t start = at_;
    const ChunkAttribute attribute = read_attribute();
    if (at_ == line_.size() || line_[at_] != '[')
      refuse(at_, "after the name there must be a position, as in word[-1]");
    ++at_;
    const int offset = read_offset();
    if (attribute.kind != ChunkAttributeKind::tag)
      return {place_among(templates_.attributes, attribute), offset};
    if (offset >= 0) refuse(start, "only words before this one have a tag: tag[-1], tag[-2] and so on");
    return {tag_attribute, offset};
  }

  ChunkAttribute read_attribute() {
    const std::size_t start = at_;
    while (at_ < line_.size() && (is_small(line_[at_]) || data::is_digit(line_[at_]))) ++at_;
    const std::string_view name = line_.substr(start, at_ - start);
    if (const auto kind = named(plain_names, name)) return {*kind, 0};
    const auto counted = named(counted_names, name.substr(0, 6));
    if (counted && name.size() == 7 && name[6] >= '1' && name[6] <= '9') return {*counted, name[6] - '0'};
    refuse(start, std::string("'")
                      .append(name.empty() ? data::first_characters(line_.substr(start), 1) : name)
                      .append("' is no attribute: there are word, lower, pos, shape, prefix1 to prefix9, "
                              "suffix1 to suffix9 and tag"));
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
      refuse(start, "a position is a whole number from -" + std::to_string(farthest_offset) + " to " +
                        std::to_string(farthest_offset));
    }
    if (at_ == line_.size() || line_[at_] != ']') refuse(at_, "a ] must close the position");
    ++at_;
    return offset;
  }

  void skip_spaces() {
    while (at_ < line_.size() && is_space(line_[at_])) ++at_;
  }

  [[noreturn]] void refuse(std::size_t at, const std::string& why) const {
    throw FormatError(file_, number_, static_cast<std::int64_t>(at) + 1, why);
  }

  std::string_view text_;
  const std::string& file_;
  std::int64_t number_ = 0;
  std::string_view line_;
  std::size_t at_ = 0;
  ChunkTemplates templates_;
  std::vector<ChunkTemplate> seen_;
};

void append_small(std::string_view word, std::string& to) {
  for (const char c : word) to.push_back(small(c));
}

}  // namespace

ChunkTemplates read_chunk_templates(std::string_view text, const std::string& file) {
  return TemplateReader(text, file).read();
}

void append_value(const ChunkAttribute& attribute, std::string_view word, std::string_view pos,
                  std::string& to) {
  const auto letters = static_cast<std::size_t>(attribute.letters);
  switch (attribute.kind) {
    case ChunkAttributeKind::word: to.append(word); break;
    case ChunkAttributeKind::lower: append_small(word, to); break;
    case ChunkAttributeKind::pos: to.append(pos); break;
    case ChunkAttributeKind::shape:
      append_shape(word, {.beyond_ascii = 'x', .longest = std::string::npos}, to);
      break;
    case ChunkAttributeKind::prefix: append_small(data::first_characters(word, letters), to); break;
    case ChunkAttributeKind::suffix: append_small(data::last_characters(word, letters), to); break;
    case ChunkAttributeKind::tag: break;
  }
}

}  // namespace unkernel::parsing
