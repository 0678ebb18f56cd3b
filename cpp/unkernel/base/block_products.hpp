// Inner products between all pairs of a few vectors, as products of dense blocks that stay in registers.
//
// A place is an index into a vector.
//
// Memory   besides the result, 8 bytes per vector and place of a panel of 256 places.
// Cost     one multiplication and one addition per pair and place, zeros included: several times as fast as
//          loops over one pair after another, and ten times as fast as gathering the non-zeros of vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unkernel/base/function_ref.hpp"

namespace unkernel {

// A range of at most 256 places of all vectors, in blocks of 8 vectors.
class Panel {
 public:
  static constexpr std::size_t tile = 8;           // vectors of a block
  static constexpr std::size_t most_places = 256;  // two blocks fit into the first-level cache

  Panel(std::size_t vectors, std::size_t places)
      : places_(places), entries_((vectors + tile - 1) / tile * places * tile) {}

  std::size_t places() const { return places_; }
  double& at(std::size_t vector, std::size_t place) {
    return entries_[((vector / tile) * places_ + place) * tile + vector % tile];
  }
  const double* block(std::size_t b) const { return entries_.data() + b * places_ * tile; }
  void clear();

 private:
  std::size_t places_;
  std::vector<double> entries_;
};

// Sets the nonzero entries of the places [begin, end). In the panel, these places count from 0.
using FillPanel = FunctionRef<void(Panel& panel, std::size_t begin, std::size_t end)>;

// A symmetric matrix whose lower triangle is computed; row i begins at entries + i * stride.
struct LowerTriangle {
  double* entries;
  std::size_t stride;
};

// entry (i, j) += sign * x_i'x_j for all j <= i; entries above the diagonal may be changed, too. Each sum is
// taken in the same order on any number of threads.
void add_products(std::size_t vectors, std::size_t places, const FillPanel& fill, double sign, int threads,
                  const LowerTriangle& matrix);

}  // namespace unkernel
