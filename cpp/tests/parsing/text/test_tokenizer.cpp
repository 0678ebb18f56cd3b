// The work of a tokenizer is linear in the text, and its window stays small: this test counts both.
#include <algorithm>
#include <string>

#include "check.hpp"
#include "parsing/text/small_tokenizer.hpp"

namespace {

using namespace unkernel::parsing;

struct Counts {
  std::size_t decisions = 0;
  std::size_t tokens = 0;
  std::size_t max_window = 0;  // largest number of characters in the window
};

// Ends a token after every `length` characters.
Counts counts_of(const CharacterKinds& kinds, const std::string& text, std::size_t length) {
  Counts counts;
  const unkernel::Monitor monitor;
  const auto decide = [&](const CharacterWindow& window, std::size_t, const SentenceSoFar&) {
    ++counts.decisions;
    counts.max_window = std::max(counts.max_window, window.kept());
    return counts.decisions % length == 0 ? Boundary::token : Boundary::inside;
  };
  scan_text(
      kinds, text, decide, [&](const CharacterWindow&, const TokenFound&) { ++counts.tokens; }, monitor);
  return counts;
}

void test_work_is_linear_in_the_length_of_a_line() {
  const SmallTokenizer tokenizer;
  const CharacterKinds& kinds = tokenizer.spec().characters();
  for (const std::size_t size : {10'000, 100'000, 1'000'000}) {
    for (const std::size_t length : {std::size_t{3}, 10 * size}) {
      const Counts counts = counts_of(kinds, std::string(size, 'x'), length);
      CHECK(counts.decisions == size - 1);
      CHECK(counts.tokens == (size - 1) / length + 1);
      CHECK(counts.max_window < 10'000);
    }
  }
}

void test_long_runs_of_blanks() {
  const SmallTokenizer tokenizer;
  const std::string text = "a" + std::string(100'000, ' ') + "b" + std::string(100'000, '\n') + "c";
  CHECK(counts_of(tokenizer.spec().characters(), text, 1).tokens == 3);
}

// Kinds of characters come from files: a file that would make a line end part of a word is refused.
void test_invalid_kinds_are_refused() {
  for (const char code : {'\0', '\t', '\n', '\r', ' '}) {
    SmallTables tables;
    tables.kinds[static_cast<std::size_t>(code)] = 5;
    CHECK_THROWS(CharacterKinds{tables.view()}, std::invalid_argument);
  }
  SmallTables tables;
  tables.kinds['.'] = line_end_kind;
  CHECK_THROWS(CharacterKinds{tables.view()}, std::invalid_argument);
}

// Every loop advances, even if a text begins with a blank, which callers should have skipped.
void test_every_loop_advances() {
  const SmallTokenizer tokenizer;
  const CharacterKinds& kinds = tokenizer.spec().characters();
  for (const std::string text : {" ", "\n\n", "\n\nb", " b", "\nb\n\n\nc\n"}) {
    CHECK(counts_of(kinds, text, 1).decisions <= text.size());
    for (std::size_t at = 0; at < text.size(); ++at) CHECK(stretch_from(kinds, text, at).end > at);
  }
}

// Blanks at the maximum length of a stretch belong to the stretch before them.
void test_blanks_at_the_end_of_a_stretch_belong_to_it() {
  const SmallTokenizer tokenizer;
  const std::string word(longest_stretch, 'x');
  for (const std::string blanks : {" ", "\n\n", "\n \n"}) {
    for (const std::string remaining : {"", "b"}) {
      const std::string text = word + blanks + remaining;
      const Stretch first = stretch_from(tokenizer.spec().characters(), text, 0);
      CHECK(first.end == word.size() + blanks.size());
    }
  }
  CHECK(!tokenizer.tokenize(word + " ", 1).empty());
}

// Reading a text block by block gives the same stretches, even if a paragraph is longer than a stretch.
void test_reading_in_blocks_gives_the_same_stretches() {
  const SmallTokenizer tokenizer;
  const CharacterKinds& kinds = tokenizer.spec().characters();
  const std::string long_paragraph = [] {
    std::string text = "dont go.\n\n";
    for (int k = 0; k < 130'000; ++k) text += "I saw it ";
    return text;
  }();
  for (const std::string& text :
       {long_paragraph, "a. " + std::string(1'200'000, 'x'), std::string(1'100'000, '\xC3')}) {
    std::string tokenized;
    bool begins_paragraph = true;
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view remaining = std::string_view(text).substr(at);
      const Stretch complete = whole_stretches(kinds, remaining);
      const std::size_t end = complete.end == 0 ? remaining.size() : stretch_from(kinds, remaining, 0).end;
      CHECK(end <= longest_stretch);
      tokenized += tokenizer.tokenize(remaining.substr(0, end), 1, begins_paragraph);
      begins_paragraph = complete.end == 0 || stretch_from(kinds, remaining, 0).ends_paragraph;
      at += end;
    }
    CHECK(tokenized == tokenizer.tokenize(text, 2));
  }
}

}  // namespace

int main() {
  test_work_is_linear_in_the_length_of_a_line();
  test_long_runs_of_blanks();
  test_invalid_kinds_are_refused();
  test_every_loop_advances();
  test_blanks_at_the_end_of_a_stretch_belong_to_it();
  test_reading_in_blocks_gives_the_same_stretches();
  return 0;
}
