// Computes the sums of grouped features from the weights of their conjunctions.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/engines/conjunctions/conjunction_tables.hpp"

namespace unkernel::engines {

// The weights of all sets of 0 to `degree` grouped ranks, by size and number. The number of {a > b > c > e}
// is C(a, 4) + C(b, 3) + C(c, 2) + e; the number of {a > b > c} is C(a, 3) + C(b, 2) + c; and so on.
class SetWeights {
 public:
  SetWeights(std::uint32_t ranks, int degree, std::size_t scores);

  // Returns the weights of a set of `size` ranks, one per score; `ranks` must descend.
  double* of(const Rank* ranks, int size) {
    return weights_[static_cast<std::size_t>(size)].data() + number(ranks, size) * scores_;
  }
  static std::size_t number(const Rank* ranks, int size);

  const std::vector<double>& size(std::size_t k) const { return weights_[k]; }

 private:
  std::size_t scores_;
  std::array<std::vector<double>, most_degree + 1> weights_;
};

// Fills the sums of `arrays`, which must already have groups and states. Ignores the weight of the empty set.
void fill_state_sums(const SetWeights& weights, int threads, ConjunctionArrays& arrays);

}  // namespace unkernel::engines
