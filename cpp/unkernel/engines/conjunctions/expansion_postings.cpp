#include "unkernel/engines/conjunctions/expansion_postings.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace unkernel::engines {
namespace {

// Numbers the support vectors that have rare ranks, in the order in which they first appear.
class VectorNumbers {
 public:
  explicit VectorNumbers(std::size_t vectors) : number_of_(vectors, 0) {}
  std::uint32_t of(std::uint32_t vector) {
    if (number_of_[vector] == 0) number_of_[vector] = ++count_;
    return number_of_[vector] - 1;
  }

 private:
  std::vector<std::uint32_t> number_of_;
  std::uint32_t count_ = 0;
};

// Returns whether postings can be stored as records: there are few enough common ranks, and no support vector
// has too many rare ranks.
bool can_be_records(const RankedVectors& vectors, const ConjunctionArrays& arrays) {
  if (arrays.bit_words() > most_bit_words) return false;
  for (std::size_t v = 0; v + 1 < vectors.begins.size(); ++v) {
    const auto begin = vectors.items.begin() + static_cast<std::ptrdiff_t>(vectors.begins[v]);
    const auto end = vectors.items.begin() + static_cast<std::ptrdiff_t>(vectors.begins[v + 1]);
    if (end - std::lower_bound(begin, end, arrays.rare) > most_records_of_vector) return false;
  }
  return true;
}

void write_record(std::span<const Rank> ranks, const double* weights, std::uint32_t number,
                  ConjunctionArrays& arrays) {
  const std::size_t begin = arrays.posting_records.size();
  arrays.posting_records.resize(begin + arrays.record_words(), 0);
  std::uint64_t* record = arrays.posting_records.data() + begin;
  for (const Rank rank : ranks) {
    if (rank < arrays.rare) record[rank / 64] |= std::uint64_t{1} << rank % 64;
  }
  for (std::size_t s = 0; s < arrays.scores(); ++s)
    record[arrays.bit_words() + s] = std::bit_cast<std::uint64_t>(weights[s]);
  record[arrays.record_words() - 1] = number;
}

}  // namespace

void write_postings(const ExpansionTask& task, MemoryBudget& budget, ConjunctionArrays& arrays) {
  auto& items = std::get<LargeVector<std::uint32_t>>(arrays.items);
  arrays.item_begins.assign(1, 0);
  arrays.posting_begins.assign(1, 0);
  const auto& vectors = task.vectors;
  const bool as_records = can_be_records(vectors, arrays);
  VectorNumbers numbers(vectors.begins.size());
  std::size_t postings = 0;
  for (std::size_t owner = arrays.rare; owner < arrays.used(); ++owner) {
    for (std::uint32_t h = vectors.owner_begins[owner]; h < vectors.owner_begins[owner + 1];
         ++h, ++postings) {
      const std::uint32_t vector = vectors.holders[h];
      const std::span<const Rank> ranks(vectors.items.data() + vectors.begins[vector],
                                        vectors.items.data() + vectors.places[h]);
      const double* b = task.coefficients(vector);
      if (as_records) {
        budget.spend(8.0 * static_cast<double>(arrays.record_words()));
        write_record(ranks, b, numbers.of(vector), arrays);
      } else {
        budget.spend(4.0 * static_cast<double>(ranks.size()) + 4.0 + 8.0 * static_cast<double>(task.scores));
        items.insert(items.end(), ranks.begin(), ranks.end());
        arrays.item_begins.push_back(static_cast<std::uint32_t>(items.size()));
        arrays.posting_weights.insert(arrays.posting_weights.end(), b, b + task.scores);
      }
    }
    if (items.size() > most_entries)
      throw std::length_error("there are too many rare features: lower `rare`");
    arrays.posting_begins.push_back(static_cast<std::uint32_t>(postings));
  }
}

}  // namespace unkernel::engines
