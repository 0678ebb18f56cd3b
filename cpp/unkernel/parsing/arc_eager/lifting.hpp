// Lifts arcs of a dependency tree until no arc is crossing. An arc is crossing if it spans a word that does
// not descend from the head of the arc. Each lift takes the shortest crossing arc, and attaches its word to
// its head's head.
//
// If a word moves from head h to head g, no word except h loses descendants. So only the other arcs of h can
// become crossing, and only these arcs and the lifted arc are checked again.
//
// Cost    linear to find the initial crossing arcs; per lift, the children of h, the words that move, and the
//         words below the new arc up to the first word that does not descend from g.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/parsing/arc_eager/transitions.hpp"

namespace unkernel::parsing {

// Returns the children of every word, ascending; index 0 has the children of the root. heads[w] is the head
// of word w; heads[0] is unused.
std::vector<std::vector<Word>> children_of(std::span<const Word> heads);

// Returns the heads after lifting, which form a projective tree. Every word must descend from the root.
std::vector<Word> lifted_heads(std::vector<Word> heads, const Monitor& monitor);

}  // namespace unkernel::parsing
