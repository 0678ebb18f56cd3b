// Sums several scores at once with SIMD registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace unkernel::engines {

// Adds the sum over k of row[places[k] * step + s] to each sums[s]. Registers accumulate several scores at a
// time. Even and odd places have separate accumulators, because additions to a single accumulator would wait
// for each other.
void add_entries(const double* row, std::size_t step, std::span<const std::uint32_t> places,
                 std::span<double> sums);
void add_entries(const std::int16_t* row, std::size_t step, std::span<const std::uint32_t> places,
                 std::span<std::int32_t> sums);

// Adds the entries at pairs of places from a triangle whose row a has a + 1 entries: for each a among the
// ascending places, the entries of row a at all places up to and including a.
void add_triangle(const std::int16_t* triangle, std::span<const std::uint32_t> places,
                  std::span<std::int32_t> sums);
// Adds the entries of these rows, at all places, from a rectangle with `length` entries per row.
void add_rows(const std::int16_t* rectangle, std::size_t length, std::span<const std::uint32_t> rows,
              std::span<const std::uint32_t> places, std::span<std::int32_t> sums);

}  // namespace unkernel::engines
