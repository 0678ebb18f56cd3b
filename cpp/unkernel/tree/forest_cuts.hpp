// Cuts over trees with a common index of all their nodes. The scores of all cuts take one pass together; the
// products of a new cut with all cuts take another.
#pragma once

#include <memory>

#include "unkernel/base/monitor.hpp"
#include "unkernel/tree/cuts.hpp"

namespace unkernel::tree {

std::unique_ptr<Cuts> make_forest_cuts(const kernels::ExampleKernel& kernel,
                                       std::shared_ptr<const kernels::ExampleSet> set, int threads,
                                       const Monitor& monitor);

}  // namespace unkernel::tree
