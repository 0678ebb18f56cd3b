#include "unkernel/kernels/trees/tree_scores.hpp"

#include <algorithm>
#include <array>

#include "unkernel/base/at.hpp"
#include "unkernel/base/parallel.hpp"

namespace unkernel::kernels {
namespace {

constexpr std::int64_t rows_at_once = 64;
constexpr std::size_t columns_at_once = 2048;  // kernel values that fit into the L1 cache

// By node (or group): the right rows of a kernel matrix that contain it, with their weights.
struct Columns {
  struct Entry {
    std::int32_t column;
    double weight;
  };
  std::vector<std::int64_t> begins;
  std::vector<Entry> entries;

  std::span<const Entry> of(std::size_t i) const {
    const auto begin = static_cast<std::size_t>(begins[i]);
    return {entries.data() + begin, static_cast<std::size_t>(begins[i + 1]) - begin};
  }
};

// Lists the rows by place_of(node). If nodes of a row have the same place, their weights are added.
template <class PlaceOf>
Columns transpose(const TreeCounts& counts, std::span<const std::int32_t> chosen, std::size_t places,
                  const PlaceOf& place_of) {
  Columns columns;
  columns.begins.assign(places + 1, 0);
  std::vector<std::int32_t> last(places, -1);
  for (std::size_t c = 0; c < chosen.size(); ++c) {
    for (const NodeId node : counts.row(at(chosen[c])).nodes) {
      const std::size_t place = place_of(node);
      if (last[place] == static_cast<std::int32_t>(c)) continue;
      last[place] = static_cast<std::int32_t>(c);
      ++columns.begins[place + 1];
    }
  }
  for (std::size_t i = 0; i < places; ++i) columns.begins[i + 1] += columns.begins[i];
  columns.entries.resize(static_cast<std::size_t>(columns.begins.back()));
  std::vector<std::int64_t> next(columns.begins.begin(), columns.begins.end() - 1);
  std::ranges::fill(last, -1);
  for (std::size_t c = 0; c < chosen.size(); ++c) {
    const TreeRow row = counts.row(at(chosen[c]));
    for (std::size_t k = 0; k < row.nodes.size(); ++k) {
      const std::size_t place = place_of(row.nodes[k]);
      if (last[place] != static_cast<std::int32_t>(c)) {
        last[place] = static_cast<std::int32_t>(c);
        columns.entries[static_cast<std::size_t>(next[place]++)] = {static_cast<std::int32_t>(c), 0.0};
      }
      columns.entries[static_cast<std::size_t>(next[place] - 1)].weight += row.weights[k];
    }
  }
  return columns;
}

// Adds weighted dense rows to a row of kernel values. Adds four at a time, so that each sum is loaded and
// stored once per four rows.
class DenseSums {
 public:
  void add(const double* values, double weight) { terms_.push_back({values, weight}); }

  void flush(std::size_t size, double* sums) {
    while (terms_.size() % 4 != 0) terms_.push_back({terms_.back().values, 0.0});
    for (std::size_t t = 0; t < terms_.size(); t += 4) {
      const auto [v0, w0] = terms_[t];
      const auto [v1, w1] = terms_[t + 1];
      const auto [v2, w2] = terms_[t + 2];
      const auto [v3, w3] = terms_[t + 3];
      for (std::size_t i = 0; i < size; ++i) sums[i] += (w0 * v0[i] + w1 * v1[i]) + (w2 * v2[i] + w3 * v3[i]);
    }
    terms_.clear();
  }

 private:
  struct Term {
    const double* values;
    double weight;
  };
  std::vector<Term> terms_;
};

// Columns by group. A group that occurs in at least an eighth of all rows has a dense row.
class GroupColumns {
 public:
  GroupColumns() = default;
  GroupColumns(Columns columns, std::size_t rows) : columns_(std::move(columns)), rows_(rows) {
    const std::size_t groups = columns_.begins.size() - 1;
    dense_.assign(groups, -1);
    for (std::size_t group = 0; group < groups; ++group) {
      if (8 * columns_.of(group).size() < rows) continue;
      dense_[group] = static_cast<std::int32_t>(values_.size() / rows);
      values_.resize(values_.size() + rows, 0.0);
      for (const Columns::Entry& entry : columns_.of(group))
        values_[values_.size() - rows + at(entry.column)] = entry.weight;
    }
  }

  void add(std::size_t group, double weight, double* kernels, DenseSums& dense_sums) const {
    if (dense_[group] >= 0) {
      dense_sums.add(values_.data() + at(dense_[group]) * rows_, weight);
    } else {
      for (const Columns::Entry& entry : columns_.of(group)) kernels[entry.column] += weight * entry.weight;
    }
  }

 private:
  Columns columns_;
  std::size_t rows_ = 0;
  std::vector<std::int32_t> dense_;  // by group: index of its dense row, or -1
  std::vector<double> values_;
};

// Columns by node. Most nodes of large trees occur in one row only, which is stored directly.
class NodeColumns {
 public:
  NodeColumns() = default;
  explicit NodeColumns(Columns columns) : columns_(std::move(columns)) {
    for (std::size_t i = 0; i + 1 < columns_.begins.size(); ++i) {
      const auto entries = columns_.of(i);
      only_.push_back(entries.size() == 1 ? entries.front() : Columns::Entry{-1, 0.0});
    }
  }

  void add(std::size_t number, double excess, double* kernels) const {
    const Columns::Entry& only = only_[number];
    if (only.column >= 0) {
      kernels[only.column] += excess * only.weight;
    } else {
      for (const Columns::Entry& entry : columns_.of(number)) kernels[entry.column] += excess * entry.weight;
    }
  }

 private:
  Columns columns_;
  std::vector<Columns::Entry> only_;
};

// An index of some right rows of a kernel matrix.
struct GramBlock {
  GramBlock(const TreeKernel& kernel, const GramTask& task, std::span<const std::int32_t> chosen)
      : index(kernel, task.right_forest,
              nodes_of(task.right_order, task.right_forest.size(), task.right, chosen)),
        groups(index_groups(index, task.left_groups)) {
    const std::vector<std::int32_t> numbers = find_index_numbers(index, task.right_forest);
    by_node = NodeColumns(
        transpose(task.right, chosen, index.size(), [&](NodeId node) { return at(numbers[at(node)]); }));
    const auto group = [&](NodeId node) { return at(index.group_of_number(at(numbers[at(node)]))); };
    by_group = GroupColumns(transpose(task.right, chosen, index.group_count(), group), chosen.size());
  }

  TreeIndex index;
  std::vector<std::int32_t> groups;
  NodeColumns by_node;
  GroupColumns by_group;
};

// Accumulates the scores of a tree.
class Scores {
 public:
  Scores(const TreeWeights& weights, std::span<const double> tree_weights, double* sums)
      : weights_(weights), tree_weights_(tree_weights), sums_(sums) {}

  struct Node {
    void excess(std::int32_t, std::int32_t position, double value) {
      const double* node_weights = block_weights + at(position) * scores;
      for (std::size_t s = 0; s < scores; ++s) sums[s] += weight * value * node_weights[s];
    }
    const double* block_weights;
    double weight;
    double* sums;
    std::size_t scores;
  };

  Node begin(std::size_t i, std::int32_t group, double scale) {
    const double weight = tree_weights_[i] * scale;
    const double* group_weights = weights_.group_weights(group);
    for (std::size_t s = 0; s < weights_.scores(); ++s) sums_[s] += weight * group_weights[s];
    return {weights_.node_weights(weights_.index().block_begin(group)), weight, sums_, weights_.scores()};
  }
  void end(const Node&) {}

 private:
  const TreeWeights& weights_;
  std::span<const double> tree_weights_;
  double* sums_;
};

// Computes rows of a kernel matrix. Each thread needs its own object.
class GramWorker {
 public:
  GramWorker(const GramBlock& block, const Forest& left_forest, std::size_t columns)
      : block_(block), rows_(block.index, left_forest, block.groups), kernels_(columns) {}

  std::span<const double> kernels(const TreeRow& left, const Monitor& monitor) {
    std::ranges::fill(kernels_, 0.0);
    tree_weights_ = left.weights;
    rows_.visit(left.nodes, *this, monitor);
    dense_.flush(kernels_.size(), kernels_.data());
    return kernels_;
  }

  struct Node {
    void excess(std::int32_t, std::int32_t position, double value) {
      by_node->add(first + at(position), weight * value, kernels);
    }
    const NodeColumns* by_node;
    std::size_t first;
    double weight;
    double* kernels;
  };

  Node begin(std::size_t i, std::int32_t group, double scale) {
    const double weight = tree_weights_[i] * scale;
    block_.by_group.add(at(group), weight, kernels_.data(), dense_);
    return {&block_.by_node, block_.index.block_begin(group), weight, kernels_.data()};
  }
  void end(const Node&) {}

 private:
  const GramBlock& block_;
  TreeRows rows_;
  DenseSums dense_;
  std::vector<double> kernels_;
  std::span<const double> tree_weights_;
};

}  // namespace

TreeScorer::TreeScorer(const TreeWeights& weights, const Forest& forest, std::span<const std::int32_t> groups)
    : weights_(weights), scorer_(std::in_place_type<TreeRows>, weights.index(), forest, groups) {
  if (weights.index().kernel().by_production()) scorer_.emplace<ProductionScorer>(weights, forest, groups);
}

void TreeScorer::use(const Forest& forest, std::span<const std::int32_t> groups) {
  std::visit([&](auto& scorer) { scorer.use(forest, groups); }, scorer_);
}

void TreeScorer::add(const TreeRow& tree, double* sums, const Monitor& monitor) {
  if (auto* productions = std::get_if<ProductionScorer>(&scorer_)) {
    productions->add(tree, sums);
  } else {
    Scores visitor(weights_, tree.weights, sums);
    std::get<TreeRows>(scorer_).visit(tree.nodes, visitor, monitor);
  }
}

std::vector<std::int32_t> index_groups(const TreeIndex& index, std::span<const std::int32_t> forest_groups) {
  std::vector<std::int32_t> groups(forest_groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = index.group(forest_groups[i]);
  return groups;
}

void add_scores(const TreeWeights& weights, const Forest& forest, std::span<const std::int32_t> groups,
                const TreeCounts& counts, std::span<const std::int32_t> chosen, int threads,
                const Monitor& monitor, std::span<double> scores) {
  const auto total = static_cast<std::int64_t>(chosen.empty() ? counts.size() : chosen.size());
  const std::int64_t tasks = (total + rows_at_once - 1) / rows_at_once;
  const auto make = [&] { return std::make_unique<TreeScorer>(weights, forest, groups); };
  parallel_workers(threads, tasks, make, [&](TreeScorer& scorer, std::int64_t task) {
    monitor.throw_if_stopped();
    const std::int64_t end = std::min(total, (task + 1) * rows_at_once);
    for (std::int64_t i = task * rows_at_once; i < end; ++i) {
      const auto place = static_cast<std::size_t>(i);
      const std::size_t row = chosen.empty() ? place : at(chosen[place]);
      scorer.add(counts.row(row), scores.data() + place * weights.scores(), monitor);
    }
  });
}

void compute_gram(const TreeKernel& kernel, const GramTask& task, int threads, const Monitor& monitor,
                  GramSink& sink) {
  const std::size_t left_rows = task.left_chosen.size();
  for (std::size_t first = 0; first < task.right_chosen.size(); first += columns_at_once) {
    const auto columns =
        task.right_chosen.subspan(first, std::min(columns_at_once, task.right_chosen.size() - first));
    const GramBlock block(kernel, task, columns);
    const std::size_t begin = task.lower_only ? first : 0;
    const auto tasks = static_cast<std::int64_t>((left_rows - begin + rows_at_once - 1) / rows_at_once);
    const auto make = [&] { return std::make_unique<GramWorker>(block, task.left_forest, columns.size()); };
    parallel_workers(threads, tasks, make, [&](GramWorker& worker, std::int64_t piece) {
      monitor.throw_if_stopped();
      const std::size_t from = begin + static_cast<std::size_t>(piece * rows_at_once);
      for (std::size_t i = from; i < std::min(left_rows, from + static_cast<std::size_t>(rows_at_once));
           ++i) {
        sink.take(i, first, worker.kernels(task.left.row(at(task.left_chosen[i])), monitor));
      }
    });
  }
}

}  // namespace unkernel::kernels
