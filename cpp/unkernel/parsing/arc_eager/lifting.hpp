// Lifts arcs of a dependency tree until none cross: the shortest arc that spans a word which does not descend
// from its head moves up to its head's head, again and again.
//
// A lift from head h to g removes descendants from h alone. Only the other arcs of h can newly cross others,
// and the lifted arc itself must be checked again.
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

// Returns the children of every word, and at place 0 those of the root, each list ascending. Heads are by
// word; place 0 is unused.
std::vector<std::vector<Word>> children_of(std::span<const Word> heads);

// Returns the heads of a projective tree. Every word must lead to the root.
std::vector<Word> lifted_heads(std::vector<Word> heads, const Monitor& monitor);

}  // namespace unkernel::parsing
