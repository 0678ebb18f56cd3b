// Why a tree has its score: the fragments that weigh most in a model, and in one decision.
//
// A tree kernel is an inner product over fragments tau, and so is a score:
//
//   score(x) = sum over tau of n(tau) W(tau)
//   n(tau) = sum over nodes u of x of c(u) e(tau, u)
//   W(tau) = size(tau) sum over nodes v of the model of f(v) e(tau, v)
//
// with c and f the weights of nodes (norms included) and e(tau, u) how often tau has its root in u.
//
//   kernel     fragments                         size                                e
//   ST         whole subtrees                    lambda^productions                  0 or 1
//   SST        pieces with whole productions     lambda^productions                  0 or 1
//   SST + bow  those of SST, and words           lambda                              0 or 1
//   PTK        pieces where each node has up to  mu^nodes lambda^(2 nodes without    sum over placements of
//              five of its children              children)                           lambda^(children
//              skipped)
//
// Method    best-first search. Fragments grow from their roots, each in one order only. For subset trees, the
//           next node to get its production comes later, breadth first, than the last that did; for partial
//           trees, the next node comes last, depth first (Asai et al. 2002, Zaki 2002). Wherever an extension
//           occurs, the fragment occurs too, so
//             |W(extension)| <= lambda size(tau) max(sum of f(v) > 0, sum of -f(v) > 0)
//           over the nodes v that have tau, and likewise for n. For partial trees each placement of tau has a
//           factor for what may still be placed below and behind it. The fragment with the largest bound
//           grows next. (With lambda > 1 the bounds hold, but prove little.)
// Stop      when no bound exceeds the last of the top fragments: then these are proven (`complete`). Or when
//           `most_looked_at` fragments have been looked at: then heavier ones may have been missed.
//
// Weights are exact up to rounding. Of fragments that weigh the same, those found first are listed; those of
// weight 0 never are.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "unkernel/kernels/trees/tree_scores.hpp"

namespace unkernel::engines {

struct FragmentOptions {
  std::size_t top;             // how many are wanted
  std::size_t most_looked_at;  // fragments, before the search gives up
  std::size_t score;           // which of the model's scores
};

struct Fragment {
  // In brackets. A node whose children are not part of it is `(NN ...)`, or a bare word where it is a leaf.
  std::string text;
  double weight;        // W
  double occurrences;   // n; 0 for a model
  double contribution;  // n W; 0 for a model
  int productions;      // of a single word 1; of partial trees: nodes
};

struct FragmentList {
  std::vector<Fragment> fragments;  // descending in |contribution|, or in |weight| for a model
  bool complete;
  double score;  // of the tree, which is the sum over all of its fragments, intercept not included; 0 for a
                 // model
};

// The fragments with the largest |W|.
FragmentList heaviest_fragments(const kernels::TreeKernel& kernel, const kernels::Forest& model_forest,
                                const kernels::TreeWeights& weights, const FragmentOptions& options);

// The fragments with the largest |n W| in a tree, which may be of another forest than the model.
// Takes time in proportion to both forests, besides the search.
FragmentList decisive_fragments(const kernels::TreeKernel& kernel, const kernels::Forest& model_forest,
                                const kernels::TreeWeights& weights, const kernels::Forest& tree_forest,
                                const kernels::TreeRow& tree, const FragmentOptions& options);

}  // namespace unkernel::engines
