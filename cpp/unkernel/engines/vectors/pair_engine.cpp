#include "unkernel/engines/vectors/pair_engine.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "unkernel/base/add_multiple.hpp"
#include "unkernel/base/cpu.hpp"
#include "unkernel/engines/ranking.hpp"
#include "unkernel/engines/vectors/pair_scores.hpp"

namespace unkernel::engines {
namespace {

struct PairScratch {
  std::vector<double> sums;  // by class, then by the other class of a pair; zero except for touched classes
  std::vector<std::uint8_t> is_touched;     // by class
  std::vector<const double*> full_weights;  // weights of the row's features that have one weight per pair
  std::vector<double> full_values;
};

// Adds the weights of four features, multiplied by their values x, to the sums. Adding four features together
// loads and stores each sum once instead of four times.
UNKERNEL_CLONES void add_four_features(const double* const* weights, const double* x, double* sums,
                                       std::size_t count) {
  const double *w0 = weights[0], *w1 = weights[1], *w2 = weights[2], *w3 = weights[3];
  const double x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
  for (std::size_t k = 0; k < count; ++k) sums[k] += (x0 * w0[k] + x1 * w1[k]) + (x2 * w2[k] + x3 * w3[k]);
}

class PairEngine final : public EngineOf<PairEngine, PairScratch> {
 public:
  explicit PairEngine(const PairTables& tables)
      : tables_(tables),
        ranking_(tables.columns),
        full_ranks_(static_cast<Rank>(tables.whole.size() / tables.intercept.size())) {}

  std::size_t scores() const override { return tables_.intercept.size(); }
  std::size_t bytes() const override {
    return ranking_.bytes() + tables_.columns.size_bytes() + tables_.intercept.size_bytes() +
           tables_.whole.size_bytes() + tables_.block_begins.size_bytes() +
           tables_.block_classes.size_bytes() + tables_.blocks.size_bytes();
  }
  PairScratch make_scratch() const {
    const std::size_t classes = tables_.classes;
    return {std::vector<double>(classes * (classes - 1), 0.0), std::vector<std::uint8_t>(classes, 0), {}, {}};
  }

  template <class Index>
  void score_range(const RowRange<Index>& range, PairScratch& scratch, double* out) const {
    for (std::size_t row = range.first; row < range.last; ++row, out += scores())
      score_row(range[row], scratch, out);
  }

  template <class Index>
  void score_row(const SparseRow<Index>& row, PairScratch& scratch, double* out) const {
    std::copy(tables_.intercept.begin(), tables_.intercept.end(), out);
    scratch.full_weights.clear();
    scratch.full_values.clear();
    for (std::size_t k = 0; k < row.columns.size(); ++k) {
      const double x = row.values == nullptr ? 1.0 : row.values[k];
      const Rank rank = ranking_.of(row.columns[k]);
      if (rank == unknown) continue;
      if (rank < full_ranks_) {
        scratch.full_weights.push_back(tables_.whole.data() + rank * scores());
        scratch.full_values.push_back(x);
      } else {
        add_blocks(rank - full_ranks_, x, scratch);
      }
    }
    add_full_weights(scratch, out);
    add_sums(scratch, out);
  }

 private:
  std::size_t other_classes() const { return tables_.classes - 1; }

  void add_blocks(Rank rank, double x, PairScratch& scratch) const {
    for (std::uint32_t i = tables_.block_begins[rank]; i < tables_.block_begins[rank + 1]; ++i) {
      const std::size_t class_index = tables_.block_classes[i];
      scratch.is_touched[class_index] = 1;
      add_multiple(x, tables_.blocks.data() + i * other_classes(),
                   scratch.sums.data() + class_index * other_classes(), other_classes());
    }
  }

  // Processes blocks of pairs that stay in the cache while the weights of all features are added.
  void add_full_weights(const PairScratch& scratch, double* out) const {
    constexpr std::size_t max_pairs_at_once = 1024;
    for (std::size_t first = 0; first < scores(); first += max_pairs_at_once) {
      const std::size_t count = std::min(max_pairs_at_once, scores() - first);
      std::size_t k = 0;
      for (; k + 4 <= scratch.full_weights.size(); k += 4) {
        const double* four[4];
        for (std::size_t i = 0; i < 4; ++i) four[i] = scratch.full_weights[k + i] + first;
        add_four_features(four, scratch.full_values.data() + k, out + first, count);
      }
      for (; k < scratch.full_weights.size(); ++k)
        add_multiple(scratch.full_values[k], scratch.full_weights[k] + first, out + first, count);
    }
  }

  void add_sums(PairScratch& scratch, double* out) const {
    for (std::size_t c = 0; c < tables_.classes; ++c) {
      if (scratch.is_touched[c] == 0) continue;
      double* sums = scratch.sums.data() + c * other_classes();
      add_pair_sums(sums, c, tables_.classes, out);
      std::fill(sums, sums + other_classes(), 0.0);
      scratch.is_touched[c] = 0;
    }
  }

  PairTables tables_;
  Ranking ranking_;
  Rank full_ranks_;  // number of ranks with one weight per pair
};

void check_pairs(const PairTables& tables) {
  const std::size_t classes = tables.classes;
  const auto& begins = tables.block_begins;
  bool valid = classes >= 2 && classes <= (std::size_t{1} << 20) &&
               tables.intercept.size() == classes * (classes - 1) / 2 &&
               tables.whole.size() % tables.intercept.size() == 0;
  const std::size_t full_weights = valid ? tables.whole.size() / tables.intercept.size() : 0;
  valid = valid && full_weights <= tables.columns.size() &&
          begins.size() == tables.columns.size() - full_weights + 1 && begins.front() == 0 &&
          begins.back() == tables.block_classes.size() && std::is_sorted(begins.begin(), begins.end()) &&
          tables.blocks.size() == tables.block_classes.size() * (classes - 1);
  for (std::size_t i = 0; valid && i < tables.block_classes.size(); ++i)
    valid = tables.block_classes[i] < classes;
  if (!valid)
    throw std::invalid_argument("not a valid table of pairs of classes: the blocks do not fit the classes");
}

}  // namespace

std::unique_ptr<Engine> make_pair_engine(const PairTables& tables) {
  check_pairs(tables);
  return std::make_unique<PairEngine>(tables);
}

}  // namespace unkernel::engines
