// The losses that count each row on its own:
//
//   R(s) = sum_i cost_i loss(1 - y_i s_i),   loss(m) = max(m, 0) or max(m, 0)^2
//
// For the hinge this is the error-rate oracle of Joachims (2006): c_i = cost_i y_i where y_i s_i < 1, else 0.
//
// On a line, a row that has a loss at both ends adds the same parabola everywhere between them, and one that
// has none at either end adds nothing. So the first question sorts the rows, O(n), and the others touch only
// those that change sides.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "unkernel/cutplane/oracle.hpp"
#include "unkernel/solve/loss.hpp"

namespace unkernel::cutplane {

// `signed_costs` are y_i cost_i; 0 for rows that do not count.
std::unique_ptr<Oracle> margin_oracle(solve::Loss loss, std::vector<double> signed_costs);

}  // namespace unkernel::cutplane
