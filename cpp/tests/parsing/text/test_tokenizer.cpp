// The work of a tokenizer is linear in the text, and its window stays small: both are counted.
#include <algorithm>
#include <string>

#include "check.hpp"
#include "parsing/text/small_tokenizer.hpp"

namespace {

using namespace unkernel::parsing;

struct Counts {
  std::size_t decisions = 0;
  std::size_t tokens = 0;
  std::size_t widest = 0;  // characters that the window holds
};

// Ends a token after every `length` characters.
Counts counts_of(const CharacterKinds& kinds, const std::string& text, std::size_t length) {
  Counts counts;
  const unkernel::Monitor monitor;
  const auto decide = [&](const CharacterWindow& window, std::size_t, const SentenceSoFar&) {
    ++counts.decisions;
    counts.widest = std::max(counts.widest, window.kept());
    return counts.decisions % length == 0 ? Boundary::token : Boundary::inside;
  };
  scan_text(
      kinds, text, decide, [&](const CharacterWindow&, const TokenFound&) { ++counts.tokens; }, monitor);
  return counts;
}

void test_long_lines() {
  const SmallTokenizer tokenizer;
  const CharacterKinds& kinds = tokenizer.spec().characters();
  for (const std::size_t size : {10'000, 100'000, 1'000'000}) {
    for (const std::size_t length : {std::size_t{3}, 10 * size}) {
      const Counts counts = counts_of(kinds, std::string(size, 'x'), length);
      CHECK(counts.decisions == size - 1);
      CHECK(counts.tokens == (size - 1) / length + 1);
      CHECK(counts.widest < 10'000);
    }
  }
}

void test_long_blanks() {
  const SmallTokenizer tokenizer;
  const std::string text = "a" + std::string(100'000, ' ') + "b" + std::string(100'000, '\n') + "c";
  CHECK(counts_of(tokenizer.spec().characters(), text, 1).tokens == 3);
}

}  // namespace

int main() {
  test_long_lines();
  test_long_blanks();
  return 0;
}
