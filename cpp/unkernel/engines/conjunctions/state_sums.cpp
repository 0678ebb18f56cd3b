#include "unkernel/engines/conjunctions/state_sums.hpp"

#include <bit>

#include "unkernel/base/parallel.hpp"
#include "unkernel/engines/conjunctions/state_index.hpp"

namespace unkernel::engines {
namespace {

std::uint64_t choose(std::uint64_t n, std::size_t k) {
  switch (k) {
    case 0: return 1;
    case 1: return n;
    case 2: return choose2(n);
    case 3: return choose3(n);
    default: return choose4(n);
  }
}

// For states q1 .. qj of descending groups, and every set U of ranks below these groups, let
//     R_j(U) = the sum of w(S1 ∪ .. ∪ Sj ∪ U) over all non-empty Si ⊆ qi.
// Then R_0 = w, the sum for these states is R_j({}), and R_(j+1)(U) is the sum of R_j(S ∪ U) over all
// non-empty S ⊆ q_(j+1). Ranks are ordered by group, so every rank in S is larger than every rank in U. In
// the numbering of SetWeights, the sets S ∪ U for all U of one size are contiguous: a sum over S is a sum of
// arrays.
using PartialSums = std::array<std::vector<double>, most_degree + 1>;  // R_j, by the size of U

class StateSumFiller {
 public:
  StateSumFiller(const StateIndex& index, ConjunctionArrays& arrays)
      : index_(index), arrays_(arrays), scores_(arrays.scores()) {}

  // Computes all sums whose first state is this state.
  void fill(std::size_t group, std::size_t state, const SetWeights& weights) {
    sum_up(
        group, state, degree(), [&](std::size_t m) -> const std::vector<double>& { return weights.size(m); },
        partial_sums_[1]);
    store(0, index_.first(group) + state, partial_sums_[1][0].data());
    descend(1, group, state, group);
  }

 private:
  std::size_t degree() const { return static_cast<std::size_t>(arrays_.map.degree); }

  void store(std::size_t level, std::size_t place, const double* sums) {
    std::copy_n(sums, scores_, arrays_.state_sums[level].data() + place * scores_);
  }

  void descend(std::size_t size, std::size_t path, std::size_t place, std::size_t last) {
    if (size == degree()) return;
    const std::size_t row = index_.row(size, path, place, last);
    for (std::size_t g = 0; g < last; ++g) {
      for (std::size_t s = 0; s < index_.states(g); ++s) {
        sum_up(
            g, s, degree() - size,
            [&](std::size_t m) -> const std::vector<double>& { return partial_sums_[size][m]; },
            partial_sums_[size + 1]);
        store(size, row + index_.first(g) + s, partial_sums_[size + 1][0].data());
        descend(size + 1, path * index_.groups() + g, place * index_.states(g) + s, g);
      }
    }
  }

  // Computes R_(j+1) from R_j, whose sets have at most `max_ranks` ranks.
  template <class From>
  void sum_up(std::size_t group, std::size_t state, std::size_t max_ranks, const From& from,
              PartialSums& to) {
    const std::size_t begin = arrays_.group_begins[group];
    for (std::size_t m = 0; m < max_ranks; ++m) to[m].assign(choose(begin, m) * scores_, 0.0);
    Rank ranks[most_degree];
    add_sets<1>(arrays_.states[index_.first(group) + state], begin, ranks, max_ranks, from, to);
  }

  // Visits all S that extend the first `Size` - 1 entries of `ranks` by one or more descending ranks from
  // `mask`.
  template <std::size_t Size, class From>
  void add_sets(std::uint64_t mask, std::size_t begin, Rank (&ranks)[most_degree], std::size_t max_ranks,
                const From& from, PartialSums& to) {
    while (mask != 0) {
      const int bit = 63 - std::countl_zero(mask);
      mask ^= std::uint64_t{1} << bit;
      ranks[Size - 1] = static_cast<Rank>(begin) + static_cast<Rank>(bit);
      for (std::size_t m = 0; m + Size <= max_ranks; ++m) {
        std::size_t number = 0;
        for (std::size_t i = 0; i < Size; ++i) number += choose(ranks[i], Size - i + m);
        const double* source = from(m + Size).data() + number * scores_;
        double* target = to[m].data();
        for (std::size_t k = 0; k < to[m].size(); ++k) target[k] += source[k];
      }
      if constexpr (Size < most_degree) {
        if (Size < max_ranks) add_sets<Size + 1>(mask, begin, ranks, max_ranks, from, to);
      }
    }
  }

  const StateIndex& index_;
  ConjunctionArrays& arrays_;
  std::size_t scores_;
  std::array<PartialSums, most_degree + 1> partial_sums_;
};

}  // namespace

SetWeights::SetWeights(std::uint32_t ranks, int degree, std::size_t scores) : scores_(scores) {
  for (std::size_t k = 0; k <= static_cast<std::size_t>(degree); ++k)
    weights_[k].assign(choose(ranks, k) * scores, 0.0);
}

std::size_t SetWeights::number(const Rank* ranks, int size) {
  std::size_t number = 0;
  for (int i = 0; i < size; ++i) number += choose(ranks[i], static_cast<std::size_t>(size - i));
  return number;
}

void fill_state_sums(const SetWeights& weights, int threads, ConjunctionArrays& arrays) {
  const StateIndex index(std::span(arrays.state_begins.data(), arrays.state_begins.size()),
                         arrays.map.degree);
  for (std::size_t k = 0; k < static_cast<std::size_t>(arrays.map.degree); ++k)
    arrays.state_sums[k].assign(index.count(k) * arrays.scores(), 0.0);
  std::vector<std::pair<std::size_t, std::size_t>> first_states;
  for (std::size_t g = index.groups(); g-- > 0;) {
    for (std::size_t s = 0; s < index.states(g); ++s) first_states.emplace_back(g, s);
  }
  parallel_for(threads, static_cast<std::int64_t>(first_states.size()), [&](std::int64_t i) {
    const auto [group, state] = first_states[static_cast<std::size_t>(i)];
    StateSumFiller(index, arrays).fill(group, state, weights);
  });
}

}  // namespace unkernel::engines
