// The step of an expansion that writes the postings of rare features.
#pragma once

#include "unkernel/engines/conjunctions/conjunction_tables.hpp"
#include "unkernel/engines/conjunctions/expansion_task.hpp"

namespace unkernel::engines {

// Writes postings as records if possible, otherwise as lists of items.
void write_postings(const ExpansionTask& task, MemoryBudget& budget, ConjunctionArrays& arrays);

}  // namespace unkernel::engines
