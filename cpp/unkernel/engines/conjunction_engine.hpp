// The engine of conjunction weights: expanded, pruned, split and trained models alike (the zones of
// ConjunctionTables say which).
//
// Query   head: one load per conjunction of the row's frequent features. Trie: a load or two per pair
//         with a less frequent owner, then a pass over the partners of each pair that exists. Rare
//         owners: a pass over the items of the support vectors that have them.
#pragma once

#include <memory>

#include "unkernel/engines/conjunction_tables.hpp"
#include "unkernel/engines/engine.hpp"

namespace unkernel::engines {

// Checks the tables, which must outlive the engine; throws std::invalid_argument.
std::unique_ptr<Engine> make_conjunction_engine(const ConjunctionTables& tables);

}  // namespace unkernel::engines
