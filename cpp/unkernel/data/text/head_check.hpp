// Checks whether the heads of a sentence form a tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace unkernel::data {

// The requirements on heads, besides being words of the sentence.
enum class TreeCheck {
  none,
  forest,  // every word has a head, and there is no cycle
  tree,    // a forest with one root
};

struct HeadFault {
  std::size_t word;  // the first word at fault, from 0
  std::string reason;
};

// `heads` count from 1, with 0 for a root and -1 if there is none; at most heads.size(). Linear time.
std::optional<HeadFault> head_fault(std::span<const std::int32_t> heads, TreeCheck check);

}  // namespace unkernel::data
