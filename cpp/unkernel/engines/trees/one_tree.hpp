// Scores one tree at a time, from its text: for answers in microseconds. Each thread has its own; buffers are
// reused from tree to tree.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "unkernel/kernels/trees/tree_examples.hpp"

namespace unkernel::engines {

class OneTreeScorer {
 public:
  // Of a machine over examples that are one tree each.
  OneTreeScorer(std::shared_ptr<const kernels::ExampleMachine> machine, bool normalize);

  // The scores of the tree in brackets; throws data::BracketError.
  std::vector<double> score(std::string_view tree);

 private:
  std::shared_ptr<const kernels::ExampleMachine> machine_;
  bool normalize_;
  std::unique_ptr<kernels::TreeScorer> scorer_;
};

}  // namespace unkernel::engines
