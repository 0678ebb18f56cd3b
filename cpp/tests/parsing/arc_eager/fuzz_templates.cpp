// For any bytes, templates are refused with a FormatError at an existing line, or every feature is the same
// after being written and read again, and its addresses give words of the sentence or no word.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "fuzz.hpp"
#include "fuzz_input.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/parsing/arc_eager/templates.hpp"

namespace {

using namespace unkernel;
using namespace unkernel::parsing;

std::string text_of(const ParserTemplates& templates) {
  std::string text;
  for (const auto& [name, set] :
       {std::pair{"[moves]\n", &templates.moves}, std::pair{"[labels]\n", &templates.labels}}) {
    text += name;
    for (const Template& feature_template : set->templates) text += feature_template.text + "\n";
  }
  return text;
}

void check_same(const TemplateSet& a, const TemplateSet& b) {
  CHECK(a.addresses == b.addresses && a.templates.size() == b.templates.size());
  for (std::size_t k = 0; k < a.templates.size(); ++k) {
    CHECK(a.templates[k].text == b.templates[k].text && a.templates[k].values == b.templates[k].values);
  }
}

// Checks addresses after some moves, with `arc` as the arc to label.
void check_addresses(const TemplateSet& set, Random& random) {
  ArcEagerState state;
  state.begin(1 + random.below(6));
  for (std::uint32_t remaining = random.below(8); remaining > 0 && !state.finished(); --remaining) {
    const Move move = all_moves[random.below(move_count)];
    if (valid(state, move)) apply(state, move, 0);
  }
  if (state.finished()) return;
  for (const Address& address : set.addresses) {
    const Word word = word_at(state, {state.next(), state.top()}, address);
    CHECK(word >= 0 && word <= static_cast<Word>(state.words()));
  }
}

void check_set(const TemplateSet& set, Random& random) {
  CHECK(!set.templates.empty());
  for (const Template& single_template : set.templates) {
    CHECK(!single_template.values.empty() && single_template.values.size() <= 4);
    for (const TemplateValue& value : single_template.values) {
      const bool needs_no_address =
          value.attribute == Attribute::distance || value.attribute == Attribute::direction;
      CHECK(needs_no_address || value.address < set.addresses.size());
    }
  }
  for (int trial = 0; trial < 4; ++trial) check_addresses(set, random);
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  const std::string labels = "[labels]\ndirection + distance\nhead[-1].left.word\ndependent[2].shape\n";
  return {
      "# features\n[moves]\nstack.word\ninput[1].xpos\nstack.head.word # its head\nstack.xpos + "
      "input.xpos\ndistance\n" +
          labels,
      "[moves]\r\nstack[3].before.after.left2.right2.suffix3\r\n\tinput . upos + distance\r\n" + labels +
          "[moves]\nstack.label",
      "[moves]\nstack[0].left-valency+input[1000].right-valency\n[labels]\nhead.head.head.feats+dependent."
      "lemma+direction\n",
      "[moves]\ndirection\n" + labels,
      "[moves]\nstack.word\n[beside moves]\ninput.word\n[moves]\nstack.xpos\n" + labels,
      "[moves]\nstack.word\n[beside moves]\ninput.word\n" + labels + "[beside labels]\nhead.word\n",
      "[moves]\nstack.left2.word\nstack.right.word\nstack.right2.word\ninput.before.word\ninput.after."
      "word\n" +
          labels,
      "[moves]\nstack.head.head.head.head.head.head.head.head.head.head.head.word\n" + labels,
      "[moves]\nstack[-1].word\n" + labels,
      "[moves]\nstack[99999999999].word\n" + labels,
      "[labels]\nhead[-2147483648].word\n[moves]\nstack.form\n",
      "stack.word\n",
      "[move]\n",
      "[moves]\nstack.\n",
      "[moves]\n.word\n",
      "[moves]\nstack[].word\n",
      "[moves]\nstack[.word\n",
      "[moves]\nstack].word\n",
      "[moves]\nstack.word + \n",
      "[moves]\n+\n",
      "[moves]\nstack.word\nstack[0].word\n" + labels,
      "\xEF\xBB\xBF[moves]\nstack.word\n" + labels,
      std::string("[moves]\nstack\0.word\n", 20),
      "",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const FuzzInput input(data, size);
  const std::string_view text = input.text();
  Random random(input.hash());
  try {
    const ParserTemplates parsed = read_templates("fuzz", text);
    const ParserTemplates reread = read_templates("fuzz", text_of(parsed));
    check_same(parsed.moves, reread.moves);
    check_same(parsed.labels, reread.labels);
    check_set(parsed.moves, random);
    check_set(parsed.labels, random);
  } catch (const FormatError& error) {
    // Line 0 stands for the whole file: a section is missing or has no features.
    CHECK(error.line >= 0 && error.line <= std::ranges::count(text, '\n') + 1);
    CHECK(std::string_view(error.what()).starts_with("fuzz"));
  }
  return 0;
}
