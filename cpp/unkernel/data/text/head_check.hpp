// Whether the heads of a sentence make a tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace unkernel::data {

// What heads have to be beyond numbers of words in the sentence.
enum class TreeCheck {
  none,
  forest,  // every word has a head, and following heads leads to a root
  tree,    // and there is one root
};

struct HeadFault {
  std::size_t word;  // the first that shows it, from 0 on
  std::string reason;
};

// `heads` are numbers of words from 1 on, 0 for a root, -1 where there is none; at most heads.size(). Takes
// linear time.
std::optional<HeadFault> head_fault(std::span<const std::int32_t> heads, TreeCheck check);

}  // namespace unkernel::data
