#include "unkernel/engines/conjunctions/simd_sums.hpp"

#include <cstring>

#include "unkernel/base/cpu.hpp"

namespace unkernel::engines {
namespace {

// A vector of Count numbers. One instruction adds two of them if the registers are wide enough.
template <class Number, std::size_t Count>
struct Vector {
  typedef Number Type __attribute__((vector_size(Count * sizeof(Number))));
};

// Accumulators for Count scores. With Overlap, accumulators for up to 2 Count scores: one for the first Count
// scores, one for the last Count. Both compute the same sums for scores that they share.
template <std::size_t Count, bool Overlap, class Sum>
class Registers {
 public:
  [[gnu::always_inline]] explicit Registers(std::span<const Sum> sums) : last_(sums.size() - Count) {
    std::memcpy(&even_.first, sums.data(), sizeof(Sums));
    if constexpr (Overlap) std::memcpy(&even_.last, sums.data() + last_, sizeof(Sums));
  }

  template <class Weight>
  [[gnu::always_inline]] void add(const Weight* row, std::size_t step,
                                  std::span<const std::uint32_t> places) {
    std::size_t k = 0;
    for (; k + 2 <= places.size(); k += 2) {
      add_to(even_, row + places[k] * step);
      add_to(odd_, row + places[k + 1] * step);
    }
    if (k < places.size()) add_to(even_, row + places[k] * step);
  }

  [[gnu::always_inline]] void store(Sum* sums) const {
    const Sums first = even_.first + odd_.first;
    std::memcpy(sums, &first, sizeof(first));
    if constexpr (!Overlap) return;
    const Sums last = even_.last + odd_.last;
    std::memcpy(sums + last_, &last, sizeof(last));
  }

 private:
  using Sums = typename Vector<Sum, Count>::Type;
  struct Accumulators {
    Sums first = {};
    Sums last = {};
  };

  template <class Weight>
  [[gnu::always_inline]] void add_to(Accumulators& to, const Weight* weights) const {
    to.first += sums_of(weights);
    if constexpr (Overlap) to.last += sums_of(weights + last_);
  }

  template <class Weight>
  [[gnu::always_inline]] static Sums sums_of(const Weight* weights) {
    typename Vector<Weight, Count>::Type loaded;
    std::memcpy(&loaded, weights, sizeof(loaded));
    return __builtin_convertvector(loaded, Sums);
  }

  std::size_t last_;  // where the last Count scores begin
  Accumulators even_, odd_;
};

template <std::size_t Count, bool Overlap, class Sum, class Add>
[[gnu::always_inline]] inline void add_in_registers(std::span<Sum> sums, std::size_t first, const Add& add) {
  Registers<Count, Overlap, Sum> registers(sums);
  add(registers, first);
  registers.store(sums.data());
}

// Calls add(registers, first score) for parts of Most scores, and for a last part of at most 2 Most scores.
template <std::size_t Most, class Sum, class Add>
[[gnu::always_inline]] inline void add_by_parts(std::span<Sum> sums, std::size_t first, const Add& add) {
  for (; sums.size() - first > 2 * Most; first += Most)
    add_in_registers<Most, false>(sums.subspan(first, Most), first, add);
  const std::span<Sum> last_part = sums.subspan(first);
  if (last_part.size() == Most) {
    add_in_registers<Most, false>(last_part, first, add);
  } else if (last_part.size() > Most) {
    add_in_registers<Most, true>(last_part, first, add);
  } else if constexpr (Most > 1) {
    add_by_parts<Most / 2>(sums, first, add);
  }
}

template <std::size_t Most, class Weight, class Sum>
[[gnu::always_inline]] inline void add_all(const Weight* row, std::size_t step,
                                           std::span<const std::uint32_t> places, std::span<Sum> sums) {
  if (places.empty()) return;  // `row` may be null then
  add_by_parts<Most>(sums, 0, [&](auto& registers, std::size_t first) __attribute__((always_inline)) {
    registers.add(row + first, step, places);
  });
}

}  // namespace

UNKERNEL_CLONES void add_entries(const double* row, std::size_t step, std::span<const std::uint32_t> places,
                                 std::span<double> sums) {
  add_all<8>(row, step, places, sums);
}

UNKERNEL_CLONES void add_entries(const std::int16_t* row, std::size_t step,
                                 std::span<const std::uint32_t> places, std::span<std::int32_t> sums) {
  add_all<16>(row, step, places, sums);
}

UNKERNEL_CLONES void add_triangle(const std::int16_t* triangle, std::span<const std::uint32_t> places,
                                  std::span<std::int32_t> sums) {
  const std::size_t step = sums.size();
  add_by_parts<16>(sums, 0, [&](auto& registers, std::size_t first) __attribute__((always_inline)) {
    for (std::size_t a = 0; a < places.size(); ++a) {
      const std::size_t owner = places[a];
      registers.add(triangle + owner * (owner + 1) / 2 * step + first, step, places.first(a + 1));
    }
  });
}

UNKERNEL_CLONES void add_rows(const std::int16_t* rectangle, std::size_t length,
                              std::span<const std::uint32_t> rows, std::span<const std::uint32_t> places,
                              std::span<std::int32_t> sums) {
  if (places.empty()) return;  // `rectangle` may be null then
  const std::size_t step = sums.size();
  add_by_parts<16>(sums, 0, [&](auto& registers, std::size_t first) __attribute__((always_inline)) {
    for (const std::size_t row : rows) registers.add(rectangle + row * length * step + first, step, places);
  });
}

}  // namespace unkernel::engines
