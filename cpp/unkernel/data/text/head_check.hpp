// Checks whether the heads of a sentence form a tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace unkernel::data {

// The requirements on heads. In every case, heads must be words of the sentence.
enum class TreeCheck {
  none,
  forest,  // every word has a head, and there is no cycle
  tree,    // a forest with one root
};

struct HeadFault {
  std::size_t word;  // the first word with a fault, counted from 0
  std::string reason;
};

// Returns the first fault of the heads, or nullopt if they meet the requirement. Heads count from 1; 0 stands
// for a root, -1 for a missing head. No head may exceed heads.size(). Takes linear time.
std::optional<HeadFault> head_fault(std::span<const std::int32_t> heads, TreeCheck check);

}  // namespace unkernel::data
