// The first engine: the weights of a conjunction model, ready to be looked up.
//
// The conjunctions of the most frequent features (the first numbers, see ConjunctionIndex) lie in a
// dense table; the others, of which few exist, in a hash table. All classes of a conjunction stand
// together, so that they cost one look-up.
//
// Memory   8 bytes x classes per conjunction in the dense part, 24 to 48 + 8 x classes in the other.
// Query    one look-up per conjunction of the row: C(|x| + d, d) of them at the most.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/data/csr.hpp"
#include "unkernel/engines/conjunction_index.hpp"
#include "unkernel/engines/feature_map.hpp"

namespace unkernel::engines {

struct ConjunctionWeights {
  Basis basis;
  FeatureMap map;
  std::int64_t features;                   // columns of an input row
  std::span<const std::int64_t> columns;   // rank -> column
  std::span<const std::uint64_t> keys;     // ascending, without the constant's
  std::span<const double> weights;         // keys x scores
  std::span<const double> constants;       // scores
};

// What one thread needs to score rows; kept from row to row.
struct ConjunctionWorker {
  std::vector<std::int32_t> ranks;
  std::vector<double> values;
  std::vector<std::pair<std::int32_t, double>> entries;
  bool all_ones = true;
};

class ConjunctionEngine {
 public:
  // Checks everything it will rely on later; throws std::invalid_argument.
  explicit ConjunctionEngine(const ConjunctionWeights& weights);

  std::size_t scores() const { return constants_.size(); }
  std::int64_t features() const { return features_; }
  std::size_t bytes() const;

  // Rows x scores, into `out`. Any number of threads gives the same result.
  template <class Index>
  void score(const data::CsrView<Index, double>& rows, std::span<double> out, int threads) const;

 private:
  struct Slot {
    Key key;
    std::uint64_t place;  // in tail_weights_, in units of scores()
  };

  void check(const ConjunctionWeights& weights) const;
  void number_columns(const ConjunctionWeights& weights);
  void choose_head(const ConjunctionWeights& weights);
  void fill(const ConjunctionWeights& weights);
  void insert(Key key, std::uint64_t place);
  const double* find(Key key) const;
  std::int32_t rank_of(std::int64_t column) const;

  template <class Index>
  void load_row(const data::CsrView<Index, double>& rows, std::int64_t row, ConjunctionWorker& worker) const;
  void score_row(const ConjunctionWorker& worker, double* out) const;
  double dense_score(const ConjunctionWorker& worker) const;
  template <class Factors>
  void general_score(const ConjunctionWorker& worker, const Factors& factors, double* out) const;
  void add(Key key, double factor, double* out) const;

  ConjunctionIndex index_;
  FeatureMap map_;
  SetFactors set_factors_;
  std::int64_t features_;
  std::vector<double> constants_;
  std::vector<std::int32_t> rank_of_column_;                             // where the columns are few
  std::vector<std::pair<std::int64_t, std::int32_t>> ranked_columns_;    // else, sorted
  std::vector<Key> blocks_;
  std::uint64_t head_ranks_ = 0;
  Key head_keys_ = 1;
  LargeArray<double> head_;
  std::vector<Slot> slots_;
  std::vector<double> tail_weights_;
};

}  // namespace unkernel::engines
