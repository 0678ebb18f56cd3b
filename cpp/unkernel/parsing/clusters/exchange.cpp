#include "unkernel/parsing/clusters/exchange.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace unkernel::parsing {
namespace {

constexpr std::size_t table_size = std::size_t{1} << 16;
// A word moves only if this increases the log-likelihood by more than a rounding error.
constexpr double least_gain = 1e-6;

double n_log_n(double n) { return n > 0.0 ? n * std::log(n) : 0.0; }

}  // namespace

ExchangeClusters::ExchangeClusters(std::span<const std::int32_t> words, std::int32_t vocabulary,
                                   std::int32_t other_kinds, std::size_t clusters)
    : vocabulary_(vocabulary), clusters_(clusters) {
  if (clusters < 1 || clusters > most_clusters || vocabulary < 0 || other_kinds < 0 || other_kinds > 16)
    throw std::invalid_argument("there must be 1 to " + std::to_string(most_clusters) + " clusters");
  const std::int32_t end = vocabulary + other_kinds;
  if (std::ranges::any_of(words, [&](std::int32_t word) { return word < 0 || word >= end; }))
    throw std::invalid_argument("the number of a word is out of range");
  classes_ = clusters + static_cast<std::size_t>(other_kinds);
  after_ = count_neighbours(words, static_cast<std::size_t>(end), 1);
  before_ = count_neighbours(words, static_cast<std::size_t>(end), -1);
  for (std::int32_t word = 0; word < vocabulary; ++word)
    cluster_of_.push_back(std::min(word, static_cast<std::int32_t>(clusters) - 1));
  for (std::int32_t kind = 0; kind < other_kinds; ++kind)
    cluster_of_.push_back(static_cast<std::int32_t>(clusters) + kind);
  times_.assign(static_cast<std::size_t>(end), 0);
  totals_.assign(classes_, 0);
  pairs_.assign(classes_ * classes_, 0);
  reversed_.assign(classes_ * classes_, 0);
  for (std::size_t k = 0; k < words.size(); ++k) {
    const auto cluster_at = [&](std::size_t at) { return cluster_of_[static_cast<std::size_t>(words[at])]; };
    ++times_[static_cast<std::size_t>(words[k])];
    ++totals_[static_cast<std::size_t>(cluster_at(k))];
    if (k == 0) continue;
    ++pairs(cluster_at(k - 1), cluster_at(k));
    ++reversed(cluster_at(k - 1), cluster_at(k));
  }
  for (std::size_t n = 0; n < table_size; ++n) small_f_.push_back(n_log_n(static_cast<double>(n)));
  right_.times.assign(classes_, 0);
  left_.times.assign(classes_, 0);
  gains_.assign(clusters_, 0.0);
}

double ExchangeClusters::f(Count n) const {
  return n < static_cast<Count>(table_size) ? small_f_[static_cast<std::size_t>(n)]
                                            : n_log_n(static_cast<double>(n));
}

// Returns, for each word, the words that follow it (step 1) or precede it (step -1), with their counts.
ExchangeClusters::Neighbours ExchangeClusters::count_neighbours(std::span<const std::int32_t> words,
                                                                std::size_t vocabulary, int step) {
  std::vector<std::uint64_t> pairs_of_words;
  for (std::size_t k = 1; k < words.size(); ++k) {
    const auto first = static_cast<std::uint32_t>(words[step > 0 ? k - 1 : k]);
    const auto second = static_cast<std::uint32_t>(words[step > 0 ? k : k - 1]);
    pairs_of_words.push_back(std::uint64_t{first} << 32 | second);
  }
  std::ranges::sort(pairs_of_words);
  Neighbours neighbours;
  neighbours.begins.assign(vocabulary + 1, 0);
  for (std::size_t k = 0; k < pairs_of_words.size(); ++k) {
    if (k > 0 && pairs_of_words[k] == pairs_of_words[k - 1]) {
      ++neighbours.all.back().times;
      continue;
    }
    neighbours.all.push_back({static_cast<std::int32_t>(pairs_of_words[k] & 0xFFFFFFFF), 1});
    ++neighbours.begins[static_cast<std::size_t>(pairs_of_words[k] >> 32) + 1];
  }
  for (std::size_t word = 0; word < vocabulary; ++word)
    neighbours.begins[word + 1] += neighbours.begins[word];
  return neighbours;
}

std::int64_t ExchangeClusters::run_epoch(const Monitor& monitor) {
  std::int64_t moved = 0;
  for (std::int32_t word = 0; word < vocabulary_; ++word) {
    monitor.throw_if_stopped();
    moved += move(word);
  }
  return moved;
}

// Sums the counts of the neighbours by cluster. If a word is its own neighbour, self_pairs_ counts it
// instead.
void ExchangeClusters::add_neighbours(std::int32_t word, const Neighbours& neighbours, Side& side) {
  for (const std::int32_t cluster : side.clusters) side.times[static_cast<std::size_t>(cluster)] = 0;
  side.clusters.clear();
  self_pairs_ = 0;
  for (const Neighbour& neighbour : neighbours.of(word)) {
    if (neighbour.word == word) {
      self_pairs_ = neighbour.times;
      continue;
    }
    const std::int32_t cluster = cluster_of_[static_cast<std::size_t>(neighbour.word)];
    Count& times = side.times[static_cast<std::size_t>(cluster)];
    if (times == 0) side.clusters.push_back(cluster);
    times += neighbour.times;
  }
}

void ExchangeClusters::count(std::int32_t cluster, Count sign) {
  const auto add = [&](std::int32_t first, std::int32_t second, Count times) {
    pairs(first, second) += sign * times;
    reversed(first, second) += sign * times;
  };
  for (const std::int32_t other : right_.clusters)
    add(cluster, other, right_.times[static_cast<std::size_t>(other)]);
  for (const std::int32_t other : left_.clusters)
    add(other, cluster, left_.times[static_cast<std::size_t>(other)]);
  add(cluster, cluster, self_pairs_);
  totals_[static_cast<std::size_t>(cluster)] += sign * occurrences_;
}

bool ExchangeClusters::move(std::int32_t word) {
  add_neighbours(word, after_, right_);
  add_neighbours(word, before_, left_);
  occurrences_ = times_[static_cast<std::size_t>(word)];
  std::int32_t& cluster = cluster_of_[static_cast<std::size_t>(word)];
  count(cluster, -1);
  list_gains();
  const double most = std::ranges::max(gains_);
  const bool moves = most > gains_[static_cast<std::size_t>(cluster)] + least_gain;
  // Choose the first cluster whose gain differs from the largest gain by rounding errors only.
  const auto best = std::ranges::find_if(gains_, [&](double gain) { return gain >= most - least_gain; });
  if (moves) cluster = static_cast<std::int32_t>(best - gains_.begin());
  count(cluster, 1);
  return moves;
}

// Computes, for each cluster, how much the log-likelihood grows if the word, which is in no cluster, joins
// it. Pairs of the word with itself and with words of this cluster count once, not once per side.
void ExchangeClusters::list_gains() {
  for (std::size_t cluster = 0; cluster < clusters_; ++cluster)
    gains_[cluster] = -2.0 * (f(totals_[cluster] + occurrences_) - f(totals_[cluster]));
  for (const auto& [side, table] : {std::pair(&right_, &reversed_), std::pair(&left_, &pairs_)}) {
    for (const std::int32_t other : side->clusters) {
      const Count* known = table->data() + static_cast<std::size_t>(other) * classes_;
      const Count added = side->times[static_cast<std::size_t>(other)];
      for (std::size_t cluster = 0; cluster < clusters_; ++cluster)
        gains_[cluster] += f(known[cluster] + added) - f(known[cluster]);
    }
  }
  for (std::size_t cluster = 0; cluster < clusters_; ++cluster) {
    const Count known = pairs_[cluster * classes_ + cluster];
    const Count right = right_.times[cluster], left = left_.times[cluster];
    gains_[cluster] += f(known + right + left + self_pairs_) - f(known + right) - f(known + left) + f(known);
  }
}

}  // namespace unkernel::parsing
