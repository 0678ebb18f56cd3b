// Clusters words that have similar neighbours: the exchange algorithm (Kneser & Ney 1993; Martin, Liermann &
// Ney 1998).
//
// Problem  Words w have clusters c(w). In a class bigram model, p(w | v) = p(w | c(w)) p(c(w) | c(v)), a text
//          has the log-likelihood
//              sum over clusters a, b of f(N(a, b)) - 2 sum over clusters a of f(N(a)) + constant,
//          where N counts occurrences and f(n) = n log n.
// Method   Each word in turn moves to the cluster that maximises the log-likelihood, until few words move.
// Cost     For a word with neighbours in k clusters: k times the number of clusters.
// Bytes    16 per pair of clusters, 16 per distinct pair of neighbouring words.
//
// The result depends only on the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"

namespace unkernel::parsing {

constexpr std::size_t most_clusters = 2000;

class ExchangeClusters {
 public:
  // `words` is a text of word numbers below `vocabulary`; more frequent words have smaller numbers. Tokens
  // that belong to no cluster, such as rare words and the ends of sentences, have the number `vocabulary` + k
  // for their kind k. Throws std::invalid_argument if a number is out of range.
  ExchangeClusters(std::span<const std::int32_t> words, std::int32_t vocabulary, std::int32_t other_kinds,
                   std::size_t clusters);

  // Visits all words once, and returns how many moved to another cluster.
  std::int64_t run_epoch(const Monitor& monitor);
  // Returns the cluster of each word of the vocabulary.
  std::span<const std::int32_t> clusters() const {
    return std::span(cluster_of_).first(static_cast<std::size_t>(vocabulary_));
  }

 private:
  using Count = std::int64_t;

  struct Neighbour {
    std::int32_t word;
    std::int32_t times;
  };
  // The neighbours of all words on one side, word by word.
  struct Neighbours {
    std::vector<std::int64_t> begins;
    std::vector<Neighbour> all;

    std::span<const Neighbour> of(std::int32_t word) const {
      const auto w = static_cast<std::size_t>(word);
      return std::span(all).subspan(static_cast<std::size_t>(begins[w]),
                                    static_cast<std::size_t>(begins[w + 1] - begins[w]));
    }
  };
  // How many neighbours a word has on one side, by cluster of the neighbour.
  struct Side {
    std::vector<Count> times;            // by cluster
    std::vector<std::int32_t> clusters;  // clusters with a nonzero count
  };

  static Neighbours count_neighbours(std::span<const std::int32_t> words, std::size_t vocabulary, int step);
  void add_neighbours(std::int32_t word, const Neighbours& neighbours, Side& side);
  bool move(std::int32_t word);
  // Adds the word that is moving to the counts of a cluster (sign 1), or removes it (sign -1).
  void count(std::int32_t cluster, Count sign);
  void list_gains();
  Count& pairs(std::int32_t first, std::int32_t second) {
    return pairs_[static_cast<std::size_t>(first) * classes_ + static_cast<std::size_t>(second)];
  }
  Count& reversed(std::int32_t first, std::int32_t second) {
    return reversed_[static_cast<std::size_t>(second) * classes_ + static_cast<std::size_t>(first)];
  }
  double f(Count n) const;

  std::int32_t vocabulary_;
  std::size_t clusters_;
  std::size_t classes_;  // clusters, and one class for each kind of other tokens
  Neighbours after_, before_;
  std::vector<Count> times_;              // of each word
  std::vector<std::int32_t> cluster_of_;  // of each word, then of each kind of other tokens
  std::vector<Count> totals_;             // N(a)
  std::vector<Count> pairs_;              // N(a, b), by a
  std::vector<Count> reversed_;           // N(a, b), by b
  std::vector<double> small_f_;           // f of small numbers
  // The neighbours of the word that is moving, on each side.
  Side right_, left_;
  Count self_pairs_ = 0;  // how often the word follows itself
  Count occurrences_ = 0;
  std::vector<double> gains_;
};

}  // namespace unkernel::parsing
