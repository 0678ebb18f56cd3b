// Sums of several scores at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace unkernel::engines {

// sums[s] += the sum over k of row[places[k] * step + s]. Up to eight scores at a time add up in registers, those of even and of
// odd places apart, so that an addition need not wait for the one before.
void add_entries(const double* row, std::size_t step, std::span<const std::uint32_t> places, std::span<double> sums);
// The same of narrow entries. They become doubles before they are added: where the weights fit a float, the sums are the same.
void add_entries(const float* row, std::size_t step, std::span<const std::uint32_t> places, std::span<double> sums);

}  // namespace unkernel::engines
