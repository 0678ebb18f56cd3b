// A tokenizer from a damaged or hostile file: the input changes a tokenizer that has learnt from a small
// text. The tokenizer is refused, or splits any text, with the same result on one thread, on three threads,
// and if the text is read in blocks.
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "fuzz.hpp"
#include "fuzz_bytes.hpp"
#include "fuzz_input.hpp"
#include "parsing/hash_engine.hpp"
#include "parsing/text/small_tokenizer.hpp"
#include "unkernel/parsing/text/tokenizer.hpp"

namespace {

using namespace unkernel::parsing;

constexpr std::array<std::string_view, 6> texts = {"I don't know.\n\nWhy not? dont go",
                                                   "a\n\nb",
                                                   "\n\n",
                                                   "",
                                                   " \t\r\nx\xC3\xA9\xE7\x8C\xAB\xF0\x9F\x91\x8D\r\n \r\n",
                                                   "... \xFF don't\t\tn't"};

template <class T>
std::vector<T> copy_to_vector(std::span<const T> values) {
  return {values.begin(), values.end()};
}

// The content of a file in vectors that can be damaged.
struct OwnedTokenizer {
  SmallTables characters;
  std::vector<std::uint8_t> pairs, uses;
  std::vector<std::uint64_t> words, features;
  std::vector<SplitRule> rules{{{0, -4, "", ""}, {-4, -1, "", "X"}}, {{0, 2, "e", "E"}, {2, -1, "", ""}}};
  std::vector<std::uint64_t> tokens, endings, split_features{3, 5, 8};
  std::vector<std::int32_t> token_rules{0, 3}, ending_rules{1};
  std::int32_t longest_ending = 3;
  bool begins_paragraph = true;

  OwnedTokenizer() {
    const SmallTokenizer valid;
    const TokenizerSpec& spec = valid.spec();
    pairs = copy_to_vector(spec.pairs());
    uses = copy_to_vector(spec.word_uses());
    words = copy_to_vector(spec.words());
    features = copy_to_vector(spec.feature_hashes());
    const CharacterKinds kinds(characters.view());
    tokens = {token_key(kinds, "don't"), token_key(kinds, "dont")};
    endings = {ending_key(kinds, "n't", 3)};
  }

  void damage(FuzzBytes& bytes) {
    switch (bytes.below(5)) {
      case 0: return damage_characters(bytes);
      case 1: return bytes.damage_one(pairs, uses, words, features);
      case 2:
        return bytes.damage_one(tokens, token_rules, endings, ending_rules, longest_ending, split_features);
      case 3: return damage_rules(bytes);
      default: begins_paragraph = bytes.flag();
    }
  }

 private:
  // Mostly changes the kinds of ASCII characters, which have the largest effect: exchanges two of them,
  // changes one, or reverses all kinds.
  void damage_characters(FuzzBytes& bytes) {
    std::vector<std::uint8_t>& kinds = characters.kinds;
    switch (bytes.below(4)) {
      case 0: return bytes.damage_one(characters.pages, kinds, characters.shapes, characters.cases);
      case 1:
        if (kinds.size() >= 128) std::swap(kinds[bytes.below(128)], kinds[bytes.below(128)]);
        return;
      case 2:
        if (kinds.size() >= 128) kinds[bytes.below(128)] = static_cast<std::uint8_t>(bytes.below(9));
        return;
      default: kinds.assign(kinds.rbegin(), kinds.rend());
    }
  }
  void damage_rules(FuzzBytes& bytes) {
    if (rules.empty() || bytes.byte() % 8 == 0) return rules.push_back({});
    SplitRule& rule = rules[bytes.below(rules.size())];
    if (rule.empty() || bytes.byte() % 4 == 0) return rule.push_back({0, -1, bytes.text(3), ""});
    WordRule& word = rule[bytes.below(rule.size())];
    bytes.damage_one(word.begin, word.end, word.rest, word.rest_in_capitals);
  }
};

const OwnedTokenizer& valid_tokenizer() {
  static const OwnedTokenizer tokenizer;
  return tokenizer;
}

void check_answers(const TokenizerParts& parts, std::string_view text, bool begins_paragraph, bool threads) {
  const unkernel::Monitor monitor;
  const std::string answer = tokenize(parts, text, begins_paragraph, 1, monitor);
  if (threads) CHECK(answer == tokenize(parts, text, begins_paragraph, 3, monitor));
  const auto [complete, ends_paragraph] = whole_stretches(parts.spec.characters(), text);
  CHECK(answer == tokenize(parts, text.substr(0, complete), begins_paragraph, 1, monitor) +
                      tokenize(parts, text.substr(complete),
                               complete == 0 ? begins_paragraph : ends_paragraph, 1, monitor));
}

}  // namespace

std::vector<std::string> fuzz_seeds() { return seeds_of_damage(6, 5, 8); }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzBytes bytes(data, size);
  const std::string_view text = texts[bytes.below(texts.size())];
  OwnedTokenizer stored = valid_tokenizer();
  const std::size_t damages = bytes.below(4);
  for (std::size_t k = 0; k < damages; ++k) stored.damage(bytes);
  try {
    const TokenizerSpec spec(
        {stored.characters.view(), stored.pairs, stored.words, stored.uses, stored.features});
    const Multiwords multiwords({stored.rules, stored.tokens, stored.token_rules, stored.endings,
                                 stored.ending_rules, stored.longest_ending, stored.split_features});
    const HashEngine boundaries(3, static_cast<std::int32_t>(spec.columns()));
    const HashEngine splits(1, static_cast<std::int32_t>(multiwords.columns()));
    check_answers({spec, boundaries, multiwords, &splits}, text, stored.begins_paragraph,
                  fuzz_also(FuzzInput(data, size).hash(), 64));
  } catch (const std::invalid_argument&) { CHECK(damages > 0); }
  return 0;
}
