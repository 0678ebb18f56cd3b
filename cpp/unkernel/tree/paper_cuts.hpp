// The cut computations of Severyn & Moschitti (2011), kept for comparison: uSVM (one kernel value at a time),
// SDAG (one index per cut) and SDAG+ (one index of all cuts for scores, one per cut for products).
#pragma once

#include <memory>

#include "unkernel/base/monitor.hpp"
#include "unkernel/tree/cuts.hpp"

namespace unkernel::tree {

// `method` is one of pairs, dag_each and dag_together.
std::unique_ptr<Cuts> make_paper_cuts(CutMethod method, const kernels::ExampleKernel& kernel,
                                      std::shared_ptr<const kernels::ExampleSet> set, int threads,
                                      const Monitor& monitor);

}  // namespace unkernel::tree
