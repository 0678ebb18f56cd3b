#include "unkernel/parsing/bunsetsu/templates.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "unkernel/parsing/features/template_text.hpp"

namespace unkernel::parsing {
namespace {

constexpr std::array<std::string_view, bunsetsu_roles> role_names{"before", "modifier", "candidate", "after"};
constexpr std::array<std::string_view, bunsetsu_words> word_names{"first", "content", "function", "last"};
constexpr std::array<std::string_view, data::morpheme_fields> field_names{
    "surface", "reading", "lemma", "pos", "subpos", "ctype", "cform"};

struct Property {
  std::string_view name;
  BunsetsuKind kind;
};
constexpr Property own_properties[] = {{"beginning", BunsetsuKind::beginning},
                                       {"end", BunsetsuKind::end},
                                       {"brackets", BunsetsuKind::brackets},
                                       {"punctuation", BunsetsuKind::punctuation},
                                       {"particles", BunsetsuKind::particles}};
constexpr Property pair_properties[] = {{"distance", BunsetsuKind::distance},
                                        {"brackets", BunsetsuKind::brackets},
                                        {"particles", BunsetsuKind::particles}};

// Returns whether the name is in the table; if so, sets `value` to its position.
template <class Enum, std::size_t Count>
bool find_name(const std::array<std::string_view, Count>& names, std::string_view name, Enum& value) {
  const auto place = std::ranges::find(names, name);
  if (place == names.end()) return false;
  value = static_cast<Enum>(place - names.begin());
  return true;
}

bool find_property(std::span<const Property> properties, std::string_view name, BunsetsuKind& kind) {
  const auto property = std::ranges::find(properties, name, &Property::name);
  if (property == properties.end()) return false;
  kind = property->kind;
  return true;
}

bool read_parts(std::span<const TemplateName> parts, BunsetsuTemplate& read) {
  if (parts.size() == 3 && parts[0].text == "same") {
    read.kind = BunsetsuKind::same;
    return find_name(role_names, parts[1].text, read.left) &&
           find_name(role_names, parts[2].text, read.right) && read.left < read.right;
  }
  if (parts.size() == 2 && parts[0].text == "between")
    return find_property(pair_properties, parts[1].text, read.kind);
  if (!find_name(role_names, parts[0].text, read.role)) return false;
  if (parts.size() == 2) return find_property(own_properties, parts[1].text, read.kind);
  return parts.size() == 3 && find_name(word_names, parts[1].text, read.word) &&
         find_name(field_names, parts[2].text, read.field);
}

// A template is one name per line, without positions or joins.
constexpr TemplateLimits limits{.lowest_position = 0, .highest_position = 0, .most_joined = 1};

bool read_path(const TemplatePath& path, BunsetsuTemplate& read) {
  return !path.position && read_parts(path.names, read);
}

BunsetsuTemplate new_template(std::string_view name) {
  return {.name = std::string(name), .role = BunsetsuRole::pair, .kind = BunsetsuKind::word};
}

std::string no_such_template(std::string_view name) {
  return message(
      {"no such template: '", name,
       "'. Templates are <role>.<word>.<field>, <role>.<property>, between.<distance, brackets or particles> "
       "and same.<role>.<role>. Roles are before, modifier, candidate and after; words are first, content, "
       "function and last; fields are surface, reading, lemma, pos, subpos, ctype and cform; properties are "
       "beginning, end, brackets, punctuation and particles"});
}

}  // namespace

BunsetsuTemplate read_bunsetsu_template(std::string_view name) {
  BunsetsuTemplate read = new_template(name);
  try {
    if (read_path(read_template_path(name, limits), read)) return read;
  } catch (const std::invalid_argument&) {  // it is not a valid path
  }
  throw std::invalid_argument(no_such_template(name));
}

std::vector<BunsetsuTemplate> read_bunsetsu_templates(std::span<const std::string> names) {
  std::vector<BunsetsuTemplate> templates;
  for (const std::string& name : names) {
    templates.push_back(read_bunsetsu_template(name));
    if (std::ranges::count(templates, name, &BunsetsuTemplate::name) > 1)
      throw std::invalid_argument(message({"the template '", name, "' occurs twice"}));
  }
  std::ranges::stable_sort(templates, {}, &BunsetsuTemplate::role);
  return templates;
}

std::vector<BunsetsuTemplate> stored_bunsetsu_templates(std::span<const std::string> names) {
  std::vector<BunsetsuTemplate> templates = read_bunsetsu_templates(names);
  if (!std::ranges::equal(templates, names, {}, &BunsetsuTemplate::name))
    throw std::invalid_argument("the templates are not in the order of their roles");
  return templates;
}

std::vector<std::string> bunsetsu_template_names(const std::string& file, std::string_view text) {
  const TemplateText read(file, text, limits);
  std::vector<std::string> names;
  for (const TemplateLine& line : read.lines()) {
    const std::string name = line.heading.empty() ? joined_text(line) : std::string(line.heading);
    BunsetsuTemplate bunsetsu_template = new_template(name);
    if (!line.heading.empty() || !read_path(line.paths.front(), bunsetsu_template))
      read.fail(line, line.column, no_such_template(name));
    if (std::ranges::find(names, name) != names.end())
      read.fail(line, line.column, message({"the template '", name, "' occurs twice"}));
    names.push_back(name);
  }
  if (names.empty()) read.fail("there is no template in it; write one name per line");
  return names;
}

std::span<const std::string_view> bunsetsu_values::all() {
  static constexpr std::array values{yes,
                                     no,
                                     brackets[0],
                                     brackets[1],
                                     brackets[2],
                                     brackets[3],
                                     punctuation[0],
                                     punctuation[1],
                                     punctuation[2],
                                     punctuation[3],
                                     distances[0],
                                     distances[1],
                                     distances[2]};
  return values;
}

}  // namespace unkernel::parsing
