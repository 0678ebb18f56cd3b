#include "unkernel/cutplane/binned_pairs.hpp"

#include <algorithm>
#include <cmath>

namespace unkernel::cutplane {
namespace {

constexpr std::size_t most_blocks = 256;
constexpr double largest_table = 1 << 20;  // entries

}  // namespace

std::vector<RankBlock> rank_blocks(std::span<const std::int32_t> ascending_ranks) {
  std::size_t distinct = ascending_ranks.empty() ? 0 : 1;
  for (std::size_t k = 1; k < ascending_ranks.size(); ++k)
    distinct += ascending_ranks[k] != ascending_ranks[k - 1];
  const std::size_t min_rows = distinct <= most_blocks ? 1 : ascending_ranks.size() / most_blocks;
  std::vector<RankBlock> blocks;
  for (std::size_t begin = 0; begin < ascending_ranks.size();) {
    std::size_t end = begin + 1;
    const auto belongs_to_block = [&] {
      return ascending_ranks[end] == ascending_ranks[end - 1] || end - begin < min_rows;
    };
    while (end < ascending_ranks.size() && belongs_to_block()) ++end;
    blocks.push_back({begin, end, ascending_ranks[begin] != ascending_ranks[end - 1]});
    begin = end;
  }
  return blocks;
}

bool BinnedPairs::prepare(std::span<const RankBlock> blocks, std::span<const double> scores,
                          std::span<const double> weights, std::int64_t bins_per_unit) {
  blocks_ = blocks;
  bins_per_unit_ = bins_per_unit;
  const auto [lowest, highest] = std::ranges::minmax(scores);
  lowest_ = lowest;
  const double bins = std::floor((highest - lowest) * static_cast<double>(bins_per_unit)) + 1.0;
  if (!(bins * static_cast<double>(blocks.size() + 1) <= largest_table)) return false;
  bins_ = static_cast<std::size_t>(bins);
  stride_ = bins_ + 1;
  count(scores, weights);
  accumulate();
  return true;
}

void BinnedPairs::count(std::span<const double> scores, std::span<const double> weights) {
  bin_.resize(scores.size());
  table_.assign((blocks_.size() + 1) * stride_, 0.0);
  const auto scale = static_cast<double>(bins_per_unit_);
  const auto last = static_cast<std::uint32_t>(bins_ - 1);
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    double* const counts = row(b + 1) + 1;
    for (std::size_t k = blocks_[b].begin; k < blocks_[b].end; ++k) {
      bin_[k] = std::min(static_cast<std::uint32_t>((scores[k] - lowest_) * scale), last);
      counts[bin_[k]] += weights[k];
    }
  }
}

// Turns counts into cumulative counts, and sums the pairs that are exactly k bins apart.
void BinnedPairs::accumulate() {
  const auto margin = static_cast<std::size_t>(bins_per_unit_);
  double ambiguous = 0.0;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const double* const lower = row(b);
    double* const counts = row(b + 1);
    for (std::size_t x = margin + 1; x <= bins_; ++x)
      ambiguous += counts[x] * (lower[x - margin] - lower[x - margin - 1]);
    double sum = 0.0;
    for (std::size_t x = 1; x <= bins_; ++x) {
      sum += counts[x];
      counts[x] = lower[x] + sum;
    }
  }
  uncertainty_ = ambiguous / static_cast<double>(bins_per_unit_);
}

double BinnedPairs::coefficients(std::span<const double> weights, std::span<double> result) const {
  const auto margin = static_cast<std::size_t>(bins_per_unit_);
  const double* const all_rows = row(blocks_.size());
  double total = 0.0;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const double* const lower = row(b);
    const double* const up_to_block = row(b + 1);
    const double all_lower = lower[bins_];
    for (std::size_t k = blocks_[b].begin; k < blocks_[b].end; ++k) {
      const std::size_t bin = bin_[k];
      // Lower rows up to bin - k are in order, and so are higher rows from bin + k on.
      const double not_below = all_lower - (bin >= margin ? lower[bin - margin + 1] : 0.0);
      const std::size_t beyond = std::min(bin + margin, bins_);
      const double not_above = all_rows[beyond] - up_to_block[beyond];
      total += weights[k] * not_below;
      result[k] = weights[k] * (not_below - not_above);
    }
  }
  return total;
}

}  // namespace unkernel::cutplane
