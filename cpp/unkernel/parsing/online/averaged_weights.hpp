// Learns weights of conjunctions online: the averaged perceptron (Freund & Schapire 1999, Collins 2002) on
// the polynomial feature map.
//
// A row is a set of columns; its subsets of at most `degree` columns are looked up in a hash table, and their
// weights add up to one score per class. After a mistake, the conjunctions of the row gain 1 for the correct
// class and lose 1 for the wrong one. The final weights are averages over all examples and over several runs,
// which visit the examples in different orders. They are rounded to 16-bit multiples of a power of two:
// scores are in the tens, and the rounding error is below a hundredth. A conjunction is used only after
// `min_updates` updates (Goldberg & Elhadad 2011); the model omits conjunctions with fewer updates.
//
// An entry takes 16 bytes plus 8 per class, at a load factor of at most 2/3; scoring a row of k columns makes
// C(k,0) + .. + C(k,degree) probes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/large_array.hpp"

namespace unkernel::parsing {

// Conjunctions in the form of models: ranks, keys and weights as in kernels/conjunction_index.hpp.
struct ConjunctionWeights {
  std::vector<std::int64_t> columns;  // of each rank
  std::vector<std::uint64_t> keys;    // ascending
  std::vector<double> weights;        // keys x classes
  std::vector<double> intercept;
};

// The averages of one run; the keys are those of AveragedWeights, ascending. The constant, if any, has key 0.
struct RunAverages {
  std::vector<std::uint64_t> keys;
  std::vector<double> weights;  // keys x classes
};

// Returns the mean over some runs, for a choice among `classes` classes. For two classes, there is one weight
// per conjunction, positive for the second class. Omits conjunctions whose weights are all 0.
ConjunctionWeights mean_of(std::span<const RunAverages> runs, int degree, std::size_t classes);

class AveragedWeights {
 public:
  static constexpr std::int32_t most_columns = (1 << 21) - 1;  // a 64-bit key consists of three columns

  // At most one column of a conjunction is `core` or larger.
  AveragedWeights(int degree, std::size_t classes, std::uint32_t min_updates, std::int32_t core);

  std::size_t classes() const { return classes_; }
  // Counts one more example; averages are over all examples.
  void next_example() { ++examples_; }
  // Scores with the current weights. Remembers the row for update(). As in engines, the first of two
  // classes has score 0.
  std::span<const float> score(std::span<const std::int32_t> row);
  // Chooses the unit to which averaged_score() rounds, from the averages over the examples so far.
  void update_rounding_unit() { unit_ = unit_of_averages(); }
  // Scores with the rounded averages. Sums of multiples of the unit are exact, so an engine with these
  // weights makes the same decisions.
  std::span<const double> averaged_score(std::span<const std::int32_t> row);
  // Corrects a mistake on the row scored last: its conjunctions gain 1 for the correct class, and lose 1 for
  // the wrong one.
  void update(std::size_t correct, std::size_t wrong);
  // Adds an amount to the score that a row gives to a class.
  void add(std::span<const std::int32_t> row, std::size_t to, float amount);
  // Continues with the averages as weights; later averages are over later examples.
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
  // Key and number of updates are stored together, because both are read in each lookup.
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
  LargeVector<float> corrections_;  // sums of changes times their example numbers; rounding errors of
                                    // averages are about 1e-7
  std::size_t used_ = 0;
  // For the row scored last.
  std::vector<Key> row_keys_;
  std::vector<std::size_t> places_;
  std::vector<float> scores_;
  std::vector<double> averaged_scores_;
};

}  // namespace unkernel::parsing
