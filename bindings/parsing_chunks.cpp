// Chunking: features, answers and counts.
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "bound_engine.hpp"
#include "lexicons.hpp"
#include "named_values.hpp"
#include "unkernel/parsing/chunks/decoder.hpp"
#include "unkernel/parsing/chunks/tags.hpp"

namespace unkernel::bindings {
namespace {

using data::ColumnText;
using parsing::ChunkTag;
using parsing::SequenceFeatures;

// The slowest models need a fraction of a second for this number of tokens.
constexpr std::int64_t max_tokens_on_this_thread = 2000;

constexpr Named<parsing::ChunkScheme> schemes[] = {{"IOB1", parsing::ChunkScheme::iob1},
                                                   {"IOB2", parsing::ChunkScheme::iob2},
                                                   {"IOE1", parsing::ChunkScheme::ioe1},
                                                   {"IOE2", parsing::ChunkScheme::ioe2},
                                                   {"IOBES", parsing::ChunkScheme::iobes}};

parsing::ChunkScheme parse_scheme(const std::string& name) {
  return find_value(schemes, name, "the scheme must be");
}

data::NameTable make_type_table(const std::vector<std::string>& types) {
  return make_name_table(types, "a type of chunks is given twice");
}

// Throws unless sentences follow one another in the text and tags have known types.
void check_tags(std::span<const std::int64_t> first_tokens, std::span<const ChunkTag> tags,
                std::size_t types) {
  const bool is_valid = !first_tokens.empty() && first_tokens.front() == 0 &&
                        std::ranges::is_sorted(first_tokens) &&
                        first_tokens.back() == static_cast<std::int64_t>(tags.size());
  if (!is_valid) throw std::invalid_argument("the sentences do not fit the tags");
  for (const ChunkTag tag : tags) {
    if (tag < 0 || (tag != parsing::outside && static_cast<std::size_t>(parsing::type_of(tag)) >= types)) {
      throw std::invalid_argument("a tag is out of range");
    }
  }
}

auto read_chunk_tags(const ColumnText& text, int column, const std::vector<std::string>& types) {
  if (column < 0 || column >= text.columns())
    throw std::out_of_range("there is no column " + std::to_string(column));
  data::NameTable names = make_type_table(types);
  auto tags = without_lock([&] { return parsing::read_chunk_tags(text, column, names); });
  return nb::typed<nb::tuple, nb::any, Names>(nb::make_tuple(to_numpy(std::move(tags)), names_of(names)));
}

// Returns the names of all tags of these types, by their numbers.
std::vector<std::string> list_tag_names(const std::vector<std::string>& types) {
  const data::NameTable table = make_type_table(types);
  std::vector<std::string> names;
  for (std::size_t tag = 0; tag <= types.size() * parsing::marks; ++tag)
    names.push_back(parsing::name_of(static_cast<ChunkTag>(tag), table));
  return names;
}

auto recode_chunks(const Array<std::int64_t>& first_tokens, const Array<ChunkTag>& tags,
                   const std::string& scheme) {
  const auto firsts = view(first_tokens);
  check_tags(firsts, view(tags), parsing::most_chunk_types);
  const parsing::ChunkScheme target = parse_scheme(scheme);
  std::vector<ChunkTag> recoded = to_vector(tags);
  {
    const Unlocked unlocked;
    std::vector<parsing::Chunk> buffer;
    for (std::size_t s = 0; s + 1 < firsts.size(); ++s) {
      const auto first = static_cast<std::size_t>(firsts[s]);
      parsing::recode(std::span(recoded).subspan(first, static_cast<std::size_t>(firsts[s + 1]) - first),
                      target, buffer);
    }
  }
  return to_numpy(std::move(recoded));
}

// Returns the numbers of predicted, gold and correct chunks of each type, and the number of equal tags.
auto count_chunks(const Array<std::int64_t>& first_tokens, const Array<ChunkTag>& gold,
                  const Array<ChunkTag>& predicted, std::size_t types) {
  check_tags(view(first_tokens), view(gold), types);
  check_tags(view(first_tokens), view(predicted), types);
  auto score = without_lock(
      [&] { return parsing::count_chunks(view(first_tokens), view(gold), view(predicted), types); });
  std::vector<std::int64_t> counts;
  for (const auto& type : score.types) counts.insert(counts.end(), {type.predicted, type.gold, type.correct});
  return nb::typed<nb::tuple, nb::any, int>(
      nb::make_tuple(to_numpy(std::move(counts), {types, 3}), score.equal_tags));
}

auto chunk_text(const ColumnText& text, const SequenceFeatures& features, const BoundEngine& engine,
                const Array<ChunkTag>& classes, const std::string& scheme, bool backward, std::size_t beam,
                int threads) {
  const parsing::ChunkModel model{features, engine.engine(), view(classes), parse_scheme(scheme), backward,
                                  beam};
  auto tags = run_interruptibly_if(text.tokens() > max_tokens_on_this_thread, [&](const Monitor& monitor) {
    return parsing::chunk_text(text, model, {threads, &monitor});
  });
  return to_numpy(std::move(tags));
}

}  // namespace

void bind_chunks(nb::module_& module) {
  module.def("read_chunk_tags", &read_chunk_tags, nb::arg("text"), nb::arg("column"), nb::arg("types"));
  module.def("chunk_tag_names", &list_tag_names, nb::arg("types"));
  module.def("recode_chunks", &recode_chunks, nb::arg("first_tokens"), nb::arg("tags"), nb::arg("scheme"));
  module.def("count_chunks", &count_chunks, nb::arg("first_tokens"), nb::arg("gold"), nb::arg("predicted"),
             nb::arg("types"));
  module.def("chunk_text", &chunk_text, nb::arg("text"), nb::arg("features"), nb::arg("engine"),
             nb::arg("classes"), nb::kw_only(), nb::arg("scheme"), nb::arg("backward"), nb::arg("beam"),
             nb::arg("threads"));
}

}  // namespace unkernel::bindings
