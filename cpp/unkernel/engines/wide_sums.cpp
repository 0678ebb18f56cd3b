#include "unkernel/engines/wide_sums.hpp"

#include "unkernel/base/cpu.hpp"

namespace unkernel::engines {
namespace {

template <std::size_t Count, class Weight>
[[gnu::always_inline]] inline void add_some(const Weight* row, std::size_t step, std::span<const std::uint32_t> places, double* sums) {
  double even[Count];
  double odd[Count] = {};
  for (std::size_t s = 0; s < Count; ++s) even[s] = sums[s];
  std::size_t k = 0;
  for (; k + 2 <= places.size(); k += 2) {
    const Weight* first = row + places[k] * step;
    const Weight* second = row + places[k + 1] * step;
    for (std::size_t s = 0; s < Count; ++s) even[s] += static_cast<double>(first[s]);
    for (std::size_t s = 0; s < Count; ++s) odd[s] += static_cast<double>(second[s]);
  }
  if (k < places.size()) {
    const Weight* last = row + places[k] * step;
    for (std::size_t s = 0; s < Count; ++s) even[s] += static_cast<double>(last[s]);
  }
  for (std::size_t s = 0; s < Count; ++s) sums[s] = even[s] + odd[s];
}

template <class Weight>
[[gnu::always_inline]] inline void add_all(const Weight* row, std::size_t step, std::span<const std::uint32_t> places, std::span<double> sums) {
  double* to = sums.data();
  std::size_t left = sums.size();
  for (; left >= 8; left -= 8, row += 8, to += 8) add_some<8>(row, step, places, to);
  if (left & 4) {
    add_some<4>(row, step, places, to);
    row += 4;
    to += 4;
  }
  if (left & 2) {
    add_some<2>(row, step, places, to);
    row += 2;
    to += 2;
  }
  if (left & 1) add_some<1>(row, step, places, to);
}

}  // namespace

UNKERNEL_CLONES void add_entries(const double* row, std::size_t step, std::span<const std::uint32_t> places, std::span<double> sums) {
  add_all(row, step, places, sums);
}

UNKERNEL_CLONES void add_entries(const float* row, std::size_t step, std::span<const std::uint32_t> places, std::span<double> sums) {
  add_all(row, step, places, sums);
}

}  // namespace unkernel::engines
