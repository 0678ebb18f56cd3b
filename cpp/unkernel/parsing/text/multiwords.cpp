#include "unkernel/parsing/text/multiwords.hpp"

#include <algorithm>
#include <stdexcept>

namespace unkernel::parsing {
namespace {

// The characters of a token, their positions, and the end of the token. Reads at most longest_token + 1
// characters.
struct Codes {
  std::uint32_t codes[Multiwords::longest_token + 1];
  std::size_t begins[Multiwords::longest_token + 2];
  std::size_t count = 0;

  explicit Codes(std::string_view token) {
    std::size_t at = 0;
    while (at < token.size() && count <= Multiwords::longest_token) {
      const Decoded decoded = decode(token, at);
      codes[count] = decoded.code;
      begins[count++] = at;
      at += decoded.bytes;
    }
    begins[count] = at;
  }
};

std::uint64_t key_of(const TextHash& hash) { return Random::mix(hash.value()) >> 1; }

// Converts a position of a rule, which may count from the end, to a position from the start of the token.
// Returns false if the token is too short.
bool find_position(std::int32_t place, std::size_t count, std::size_t& found) {
  const auto from_begin = place >= 0 ? place : static_cast<std::int64_t>(count) + 1 + place;
  found = static_cast<std::size_t>(from_begin);
  return from_begin >= 0 && found <= count;
}

bool is_in_capitals(const CharacterKinds& kinds, const Codes& token) {
  std::size_t capitals = 0;
  for (std::size_t k = 0; k < token.count; ++k) {
    const Shape shape = kinds.shape(kinds.kind(token.codes[k]));
    if (shape == Shape::lower) return false;
    capitals += shape == Shape::upper;
  }
  return capitals > 1;
}

std::uint64_t ending_hash(const CharacterKinds& kinds, const Codes& token, std::size_t length) {
  TextHash hash;
  for (std::size_t k = 0; k < std::min(length, token.count); ++k)
    hash.add(kinds.lower(token.codes[token.count - 1 - k]));
  return key_of(hash);
}

}  // namespace

std::uint64_t token_key(const CharacterKinds& kinds, std::string_view token) {
  TextHash hash;
  for (std::size_t at = 0; at < token.size();) {
    const Decoded decoded = decode(token, at);
    hash.add(kinds.lower(decoded.code));
    at += decoded.bytes;
  }
  return key_of(hash);
}

std::uint64_t ending_key(const CharacterKinds& kinds, std::string_view token, std::size_t length) {
  return ending_hash(kinds, Codes(token), length);
}

Multiwords::Multiwords(const Stored& stored) : rules_(stored.rules) {
  const auto is_rule = [&](std::int32_t rule) {
    return rule >= no_split && rule < static_cast<std::int32_t>(rules_.size());
  };
  bool consistent = stored.tokens.size() == stored.token_rules.size() &&
                    stored.endings.size() == stored.ending_rules.size() && stored.longest_ending >= 0 &&
                    stored.longest_ending <= static_cast<std::int32_t>(longest_token) &&
                    stored.features.size() < std::size_t{1} << 31;
  for (const std::int32_t rule : stored.token_rules) consistent = consistent && is_rule(rule >> 1);
  for (const std::int32_t rule : stored.ending_rules) consistent = consistent && is_rule(rule);
  for (const SplitRule& rule : rules_) consistent = consistent && rule.size() > 1;
  if (!consistent) throw std::invalid_argument("the tokenizer's multiword tokens are damaged");
  for (std::size_t k = 0; k < stored.tokens.size(); ++k)
    tokens_[stored.tokens[k]] = {stored.token_rules[k] >> 1, (stored.token_rules[k] & 1) != 0};
  for (std::size_t k = 0; k < stored.endings.size(); ++k)
    endings_[stored.endings[k]] = stored.ending_rules[k];
  longest_ending_ = static_cast<std::size_t>(stored.longest_ending);
  for (std::size_t k = 0; k < stored.features.size(); ++k)
    column_of_[stored.features[k]] = static_cast<std::int32_t>(k);
}

Multiwords::Choice Multiwords::choice(const CharacterKinds& kinds, std::string_view token) const {
  if (rules_.empty() || token.size() < 2) return {};
  Codes codes(token);
  if (codes.count > longest_token) return {};
  TextHash whole_token;
  for (std::size_t k = 0; k < codes.count; ++k) {
    codes.codes[k] = kinds.lower(codes.codes[k]);
    whole_token.add(codes.codes[k]);
  }
  if (const Choice* known = tokens_.find(key_of(whole_token))) return *known;
  Choice found;
  TextHash hash;
  for (std::size_t length = 1; length <= std::min(longest_ending_, codes.count - 1); ++length) {
    hash.add(codes.codes[codes.count - length]);
    if (const std::int32_t* rule = endings_.find(key_of(hash))) found.rule = *rule;
  }
  return found;
}

void Multiwords::split(const CharacterKinds& kinds, std::string_view token, std::int32_t rule,
                       std::vector<std::string>& words) const {
  words.clear();
  const Codes codes(token);
  const bool capitals = is_in_capitals(kinds, codes);
  for (const WordRule& word : rules_[static_cast<std::size_t>(rule)]) {
    std::size_t begin = 0, end = 0;
    const bool fits = find_position(word.begin, codes.count, begin) &&
                      find_position(word.end, codes.count, end) && begin <= end &&
                      (begin < end || !word.rest.empty());
    if (!fits) return words.clear();
    words.emplace_back(token.substr(codes.begins[begin], codes.begins[end] - codes.begins[begin]));
    words.back() += capitals ? word.rest_in_capitals : word.rest;
  }
}

void Multiwords::list_features(const CharacterKinds& kinds, std::string_view text,
                               std::span<const TokenPlace> sentence, std::size_t token,
                               std::vector<std::uint64_t>& features) {
  FeatureList list(features);
  const auto word = [&](std::size_t place) {  // before the first token, token - 1 wraps around
    if (place >= sentence.size()) return std::string_view();
    return text.substr(sentence[place].begin, sentence[place].end - sentence[place].begin);
  };
  TextHash exact;
  const Codes codes(word(token));
  for (std::size_t k = 0; k < codes.count; ++k) exact.add(codes.codes[k]);
  list.add(exact.value());
  list.add(token_key(kinds, word(token)));
  for (const std::size_t place : {token - 1, token + 1, token - 2, token + 2}) {
    const Codes other(word(place));
    list.add(token_key(kinds, word(place)));
    list.add(other.count == 0 ? 0 : kinds.kind(other.codes[0]));
    for (std::size_t length = 1; length <= 3; ++length) list.add(ending_hash(kinds, other, length));
  }
}

}  // namespace unkernel::parsing
