#include "unkernel/parsing/chunks/tags.hpp"

#include <algorithm>
#include <optional>

namespace unkernel::parsing {
namespace {

constexpr std::string_view mark_letters = "BIES";

// Parses the letter and the type of a tag such as `B-NP`. A plain `B` has the type with the empty name.
std::optional<ChunkTag> parse_tag(std::string_view name, data::NameTable& types) {
  if (name == "O") return outside;
  const std::size_t letter = mark_letters.find(name.front());
  if (letter == std::string_view::npos || (name.size() > 1 && name[1] != '-') || name.size() == 2)
    return std::nullopt;
  const std::int32_t type = types.add(name.substr(std::min<std::size_t>(name.size(), 2)));
  return chunk_tag(static_cast<ChunkMark>(letter), type);
}

bool begins(ChunkTag tag) { return mark_of(tag) == ChunkMark::begin || mark_of(tag) == ChunkMark::single; }
bool ends(ChunkTag tag) { return mark_of(tag) == ChunkMark::end || mark_of(tag) == ChunkMark::single; }

// Writes the tags of a chunk's tokens, in a scheme whose tags do not depend on neighbouring chunks.
void write_chunk(const Chunk& chunk, ChunkScheme scheme, std::span<ChunkTag> tags) {
  std::fill(tags.begin() + static_cast<std::ptrdiff_t>(chunk.first),
            tags.begin() + static_cast<std::ptrdiff_t>(chunk.last), chunk_tag(ChunkMark::inside, chunk.type));
  const bool all_marks = scheme == ChunkScheme::iobes;
  if (scheme == ChunkScheme::iob2 || all_marks) tags[chunk.first] = chunk_tag(ChunkMark::begin, chunk.type);
  if (scheme == ChunkScheme::ioe2 || all_marks) tags[chunk.last - 1] = chunk_tag(ChunkMark::end, chunk.type);
  if (all_marks && chunk.last - chunk.first == 1)
    tags[chunk.first] = chunk_tag(ChunkMark::single, chunk.type);
}

bool are_adjacent_and_alike(const Chunk& left, const Chunk& right) {
  return left.last == right.first && left.type == right.type;
}

bool is_open(ChunkTag tag) { return tag != outside && !ends(tag); }
bool goes_on(ChunkTag tag) { return tag != outside && !begins(tag); }

}  // namespace

std::string name_of(ChunkTag tag, const data::NameTable& types) {
  if (tag == outside) return "O";
  std::string name(1, mark_letters[static_cast<std::size_t>(mark_of(tag))]);
  const std::string_view type = types.name(type_of(tag));
  if (!type.empty()) name.append(1, '-').append(type);
  return name;
}

std::vector<ChunkTag> read_chunk_tags(const data::ColumnText& text, int column, data::NameTable& types) {
  std::vector<ChunkTag> tags(static_cast<std::size_t>(text.tokens()));
  data::NameTable names;
  std::vector<ChunkTag> tags_by_name;
  for (std::int64_t token = 0; token < text.tokens(); ++token) {
    const std::string_view name = text.field(token, column);
    const auto number = static_cast<std::size_t>(names.add(name));
    if (number == tags_by_name.size()) {
      const auto tag = parse_tag(name, types);
      if (!tag) {
        throw text.fault(token, column,
                         std::string("'").append(name).append(
                             "' is not a chunk tag: write O, or B, I, E or S and a type, such as B-NP"));
      }
      if (types.size() > static_cast<std::size_t>(most_chunk_types))
        throw text.fault(token, column, "there are too many types of chunks");
      tags_by_name.push_back(*tag);
    }
    tags[static_cast<std::size_t>(token)] = tags_by_name[number];
  }
  return tags;
}

void find_chunks(std::span<const ChunkTag> tags, std::vector<Chunk>& chunks) {
  chunks.clear();
  bool open = false;
  for (std::size_t i = 0; i < tags.size(); ++i) {
    const ChunkTag tag = tags[i];
    if (tag == outside) {
      open = false;
      continue;
    }
    if (open && !begins(tag) && chunks.back().type == type_of(tag)) {
      chunks.back().last = i + 1;
    } else {
      chunks.push_back({i, i + 1, type_of(tag)});
    }
    open = !ends(tag);
  }
}

void recode(std::span<ChunkTag> tags, ChunkScheme scheme, std::vector<Chunk>& buffer) {
  find_chunks(tags, buffer);
  for (std::size_t k = 0; k < buffer.size(); ++k) {
    const Chunk& chunk = buffer[k];
    write_chunk(chunk, scheme, tags);
    if (scheme == ChunkScheme::iob1 && k > 0 && are_adjacent_and_alike(buffer[k - 1], chunk))
      tags[chunk.first] = chunk_tag(ChunkMark::begin, chunk.type);
    if (scheme == ChunkScheme::ioe1 && k + 1 < buffer.size() &&
        are_adjacent_and_alike(chunk, buffer[k + 1])) {
      tags[chunk.last - 1] = chunk_tag(ChunkMark::end, chunk.type);
    }
  }
}

bool may_follow(ChunkScheme scheme, ChunkTag left, ChunkTag right) {
  const bool same_type = left != outside && right != outside && type_of(left) == type_of(right);
  switch (scheme) {
    case ChunkScheme::iob1: return right == outside || !begins(right) || same_type;
    case ChunkScheme::iob2: return !goes_on(right) || same_type;
    case ChunkScheme::ioe1: return left == outside || !ends(left) || same_type;
    case ChunkScheme::ioe2: return !is_open(left) || same_type;
    case ChunkScheme::iobes: return is_open(left) == goes_on(right) && (!is_open(left) || same_type);
  }
  return false;
}

ChunkScore count_chunks(std::span<const std::int64_t> first_tokens, std::span<const ChunkTag> gold,
                        std::span<const ChunkTag> predicted, std::size_t types) {
  ChunkScore score;
  score.types.resize(types);
  std::vector<Chunk> gold_chunks;
  std::vector<Chunk> predicted_chunks;
  for (std::size_t i = 0; i < gold.size(); ++i) score.equal_tags += gold[i] == predicted[i];
  for (std::size_t s = 0; s + 1 < first_tokens.size(); ++s) {
    const auto first = static_cast<std::size_t>(first_tokens[s]);
    const std::size_t size = static_cast<std::size_t>(first_tokens[s + 1]) - first;
    find_chunks(gold.subspan(first, size), gold_chunks);
    find_chunks(predicted.subspan(first, size), predicted_chunks);
    for (const Chunk& chunk : gold_chunks) {
      ++score.types[static_cast<std::size_t>(chunk.type)].gold;
      // Both lists are ordered from left to right, and the chunks of a list do not overlap.
      const auto same = std::ranges::lower_bound(predicted_chunks, chunk.first, {}, &Chunk::first);
      if (same != predicted_chunks.end() && *same == chunk)
        ++score.types[static_cast<std::size_t>(chunk.type)].correct;
    }
    for (const Chunk& chunk : predicted_chunks) ++score.types[static_cast<std::size_t>(chunk.type)].predicted;
  }
  return score;
}

}  // namespace unkernel::parsing
