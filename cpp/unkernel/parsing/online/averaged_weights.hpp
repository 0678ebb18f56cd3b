// Learns weights of conjunctions online: the averaged perceptron (Freund & Schapire 1999, Collins 2002) on
// the polynomial feature map.
//
// A row is a set of columns. Its subsets of at most `degree` columns are looked up in a hash table, and their
// weights add up to one score per class. After a mistake, the weights of the row's conjunctions increase by 1
// for the correct class, and decrease by 1 for the wrong class. The final weights are averages over all
// examples and over several runs, which visit the examples in different orders. They are rounded to 16-bit
// multiples of a power of two: scores are in the tens, and the rounding error is below a hundredth. A
// conjunction is used only after `min_updates` updates (Goldberg & Elhadad 2011); the model omits
// conjunctions with fewer updates.
//
// An entry takes 16 bytes plus 8 per class, at a load factor of at most 2/3. Scoring a row of k columns makes
// C(k,0) + .. + C(k,degree) probes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/large_array.hpp"

namespace unkernel::parsing {

// Conjunctions as models store them: ranks, keys and weights as in kernels/conjunction_index.hpp.
struct ConjunctionWeights {
  std::vector<std::int64_t> columns;  // by rank
  std::vector<std::uint64_t> keys;    // ascending
  std::vector<double> weights;        // keys x classes
  std::vector<double> intercept;
};

// The averages of one run, with the ascending keys of AveragedWeights. The constant, if any, has key 0.
struct RunAverages {
  std::vector<std::uint64_t> keys;
  std::vector<double> weights;  // keys x classes
};

// Returns the mean over some runs, for a choice among `classes` classes. Two classes have one weight per
// conjunction, positive for the second class. Omits conjunctions whose weights are all 0.
ConjunctionWeights mean_of(std::span<const RunAverages> runs, int degree, std::size_t classes);

// Returns the class with the largest score other than `excluded`. If there is no other class, returns a
// number that is no class.
template <class Score>
std::size_t best_except(std::span<const Score> scores, std::size_t excluded) {
  std::size_t best = excluded == 0 ? 1 : 0;
  for (std::size_t k = best + 1; k < scores.size(); ++k) {
    if (k != excluded && scores[k] > scores[best]) best = k;
  }
  return best;
}

class AveragedWeights {
 public:
  static constexpr std::int32_t most_columns = (1 << 21) - 1;  // a 64-bit key has room for three columns

  // At most one column of a conjunction may be `core` or larger.
  AveragedWeights(int degree, std::size_t classes, std::uint32_t min_updates, std::int32_t core);

  std::size_t classes() const { return classes_; }
  // Counts one more example; averages are over all examples.
  void next_example() { ++examples_; }
  // Returns the scores of a row with the current weights, one per class, and stores the row for update(). As
  // in engines, the first of two classes has score 0.
  std::span<const float> score(std::span<const std::int32_t> row);
  // Chooses the unit to which averaged_score() rounds, from the averages over the examples so far.
  void update_rounding_unit() { unit_ = unit_of_averages(); }
  // Returns the scores with rounded averages. Sums of multiples of the unit are exact, so an engine with
  // these weights makes the same decisions.
  std::span<const double> averaged_score(std::span<const std::int32_t> row);
  // Corrects a mistake on the row scored last: the weights of its conjunctions increase by 1 for the correct
  // class, and decrease by 1 for the wrong class.
  void update(std::size_t correct, std::size_t wrong);
  // Adds `amount` to the weights of a row's conjunctions for one class.
  void add(std::span<const std::int32_t> row, std::size_t to, float amount);
  // Makes the averages the current weights; later averages cover only later examples.
  void continue_from_averages();

  RunAverages averages() const;
  std::size_t entries() const { return used_; }

 private:
  using Key = std::uint64_t;

  void list_keys(std::span<const std::int32_t> row);
  void find_places();
  std::size_t place_of(Key key) const;
  std::size_t first_weight_to_change(Key key);
  void change(std::size_t weight, float amount);
  void grow();
  bool takes_part(std::size_t place) const { return entries_[place].updates >= min_updates_; }
  bool is_kept(std::size_t place) const { return entries_[place].key != free_place && takes_part(place); }
  double average(std::size_t weight) const;
  double unit_of_averages() const;

  static constexpr Key free_place = ~Key{0};
  // Key and number of updates are stored together, because each lookup reads both.
  struct Entry {
    Key key = free_place;
    std::uint32_t updates = 0;
  };

  int degree_;
  std::size_t classes_;
  std::uint32_t min_updates_;
  std::int32_t core_;
  double examples_ = 1.0;
  double unit_ = 1.0;
  LargeVector<Entry> entries_;
  LargeVector<float> weights_;
  // Sums of changes times their example numbers. Rounding errors of averages are about 1e-7.
  LargeVector<float> corrections_;
  std::size_t used_ = 0;
  // The keys of the row scored last.
  std::vector<Key> row_keys_;
  std::vector<std::size_t> places_;
  std::vector<float> scores_;
  std::vector<double> averaged_scores_;
};

}  // namespace unkernel::parsing
