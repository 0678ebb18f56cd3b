// Splits phi(x) into two parts, for binary features that are mostly rare, such as words.
//
//   common   conjunctions of the features of rank below `head`: computed from x, with a dense table of
//            weights (OnTheFlyRows)
//   rare     all other conjunctions contain a rarer feature, and are never formed. Their contribution to the
//            score of row i,
//
//              s_i = sum_j u_j R(x_i, x_j),    R(x, z) = K(x, z) - K(x ∩ head, z ∩ head),
//
//            is updated for every row in each step. R is zero unless x_i and x_j share a rare feature, and
//            few pairs of rows do.
//
// The two parts add up to the kernel K for every `head`: its choice trades time for memory without changing
// the result. A rare feature that occurs in m rows of |x| features has up to m C(|x|, 2) conjunctions, but
// only m^2 pairs of rows.
//
// A solver's vector contains the dense table, then s, one number per row. R depends on two small counts: the
// shared common features and the shared rare features. A pair is stored as the other row and a code of the
// two counts.
//
// Memory   8 bytes per *possible* conjunction of common features; 4 bytes per feature of x; 4 bytes per
//          ordered pair of rows that share a rare feature, or 8 if row and code need more than 32 bits.
// Cost     of a score: one load and one addition per conjunction of the common features of x. A step also
//          costs one sequential load, one random load and one store per row that shares a rare feature.
#pragma once

#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/poly/on_the_fly_rows.hpp"

namespace unkernel::poly {

struct SplitPlan {
  std::int64_t head = 0;        // features below this rank are common
  bool has_wide_pairs = false;  // a stored pair takes 8 bytes instead of 4
  double entries = 0;           // conjunctions of common features, over all rows
  double pairs = 0;             // of rows that share a rare feature; an upper bound
  double bytes = std::numeric_limits<double>::infinity();  // of the weights of all problems, pairs and model
};

// Returns the plan that is expected to be fastest among those that fit into `memory` bytes (0: no limit). If
// no plan fits, returns the plan that needs the least memory.
SplitPlan plan_split(const DistinctRows& examples, int degree, int problems, double memory);

// Returns the rows with their common features only.
DistinctRows common_part(const DistinctRows& examples, std::int64_t head);

// Stores R(x_i, x_j) for all pairs of rows that share a rare feature, including each row with itself.
class RareKernel {
 public:
  RareKernel(const DistinctRows& examples, const kernels::FeatureMap& map, const SplitPlan& plan, int threads,
             const Monitor& monitor);

  // Computes scores_j += step R(x_i, x_j) for all j.
  void axpy(std::int64_t i, double step, double* scores) const;

  void prefetch_header(std::int64_t i) const { __builtin_prefetch(&offsets_[static_cast<std::size_t>(i)]); }
  double mean_size() const {
    const auto rows = static_cast<double>(offsets_.size() - 1);
    return rows > 0 ? static_cast<double>(offsets_.back()) / rows : 0.0;
  }

 private:
  int code_bits_;
  std::vector<double> values_;         // of R, by code
  LargeVector<std::int64_t> offsets_;  // rows + 1
  // The other row and the code.
  std::variant<LargeVector<std::uint32_t>, LargeVector<std::uint64_t>> words_;
};

template <int Degree>
class SplitRows : public KernelRows {
 public:
  SplitRows(const DistinctRows& examples, const kernels::FeatureMap& map, const SplitPlan& plan, int threads,
            const Monitor& monitor)
      : KernelRows(examples, map),
        common_examples_(common_part(examples, plan.head)),
        common_(common_examples_, map),
        rare_(examples, map, plan, threads, monitor) {}
  SplitRows(const SplitRows&) = delete;  // common_ refers to common_examples_
  SplitRows& operator=(const SplitRows&) = delete;

  std::size_t dimension() const { return common_.dimension() + static_cast<std::size_t>(size()); }
  double mean_map_size() const { return common_.mean_map_size() + rare_.mean_size(); }

  void prefetch_header(std::int64_t i) const {
    common_.prefetch_header(i);
    rare_.prefetch_header(i);
  }
  void prefetch(std::int64_t i) const { common_.prefetch(i); }

  double dot(std::int64_t i, const double* weights) const {
    const double rare = weights[common_.dimension() + static_cast<std::size_t>(i)];
    return common_.dot(i, weights) + rare;
  }

  void axpy(std::int64_t i, double step, double* weights) const {
    common_.axpy(i, step, weights);
    rare_.axpy(i, step, weights + common_.dimension());
  }

 private:
  DistinctRows common_examples_;
  OnTheFlyRows<Degree, true> common_;
  RareKernel rare_;
};

}  // namespace unkernel::poly
