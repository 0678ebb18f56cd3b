#include "unkernel/poly/split_rows.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <variant>

#include "unkernel/base/parallel.hpp"
#include "unkernel/poly/stored_rows.hpp"

namespace unkernel::poly {
namespace {

// The table of R has at most this many values, so that it fits into the cache.
constexpr std::int64_t most_codes = std::int64_t{1} << 20;

std::span<const std::int32_t> features_of(const DistinctRows& examples, std::int64_t i) {
  const auto first = static_cast<std::size_t>(examples.offsets[static_cast<std::size_t>(i)]);
  return std::span(examples.features).subspan(first, static_cast<std::size_t>(examples.row_size(i)));
}

// Returns how many features of row i are common, which means below `head`. They come first in the row.
std::int64_t common_size(const DistinctRows& examples, std::int64_t i, std::int64_t head) {
  const auto features = features_of(examples, i);
  return std::ranges::lower_bound(features, head) - features.begin();
}

// The largest numbers of common and rare features that two rows can share. Encodes such a pair of numbers.
struct Overlaps {
  Overlaps(const DistinctRows& examples, std::int64_t head) {
    for (std::int64_t i = 0; i < examples.rows(); ++i) {
      const std::int64_t size = common_size(examples, i, head);
      common = std::max(common, size);
      rare = std::max(rare, examples.row_size(i) - size);
    }
  }

  std::int64_t codes() const { return (common + 1) * (rare + 1); }
  std::int64_t code(std::int64_t shared_common, std::int64_t shared_rare) const {
    return shared_rare * (common + 1) + shared_common;
  }
  int code_bits() const { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(codes() - 1))); }
  bool fits_into_bits(int bits, std::int64_t rows) const {
    return code_bits() + static_cast<int>(
                             std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(rows, 1)))) <=
           bits;
  }

  std::int64_t common = 0;
  std::int64_t rare = 0;
};

std::vector<std::int64_t> frequencies(const DistinctRows& examples) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(examples.used_features()), 0);
  for (const std::int32_t f : examples.features) ++counts[static_cast<std::size_t>(f)];
  return counts;
}

// Estimates the number of pairs of rows that share a rare feature (rank `head` or above). Counts a pair once
// per shared feature, and includes pairs of a row with itself.
double estimate_rare_pairs(std::span<const std::int64_t> counts, std::int64_t head) {
  double pairs = 0.0;
  for (const std::int64_t count : counts.subspan(static_cast<std::size_t>(head))) {
    pairs += static_cast<double>(count) * static_cast<double>(count);
  }
  return pairs;
}

SplitPlan make_plan(const DistinctRows& examples, std::span<const std::int64_t> counts, int degree,
                    int problems, std::int64_t head) {
  const kernels::ConjunctionIndex index(degree, kernels::Basis::sets);
  const auto rows = static_cast<double>(examples.rows());
  const Overlaps overlaps(examples, head);
  SplitPlan plan;
  plan.head = head;
  plan.has_wide_pairs = !overlaps.fits_into_bits(32, examples.rows());
  for (std::int64_t i = 0; i < examples.rows(); ++i) {
    plan.entries += static_cast<double>(mapped_size(degree, true, common_size(examples, i, head)));
  }
  plan.pairs = std::min(estimate_rare_pairs(counts, head), rows * rows);
  const double vectors = std::max(problems, 1);
  const double features = 12.0 * static_cast<double>(examples.features.size());  // bytes, in rows and model
  const auto table = static_cast<double>(index.count(static_cast<std::uint64_t>(head)));
  if (overlaps.codes() <= most_codes) {
    plan.bytes = 8.0 * vectors * (table + 2.0 * rows) + (plan.has_wide_pairs ? 8.0 : 4.0) * plan.pairs +
                 2.0 * features;
  }
  return plan;
}

// Estimates the time of a pass, in units of one entry. A pair takes less time than an entry, because only
// steps visit pairs, in contiguous memory.
double estimate_time(const SplitPlan& plan) {
  constexpr double time_of_pair = 0.3;
  return plan.entries + time_of_pair * plan.pairs;
}

// Lists the rows of each rare feature, by rank.
struct Postings {
  Postings(const DistinctRows& examples, std::int64_t head) : first(head) {
    offsets.assign(static_cast<std::size_t>(examples.used_features() - head) + 2, 0);
    for (const std::int32_t f : examples.features) {
      if (f >= head) ++offsets[static_cast<std::size_t>(f - head) + 2];
    }
    for (std::size_t k = 1; k < offsets.size(); ++k) offsets[k] += offsets[k - 1];
    rows.resize(static_cast<std::size_t>(offsets.back()));
    for (std::int64_t i = 0; i < examples.rows(); ++i) {
      for (const std::int32_t f : features_of(examples, i)) {
        if (f < head) continue;
        std::int64_t& next = offsets[static_cast<std::size_t>(f - head) + 1];
        rows[static_cast<std::size_t>(next++)] = static_cast<std::int32_t>(i);
      }
    }
    offsets.pop_back();
  }

  std::span<const std::int32_t> of(std::int32_t rank) const {
    const auto k = static_cast<std::size_t>(rank - first);
    return std::span(rows).subspan(static_cast<std::size_t>(offsets[k]),
                                   static_cast<std::size_t>(offsets[k + 1] - offsets[k]));
  }

  std::int64_t first;
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> rows;
};

// Finds the rows that share rare features with a given row, and counts the shared features.
class Neighbours {
 public:
  Neighbours(const DistinctRows& examples, const Postings& postings)
      : examples_(examples), postings_(postings), shared_(static_cast<std::size_t>(examples.rows()), 0) {}

  std::int64_t count(std::int64_t i) {
    std::int64_t count = 0;
    for_each(i, [&](std::int32_t, std::int64_t) { ++count; }, [](std::int32_t) {});
    return count;
  }

  // Calls visit(row, number of shared rare features), in an order that depends only on the data. Calls
  // prefetch(row) some visits earlier.
  template <class Visit, class Prefetch>
  void for_each(std::int64_t i, const Visit& visit, const Prefetch& prefetch) {
    for (const std::int32_t f : features_of(examples_, i)) {
      if (f < postings_.first) continue;
      for (const std::int32_t j : postings_.of(f)) {
        if (shared_[static_cast<std::size_t>(j)]++ == 0) neighbours_.push_back(j);
      }
    }
    for (std::size_t k = 0; k < neighbours_.size(); ++k) {
      prefetch(neighbours_[std::min(k + look_ahead, neighbours_.size() - 1)]);
      visit(neighbours_[k], std::exchange(shared_[static_cast<std::size_t>(neighbours_[k])], 0));
    }
    neighbours_.clear();
  }

 private:
  static constexpr std::size_t look_ahead = 24;  // in visits

  const DistinctRows& examples_;
  const Postings& postings_;
  std::vector<std::int32_t> shared_;
  std::vector<std::int32_t> neighbours_;
};

// Stores the common features of all rows as contiguous bit sets, so that counting the features that two rows
// share reads one or two cache lines per row.
class CommonBits {
 public:
  CommonBits(const DistinctRows& examples, std::int64_t head)
      : words_((static_cast<std::size_t>(head) + 63) / 64),
        bits_(words_ * static_cast<std::size_t>(examples.rows()), 0) {
    for (std::int64_t i = 0; i < examples.rows(); ++i) {
      std::uint64_t* row = bits_.data() + static_cast<std::size_t>(i) * words_;
      for (const std::int32_t f : features_of(examples, i)) {
        if (f < head) row[f / 64] |= std::uint64_t{1} << (f % 64);
      }
    }
  }

  void prefetch(std::int32_t i) const {
    constexpr std::size_t line = 8;  // words
    for (std::size_t k = 0; k < words_ + line; k += line) __builtin_prefetch(of(i) + k);
  }
  std::int64_t shared(std::int64_t i, std::int64_t j) const {
    const std::uint64_t* a = of(i);
    const std::uint64_t* b = of(j);
    std::int64_t count = 0;
    for (std::size_t k = 0; k < words_; ++k) count += std::popcount(a[k] & b[k]);
    return count;
  }

 private:
  const std::uint64_t* of(std::int64_t i) const {
    return bits_.data() + static_cast<std::size_t>(i) * words_;
  }

  std::size_t words_;
  LargeVector<std::uint64_t> bits_;
};

std::vector<double> values_by_code(const kernels::FeatureMap& map, const Overlaps& overlaps) {
  const auto kernel = [&](std::int64_t shared) {
    const auto c = static_cast<double>(shared);
    return map.kernel(c, c, c);
  };
  std::vector<double> values(static_cast<std::size_t>(overlaps.codes()));
  for (std::int64_t rare = 0; rare <= overlaps.rare; ++rare) {
    for (std::int64_t common = 0; common <= overlaps.common; ++common) {
      values[static_cast<std::size_t>(overlaps.code(common, rare))] = kernel(common + rare) - kernel(common);
    }
  }
  return values;
}

}  // namespace

SplitPlan plan_split(const DistinctRows& examples, int degree, int problems, double memory) {
  const std::vector<std::int64_t> counts = frequencies(examples);
  SplitPlan best, smallest;
  bool has_fitting_plan = false;
  constexpr double step = 1.25;
  constexpr double largest_head = 1e5;
  for (double head_size = 16.0; head_size < largest_head * step; head_size *= step) {
    const std::int64_t head = std::min(static_cast<std::int64_t>(head_size), examples.used_features());
    const SplitPlan plan = make_plan(examples, counts, degree, problems, head);
    if (plan.bytes < smallest.bytes) smallest = plan;
    if ((memory <= 0.0 || plan.bytes <= memory) &&
        (!has_fitting_plan || estimate_time(plan) < estimate_time(best))) {
      best = plan;
      has_fitting_plan = true;
    }
    if (head == examples.used_features()) break;
  }
  return has_fitting_plan ? best : smallest;
}

DistinctRows common_part(const DistinctRows& examples, std::int64_t head) {
  DistinctRows common;
  common.offsets.push_back(0);
  for (std::int64_t i = 0; i < examples.rows(); ++i) {
    const std::int32_t* first = examples.features.data() + examples.offsets[static_cast<std::size_t>(i)];
    common.features.insert(common.features.end(), first, first + common_size(examples, i, head));
    common.offsets.push_back(static_cast<std::int64_t>(common.features.size()));
  }
  common.hashes = examples.hashes;
  common.columns.assign(examples.columns.begin(), examples.columns.begin() + head);
  return common;
}

RareKernel::RareKernel(const DistinctRows& examples, const kernels::FeatureMap& map, const SplitPlan& plan,
                       int threads, const Monitor& monitor) {
  const Overlaps overlaps(examples, plan.head);
  code_bits_ = overlaps.code_bits();
  values_ = values_by_code(map, overlaps);
  const Postings postings(examples, plan.head);
  const CommonBits common(examples, plan.head);
  const auto for_each_row = [&](const auto& work) {
    parallel_ranges(threads, examples.rows(), row_grain, [&](std::int64_t first, std::int64_t last) {
      Neighbours neighbours(examples, postings);
      for (std::int64_t i = first; i < last; ++i) {
        if ((i & 63) == 0) monitor.throw_if_stopped();
        work(i, neighbours);
      }
    });
  };
  offsets_.assign(static_cast<std::size_t>(examples.rows()) + 1, 0);
  for_each_row([&](std::int64_t i, Neighbours& neighbours) {
    offsets_[static_cast<std::size_t>(i) + 1] = neighbours.count(i);
  });
  for (std::size_t i = 1; i < offsets_.size(); ++i) offsets_[i] += offsets_[i - 1];
  if (plan.has_wide_pairs) words_.emplace<LargeVector<std::uint64_t>>();
  std::visit(
      [&]<class Word>(LargeVector<Word>& words) {
        words.resize(static_cast<std::size_t>(offsets_.back()));
        for_each_row([&](std::int64_t i, Neighbours& neighbours) {
          Word* out = words.data() + offsets_[static_cast<std::size_t>(i)];
          const auto store = [&](std::int32_t j, std::int64_t rare) {
            *out++ = static_cast<Word>(j) << code_bits_ |
                     static_cast<Word>(overlaps.code(common.shared(i, j), rare));
          };
          neighbours.for_each(i, store, [&](std::int32_t j) { common.prefetch(j); });
        });
      },
      words_);
}

void RareKernel::axpy(std::int64_t i, double step, double* scores) const {
  std::visit(
      [&]<class Word>(const LargeVector<Word>& words) {
        const Word mask = (Word{1} << code_bits_) - 1;
        const Word* last = words.data() + offsets_[static_cast<std::size_t>(i) + 1];
        for (const Word* word = words.data() + offsets_[static_cast<std::size_t>(i)]; word < last; ++word) {
          scores[*word >> code_bits_] += step * values_[*word & mask];
        }
      },
      words_);
}

std::unique_ptr<StoredRows> store_split(const DistinctRows& examples, const kernels::FeatureMap& map,
                                        const SplitPlan& plan, int threads, const Monitor& monitor) {
  if (map.degree == 2) return std::make_unique<StoredIn<SplitRows<2>>>(examples, map, plan, threads, monitor);
  return std::make_unique<StoredIn<SplitRows<3>>>(examples, map, plan, threads, monitor);
}

}  // namespace unkernel::poly
