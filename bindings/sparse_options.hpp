// Options of training under a penalty with an l1 part, as Python gives them.
#pragma once

#include <vector>

#include "options.hpp"
#include "unkernel/poly/sparse_train.hpp"

namespace unkernel::bindings {

poly::SparseOptions read_sparse_options(const Options& given, const kernels::FeatureMap& map,
                                        std::vector<double>&& class_weights);

}  // namespace unkernel::bindings
