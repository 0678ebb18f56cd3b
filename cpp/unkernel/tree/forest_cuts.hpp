// Cuts over trees with a common index of all their nodes. One pass computes the scores of all cuts; another
// pass computes the products of a new cut with all cuts.
#pragma once

#include <memory>

#include "unkernel/base/monitor.hpp"
#include "unkernel/tree/cuts.hpp"

namespace unkernel::tree {

std::unique_ptr<Cuts> make_forest_cuts(const kernels::ExampleKernel& kernel,
                                       std::shared_ptr<const kernels::ExampleSet> set, int threads,
                                       const Monitor& monitor);

}  // namespace unkernel::tree
