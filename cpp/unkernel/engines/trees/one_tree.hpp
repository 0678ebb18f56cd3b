// Scores one tree at a time from its text, in microseconds. Reuses its buffers, so each thread needs its own
// object.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/kernels/trees/tree_examples.hpp"

namespace unkernel::engines {

class OneTreeScorer {
 public:
  // The examples of `machine` must have one tree each.
  OneTreeScorer(std::shared_ptr<const kernels::ExampleMachine> machine, bool normalize);

  // Returns the scores of a tree in brackets. Throws data::BracketError if the text is not a tree.
  std::vector<double> score(std::string_view tree, const Monitor& monitor);

  // Returns a scorer for another thread.
  OneTreeScorer another() const { return OneTreeScorer(machine_, normalize_); }

 private:
  std::shared_ptr<const kernels::ExampleMachine> machine_;
  bool normalize_;
  std::unique_ptr<kernels::TreeScorer> scorer_;
};

}  // namespace unkernel::engines
