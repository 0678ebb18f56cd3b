// Measures of a whole set of predictions, as SVMperf optimises them (Joachims 2005).
//
//   R(s) = max(0, max over labelings y' of  [ n loss(y', y) - sum over rows with y'_i != y_i of y_i s_i ])
//
// n times the error rate as the loss would give the sum of hinge losses, so C means the same for every
// measure. A loss that depends only on a, the positives that y' calls positive, and b, the negatives that it
// calls positive, is maximised by keeping the a positives and calling positive the b negatives of highest
// score.
//
//   f1                      1 - 2a / (P + a + b)     for each a concave in b: O(P log N) instead of the
//   paper's O(P N) precision at k          1 - a / k, a + b = k     O(k) break-even point        the same
//   with k = P      precision and recall are equal there
//
// all after sorting. P positives, N negatives, n = P + N.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "unkernel/cutplane/oracle.hpp"

namespace unkernel::cutplane {

std::unique_ptr<Oracle> f1_oracle(std::vector<bool> positive);

// Throws std::invalid_argument unless 1 <= k <= rows.
std::unique_ptr<Oracle> precision_oracle(std::vector<bool> positive, std::int64_t k);

}  // namespace unkernel::cutplane
