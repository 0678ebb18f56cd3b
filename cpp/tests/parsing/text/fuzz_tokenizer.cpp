// For any bytes and any decisions, the tokens and blanks of an answer are the bytes, on one thread as on
// three; if the bytes are UTF-8, the answer is CoNLL-U.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "fuzz.hpp"
#include "fuzz_input.hpp"
#include "parsing/text/small_tokenizer.hpp"
#include "unkernel/data/text/column_text.hpp"
#include "unkernel/data/text/utf8.hpp"

namespace {

std::string unescaped(std::string_view blanks) {
  std::string found;
  for (std::size_t k = 0; k < blanks.size(); ++k) {
    if (blanks[k] != '\\') {
      found += blanks[k];
      continue;
    }
    constexpr std::string_view letters = "stnr0", meant("\x20\t\n\r\0", 5);
    const std::size_t which = letters.find(blanks[++k]);
    CHECK(which != std::string_view::npos);
    found += meant[which];
  }
  return found;
}

// The value of a key in the column MISC; `missing` if it has none.
std::string value_of(std::string_view misc, std::string_view key, std::string missing) {
  const std::size_t begin = misc.find(key);
  if (begin == std::string_view::npos) return missing;
  const std::string_view rest = misc.substr(begin + key.size());
  return unescaped(rest.substr(0, rest.find('|')));
}

// What the lines of an answer were made of.
std::string original(std::string_view answer) {
  std::string text;
  int words = 0;  // of a multiword token, whose lines are still to come
  while (!answer.empty()) {
    const std::size_t end = answer.find('\n');
    const std::string_view line = answer.substr(0, end);
    answer.remove_prefix(end + 1);
    if (line.empty() || line[0] == '#') continue;
    if (words > 0) {
      --words;
      continue;
    }
    const std::size_t tab = line.find('\t');
    const std::size_t columns = line.find("\t_\t_\t_\t_\t_\t_\t_\t", tab + 1);
    CHECK(columns != std::string_view::npos);
    words = line.substr(0, tab).find('-') == std::string_view::npos ? 0 : 2;  // all rules make two
    const std::string_view misc = line.substr(line.rfind('\t') + 1);
    const bool glued = misc.starts_with("SpaceAfter=No");
    text += value_of(misc, "SpacesBefore=", "");
    text += line.substr(tab + 1, columns - tab - 1);
    text += value_of(misc, "SpacesAfter=", glued ? "" : " ");
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const SmallTokenizer tokenizer;
  const FuzzInput input(data, size);
  const std::string_view text = input.text();
  const std::string answer = tokenizer.tokenize(text, 1);
  if (fuzz_also(input.hash(), 64)) CHECK(answer == tokenizer.tokenize(text, 3));
  const auto [whole, ends_paragraph] =
      unkernel::parsing::whole_stretches(tokenizer.spec().characters(), text);
  CHECK(answer == tokenizer.tokenize(text.substr(0, whole), 1) +
                      tokenizer.tokenize(text.substr(whole), 1, ends_paragraph));
  const bool blanks = unkernel::parsing::skip_blanks(tokenizer.spec().characters(), text, 0) == text.size();
  CHECK(original(answer) == (blanks ? "" : text));
  if (unkernel::data::first_bad_byte(answer) == answer.size()) {
    const unkernel::data::ColumnText read(
        answer, "answer",
        {unkernel::data::ColumnFormat::conllu, 0, unkernel::data::TreeCheck::none, false, 1});
    CHECK((read.sentences() == 0) == blanks);
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      "I don't know. Why not?",    " \t He (or so) said\r\n\r\ndont go\n",
      std::string("a\0b \0\0", 6), "\xC3\xA9\xC3\x89 \xE7\x8C\xAB\xF0\x9F\x91\x8D \xFF\xC3",
      "1\t_\t_\n# text = x|y\\s",  "\n\n\r\r. . .",
  };
}
