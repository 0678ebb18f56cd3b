// Stores the kernel of all pairs of rows instead of mapped rows. A weight vector then holds the scores of the
// rows.
#include <memory>
#include <numeric>
#include <vector>

#include "unkernel/poly/kernel_rows.hpp"
#include "unkernel/poly/stored_rows.hpp"
#include "unkernel/solve/gram_rows.hpp"

namespace unkernel::poly {

std::unique_ptr<StoredRows> store_kernel(const DistinctRows& examples, const kernels::FeatureMap& map,
                                         int threads) {
  std::vector<std::int32_t> all_rows(static_cast<std::size_t>(examples.rows()));
  std::iota(all_rows.begin(), all_rows.end(), 0);
  return std::make_unique<StoredIn<solve::GramRows>>(KernelRows(examples, map).gram(all_rows, threads),
                                                     all_rows.size());
}

}  // namespace unkernel::poly
