// The step of an expansion that lists the conjunctions of the trie.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/engines/conjunctions/expansion_task.hpp"
#include "unkernel/engines/conjunctions/table_builder.hpp"

namespace unkernel::engines {

// Lists the conjunctions of an owner depth first. At each node, distributes the support vectors that contain
// the node's conjunction over its partners: the ranks of each vector below the smallest rank of the
// conjunction.
class OwnerExpander {
 public:
  OwnerExpander(const ExpansionTask& task, std::size_t used, TrieWriter& writer)
      : task_(task), writer_(writer), weights_(task.scores), positive_(task.scores), negative_(task.scores) {
    for (auto& level : levels_) level.slot_of.assign(used, 0);
  }

  void expand(Rank owner) {
    const auto& vectors = task_.vectors;
    std::vector<Occurrence>& node = levels_[0].occurrences;
    node.clear();
    for (std::uint32_t h = vectors.owner_begins[owner]; h < vectors.owner_begins[owner + 1]; ++h) {
      const std::uint32_t place = vectors.places[h];
      node.push_back({vectors.holders[h], place + (task_.sets() ? 0 : 1), task_.value(place)});
    }
    path_[0] = owner;
    visit<1>(node, 1, 1);
  }

 private:
  struct Occurrence {
    std::uint32_t vector;
    std::uint32_t end;  // partners come before this position
    double product;     // of the values of the node's features
  };
  struct Level {
    std::vector<Occurrence> occurrences;  // partner by partner
    std::vector<Rank> partners;
    std::vector<std::uint32_t> slot_of;  // by rank: the number of occurrences, then a position
    std::vector<std::uint32_t> ends;     // of the occurrences of each partner
    std::vector<double> sums;            // of leaves: partners x scores
  };

  // Visits a node of `Size` features. In its monomial, `run` is the exponent of the last feature, and
  // `repeats` the product of the factorials of all exponents.
  template <int Size>
  void visit(std::span<const Occurrence> node, int repeats, int run) {
    const double constant = task_.constant(Size, repeats);
    std::fill(positive_.begin(), positive_.end(), 0.0);
    std::fill(negative_.begin(), negative_.end(), 0.0);
    for (const Occurrence& occurrence : node) add_terms(occurrence);
    for (std::size_t s = 0; s < task_.scores; ++s) weights_[s] = constant * (positive_[s] - negative_[s]);
    if (task_.pruning.keeps(weights_.data())) writer_.add(path_.data(), Size, weights_.data());
    if constexpr (Size < most_degree) {
      if (Size == task_.plan.map.degree ||
          !task_.pruning.can_keep(positive_.data(), negative_.data(), Size + 1))
        return;
      distribute(Size, node);
      Level& level = levels_[Size];
      if (Size + 1 == task_.plan.map.degree && !task_.pruning.is_active())
        return write_leaves(Size, repeats, run, level);
      std::uint32_t begin = 0;
      for (std::size_t p = 0; p < level.partners.size(); ++p) {
        path_[Size] = level.partners[p];
        const int next_run = path_[Size] == path_[Size - 1] ? run + 1 : 1;
        visit<Size + 1>(std::span(level.occurrences).subspan(begin, level.ends[p] - begin),
                        repeats * next_run, next_run);
        begin = level.ends[p];
      }
    }
  }

  void add_terms(const Occurrence& occurrence) {
    const double* b = task_.coefficients(occurrence.vector);
    for (std::size_t s = 0; s < task_.scores; ++s) {
      const double term = b[s] * occurrence.product;
      (term > 0.0 ? positive_ : negative_)[s] += std::abs(term);
    }
  }

  // Finds the partners of a node and, unless the partners are leaves, the occurrences of each partner.
  void distribute(int size, std::span<const Occurrence> node) {
    Level& level = levels_[static_cast<std::size_t>(size)];
    const auto& items = task_.vectors.items;
    const auto& begins = task_.vectors.begins;
    level.partners.clear();
    for (const Occurrence& o : node) {
      for (std::uint32_t k = begins[o.vector]; k < o.end; ++k) {
        if (level.slot_of[items[k]]++ == 0) level.partners.push_back(items[k]);
      }
    }
    std::sort(level.partners.begin(), level.partners.end());
    if (size + 1 == task_.plan.map.degree && !task_.pruning.is_active()) return sum_leaves(level, node);
    level.ends.clear();
    std::uint32_t total = 0;
    for (const Rank partner : level.partners) {
      const std::uint32_t count = level.slot_of[partner];
      level.slot_of[partner] = total;
      total += count;
      level.ends.push_back(total);
    }
    level.occurrences.resize(total);
    for (const Occurrence& o : node) {
      for (std::uint32_t k = begins[o.vector]; k < o.end; ++k) {
        level.occurrences[level.slot_of[items[k]]++] = {o.vector, k + (task_.sets() ? 0 : 1),
                                                        o.product * task_.value(k)};
      }
    }
    for (const Rank partner : level.partners) level.slot_of[partner] = 0;
  }

  // Sums the coefficients of partners that cannot be extended. They need no lists of occurrences.
  void sum_leaves(Level& level, std::span<const Occurrence> node) {
    const std::size_t scores = task_.scores;
    level.sums.assign(level.partners.size() * scores, 0.0);
    for (std::size_t p = 0; p < level.partners.size(); ++p)
      level.slot_of[level.partners[p]] = static_cast<std::uint32_t>(p);
    for (const Occurrence& o : node) {
      const double* b = task_.coefficients(o.vector);
      for (std::uint32_t k = task_.vectors.begins[o.vector]; k < o.end; ++k) {
        double* sum = level.sums.data() + level.slot_of[task_.vectors.items[k]] * scores;
        const double product = o.product * task_.value(k);
        for (std::size_t s = 0; s < scores; ++s) sum[s] += b[s] * product;
      }
    }
    for (const Rank partner : level.partners) level.slot_of[partner] = 0;
  }

  void write_leaves(int size, int repeats, int run, Level& level) {
    const auto depth = static_cast<std::size_t>(size);
    for (std::size_t p = 0; p < level.partners.size(); ++p) {
      path_[depth] = level.partners[p];
      const double constant =
          task_.constant(size + 1, path_[depth] == path_[depth - 1] ? repeats * (run + 1) : repeats);
      for (std::size_t s = 0; s < task_.scores; ++s)
        weights_[s] = constant * level.sums[p * task_.scores + s];
      writer_.add(path_.data(), depth + 1, weights_.data());
    }
  }

  const ExpansionTask& task_;
  TrieWriter& writer_;
  std::array<Level, most_degree> levels_;
  std::array<Rank, most_degree> path_ = {};
  std::vector<double> weights_, positive_, negative_;
};

}  // namespace unkernel::engines
