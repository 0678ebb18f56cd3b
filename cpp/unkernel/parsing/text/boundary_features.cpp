#include "unkernel/parsing/text/boundary_features.hpp"

#include <algorithm>
#include <bit>

namespace unkernel::parsing {
namespace {

constexpr std::size_t longest = 24;  // in characters of a word or token; features ignore the rest

bool is_blank(const Character& character) { return character.kind <= line_end_kind; }

std::uint32_t shape_code(const CharacterKinds& kinds, const Character& character) {
  const Shape shape = kinds.shape(character.kind);
  return shape == Shape::other ? character.code + 16 : static_cast<std::uint32_t>(shape);
}

// Two hashes of some characters: of the characters in lower case, and of their shapes with runs collapsed.
struct Hashes {
  TextHash lower, shape;
  std::uint32_t last_shape = 0;

  void add(const CharacterKinds& kinds, const Character& character) {
    lower.add(kinds.lower(character.code));
    const std::uint32_t code = shape_code(kinds, character);
    if (code != last_shape) shape.add(code);
    last_shape = code;
  }
};

// Hashes the last `longest` characters between `begin` and `end`.
Hashes hashes_of(const CharacterKinds& kinds, const CharacterWindow& text, std::size_t begin,
                 std::size_t end) {
  Hashes hashes;
  for (std::size_t k = end - std::min(end - begin, longest); k < end; ++k) hashes.add(kinds, text[k]);
  return hashes;
}

// Returns where the run of characters without blanks around `at` begins, at most `longest` characters before
// `at`.
std::size_t run_begin(const CharacterWindow& text, std::size_t at) {
  std::size_t begin = at;
  while (begin > 0 && at - begin < longest && !is_blank(text[begin - 1])) --begin;
  return begin;
}

std::size_t run_end(const CharacterWindow& text, std::size_t at) {
  std::size_t end = at;
  while (end - at < longest && end < text.last() && !is_blank(text[end])) ++end;
  return end;
}

std::uint64_t bucket(std::size_t count) {
  return static_cast<std::uint64_t>(std::bit_width(std::min<std::size_t>(count, 64)));
}

}  // namespace

void find_columns(const FlatMap<std::uint64_t, std::int32_t>& column_of,
                  std::span<const std::uint64_t> features, std::vector<std::int32_t>& columns) {
  columns.clear();
  for (const std::uint64_t feature : features) {
    if (const std::int32_t* column = column_of.find(feature)) columns.push_back(*column);
  }
  // Columns are in the order of the list, unless two features have the same hash.
  if (!std::ranges::is_sorted(columns)) std::ranges::sort(columns);
}

void SentenceSoFar::end_token(const CharacterKinds& kinds, const CharacterWindow& text, std::size_t end,
                              bool sentence) {
  const Hashes hashes = hashes_of(kinds, text, token_begin, end);
  const std::uint32_t code = end - token_begin == 1 ? text[token_begin].code : 0;
  if (sentence) {
    *this = SentenceSoFar();
  } else {
    ++tokens;
    before = hashes.lower.value();
    before_shape = hashes.shape.value();
    in_quotes ^= code == '"';
    brackets += code == '(' ? 1 : code == ')' ? -1 : 0;
  }
}

TextWord BoundaryFeatures::word_at(const CharacterKinds& kinds, const CharacterWindow& text, std::size_t at) {
  TextWord word;
  word.end = at;
  if (at >= text.last()) return word;
  Hashes hashes;
  const bool is_word = makes_words(kinds.shape(text[at].kind));
  do {
    hashes.add(kinds, text[word.end]);
    ++word.end;
  } while (is_word && word.end < text.last() && word.end - at < longest &&
           makes_words(kinds.shape(text[word.end].kind)));
  word.hash = hashes.lower.value();
  word.shape = hashes.shape.value();
  word.capital = kinds.shape(text[at].kind) == Shape::upper;
  return word;
}

namespace {

// A position in the text at which a boundary is decided.
struct Position {
  const CharacterKinds& kinds;
  const CharacterWindow& text;
  std::size_t at;

  std::uint64_t code(std::size_t number) const { return text[number].code; }
  std::uint64_t kind(std::size_t number) const { return text[number].kind; }
  std::uint64_t kind_before(std::size_t distance) const { return at >= distance ? kind(at - distance) : 255; }
  Hashes hashes(std::size_t begin, std::size_t end) const { return hashes_of(kinds, text, begin, end); }
};

void list_characters(const Position& position, FeatureList& list) {
  const std::size_t at = position.at;
  for (std::size_t k = 0; k < 4; ++k) list.add(at >= k ? position.code(at - k) : 0);
  for (std::size_t k = 1; k < 5; ++k) list.add(position.code(at + k));
  const std::uint64_t left = position.kind_before(1), middle = position.kind(at);
  const std::uint64_t right = position.kind(at + 1), second = position.kind(at + 2);
  list.add(left, middle, right);
  list.add(position.kind_before(2) << 8 | left, middle, right << 8 | second);
  list.add(right, second, position.kind(at + 3));
}

// Adds features of the current token so far, and of the previous token.
void list_tokens(const Position& position, const SentenceSoFar& sentence, FeatureList& list) {
  const Hashes token = position.hashes(sentence.token_begin, position.at + 1);
  list.add(token.lower.value());
  list.add(token.shape.value());
  list.add(bucket(position.at + 1 - sentence.token_begin));
  list.add(bucket(sentence.tokens));
  list.add(sentence.before);
  list.add(sentence.before_shape);
  list.add(sentence.in_quotes, sentence.brackets > 0);
}

// Adds features of the surrounding characters, up to the nearest blanks.
void list_run(const Position& position, FeatureList& list) {
  const std::size_t at = position.at;
  const std::size_t begin = run_begin(position.text, at), end = run_end(position.text, at + 1);
  const Hashes run = position.hashes(begin, end);
  list.add(run.lower.value());
  list.add(run.shape.value());
  list.add(position.hashes(at + 1, end).lower.value());
  list.add(at + 1 - begin > 2 ? position.hashes(at - 2, at + 1).lower.value() : 0);
}

// Adds features of the next two words.
void list_next(const Position& position, const WordUses& uses, FeatureList& list) {
  const CharacterWindow& text = position.text;
  const bool blank_follows = is_blank(text[position.at + 1]);
  const std::size_t next = position.at + (blank_follows ? 2 : 1);
  const TextWord word = BoundaryFeatures::word_at(position.kinds, text, next);
  const std::uint8_t* use = uses.find(word.hash);
  const std::uint64_t known = use == nullptr ? 0 : *use;
  list.add(word.hash);
  list.add(word.shape, position.kind(word.end));
  list.add(known << 1 | (word.capital ? 1 : 0), blank_follows);
  const std::size_t after = is_blank(text[word.end]) ? word.end + 1 : word.end;
  const TextWord second = BoundaryFeatures::word_at(position.kinds, text, after);
  list.add(second.hash);
  list.add(second.shape, position.kind(second.end));
}

}  // namespace

void BoundaryFeatures::list(const CharacterWindow& text, std::size_t at, const SentenceSoFar& sentence,
                            std::vector<std::uint64_t>& features) const {
  FeatureList list(features);
  const Position position{kinds_, text, at};
  list_characters(position, list);
  list_tokens(position, sentence, list);
  list_run(position, list);
  list_next(position, uses_, list);
}

}  // namespace unkernel::parsing
