// For any bytes, the reader throws a FormatError at an existing line, or its sentences and fields are valid.
// Written text differs from the input in the replaced columns only, skipping leaves out only bad sentences,
// and the result does not depend on how the text is split into blocks.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "fuzz.hpp"
#include "fuzz_input.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/data/text/column_text.hpp"
#include "unkernel/data/text/utf8.hpp"

namespace {

using namespace unkernel::data;
using unkernel::FormatError;
using unkernel::Random;

// Returns everything that was read, as lines to compare.
std::vector<std::string> content(const ColumnText& text) {
  std::vector<std::string> lines;
  for (std::int64_t s = 0; s < text.sentences(); ++s) {
    lines.push_back(std::to_string(text.sentence_line(s)) + " " + std::string(text.sentence_text(s)));
    for (std::int64_t token = text.first_token(s); token < text.first_token(s + 1); ++token) {
      lines.push_back(std::to_string(text.line(token)));
      for (int column = 0; column < text.columns(); ++column) lines.emplace_back(text.field(token, column));
      if (!text.heads().empty())
        lines.push_back(std::to_string(text.heads()[static_cast<std::size_t>(token)]));
    }
  }
  return lines;
}

std::vector<std::string> errors(const ColumnText& text) {
  std::vector<std::string> messages;
  for (std::size_t i = 0; i < text.skipped().size(); ++i) messages.emplace_back(text.why_skipped(i).what());
  return messages;
}

void check_tokens(const ColumnText& text, std::int64_t sentence) {
  const bool chunks = text.format() == ColumnFormat::chunks;
  const std::int64_t first = text.first_token(sentence);
  const std::int64_t words = text.first_token(sentence + 1) - first;
  const std::string_view lines = text.sentence_text(sentence);
  CHECK(words > 0 && first_bad_byte(lines) == lines.size());
  for (std::int64_t token = first; token < first + words; ++token) {
    for (int column = 0; column < text.columns(); ++column) {
      const std::string_view field = text.field(token, column);
      CHECK(field.data() >= lines.data() && field.data() + field.size() <= lines.data() + lines.size());
      CHECK(!field.empty() && field.find_first_of(chunks ? " \t\n" : "\t\n") == std::string_view::npos);
    }
    if (chunks) continue;
    const std::int32_t head = text.heads()[static_cast<std::size_t>(token)];
    CHECK(text.field(token, conll::id) == std::to_string(token - first + 1));
    CHECK(head >= -1 && head <= words && head != token - first + 1);
  }
}

void check_invariants(const ColumnText& text) {
  CHECK(text.first_tokens().size() == static_cast<std::size_t>(text.sentences()) + 1);
  CHECK(text.first_token(0) == 0 && text.first_token(text.sentences()) == text.tokens());
  CHECK(text.heads().size() ==
        (text.format() == ColumnFormat::chunks ? 0 : static_cast<std::size_t>(text.tokens())));
  for (std::int64_t s = 0; s < text.sentences(); ++s) check_tokens(text, s);
}

// --- Writing ----------------------------------------------------------------------------------------

// The values of a column, in the form that the writers take.
struct ColumnCopy {
  ColumnCopy(const ColumnText& text, int column) {
    for (std::int64_t token = 0; token < text.tokens(); ++token) {
      numbers.push_back(static_cast<std::int32_t>(token));
      names.emplace_back(text.field(token, column));
    }
  }
  operator TokenNames() const { return {numbers, names}; }

  std::vector<std::int32_t> numbers;
  std::vector<std::string> names;
};

bool has_return(const ColumnCopy& values) {
  return std::ranges::any_of(values.names,
                             [](const std::string& name) { return name.find('\r') != std::string::npos; });
}

// Checks that the index of a copy with replaced columns is the index that a reader makes of its text.
void check_copied_index(const ColumnText& copy) {
  const ColumnText read(copy.text(), "fuzz", copy.options());
  const ColumnIndex &copied = copy.index(), &expected = read.index();
  const auto equal_places = [](const LinePlace& a, const LinePlace& b) {
    return a.begin == b.begin && a.end == b.end && a.line == b.line;
  };
  CHECK(copied.columns == expected.columns);
  CHECK(std::ranges::equal(copied.token_begins.span(), expected.token_begins.span()));
  CHECK(std::ranges::equal(copied.cuts.span(), expected.cuts.span()));
  CHECK(std::ranges::equal(copied.heads.span(), expected.heads.span()));
  CHECK(std::ranges::equal(copied.first_tokens.span(), expected.first_tokens.span()));
  CHECK(std::ranges::equal(copied.sentences.span(), expected.sentences.span(), equal_places));
  CHECK(std::ranges::equal(copied.skipped.span(), expected.skipped.span(), equal_places));
}

void check_new_trees(const ColumnText& text, Random& random) {
  std::vector<std::int32_t> heads;
  for (std::int64_t s = 0; s < text.sentences(); ++s) {
    const auto words = static_cast<std::int32_t>(text.first_token(s + 1) - text.first_token(s));
    for (std::int32_t word = 1; word <= words; ++word) {
      const auto head = static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(words) + 2)) - 1;
      heads.push_back(head == word ? 0 : head);
    }
  }
  const std::vector<std::string> names{"x", "longer"};
  std::vector<std::int32_t> relations(heads.size());
  for (std::int32_t& relation : relations) relation = static_cast<std::int32_t>(random.below(3)) - 1;
  const ColumnText copy = replace_trees(text, heads, {relations, names});
  check_copied_index(copy);
  CHECK(std::ranges::equal(copy.heads(), heads) && copy.tokens() == text.tokens());
  for (std::int64_t token = 0; token < text.tokens(); ++token) {
    const std::int32_t relation = relations[static_cast<std::size_t>(token)];
    CHECK(copy.field(token, conll::deprel) ==
          (relation < 0 ? "_" : names[static_cast<std::size_t>(relation)]));
    CHECK(copy.field(token, conll::misc) == text.field(token, conll::misc));
  }
}

void check_writing(const ColumnText& text, Random& random) {
  if (text.format() != ColumnFormat::chunks) {
    const ColumnCopy relations(text, conll::deprel);
    if (!has_return(relations)) CHECK(replace_trees(text, text.heads(), relations).text() == text.text());
    check_new_trees(text, random);
  } else if (text.columns() > 0) {
    const ColumnCopy last(text, text.columns() - 1);
    if (has_return(last)) return;
    CHECK(replace_column(text, text.columns() - 1, last).text() == text.text());
    if (!text.skipped().empty()) return;  // a skipped sentence may be valid with one more column
    const ColumnText extended = replace_column(text, text.columns(), last);
    check_copied_index(extended);
    CHECK(extended.columns() == text.columns() + 1 && extended.tokens() == text.tokens());
    for (std::int64_t token = 0; token < text.tokens(); ++token) {
      CHECK(extended.field(token, text.columns()) == text.field(token, text.columns() - 1));
    }
  }
}

// --- Blocks -----------------------------------------------------------------------------------------

void check_blocks(const ColumnText& whole, Random& random) {
  const std::string& text = whole.text();
  ColumnOptions options = whole.options();
  std::vector<std::string> lines, block_messages;
  std::string unread;
  const auto read_block = [&](std::size_t size) {
    const ColumnText block(unread.substr(0, size), "fuzz", options);
    std::ranges::move(content(block), std::back_inserter(lines));
    std::ranges::move(errors(block), std::back_inserter(block_messages));
    options.first_line +=
        std::count(unread.begin(), unread.begin() + static_cast<std::ptrdiff_t>(size), '\n');
    options.columns = block.columns();
    unread.erase(0, size);
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = 1 + random.below(static_cast<std::uint32_t>(text.size() - at));
    unread.append(text, at, size);
    at += size;
    if (const std::size_t end = size_of_whole_sentences(unread, options.format)) read_block(end);
  }
  read_block(unread.size());
  CHECK(lines == content(whole) && block_messages.size() == whole.skipped().size());
  // In texts of chunks, the number of columns is known only after the first valid sentence.
  CHECK(options.format == ColumnFormat::chunks || block_messages == errors(whole));
}

// Trees that were checked when they were read pass the check again; other trees pass or fail with a line.
void check_trees_again(const ColumnText& text, TreeCheck trees) {
  text.check_trees(trees);
  try {
    text.check_trees(TreeCheck::tree);
  } catch (const FormatError& error) { CHECK(trees != TreeCheck::tree && error.line >= 1); }
}

void check_format(std::string_view bytes, ColumnFormat format, TreeCheck trees, Random& random) {
  ColumnOptions options{format, 0, trees, true, 1};
  const ColumnText skipping(std::string(bytes), "fuzz", options);
  check_invariants(skipping);
  if (format != ColumnFormat::chunks) check_trees_again(skipping, trees);
  // Only for texts that were read without a tree check, because written texts have the bad sentences, too.
  if (trees == TreeCheck::none && fuzz_also(random.next(), 4)) check_writing(skipping, random);
  if (fuzz_also(random.next(), 8)) check_blocks(skipping, random);
  options.skip_bad_sentences = false;
  try {
    const ColumnText text(std::string(bytes), "fuzz", options);
    CHECK(skipping.skipped().empty() && content(text) == content(skipping));
  } catch (const FormatError& error) {
    CHECK(error.line >= 1 && error.line <= std::ranges::count(bytes, '\n') + 1 && error.column >= 1);
    CHECK(!skipping.skipped().empty());
    CHECK(format == ColumnFormat::chunks || errors(skipping).front() == error.what());
  }
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  const std::string dogs =
      "1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\t_\n";
  return {
      "# sent_id = 1\n" + dogs + "\n# text = x\n1-2\tvamonos\t_\t_\t_\t_\t_\t_\t_\t_\n" + dogs +
          "2.1\t_\t_\t_\t_\t_\t_\t_\t0:x\t_\n\n",
      "\xEF\xBB\xBF# newdoc\n\n" + dogs + "3\t,\t,\t_\t_\t_\t1\t_\t_\t_\r\n\r\n" + dogs,
      dogs + dogs,
      dogs + "\n\n  \n# alone\n\n" + dogs + "# behind",
      "1\tx\t_\t_\t_\t_\t2\t_\t_\t_\n2\ty\t_\t_\t_\t_\t1\t_\t_\t_\n\n1\tz\t_\t_\t_\t_\t_\t_\t_\t_\n\n",
      "1\tx\t_\t_\t_\t_\t0\t_\t_\t_\n2\ty\t_\t_\t_\t_\t0\t_\t_\t_\n\n1\tx\t_\t_\t_\t_\t99999999999\t_\t_\t_"
      "\n",
      "Confidence NN B-NP\nin IN B-PP\n\n# # B-NP\r\n1.3 CD I-NP\r\n\r\nlast NN O",
      "a b\nc d\n\ne\tf\n\n g   h \n\ni\n",
      "\xE7\x8A\xAC \xE5\x90\x8D O\n\xF0\x9F\x90\x95 \xC3\xA9 B\n\n\xED\xA0\x80 x y\n\n",
      std::string("a b\0c\n\nd e\n", 11),
      "\n\n\n",
      "",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const FuzzInput input(data, size);
  const std::string_view text = input.text();
  Random random(input.hash());
  std::uint64_t hash = input.hash();
  const auto check = [&](ColumnFormat format, TreeCheck trees) {
    hash = Random::mix(hash + 1);
    if (fuzz_also(hash, 4)) check_format(text, format, trees, random);
  };
  for (const TreeCheck trees : {TreeCheck::none, TreeCheck::forest, TreeCheck::tree}) {
    check(ColumnFormat::conllu, trees);
  }
  check(ColumnFormat::conllx, TreeCheck::none);
  check(ColumnFormat::chunks, TreeCheck::none);
  return 0;
}
