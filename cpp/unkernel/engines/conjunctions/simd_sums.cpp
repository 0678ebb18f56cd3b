#include "unkernel/engines/conjunctions/simd_sums.hpp"

#include <cstring>

#include "unkernel/base/cpu.hpp"

namespace unkernel::engines {
namespace {

// A vector of as many numbers as one instruction adds, if the machine supports it.
template <class Number, std::size_t Count>
struct Vector {
  typedef Number Type __attribute__((vector_size(Count * sizeof(Number))));
};

// Accumulators for Count scores.
template <std::size_t Count, class Sum>
class Registers {
 public:
  [[gnu::always_inline]] explicit Registers(const Sum* sums) { std::memcpy(&even_, sums, sizeof(even_)); }

  template <class Weight>
  [[gnu::always_inline]] void add(const Weight* row, std::size_t step,
                                  std::span<const std::uint32_t> places) {
    std::size_t k = 0;
    for (; k + 2 <= places.size(); k += 2) {
      even_ += sums_of(row + places[k] * step);
      odd_ += sums_of(row + places[k + 1] * step);
    }
    if (k < places.size()) even_ += sums_of(row + places[k] * step);
  }

  [[gnu::always_inline]] void store(Sum* sums) const {
    const Sums both = even_ + odd_;
    std::memcpy(sums, &both, sizeof(both));
  }

 private:
  using Sums = typename Vector<Sum, Count>::Type;

  template <class Weight>
  [[gnu::always_inline]] static Sums sums_of(const Weight* weights) {
    typename Vector<Weight, Count>::Type loaded;
    std::memcpy(&loaded, weights, sizeof(loaded));
    return __builtin_convertvector(loaded, Sums);
  }

  Sums even_;
  Sums odd_ = {};
};

// Calls add(registers, first score) for at most Most of the scores at a time.
template <std::size_t Most, class Sum, class Add>
[[gnu::always_inline]] inline void by_parts(std::span<Sum> sums, std::size_t first, const Add& add) {
  for (; sums.size() - first >= Most; first += Most) {
    Registers<Most, Sum> registers(sums.data() + first);
    add(registers, first);
    registers.store(sums.data() + first);
  }
  if constexpr (Most > 1) by_parts<Most / 2>(sums, first, add);
}

template <std::size_t Most, class Weight, class Sum>
[[gnu::always_inline]] inline void add_all(const Weight* row, std::size_t step,
                                           std::span<const std::uint32_t> places, std::span<Sum> sums) {
  if (places.empty()) return;  // `row` may be null then
  by_parts<Most>(sums, 0, [&](auto& registers, std::size_t first) __attribute__((always_inline)) {
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
  add_all<32>(row, step, places, sums);
}

UNKERNEL_CLONES void add_triangle(const std::int16_t* triangle, std::span<const std::uint32_t> places,
                                  std::span<std::int32_t> sums) {
  const std::size_t step = sums.size();
  by_parts<32>(sums, 0, [&](auto& registers, std::size_t first) __attribute__((always_inline)) {
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
  by_parts<32>(sums, 0, [&](auto& registers, std::size_t first) __attribute__((always_inline)) {
    for (const std::size_t row : rows) registers.add(rectangle + row * length * step + first, step, places);
  });
}

}  // namespace unkernel::engines
