// A tokenizer of few kinds of characters, which learns from a few sentences and decides by hashes.
#pragma once

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parsing/hash_engine.hpp"
#include "unkernel/parsing/text/tokenizer.hpp"

// The tables of characters: all pages have the kinds of one page of 256 code points.
struct SmallTables {
  std::vector<std::uint16_t> pages = std::vector<std::uint16_t>(0x1100, 0);
  std::vector<std::uint8_t> kinds = std::vector<std::uint8_t>(256, 6);
  std::vector<std::uint8_t> shapes{0, 0, 1, 2, 4, 0, 3};
  std::vector<std::uint32_t> cases{0xC9, 0xE9};

  SmallTables() {
    for (int code = 0; code < 128; ++code) {
      const bool blank = code == 0 || std::isspace(code) != 0;
      kinds[static_cast<std::size_t>(code)] = blank                     ? 0
                                              : std::isupper(code) != 0 ? 2
                                              : std::islower(code) != 0 ? 3
                                              : std::isdigit(code) != 0 ? 4
                                                                        : 5;
    }
  }
  unkernel::parsing::CharacterTables view() const { return {pages, kinds, shapes, cases}; }
};

class SmallTokenizer {
 public:
  SmallTokenizer() : spec_({tables_.view(), {}, {}, {}, {}}), multiwords_(stored_multiwords()) {
    const std::string text = "I don't know. Why not?\n\nHe saw it (or so he said). dont go";
    const std::vector<std::int64_t> ends{1,  7,  12, 13, 17, 21, 22, 26, 30, 33,
                                         35, 37, 40, 43, 48, 49, 50, 55, 58};
    std::vector<std::uint8_t> boundaries(ends.size(), 1);
    for (const std::size_t last : {3, 6, 16, 18}) boundaries[last] = 2;
    spec_.learn({text, ends, boundaries}, 1, monitor_);
  }

  std::string tokenize(std::string_view text, int threads, bool begins_paragraph = true) const {
    const HashEngine boundaries(3, static_cast<std::int32_t>(spec_.columns()));
    const HashEngine splits(1, 0);
    return unkernel::parsing::tokenize({spec_, boundaries, multiwords_, &splits}, text, begins_paragraph,
                                       threads, monitor_);
  }
  const unkernel::parsing::TokenizerSpec& spec() const { return spec_; }

 private:
  static unkernel::parsing::Multiwords stored_multiwords() {
    using unkernel::parsing::Multiwords;
    const SmallTables tables;
    const unkernel::parsing::CharacterKinds kinds(tables.view());
    const std::vector<std::uint64_t> tokens{token_key(kinds, "don't"), token_key(kinds, "dont")};
    const std::vector<std::int32_t> token_rules{0, 1};  // the second depends on the context
    const std::vector<std::uint64_t> endings{ending_key(kinds, "n't", 3)};
    const std::vector<std::int32_t> ending_rules{0};
    const unkernel::parsing::SplitRule rule{{0, -4, "", ""}, {-4, -1, "", ""}};
    return Multiwords({{rule}, tokens, token_rules, endings, ending_rules, 3, {}});
  }

  SmallTables tables_;
  unkernel::Monitor monitor_;
  unkernel::parsing::TokenizerSpec spec_;
  unkernel::parsing::Multiwords multiwords_;
};
