// Reads rows of a kernel matrix in memory, restricted to the columns of one problem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace unkernel::solve {

// A symmetric matrix that several problems share; each uses some of its rows. If a problem's rows are
// contiguous, it reads the matrix in place; otherwise it copies up to 64 MiB of rows.
struct KernelSquare {
  const float* values;  // row-major, `stride` apart
  std::size_t stride;
  const std::int32_t* rows;  // by variable: its row in the matrix; null if they are equal
};

// Returns the row of a variable in the matrix.
inline std::size_t place_of(const KernelSquare& kernel, std::size_t variable) {
  return kernel.rows == nullptr ? variable : static_cast<std::size_t>(kernel.rows[variable]);
}

// Returns whether the places are contiguous and ascending.
bool are_contiguous(std::span<const std::size_t> places);

// Provides kernel rows over some columns of the matrix: in place if the columns are contiguous, otherwise as
// copies. A new copy overwrites the oldest.
class SquareRows {
 public:
  SquareRows(const KernelSquare& kernel, std::vector<std::size_t> places);

  // Returns row k. The row stays valid until the second call after this one. Does not overwrite the copy of
  // row `pinned`.
  const float* row(std::size_t k, std::size_t pinned) {
    const float* full_row = kernel_.values + places_[k] * kernel_.stride;
    if (in_place_) return full_row + places_[0];
    if (copy_of_[k] == no_index) copy(k, full_row, pinned);
    return copies_[copy_of_[k]].get();
  }

 private:
  static constexpr std::size_t no_index = std::numeric_limits<std::size_t>::max();

  void copy(std::size_t k, const float* full_row, std::size_t pinned);

  KernelSquare kernel_;
  std::vector<std::size_t> places_;
  bool in_place_ = false;
  std::vector<std::unique_ptr<float[]>> copies_;
  std::vector<std::size_t> owner_;    // by copy: the row that it holds
  std::vector<std::size_t> copy_of_;  // by row: its copy
  std::size_t next_ = 0;
};

}  // namespace unkernel::solve
