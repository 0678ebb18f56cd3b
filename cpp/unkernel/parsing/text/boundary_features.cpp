#include "unkernel/parsing/text/boundary_features.hpp"

#include <algorithm>
#include <bit>

namespace unkernel::parsing {
namespace {

constexpr std::size_t longest = 24;  // characters of a word or token that are looked at

bool is_blank(const Character& one) { return one.kind <= line_end_kind; }

std::uint32_t shape_code(const CharacterKinds& kinds, const Character& one) {
  const Shape shape = kinds.shape(one.kind);
  return shape == Shape::other ? one.code + 16 : static_cast<std::uint32_t>(shape);
}

// Hashes of some characters: as they are, in lower case, and as a row of shapes without repetitions.
struct Hashes {
  TextHash exact, lower, shape;
  std::uint32_t last_shape = 0;

  void add(const CharacterKinds& kinds, const Character& one) {
    exact.add(one.code);
    lower.add(kinds.lower(one.code));
    const std::uint32_t code = shape_code(kinds, one);
    if (code != last_shape) shape.add(code);
    last_shape = code;
  }
};

// The characters from `begin` to `end`, of which the last `longest` count.
Hashes hashes_of(const CharacterKinds& kinds, const CharacterWindow& text, std::size_t begin,
                 std::size_t end) {
  Hashes hashes;
  for (std::size_t k = end - std::min(end - begin, longest); k < end; ++k) hashes.add(kinds, text[k]);
  return hashes;
}

// The first character of the run without blanks that `at` is in, or one `longest` before it.
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

std::uint64_t bucket(std::size_t count) { return std::bit_width(std::min<std::size_t>(count, 64)); }

// Adds features, each with a number of its own.
class List {
 public:
  explicit List(std::vector<std::uint64_t>& features) : features_(features) { features_.clear(); }
  void add(std::uint64_t value) {
    features_.push_back(Random::mix(value + 0x632be59bd9b4e019ULL * ++number_) >> 1);
  }
  void add(std::uint64_t a, std::uint64_t b) { add(Random::mix(a) + b); }
  void add(std::uint64_t a, std::uint64_t b, std::uint64_t c) { add(Random::mix(a) + b, c); }

 private:
  std::vector<std::uint64_t>& features_;
  std::uint64_t number_ = 0;
};

}  // namespace

void SentenceSoFar::end_token(const CharacterKinds& kinds, const CharacterWindow& text, std::size_t end,
                              bool sentence) {
  const Hashes hashes = hashes_of(kinds, text, token_begin, end);
  const std::uint32_t code = end - token_begin == 1 ? text[token_begin].code : 0;
  if (sentence) {
    *this = SentenceSoFar();
  } else {
    ++tokens;
    before = {hashes.lower.value(), before[0], before[1]};
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

void BoundaryFeatures::list(const CharacterWindow& text, std::size_t at, const SentenceSoFar& sentence,
                            std::vector<std::uint64_t>& features) const {
  List list(features);
  const auto code = [&](std::size_t number) { return std::uint64_t{text[number].code}; };
  const auto kind = [&](std::size_t number) { return std::uint64_t{text[number].kind}; };
  for (std::size_t k = 0; k < 4; ++k) list.add(at >= k ? code(at - k) : 0);
  for (std::size_t k = 1; k < 5; ++k) list.add(code(at + k));
  const std::uint64_t left = at > 0 ? kind(at - 1) : 255, left2 = at > 1 ? kind(at - 2) : 255;
  list.add(left, kind(at));
  list.add(kind(at + 1), kind(at + 2));
  list.add(left, kind(at), kind(at + 1));
  list.add(left2 << 8 | left, kind(at), kind(at + 1) << 8 | kind(at + 2));
  list.add(kind(at + 1), kind(at + 2), kind(at + 3));

  const Hashes token = hashes_of(kinds_, text, sentence.token_begin, at + 1);
  list.add(token.exact.value());
  list.add(token.lower.value());
  list.add(token.shape.value());
  list.add(bucket(at + 1 - sentence.token_begin));
  list.add(bucket(sentence.tokens));
  list.add(sentence.before[0]);
  list.add(sentence.before[1]);
  list.add(sentence.before_shape);
  list.add(sentence.in_quotes, sentence.brackets > 0);

  const std::size_t begin = run_begin(text, at), end = run_end(text, at + 1);
  const Hashes run = hashes_of(kinds_, text, begin, end);
  list.add(run.lower.value());
  list.add(run.shape.value());
  list.add(hashes_of(kinds_, text, at + 1, end).lower.value());
  list.add(at + 1 - begin > 2 ? hashes_of(kinds_, text, at - 2, at + 1).lower.value() : 0);

  const bool apart = is_blank(text[at + 1]);
  const std::size_t next = apart ? at + 2 : at + 1;
  const TextWord word = word_at(kinds_, text, next);
  const std::uint8_t* use = uses_.find(word.hash);
  const std::uint64_t known = use == nullptr ? 0 : *use;
  list.add(word.hash);
  list.add(word.shape, kind(word.end));
  list.add(known << 1 | word.capital, apart);
  const std::size_t next_run = run_end(text, next);
  list.add(hashes_of(kinds_, text, next, next_run).lower.value());
  list.add(hashes_of(kinds_, text, next, next_run).shape.value());
  const TextWord second = word_at(kinds_, text, is_blank(text[word.end]) ? word.end + 1 : word.end);
  list.add(second.hash);
  list.add(second.shape, kind(second.end));
}

}  // namespace unkernel::parsing
