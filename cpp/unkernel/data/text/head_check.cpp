#include "unkernel/data/text/head_check.hpp"

#include <algorithm>
#include <vector>

namespace unkernel::data {
namespace {

// A word that lies on a cycle of heads, or 0 if there is none.
std::int32_t word_on_a_circle(std::span<const std::int32_t> heads) {
  std::vector<std::int32_t> seen_from(heads.size() + 1,
                                      0);  // the first word from which each word was reached
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

HeadFault circle_fault(std::span<const std::int32_t> heads, std::int32_t on_circle) {
  constexpr int shown_words = 8;
  const auto head_of = [&](std::int32_t word) { return heads[static_cast<std::size_t>(word) - 1]; };
  std::int32_t first = on_circle;
  for (std::int32_t at = head_of(on_circle); at != on_circle; at = head_of(at)) first = std::min(first, at);
  std::string path = std::to_string(first);
  std::int32_t at = first;
  for (int shown = 1; shown <= shown_words; ++shown) {
    at = head_of(at);
    if (shown == shown_words && at != first) {
      path.append(" → ...");
      break;
    }
    path.append(" → ").append(std::to_string(at));
    if (at == first) break;
  }
  return {static_cast<std::size_t>(first) - 1, "the heads go round in a circle, " + path};
}

}  // namespace

std::optional<HeadFault> head_fault(std::span<const std::int32_t> heads, TreeCheck check) {
  if (check == TreeCheck::none) return std::nullopt;
  const auto missing = std::ranges::find(heads, -1);
  if (missing != heads.end()) {
    return HeadFault{static_cast<std::size_t>(missing - heads.begin()),
                     "a tree needs the head of every word; the root has 0"};
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
  const std::int32_t on_circle = word_on_a_circle(heads);
  if (on_circle == 0) return std::nullopt;
  return circle_fault(heads, on_circle);
}

}  // namespace unkernel::data
