#include "unkernel/parsing/bunsetsu/templates.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "unkernel/parsing/features/template_lines.hpp"

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

// Whether the name is one of them; then `value` is its place.
template <class Enum, std::size_t Count>
bool find_name(const std::array<std::string_view, Count>& names, std::string_view name, Enum& value) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return false;
  value = static_cast<Enum>(found - names.begin());
  return true;
}

bool find_property(std::span<const Property> properties, std::string_view name, BunsetsuKind& kind) {
  const auto found = std::ranges::find(properties, name, &Property::name);
  if (found == properties.end()) return false;
  kind = found->kind;
  return true;
}

bool read_parts(std::span<const std::string_view> parts, BunsetsuTemplate& read) {
  if (parts.size() == 3 && parts[0] == "same") {
    read.kind = BunsetsuKind::same;
    return find_name(role_names, parts[1], read.left) && find_name(role_names, parts[2], read.right) &&
           read.left < read.right;
  }
  if (parts.size() == 2 && parts[0] == "between") return find_property(pair_properties, parts[1], read.kind);
  if (!find_name(role_names, parts[0], read.role)) return false;
  if (parts.size() == 2) return find_property(own_properties, parts[1], read.kind);
  return parts.size() == 3 && find_name(word_names, parts[1], read.word) &&
         find_name(field_names, parts[2], read.field);
}

}  // namespace

BunsetsuTemplate read_bunsetsu_template(std::string_view name) {
  BunsetsuTemplate read{.name = std::string(name), .role = BunsetsuRole::pair, .kind = BunsetsuKind::word};
  if (read_parts(pieces(name, '.'), read)) return read;
  throw std::invalid_argument("no such template: '" + std::string(name) +
                              "'. There are <role>.<word>.<field>, <role>.<property>, between.<distance, "
                              "brackets or particles> and same.<role>.<role>; roles are before, "
                              "modifier, candidate and after; words first, content, function and last; "
                              "fields surface, reading, lemma, pos, subpos, ctype and cform; "
                              "properties beginning, end, brackets, punctuation and particles");
}

std::vector<BunsetsuTemplate> read_bunsetsu_templates(std::span<const std::string> names) {
  std::vector<BunsetsuTemplate> templates;
  for (const std::string& name : names) {
    templates.push_back(read_bunsetsu_template(name));
    if (std::ranges::count(templates, name, &BunsetsuTemplate::name) > 1)
      throw std::invalid_argument("the template '" + name + "' comes twice");
  }
  std::ranges::stable_sort(templates, {}, &BunsetsuTemplate::role);
  return templates;
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
