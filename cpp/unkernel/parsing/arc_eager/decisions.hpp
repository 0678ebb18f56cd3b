// The decisions of an arc-eager parser, one by one: to tell why it made the tree that it made.
#pragma once

#include <cstdint>
#include <vector>

#include "unkernel/parsing/arc_eager/parser.hpp"

namespace unkernel::parsing {

// In the order in which they are made. A decision is a move or, right after the move that makes the arc, a
// label; what leaves nothing to choose, or only moves that the part has not seen, is none.
struct ParserDecisions {
  std::vector<std::int64_t> offsets{0};  // where the columns of each decision begin
  std::vector<std::int32_t> columns;
  std::vector<std::int8_t> labels;  // 1: a label; 0: a move
  std::vector<std::int32_t> sentences;
  std::vector<std::int32_t> firsts,
      seconds;  // words, counted from 1: of moves the top and the next one, of labels head and child
  std::vector<std::int32_t> parts;
  std::vector<std::int32_t> chosen;  // the class
  std::vector<std::int8_t> valid;    // of moves: bit k says whether move k was possible
};

// With whole scores, where parse() may stop earlier: slower, and the same answers. Throws as parse() does.
ParserDecisions decisions(const ArcEagerSpec& spec, const ParserEngines& engines,
                          const data::ColumnText& text, const Monitor& monitor);

}  // namespace unkernel::parsing
