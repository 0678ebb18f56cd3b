// Sums of several scores at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace unkernel::engines {

// sums[s] += the sum over k of row[places[k] * step + s]. Several scores at a time add up in registers, those
// of even and of odd places apart, so that an addition need not wait for the one before.
void add_entries(const double* row, std::size_t step, std::span<const std::uint32_t> places,
                 std::span<double> sums);
void add_entries(const std::int16_t* row, std::size_t step, std::span<const std::uint32_t> places,
                 std::span<std::int32_t> sums);

// The same of a triangle, in which owner a has a + 1 entries, for all owners among the places, which ascend:
// those at the places up to its own.
void add_triangle(const std::int16_t* triangle, std::span<const std::uint32_t> places,
                  std::span<std::int32_t> sums);
// The same of a rectangle, of which each row has `length` entries, for the rows with these numbers.
void add_rows(const std::int16_t* rectangle, std::size_t length, std::span<const std::uint32_t> rows,
              std::span<const std::uint32_t> places, std::span<std::int32_t> sums);

}  // namespace unkernel::engines
