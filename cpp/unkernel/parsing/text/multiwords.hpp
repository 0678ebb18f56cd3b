// Splits tokens that consist of several words (don't: do n't; French du: de le).
//
// Tokens that occurred in training are looked up in lower case, other tokens by their longest known ending.
// If a token is split in some contexts only (French des), a classifier decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/base/flat_map.hpp"
#include "unkernel/parsing/text/boundary_features.hpp"
#include "unkernel/parsing/text/characters.hpp"

namespace unkernel::parsing {

// A rule that forms one word from a token: the token's characters from `begin` to `end`, then `rest`. A
// negative position counts from the end; -1 is after the last character.
struct WordRule {
  std::int32_t begin;
  std::int32_t end;
  std::string rest;
  std::string rest_in_capitals;  // `rest` for a token in capitals
};
using SplitRule = std::vector<WordRule>;

// Returns the hash of a token in lower case, or of its last characters.
std::uint64_t token_key(const CharacterKinds& kinds, std::string_view token);
std::uint64_t ending_key(const CharacterKinds& kinds, std::string_view token, std::size_t length);

class Multiwords {
 public:
  static constexpr std::size_t longest_token = 64;  // characters; longer tokens are not split
  static constexpr std::int32_t no_split = -1;      // the token is one word

  // The choice for a token: a rule or `no_split`, and whether it depends on the context.
  struct Choice {
    std::int32_t rule = no_split;
    bool depends_on_context = false;
  };
  struct Stored {
    std::vector<SplitRule> rules;
    std::span<const std::uint64_t> tokens;
    std::span<const std::int32_t> token_rules;  // twice the rule, plus 1 if it depends on the context
    std::span<const std::uint64_t> endings;
    std::span<const std::int32_t> ending_rules;
    std::int32_t longest_ending;
    std::span<const std::uint64_t> features;  // of the classifier, in the order of their columns
  };

  Multiwords() = default;
  // Throws std::invalid_argument if the stored parts are inconsistent.
  explicit Multiwords(const Stored& stored);

  Choice choice(const CharacterKinds& kinds, std::string_view token) const;
  // Splits a token into words. Lists no words if the rule does not fit the token.
  void split(const CharacterKinds& kinds, std::string_view token, std::int32_t rule,
             std::vector<std::string>& words) const;

  // Lists the features of a choice that depends on the context.
  static void list_features(const CharacterKinds& kinds, std::string_view text,
                            std::span<const TokenPlace> sentence, std::size_t token,
                            std::vector<std::uint64_t>& features);
  const FlatMap<std::uint64_t, std::int32_t>& column_of() const { return column_of_; }
  std::size_t columns() const { return column_of_.size(); }

 private:
  std::vector<SplitRule> rules_;
  FlatMap<std::uint64_t, Choice> tokens_;
  FlatMap<std::uint64_t, std::int32_t> endings_;
  std::size_t longest_ending_ = 0;
  FlatMap<std::uint64_t, std::int32_t> column_of_;
};

}  // namespace unkernel::parsing
