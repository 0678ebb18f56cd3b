// Losses that are sums over single rows:
//
//   R(s) = sum_i cost_i loss(1 - y_i s_i),   loss(m) = max(m, 0) or max(m, 0)^2
//
// For the hinge this is the error-rate oracle of Joachims (2006): c_i = cost_i y_i if y_i s_i < 1, else 0.
//
// On a line, a row with a loss at both ends adds one parabola between the ends, and a row without a loss at
// either end adds nothing. So the first evaluation classifies the rows, O(n), and later evaluations
// visit only the rows with a loss at one end.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "unkernel/cutplane/oracle.hpp"
#include "unkernel/solve/loss.hpp"

namespace unkernel::cutplane {

// `signed_costs` are y_i cost_i; 0 for rows to ignore.
std::unique_ptr<Oracle> margin_oracle(solve::Loss loss, std::vector<double> signed_costs);

}  // namespace unkernel::cutplane
