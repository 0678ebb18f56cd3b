// Performance measures of a whole set of predictions, optimised as in SVMperf (Joachims 2005).
//
//   R(s) = max(0, max over labellings y' of  [ n loss(y', y) - sum over rows with y'_i != y_i of y_i s_i ])
//
// If the loss is the error rate, this is the sum of hinge losses, so C has the same meaning for every
// measure. Let the loss depend only on a, the number of positives that y' labels positive, and b, the number
// of negatives that y' labels positive. The labelling that attains the maximum labels as positive the a
// positives and the b negatives with the highest scores.
//
//   f1                1 - 2a / (P + a + b)    concave in b for each a: O(P log N) instead of O(P N)
//   precision at k    1 - a / k, a + b = k    O(k)
//   break-even point  precision at k = P      precision and recall are equal at this point
//
// Costs do not include sorting. P is the number of positives, N the number of negatives, and n = P + N.
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
