// Feature templates for a pair of bunsetsu (the phrases of a Japanese sentence). The first of them may depend
// on the second.
//
// The name of a template states its role and its property:
//   <role>.<word>.<field>   modifier.content.surface     a field of one of the bunsetsu's morphemes
//   <role>.<property>       candidate.punctuation        beginning, end, brackets, punctuation, particles
//   between.<property>      between.distance             distance, brackets, particles
//   same.<role>.<role>      same.modifier.after          whether the two bunsetsu have the same content word
// Roles: the modifier; the candidate for its head, to its right; the bunsetsu before the modifier; the
// bunsetsu after the candidate. Words: the first and the last morpheme; the function word, which is the last
// morpheme except punctuation marks; the content word, which is the last morpheme except punctuation marks
// and particles. Table 1 of Yoshinaga & Kitsuregawa (2009) calls the function word "functional word" and the
// content word "head word".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/data/text/bunsetsu_text.hpp"

namespace unkernel::parsing {

// Roles, in the order in which a row lists their columns.
enum class BunsetsuRole : std::size_t { before, modifier, candidate, after, pair };
inline constexpr std::size_t bunsetsu_roles = 4;  // all roles except `pair`

enum class BunsetsuWord : std::size_t { first, content, function, last };
inline constexpr std::size_t bunsetsu_words = 4;

enum class BunsetsuKind { word, beginning, end, brackets, punctuation, particles, distance, same };

struct BunsetsuTemplate {
  std::string name;
  BunsetsuRole role;
  BunsetsuKind kind;
  BunsetsuWord word = BunsetsuWord::first;                             // if the kind is `word`
  data::MorphemeField field = data::MorphemeField::surface;            // if the kind is `word`
  BunsetsuRole left = BunsetsuRole::pair, right = BunsetsuRole::pair;  // if the kind is `same`
};

// Returns the template with this name. Throws std::invalid_argument, which lists the valid names.
BunsetsuTemplate read_bunsetsu_template(std::string_view name);
// Returns the templates with these names, in the order of their roles, as rows need them. Throws
// std::invalid_argument for a name that is not a template or occurs twice.
std::vector<BunsetsuTemplate> read_bunsetsu_templates(std::span<const std::string> names);
// Returns the templates of a stored parser. Throws std::invalid_argument unless they are valid and in the
// order of their roles.
std::vector<BunsetsuTemplate> stored_bunsetsu_templates(std::span<const std::string> names);
// Returns the names in a file, one per line. Throws FormatError unless all of them are templates.
std::vector<std::string> bunsetsu_template_names(const std::string& file, std::string_view text);

// Values that models store as strings, for templates whose values are not words.
namespace bunsetsu_values {
inline constexpr std::string_view yes = "yes";
inline constexpr std::string_view no = "no";
inline constexpr std::string_view brackets[] = {"more open", "more closed", "none", "balanced"};
inline constexpr std::string_view punctuation[] = {"none", "comma", "period", "comma and period"};
inline constexpr std::string_view distances[] = {"1", "2-5", "6-"};
std::span<const std::string_view> all();
}  // namespace bunsetsu_values

}  // namespace unkernel::parsing
