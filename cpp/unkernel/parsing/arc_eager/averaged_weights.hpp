// Weights of conjunctions, learnt online: the averaged perceptron (Freund & Schapire 1999, Collins 2002) on
// the polynomial map.
//
// A row is a set of columns; its subsets of at most `degree` columns are looked up in a hash table and add up
// to a score for each class. After a mistake, the conjunctions of the row gain 1 for the right class and lose
// 1 for the wrong one. The weights that count in the end are the averages over all examples and over several
// runs, which see them in different orders, rounded to multiples of a power of two that fit 16 bits: scores
// are in the tens, and what is left out is less than a hundredth. A conjunction takes part only once it has
// been corrected `min_updates` times (Goldberg & Elhadad 2011), and those that never get so far are not
// part of the model.
//
// An entry takes 16 bytes and 8 more a class, at a load of at most 2/3; scoring a row of k columns probes
// C(k,0) + .. + C(k,degree) times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/large_array.hpp"

namespace unkernel::parsing {

// Conjunctions as models want them: ranks, keys and weights as in kernels/conjunction_index.hpp.
struct ConjunctionWeights {
  std::vector<std::int64_t> columns;  // of each rank
  std::vector<std::uint64_t> keys;    // ascending
  std::vector<double> weights;        // keys x classes
  std::vector<double> constants;
};

// The averages of one run; the keys are those of AveragedWeights, ascending. The constant, if there is one,
// has the key 0.
struct RunAverages {
  std::vector<std::uint64_t> keys;
  std::vector<double> weights;  // keys x classes
};

// The mean over some runs of what chooses among these classes. Two classes have one weight, positive for the
// second.
ConjunctionWeights mean_of(std::span<const RunAverages> runs, int degree, std::size_t classes);

class AveragedWeights {
 public:
  static constexpr std::int32_t most_columns = (1 << 21) - 1;  // three of them fit a key

  // Of the columns from `core` on, a conjunction has one at most.
  AveragedWeights(int degree, std::size_t classes, std::uint32_t min_updates, std::int32_t core);

  std::size_t classes() const { return classes_; }
  // One more example has been seen; averages go over them.
  void next_example() { ++examples_; }
  // With the weights as they are now. The row is remembered for update().
  std::span<const float> score(std::span<const std::int32_t> row);
  // From here on, averaged_score() goes by the averages of the examples so far.
  void settle_averages() { unit_ = unit_of_averages(); }
  // With the averages; sums of short numbers are exact, so that an engine of them decides alike.
  std::span<const double> averaged_score(std::span<const std::int32_t> row);
  void update(std::size_t right, std::size_t wrong);

  RunAverages averages() const;
  std::size_t entries() const { return used_; }

 private:
  using Key = std::uint64_t;

  void list_keys(std::span<const std::int32_t> row);
  void find_places();
  std::size_t place_of(Key key) const;
  void grow();
  bool takes_part(std::size_t place) const { return entries_[place].updates >= min_updates_; }
  bool is_kept(std::size_t place) const { return entries_[place].key != free_place && takes_part(place); }
  double average(std::size_t weight) const;
  double unit_of_averages() const;

  static constexpr Key free_place = ~Key{0};
  // They lie together, as whoever finds a key asks at once whether it takes part.
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
  LargeVector<float>
      corrections_;  // each times the example it came with; rounding moves an average by some 1e-7 of it
  std::size_t used_ = 0;
  // Of the row that was scored last.
  std::vector<Key> row_keys_;
  std::vector<std::size_t> places_;
  std::vector<float> scores_;
  std::vector<double> averaged_scores_;
};

}  // namespace unkernel::parsing
