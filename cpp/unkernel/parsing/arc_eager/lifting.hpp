// Lifts arcs of a dependency tree until none cross. An arc is crossing if it spans a word that does not
// descend from the head of the arc. Again and again, the shortest crossing arc is lifted: its word is
// attached to its head's head.
//
// If a word moves from head h to head g, no word except h loses descendants. So only the other arcs of h can
// begin to cross, and only these and the lifted arc are checked again.
//
// Cost    linear to find the initial crossing arcs; per lift, the children of h, the words that move, and the
//         words below the new arc up to the first one that does not descend from g.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/parsing/arc_eager/transitions.hpp"

namespace unkernel::parsing {

// Returns the children of every word, and at index 0 the children of the root; each list ascends. heads[w] is
// the head of word w; heads[0] is unused.
std::vector<std::vector<Word>> children_of(std::span<const Word> heads);

// Returns the heads of a projective tree. Every word must lead to the root.
std::vector<Word> lifted_heads(std::vector<Word> heads, const Monitor& monitor);

}  // namespace unkernel::parsing
