// Represents chunks as tags of tokens, in the common schemes, and evaluates them by the rules of CoNLL-2000.
//
//             a chunk's tokens   written as
//   IOB1      I I I              B if the token before ends a chunk of the same type
//   IOB2      B I I
//   IOE1      I I I              E if the token after begins a chunk of the same type
//   IOE2      I I E
//   IOBES     B I E              S if it is the only token
//
// A token outside all chunks is O. The reader accepts all schemes, by the rules of the CoNLL-2000 scorer: B
// and S begin a chunk, and so does any token that follows O, E, S or a token of another type; E and S end a
// chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/data/text/column_text.hpp"
#include "unkernel/data/text/name_table.hpp"

namespace unkernel::parsing {

enum class ChunkScheme { iob1, iob2, ioe1, ioe2, iobes };

enum class ChunkMark : std::int32_t { begin, inside, end, single };

// A tag as one number: 0 for O, otherwise a combination of its mark and the number of its type.
using ChunkTag = std::int32_t;
constexpr ChunkTag outside = 0;
constexpr std::int32_t marks = 4;
constexpr std::int32_t most_chunk_types = 1 << 20;

constexpr ChunkTag chunk_tag(ChunkMark mark, std::int32_t type) {
  return 1 + marks * type + static_cast<std::int32_t>(mark);
}
constexpr std::int32_t type_of(ChunkTag tag) { return (tag - 1) / marks; }
constexpr ChunkMark mark_of(ChunkTag tag) { return static_cast<ChunkMark>((tag - 1) % marks); }

std::string name_of(ChunkTag tag, const data::NameTable& types);

// Reads the tags of a column without converting their scheme. Adds new types to `types`. Throws FormatError.
std::vector<ChunkTag> read_chunk_tags(const data::ColumnText& text, int column, data::NameTable& types);

struct Chunk {
  std::size_t first;
  std::size_t last;  // exclusive
  std::int32_t type;
  bool operator==(const Chunk&) const = default;
};

// Finds the chunks of one sentence, from left to right.
void find_chunks(std::span<const ChunkTag> tags, std::vector<Chunk>& chunks);
// Converts the tags of a sentence to another scheme; the result is valid for any input.
void recode(std::span<ChunkTag> tags, ChunkScheme scheme, std::vector<Chunk>& buffer);

// Returns whether the two tags may be adjacent in a sentence. The ends of a sentence count as `outside`.
bool may_follow(ChunkScheme scheme, ChunkTag left, ChunkTag right);

// Counts of the chunks of one type: predicted chunks, gold chunks, and correct predictions, which have the
// same words as a gold chunk.
struct ChunkCounts {
  std::int64_t predicted = 0;
  std::int64_t gold = 0;
  std::int64_t correct = 0;
};

struct ChunkScore {
  std::vector<ChunkCounts> types;
  std::int64_t equal_tags = 0;
};

// Counts the chunks of all sentences. Sentence s has the tokens from first_tokens[s] to first_tokens[s + 1].
// Gold and predicted tags must be in IOB2, with types below `types`.
ChunkScore count_chunks(std::span<const std::int64_t> first_tokens, std::span<const ChunkTag> gold,
                        std::span<const ChunkTag> predicted, std::size_t types);

}  // namespace unkernel::parsing
