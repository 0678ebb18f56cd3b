// For any bytes, the reader throws a FormatError at an existing line, or returns sentences that are written
// back to the same bytes. Bad sentences can always be skipped, and the result does not depend on how the text
// is split into parts.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "fuzz.hpp"
#include "fuzz_input.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/data/text/bunsetsu_text.hpp"

namespace {

using namespace unkernel::data;
using unkernel::FormatError;
using unkernel::Random;

void check_text(const BunsetsuText& text) {
  CHECK(text.with_heads(text.heads(), text.types()) == text.text());
  CHECK(text.first_bunsetsu(text.sentences()) == text.bunsetsu() &&
        text.first_morpheme(text.bunsetsu()) == text.morphemes());
  for (std::size_t s = 0; s < text.sentences(); ++s) {
    CHECK(text.first_bunsetsu(s) <= text.first_bunsetsu(s + 1));
    CHECK(text.sentence_with_heads(s, text.heads(), text.types()) == text.sentence_text(s));
    CHECK(text.sentence_line(s) > 0);
  }
  for (std::size_t b = 0; b < text.bunsetsu(); ++b) {
    CHECK(text.first_morpheme(b) < text.first_morpheme(b + 1));
    CHECK(text.heads()[b] >= no_head);
  }
  for (std::size_t m = 0; m < text.morphemes(); ++m) {
    for (std::size_t f = 0; f < morpheme_fields; ++f)
      CHECK(!text.field(m, static_cast<MorphemeField>(f)).empty());
  }
}

struct Outcome {
  std::vector<std::int32_t> heads;
  std::string sentences;
  std::string fields;
  std::vector<std::string> skipped;

  bool operator==(const Outcome&) const = default;
};

void add(const BunsetsuText& text, Outcome& outcome) {
  check_text(text);
  outcome.heads.insert(outcome.heads.end(), text.heads().begin(), text.heads().end());
  for (std::size_t s = 0; s < text.sentences(); ++s)
    outcome.sentences.append(text.sentence_text(s)).append(std::to_string(text.sentence_line(s)));
  for (std::size_t m = 0; m < text.morphemes(); ++m)
    outcome.fields.append(text.field(m, MorphemeField::cform)).append("|");
  for (const auto& sentence : text.skipped())
    outcome.skipped.push_back(std::to_string(sentence.line) + ":" + std::to_string(sentence.column) + ":" +
                              sentence.reason);
}

Outcome read_whole(std::string_view text) {
  Outcome outcome;
  add(BunsetsuText(std::string(text), "fuzz", 1, BadSentence::skip), outcome);
  return outcome;
}

Outcome read_parts(std::string_view text, Random& random) {
  Outcome outcome;
  std::string unread;
  std::size_t searched = 0;
  std::int64_t line = 1;
  while (!text.empty()) {
    const std::size_t size = 1 + random.below(static_cast<std::uint32_t>(text.size()));
    unread.append(text.substr(0, size));
    text.remove_prefix(size);
    const std::size_t complete = size_of_whole_sentences(unread, searched);
    CHECK(complete <= unread.size());
    if (complete > 0) {
      const BunsetsuText part(unread.substr(0, complete), "fuzz", line, BadSentence::skip);
      line += part.lines();
      add(part, outcome);
      unread.erase(0, complete);
    }
    searched = unread.size();
  }
  if (!unread.empty()) add(BunsetsuText(unread, "fuzz", line, BadSentence::skip), outcome);
  return outcome;
}

void check_refusal(std::string_view text, const Outcome& skipping) {
  try {
    check_text(BunsetsuText(std::string(text), "fuzz", 1, BadSentence::fail));
    CHECK(skipping.skipped.empty());
  } catch (const FormatError& error) {
    CHECK(error.line >= 1 && error.line <= 1 + std::ranges::count(text, '\n'));
    CHECK(!skipping.skipped.empty() && skipping.skipped[0] == std::to_string(error.line) + ":" +
                                                                  std::to_string(error.column) + ":" +
                                                                  error.reason);
  }
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {
      "# S-ID:1\n* 0 1D\na b c d e f g\n* 1 -1D\nh i j k l m n\nEOS\n",
      "* 0 -1P x\r\na b c d 1 e 2 f 3 g 4\r\n+ 0 1D\r\nEOS\r\n\r\n# end\r\n",
      "* 0 0D\n* * * * * * *\n# # # # # # #\n+ + + + + + +\nEOS\nEOS\n* 0 -1D\nEOS\n* 0 -1D\na b c d e f "
      "g\nEOS",
      "\xef\xbb\xbf* 0 7A\n\xff\xfe b c d e f g\n* 2 -1D\nEOS\n* 0 -2D\nx\nEOS\nmore",
      "* 0 99999999999D\na b  d e f g\nEOS\n* 00 01D\n* 1 D\n* 2 -D\n\nEOS\n",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const FuzzInput input(data, size);
  const std::string_view text = input.text();
  Random random(input.hash());
  const Outcome outcome = read_whole(text);
  if (fuzz_also(input.hash(), 4)) check_refusal(text, outcome);
  if (fuzz_also(random.next(), 8)) CHECK(read_parts(text, random) == outcome);
  return 0;
}
