// For any bytes, the tokens and blanks of the result are these bytes, and the result is the same on one
// thread and on three. If the bytes are UTF-8, the result is CoNLL-U.
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "fuzz.hpp"
#include "fuzz_input.hpp"
#include "parsing/text/original_text.hpp"
#include "parsing/text/small_tokenizer.hpp"
#include "unkernel/data/text/column_text.hpp"
#include "unkernel/data/text/utf8.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const SmallTokenizer tokenizer;
  const FuzzInput input(data, size);
  const std::string_view text = input.text();
  const std::string answer = tokenizer.tokenize(text, 1);
  if (fuzz_also(input.hash(), 64)) CHECK(answer == tokenizer.tokenize(text, 3));
  const auto [complete, ends_paragraph] =
      unkernel::parsing::whole_stretches(tokenizer.spec().characters(), text);
  CHECK(answer == tokenizer.tokenize(text.substr(0, complete), 1) +
                      tokenizer.tokenize(text.substr(complete), 1, ends_paragraph));
  const bool is_blank = unkernel::parsing::skip_blanks(tokenizer.spec().characters(), text, 0) == text.size();
  CHECK(original_text(answer) == (is_blank ? "" : text));
  if (unkernel::data::first_bad_byte(answer) == answer.size()) {
    const unkernel::data::ColumnText treebank(
        answer, "answer",
        {unkernel::data::ColumnFormat::conllu, 0, unkernel::data::TreeCheck::none, false, 1});
    CHECK((treebank.sentences() == 0) == is_blank);
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
