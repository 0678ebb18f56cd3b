// For any bytes, templates are rejected with a FormatError or give valid rows for any text. For any text and
// scores, recoded tags are valid in every scheme, and decoded tags are valid and the same on one thread and
// on three. An input consists of templates, a line `%%`, and a text of words, parts of speech and tags.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "fuzz.hpp"
#include "fuzz_input.hpp"
#include "parsing/hash_engine.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/parsing/chunks/decoder.hpp"

namespace {

using namespace unkernel::parsing;
using unkernel::FormatError;
using unkernel::data::ColumnText;

constexpr ChunkScheme schemes[] = {ChunkScheme::iob1, ChunkScheme::iob2, ChunkScheme::ioe1, ChunkScheme::ioe2,
                                   ChunkScheme::iobes};

std::span<ChunkTag> sentence(const ColumnText& text, std::int64_t s, std::vector<ChunkTag>& tags) {
  const auto first = static_cast<std::size_t>(text.first_token(s));
  return std::span(tags).subspan(first, static_cast<std::size_t>(text.first_token(s + 1)) - first);
}

void check_valid(std::span<const ChunkTag> tags, ChunkScheme scheme) {
  ChunkTag previous = outside;
  for (const ChunkTag tag : tags) {
    CHECK(may_follow(scheme, previous, tag));
    previous = tag;
  }
  CHECK(may_follow(scheme, previous, outside));
}

void check_tags(const ColumnText& text, const SequenceTemplates& templates, std::vector<ChunkTag> tags,
                ChunkScheme scheme, bool backward, std::uint64_t hash) {
  std::vector<Chunk> buffer;
  for (std::int64_t s = 0; s < text.sentences(); ++s) {
    recode(sentence(text, s, tags), scheme, buffer);
    check_valid(sentence(text, s, tags), scheme);
  }
  std::vector<ChunkTag> classes = tags;
  std::ranges::sort(classes);
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  if (classes.size() < 2) return;
  std::vector<std::int32_t> answers;
  for (const ChunkTag tag : tags)
    answers.push_back(static_cast<std::int32_t>(std::ranges::lower_bound(classes, tag) - classes.begin()));
  SequenceFeatures features(templates, chunk_sources());
  const unkernel::Monitor monitor;
  features.learn({.text = text, .backward = backward}, answers,
                 1 + static_cast<std::int64_t>(classes.size() % 2), monitor);
  const HashEngine engine(classes.size() == 2 ? 1 : classes.size(), features.features());
  const ChunkModel model{features, engine, classes, scheme, backward, 1 + hash / 8 % 5};
  std::vector<ChunkTag> predicted = chunk_text(text, model, {1, &monitor});
  if (fuzz_also(hash, 256)) CHECK(predicted == chunk_text(text, model, {3, &monitor}));
  for (std::int64_t s = 0; s < text.sentences(); ++s)
    check_valid(sentence(text, s, predicted), ChunkScheme::iob2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const FuzzInput input(data, size);
  const std::string content(input.text());
  const std::size_t separator = content.find("%%\n");
  try {
    const SequenceTemplates templates =
        read_sequence_templates(content.substr(0, separator), "templates", chunk_names());
    if (separator == std::string::npos) return 0;
    const ColumnText text(
        content.substr(separator + 3), "text",
        {unkernel::data::ColumnFormat::chunks, 0, unkernel::data::TreeCheck::none, false, 1});
    if (text.sentences() == 0) return 0;
    unkernel::data::NameTable types;
    const std::vector<ChunkTag> tags = read_chunk_tags(text, text.columns() - 1, types);
    for (const ChunkScheme scheme : schemes) {
      for (const bool backward : {false, true}) {
        // Tries each pair of schemes for a share of the inputs.
        const auto pair = 2 * static_cast<std::uint64_t>(scheme) + (backward ? 1 : 0);
        const std::uint64_t hash = unkernel::Random::mix(input.hash() + pair);
        if (fuzz_also(hash, 5)) check_tags(text, templates, tags, scheme, backward, hash);
      }
    }
  } catch (const FormatError& error) { CHECK(!error.reason.empty()); }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      "word[0]\npos[-1]+tag[-1]\n%%\nHe PRP B-NP\nsaw VBD B-VP\nit PRP B-NP\n\nNo DT O\n",
      "suffix3[0] # the end\nshape[-2]\ntag[-9]\nlower[9]\n%%\na I-X\nb I-X\nc B-X\n\nd E-Y\ne S-Y\n",
      "prefix1[0]\nword[0]+word[1]+word[2]+tag[-1]+tag[-2]\n%%\n\xC3\xA9 N B\nx N I\ny N O\n",
      "tag[-1]\n%%\na B-X\nb I-X\nc B-Y\nd I-Y\n",
      "wurd[0]\n",
      "word[0]+\n",
  };
}
