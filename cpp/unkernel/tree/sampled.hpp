// Kernel SVMs over examples of trees by sampled cutting planes: approximate, for millions of examples.
//
// Problem   min_w  1/2 |w|^2 + C/Z sum_i z_i max(0, 1 - y_i w'phi(x_i)),   Z = sum_i z_i   (importances z_i)
//           phi has a constant feature if an intercept is requested; its weight is regularised, too
// Method    Yu & Joachims (2008), Severyn & Moschitti (2011), Algorithm 2: each round draws r examples,
//           example i with a probability proportional to z_i (by rejection, their Algorithm 3), and the
//           examples inside the margin form a cut,
//             g = 1/r sum y_i phi(x_i),   d = 1/r (number of these examples);
//           then the small dual of all cuts is solved,
//             max_a  d'a - 1/2 a'Ga,   a >= 0,  sum(a) <= C,   w = sum_t a_t g_t.
// Stop      the new cut is violated by at most epsilon more than the cuts so far, d - w'g <= xi + epsilon,
//           and the small dual is solved to the same precision. Cuts are samples, so this is an estimate
//           without a certificate.
//
// The number of rounds does not depend on the number of examples. The same seed gives the same cuts on any
// number of threads.
#pragma once

#include <cstdint>

#include "unkernel/base/monitor.hpp"
#include "unkernel/tree/cuts.hpp"
#include "unkernel/tree/exact.hpp"

namespace unkernel::tree {

struct SampledOptions {
  double C;  // multiplies the sum of all importances
  double epsilon;
  std::int64_t max_rounds;
  std::int64_t sample_size;
  bool fit_intercept;
  std::uint64_t seed;
};

// `cuts` must be empty.
Trained train_sampled(Cuts& cuts, const Labelling& labelling, const SampledOptions& options,
                      Progress progress, Monitor& monitor);

}  // namespace unkernel::tree
