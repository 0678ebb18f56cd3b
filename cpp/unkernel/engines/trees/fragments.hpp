// Explains scores of trees: finds the fragments with the largest weights in a model, or the largest
// contributions to one decision.
//
// A tree kernel is an inner product over fragments tau, and so is a score:
//
//   score(x) = sum over tau of n(tau) W(tau)
//   n(tau) = sum over nodes u of x of c(u) e(tau, u)
//   W(tau) = size(tau) sum over nodes v of the model of f(v) e(tau, v)
//
// where c and f are the weights of nodes (including norms), and e(tau, u) is the number of occurrences of tau
// with root u.
//
//   kernel     fragments                         size                                e
//   ST         complete subtrees                 lambda^productions                  0 or 1
//   SST        connected, whole productions      lambda^productions                  0 or 1
//   SST + bow  fragments of SST, and words           lambda                              0 or 1
//   PTK        connected, each node with up to   mu^nodes lambda^(2 nodes without    sum over placements of
//              five of its children              children)                           lambda^(skipped)
//
// Method    best-first search. Fragments grow from their roots, each in one order only. In subset trees, the
//           next node to receive its production comes later in breadth-first order than the last one; in
//           partial trees, the next node comes last in depth-first order (Asai et al. 2002, Zaki 2002).
//           Wherever an extension of tau occurs, tau occurs too, so
//             |W(extension)| <= lambda size(tau) max(sum of f(v) > 0, sum of -f(v) > 0)
//           over the nodes v at which tau occurs, and likewise for n. In partial trees, the bound of each
//           placement of tau is multiplied by a bound on the gain from later nodes. The fragment with the
//           largest bound grows next. (With lambda > 1, the bounds hold, but are loose.)
// Stop      when no bound exceeds the weight of the last listed fragment: the list is proven (`complete`). Or
//           when `most_looked_at` fragments have been examined: heavier fragments may be missing.
//
// Weights are exact up to rounding. Among fragments of equal weight, the search lists those that it examines
// first. It never lists fragments of weight 0.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "unkernel/kernels/trees/tree_scores.hpp"

namespace unkernel::engines {

struct FragmentOptions {
  std::size_t top;             // number of fragments to list
  std::size_t most_looked_at;  // fragments to examine before the search gives up
  std::size_t score;           // index of the score to explain
};

struct Fragment {
  // The fragment in brackets. A node whose children are not part of it is `(NN ...)`, or a bare word if it is
  // a leaf.
  std::string text;
  double weight;        // W
  double occurrences;   // n; 0 for a model
  double contribution;  // n W; 0 for a model
  int productions;      // 1 for a single word; for partial trees, the number of nodes
};

struct FragmentList {
  std::vector<Fragment> fragments;  // descending in |contribution|, or in |weight| for a model
  bool complete;
  double score;  // of the tree, without intercept: the sum over all its fragments; 0 for a model
};

// Returns the fragments of the model with the largest |W|.
FragmentList heaviest_fragments(const kernels::TreeKernel& kernel, const kernels::Forest& model_forest,
                                const kernels::TreeWeights& weights, const FragmentOptions& options);

// Returns the fragments with the largest |n W| in a tree, whose forest may differ from the model's. Takes
// time linear in the sizes of both forests, plus the time of the search.
FragmentList decisive_fragments(const kernels::TreeKernel& kernel, const kernels::Forest& model_forest,
                                const kernels::TreeWeights& weights, const kernels::Forest& tree_forest,
                                const kernels::TreeRow& tree, const FragmentOptions& options);

}  // namespace unkernel::engines
