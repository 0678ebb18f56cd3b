// Records the decisions of an arc-eager parser one by one, to explain its trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unkernel/parsing/arc_eager/parser.hpp"

namespace unkernel::parsing {

// In the order of parsing. A decision is a move or, right after a move that makes an arc, a label. Omits
// steps without a choice, and steps with only moves that the part has not seen.
struct ParserDecisions {
  std::vector<std::int64_t> offsets{0};  // where the columns of each decision begin
  std::vector<std::int32_t> columns;
  std::vector<std::int8_t> labels;  // 1 for a label, 0 for a move
  std::vector<std::int32_t> sentences;
  // Words, counted from 1: for moves the top and the next word, for labels head and child.
  std::vector<std::int32_t> firsts, seconds;
  std::vector<std::int32_t> parts;
  std::vector<std::int32_t> chosen;  // the class
  std::vector<std::int8_t> valid;    // for moves: bit k tells whether move k was possible
};

// Returns the decisions that lead to the trees of parse(): with a beam, those of the winning sequence. Throws
// like parse().
ParserDecisions decisions(const ArcEagerSpec& spec, const ParserEngines& engines,
                          const data::ColumnText& text, std::size_t beam, const Monitor& monitor);

}  // namespace unkernel::parsing
