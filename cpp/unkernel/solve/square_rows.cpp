#include "unkernel/solve/square_rows.hpp"

#include <algorithm>
#include <utility>

namespace unkernel::solve {
namespace {

constexpr std::size_t max_copied_bytes = std::size_t{64} << 20U;

}  // namespace

bool are_contiguous(std::span<const std::size_t> places) {
  for (std::size_t k = 1; k < places.size(); ++k) {
    if (places[k] != places[k - 1] + 1) return false;
  }
  return true;
}

SquareRows::SquareRows(const KernelSquare& kernel, std::vector<std::size_t> places)
    : kernel_(kernel), places_(std::move(places)) {
  in_place_ = are_contiguous(places_);
  if (in_place_) return;
  const std::size_t max_copies =
      std::max<std::size_t>(max_copied_bytes / (sizeof(float) * places_.size()), 2);
  copies_.resize(std::min(max_copies, places_.size()));
  owner_.assign(copies_.size(), no_index);
  copy_of_.assign(places_.size(), no_index);
}

void SquareRows::copy(std::size_t k, const float* full_row, std::size_t pinned) {
  if (owner_[next_] == pinned) next_ = (next_ + 1) % copies_.size();
  if (owner_[next_] != no_index) copy_of_[owner_[next_]] = no_index;
  owner_[next_] = k;
  copy_of_[k] = next_;
  auto& values = copies_[next_];
  if (!values) values = std::make_unique_for_overwrite<float[]>(places_.size());
  for (std::size_t l = 0; l < places_.size(); ++l) values[l] = full_row[places_[l]];
  next_ = (next_ + 1) % copies_.size();
}

}  // namespace unkernel::solve
