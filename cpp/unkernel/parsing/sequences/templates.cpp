#include "unkernel/parsing/sequences/templates.hpp"

#include <algorithm>
#include <utility>

#include "unkernel/data/decimal.hpp"
#include "unkernel/data/text/utf8.hpp"
#include "unkernel/parsing/features/template_text.hpp"
#include "unkernel/parsing/features/word_pieces.hpp"

namespace unkernel::parsing {
namespace {

constexpr std::pair<std::string_view, SequenceAttributeKind> plain_names[] = {
    {"word", SequenceAttributeKind::word},
    {"lower", SequenceAttributeKind::lower},
    {"shape", SequenceAttributeKind::shape},
    {"tag", SequenceAttributeKind::tag}};
constexpr std::pair<std::string_view, SequenceAttributeKind> counted_names[] = {
    {"prefix", SequenceAttributeKind::prefix}, {"suffix", SequenceAttributeKind::suffix}};

constexpr TemplateLimits limits{
    .lowest_position = -farthest_offset, .highest_position = farthest_offset, .most_joined = most_joined};

// Interprets the names of a template text.
class SequenceTemplateReader {
 public:
  SequenceTemplateReader(std::string_view text, const std::string& file, const SequenceNames& names)
      : text_(file, text, limits), names_(names) {}

  SequenceTemplates read() {
    for (const TemplateLine& line : text_.lines()) {
      if (!line.heading.empty()) {
        read_heading(line);
        continue;
      }
      SequenceTemplate sequence_template;
      for (const TemplatePath& path : line.paths) sequence_template.push_back(read_address(line, path));
      add_template(line, std::move(sequence_template));
    }
    if (templates_.all.empty()) text_.fail("there are no templates; a template is a line such as word[0]");
    if (!in_beside_section_) templates_.core = templates_.all.size();
    put_tags_last();
    return std::move(templates_);
  }

 private:
  static constexpr std::size_t any_tag = static_cast<std::size_t>(-1);  // a placeholder

  void read_heading(const TemplateLine& line) {
    if (line.heading != "[beside]") fail_attribute(line, line.column, line.heading);
    if (in_beside_section_) text_.fail(line, line.column, "the line [beside] occurs twice");
    if (templates_.all.empty())
      text_.fail(line, line.column, "[beside] needs templates before it, to join others with");
    in_beside_section_ = true;
    templates_.core = templates_.all.size();
  }

  void add_template(const TemplateLine& line, SequenceTemplate&& sequence_template) {
    if (templates_.all.size() == most_templates)
      text_.fail(line, line.column,
                 message({"there are more than ", std::to_string(most_templates), " templates"}));
    if (std::ranges::find(templates_.all, sequence_template) != templates_.all.end())
      text_.fail(line, line.column, message({"the template '", joined_text(line), "' occurs twice"}));
    templates_.all.push_back(std::move(sequence_template));
  }

  void put_tags_last() {
    const auto has_no_tag = [](const SequenceTemplate& each) {
      return std::ranges::find(each, any_tag, &SequenceAddress::attribute) == each.end();
    };
    const auto core_end = templates_.all.begin() + static_cast<std::ptrdiff_t>(templates_.core);
    std::stable_partition(templates_.all.begin(), core_end, has_no_tag);
    std::stable_partition(core_end, templates_.all.end(), has_no_tag);
    for (SequenceTemplate& each : templates_.all) {
      for (SequenceAddress& address : each) {
        if (address.attribute == any_tag) address.attribute = templates_.tag_attribute();
      }
    }
  }

  SequenceAddress read_address(const TemplateLine& line, const TemplatePath& path) {
    const SequenceAttribute attribute = read_attribute(line, path.names.front());
    if (path.names.size() > 1)
      text_.fail(line, path.names[1].column, "a value is one name with a position, as in word[-1]");
    if (!path.position) text_.fail(line, path.end_column, "a position must follow the name, as in word[-1]");
    if (attribute.kind != SequenceAttributeKind::tag)
      return {find_or_append(templates_.attributes, attribute), *path.position};
    if (*path.position >= 0)
      text_.fail(line, path.column, "only words before this one have a tag: tag[-1], tag[-2] and so on");
    return {any_tag, *path.position};
  }

  SequenceAttribute read_attribute(const TemplateLine& line, const TemplateName& name) {
    if (const auto kind = find_named(plain_names, name.text)) return {*kind, 0};
    using enum SequenceAttributeKind;
    for (const auto& [kind, task_names] :
         {std::pair{column, &names_.columns}, std::pair{lexicon, &names_.lexicons}}) {
      const auto found = std::ranges::find(*task_names, name.text);
      if (found != task_names->end()) return {kind, static_cast<int>(found - task_names->begin())};
    }
    const auto counted = find_named(counted_names, name.text.substr(0, 6));
    if (counted && name.text.size() == 7 && name.text[6] >= '1' && name.text[6] <= '9')
      return {*counted, name.text[6] - '0'};
    fail_attribute(line, name.column, name.text);
  }

  [[noreturn]] void fail_attribute(const TemplateLine& line, std::int64_t column,
                                   std::string_view name) const {
    std::string others;
    for (const auto* task_names : {&names_.columns, &names_.lexicons}) {
      for (const std::string& one : *task_names) others += one + ", ";
    }
    text_.fail(line, column,
               message({"'", name, "' is not an attribute; attributes are word, lower, ", others,
                        "shape, prefix1 to prefix9, suffix1 to suffix9 and tag"}));
  }

  TemplateText text_;
  const SequenceNames& names_;
  SequenceTemplates templates_;
  bool in_beside_section_ = false;
};

void append_small(std::string_view word, std::string& to) {
  for (const char c : word) to.push_back(small(c));
}

}  // namespace

SequenceTemplates read_sequence_templates(std::string_view text, const std::string& file,
                                          const SequenceNames& names) {
  return SequenceTemplateReader(text, file, names).read();
}

void append_plain(std::string_view word, std::string& to) {
  for (const char c : word) to.push_back(data::is_digit(c) ? '0' : small(c));
}

void append_value(const SequenceAttribute& attribute, std::string_view word, std::string& to) {
  const auto letters = static_cast<std::size_t>(attribute.number);
  switch (attribute.kind) {
    case SequenceAttributeKind::word: to.append(word); break;
    case SequenceAttributeKind::lower: append_small(word, to); break;
    case SequenceAttributeKind::shape:
      append_shape(word, {.beyond_ascii = 'x', .longest = std::string::npos}, to);
      break;
    case SequenceAttributeKind::prefix: append_small(data::first_characters(word, letters), to); break;
    case SequenceAttributeKind::suffix: append_small(data::last_characters(word, letters), to); break;
    case SequenceAttributeKind::column:
    case SequenceAttributeKind::lexicon:
    case SequenceAttributeKind::tag: break;
  }
}

}  // namespace unkernel::parsing
