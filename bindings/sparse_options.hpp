// Options of training with an l1 penalty, read from Python.
#pragma once

#include <vector>

#include "options.hpp"
#include "unkernel/poly/sparse_train.hpp"

namespace unkernel::bindings {

poly::SparseOptions read_sparse_options(const Options& python_options, const kernels::FeatureMap& map,
                                        std::vector<double>&& class_weights);

}  // namespace unkernel::bindings
