#include "unkernel/data/text/head_check.hpp"

#include <algorithm>
#include <vector>

namespace unkernel::data {
namespace {

// Returns a word on a cycle of heads, or 0 if there is no cycle.
std::int32_t find_word_on_cycle(std::span<const std::int32_t> heads) {
  // By word: the word where the first walk that reached it began; 0 if none has reached it.
  std::vector<std::int32_t> seen_from(heads.size() + 1, 0);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const auto start = static_cast<std::int32_t>(i) + 1;
    std::int32_t at = start;
    while (at > 0 && seen_from[static_cast<std::size_t>(at)] == 0) {
      seen_from[static_cast<std::size_t>(at)] = start;
      at = heads[static_cast<std::size_t>(at) - 1];
    }
    if (at > 0 && seen_from[static_cast<std::size_t>(at)] == start) return at;
  }
  return 0;
}

HeadFault describe_cycle(std::span<const std::int32_t> heads, std::int32_t on_cycle) {
  constexpr int max_shown_words = 8;
  const auto head_of = [&](std::int32_t word) { return heads[static_cast<std::size_t>(word) - 1]; };
  std::int32_t first = on_cycle;
  for (std::int32_t at = head_of(on_cycle); at != on_cycle; at = head_of(at)) first = std::min(first, at);
  std::string path = std::to_string(first);
  std::int32_t at = first;
  for (int shown = 1; shown <= max_shown_words; ++shown) {
    at = head_of(at);
    if (shown == max_shown_words && at != first) {
      path.append(" → ...");
      break;
    }
    path.append(" → ").append(std::to_string(at));
    if (at == first) break;
  }
  return {static_cast<std::size_t>(first) - 1, "the heads form a cycle, " + path};
}

}  // namespace

std::optional<HeadFault> head_fault(std::span<const std::int32_t> heads, TreeCheck check) {
  if (check == TreeCheck::none) return std::nullopt;
  const auto missing = std::ranges::find(heads, -1);
  if (missing != heads.end()) {
    return HeadFault{static_cast<std::size_t>(missing - heads.begin()),
                     "a tree needs the head of every word; write 0 for the root"};
  }
  if (check == TreeCheck::tree) {
    const auto first = std::ranges::find(heads, 0);
    const auto second = first == heads.end() ? first : std::find(first + 1, heads.end(), 0);
    if (second != heads.end()) {
      return HeadFault{
          static_cast<std::size_t>(second - heads.begin()),
          "a second root; word " + std::to_string(first - heads.begin() + 1) + " is one already (head 0)"};
    }
  }
  const std::int32_t on_cycle = find_word_on_cycle(heads);
  if (on_cycle == 0) return std::nullopt;
  return describe_cycle(heads, on_cycle);
}

}  // namespace unkernel::data
