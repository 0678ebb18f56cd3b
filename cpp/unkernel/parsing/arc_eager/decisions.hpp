// Records the decisions of an arc-eager parser one by one, to explain its trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unkernel/parsing/arc_eager/parser.hpp"

namespace unkernel::parsing {

// The decisions of a parser, in order. A decision is a move or, after a move that makes an arc, the label of
// the arc. Steps without a choice are omitted, and so are moves that did not occur in the part in training.
struct ParserDecisions {
  std::vector<std::int64_t> offsets{0};  // where the columns of each decision begin
  std::vector<std::int32_t> columns;
  std::vector<std::int8_t> labels;  // 1 for a label, 0 for a move
  std::vector<std::int32_t> sentences;
  // The two words of each decision, counted from 1. For moves: the top of the stack and the next word. For
  // labels: the head and the child.
  std::vector<std::int32_t> firsts, seconds;
  std::vector<std::int32_t> parts;
  std::vector<std::int32_t> chosen;  // classes
  std::vector<std::int8_t> valid;    // bit k is 1 if move k is valid
};

// Returns the decisions that lead to the trees of parse(). With a beam, these are the decisions of the best
// sequence. Throws the same exceptions as parse().
ParserDecisions decisions(const ArcEagerSpec& spec, const ParserEngines& engines,
                          const data::ColumnText& text, std::size_t beam, const Monitor& monitor);

}  // namespace unkernel::parsing
