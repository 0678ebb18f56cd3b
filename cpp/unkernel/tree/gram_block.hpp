// The kernel matrix of the working set, in single precision: 4 bytes per pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/tree/training_examples.hpp"

namespace unkernel::tree {

class GramBlock {
 public:
  // Holds at most `capacity` examples; memory is allocated when examples are added.
  GramBlock(const TrainingExamples& all, std::size_t capacity, int threads);

  std::size_t size() const { return examples_.size(); }
  std::size_t capacity() const { return capacity_; }
  const float* values() const { return values_.data(); }
  std::size_t stride() const { return stride_; }
  // Returns the position of an example, or -1.
  std::int32_t place(std::int32_t example) const { return place_[static_cast<std::size_t>(example)]; }
  std::span<const std::int32_t> examples() const { return examples_; }

  // Adds examples that are not in the block yet; they must not exceed the capacity.
  void add(std::span<const std::int32_t> examples);
  // Removes the examples with is_kept[example] == false.
  void keep(const std::vector<bool>& is_kept);

 private:
  void reserve_side(std::size_t size);

  const TrainingExamples& all_;
  std::size_t capacity_;
  std::size_t stride_ = 0;
  int threads_;
  LargeArray<float> values_;
  std::vector<std::int32_t> examples_;
  std::vector<std::int32_t> place_;
};

}  // namespace unkernel::tree
