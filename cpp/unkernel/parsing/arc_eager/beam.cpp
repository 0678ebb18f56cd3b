#include "unkernel/parsing/arc_eager/beam.hpp"

#include <functional>
#include <utility>

namespace unkernel::parsing {

void RowScores::clear() {
  numbers_.clear();
  rows_.clear();
  columns_.clear();
  scores_.clear();
}

std::uint64_t RowScores::hash(std::size_t part, std::span<const std::int32_t> columns) {
  constexpr std::uint64_t spread = 0x9e3779b97f4a7c15;
  std::uint64_t mixed = part;
  for (const std::int32_t column : columns)
    mixed = (mixed ^ static_cast<std::uint32_t>(column)) * spread + (mixed >> 32);
  return Random::mix(mixed) >> 1;  // the hash table reserves the key with all bits set
}

bool RowScores::is_row(const Row& row, std::size_t part, std::span<const std::int32_t> columns) const {
  return row.part == part &&
         std::ranges::equal(std::span(columns_).subspan(row.first_column, row.columns), columns);
}

void Beam::begin(std::size_t words) {
  items_.resize(1);
  items_.front().state.begin(words);
  items_.front().score = 0.0;
  items_.front().last_step = no_step;
}

void Beam::keep_best(std::size_t width) {
  const auto end_of_best =
      extensions_.begin() + static_cast<std::ptrdiff_t>(std::min(width, extensions_.size()));
  std::partial_sort(extensions_.begin(), end_of_best, extensions_.end(),
                    [](const Extension& a, const Extension& b) {
                      if (a.score != b.score) return a.score > b.score;
                      return a.item != b.item ? a.item < b.item : a.move < b.move;
                    });
  extensions_.erase(end_of_best, extensions_.end());
}

void Beam::move_or_copy(std::size_t k) {
  const std::size_t from = extensions_[k].item;
  const auto later_extensions = std::span(extensions_).subspan(k + 1);
  const bool is_last_use =
      std::ranges::find(later_extensions, from, &Extension::item) == later_extensions.end();
  if (is_last_use) {
    std::swap(next_items_[k], items_[from]);
  } else {
    next_items_[k] = items_[from];
  }
}

void BeamBuffers::begin(std::size_t words) {
  move_scores.clear();
  label_scores.clear();
  steps.clear();
  beam.begin(words);
}

std::vector<PathStep> BeamBuffers::path_to(std::int32_t last_step) const {
  std::vector<PathStep> path;
  for (std::int32_t number = last_step; number != no_step; number = path.back().previous)
    path.push_back(steps[static_cast<std::size_t>(number)]);
  std::ranges::reverse(path);
  return path;
}

}  // namespace unkernel::parsing
