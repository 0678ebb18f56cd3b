// Kernel expansion: turns support vectors s_j with coefficients b_j into weights w(T) of conjunctions T.
//
// Over binary features, the kernel is a function f of the overlap. With f(c) = sum_k D_k C(c, k), the weights
// are
//     w(T) = D_|T| sum_{j: T in s_j} b_j                 (Yoshinaga & Kitsuregawa 2009, section 2.2)
// and the score g(x) is the sum of w(T) over all T in x with |T| <= d. Over real features, the same sums run
// over monomials p instead of sets: w(p) = c_p^2 sum_j b_j s_j^p. Exact up to rounding.
//
// A pruned expansion (Kudo & Matsumoto 2003) is approximate: it drops conjunctions with |w| below a
// threshold. The thresholds for positive and negative weights are scaled by the shares of positive and
// negative support vectors. Conjunctions are visited depth first. Let mu+ and mu- be the sums of |b_j| over
// the positive and the negative support vectors that contain T. Adding features to T cannot increase these
// sums. So if max(mu+, mu-) times the largest remaining D is below the threshold, all extensions of T are
// skipped.
#pragma once

#include <cstdint>
#include <span>

#include "unkernel/base/monitor.hpp"
#include "unkernel/data/csr.hpp"
#include "unkernel/engines/conjunctions/conjunction_tables.hpp"
#include "unkernel/engines/conjunctions/table_builder.hpp"

namespace unkernel::engines {

struct SupportVectors {
  data::CsrView<std::int32_t, double> rows;  // columns ascend in each row; no value is 0
  std::span<const double> coefficients;      // rows x scores
  std::span<const double> intercept;         // scores
};

struct ExpansionPlan {
  FeatureMap map;            // of the kernel
  Basis basis;               // Basis::sets only if every value is 1
  HeadPlan head;             // ranks with a dense table; only Basis::sets allows fused ranks
  GroupPlan groups;          // of the first head ranks; requires Basis::sets and no fused ranks
  std::uint32_t rare_below;  // features in fewer support vectors are rare; needs Basis::sets
  double threshold;          // 0 for an exact expansion
  double most_bytes;         // of the tables; a larger size throws NotEnoughMemory
};

// Returns the tables. Reports the number of finished ranges of owners to the monitor, which can stop the
// expansion.
ConjunctionArrays expand(const SupportVectors& machine, const ExpansionPlan& plan, int threads,
                         Monitor& monitor);

}  // namespace unkernel::engines
