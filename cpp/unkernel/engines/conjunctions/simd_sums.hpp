// Sums several scores at once with SIMD registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace unkernel::engines {

// Adds the sum over k of row[places[k] * step + s] to each sums[s]. Several scores at a time accumulate in
// registers; even and odd places have separate accumulators, so that their additions do not wait for each
// other.
void add_entries(const double* row, std::size_t step, std::span<const std::uint32_t> places,
                 std::span<double> sums);
void add_entries(const std::int16_t* row, std::size_t step, std::span<const std::uint32_t> places,
                 std::span<std::int32_t> sums);

// Does the same for a triangle, in which owner a has a + 1 entries: for each owner among the ascending
// places, adds the entries at all places up to the owner's.
void add_triangle(const std::int16_t* triangle, std::span<const std::uint32_t> places,
                  std::span<std::int32_t> sums);
// Does the same for a rectangle with `length` entries per row, for the rows with these numbers.
void add_rows(const std::int16_t* rectangle, std::size_t length, std::span<const std::uint32_t> rows,
              std::span<const std::uint32_t> places, std::span<std::int32_t> sums);

}  // namespace unkernel::engines
