// Stores no mapped rows, only the kernel between all pairs of rows; a weight vector is the vector of their
// scores.
#include <memory>
#include <numeric>
#include <vector>

#include "unkernel/poly/kernel_rows.hpp"
#include "unkernel/poly/stored_rows.hpp"
#include "unkernel/solve/gram_rows.hpp"

namespace unkernel::poly {

std::unique_ptr<StoredRows> store_kernel(const DistinctRows& examples, const kernels::FeatureMap& map,
                                         int threads) {
  std::vector<std::int32_t> everyone(static_cast<std::size_t>(examples.rows()));
  std::iota(everyone.begin(), everyone.end(), 0);
  return std::make_unique<StoredIn<solve::GramRows>>(KernelRows(examples, map).gram(everyone, threads),
                                                     everyone.size());
}

}  // namespace unkernel::poly
