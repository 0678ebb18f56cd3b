#include "unkernel/engines/conjunctions/layout.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "unkernel/base/parallel.hpp"

namespace unkernel::engines {
namespace {

[[noreturn]] void fail_model(const std::string& what) {
  throw std::invalid_argument("not a valid conjunction model: " + what);
}

void check_columns(const ConjunctionWeights& weights) {
  for (const std::int64_t column : weights.columns) {
    if (column < 0 || column >= weights.features)
      fail_model("feature " + std::to_string(column) + " is outside the model");
  }
  std::vector<std::int64_t> sorted(weights.columns.begin(), weights.columns.end());
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) fail_model("a feature occurs twice");
}

void check_weights(const ConjunctionWeights& weights, const ConjunctionIndex& index) {
  const std::size_t scores = weights.intercept.size();
  if (scores == 0) fail_model("no scores");
  if (weights.columns.size() > index.most_features()) fail_model("too many features");
  if (weights.keys.size() > weights.weights.size() ||
      weights.weights.size() != weights.keys.size() * scores) {
    fail_model("the number of weights does not fit the number of conjunctions");
  }
  const Key end = index.count(weights.columns.size());
  Key previous = 0;
  for (const Key key : weights.keys) {
    if (key <= previous || key >= end)
      fail_model("conjunction keys must ascend and stay below " + std::to_string(end));
    previous = key;
  }
  const auto is_finite = [](double value) { return std::isfinite(value); };
  if (!std::all_of(weights.weights.begin(), weights.weights.end(), is_finite) ||
      !std::all_of(weights.intercept.begin(), weights.intercept.end(), is_finite)) {
    fail_model("a weight is not finite");
  }
}

// Returns the rank in the tables for each rank of the model. The tables order head ranks by group, by
// frequency or by column.
std::vector<Rank> map_ranks(const ConjunctionWeights& weights, const ConjunctionArrays& arrays,
                            const HeadPlan& head, const FeatureGroups& groups) {
  std::vector<std::size_t> order(weights.columns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto by_column = [&](std::size_t a, std::size_t b) {
    return weights.columns[a] < weights.columns[b];
  };
  if (!groups.order.empty()) {
    std::copy(groups.order.begin(), groups.order.end(), order.begin());
  } else if (!head.by_frequency) {
    std::sort(order.begin() + arrays.fused, order.begin() + arrays.head, by_column);
  }
  std::vector<Rank> ranks(order.size());
  for (std::size_t rank = 0; rank < order.size(); ++rank) ranks[order[rank]] = static_cast<Rank>(rank);
  return ranks;
}

struct Entry {
  Rank ranks[most_degree];  // descending
  int size;
};

Entry entry_of(const Conjunction& conjunction, const std::vector<Rank>& ranks) {
  Entry entry{{}, conjunction.size};
  for (int i = 0; i < entry.size; ++i) {
    int place = i;
    const Rank rank = ranks[conjunction.ranks[i]];
    for (; place > 0 && entry.ranks[place - 1] < rank; --place) entry.ranks[place] = entry.ranks[place - 1];
    entry.ranks[place] = rank;
  }
  return entry;
}

// A conjunction of the trie: its ranks after the owner, in trie order, and its position in the model.
struct Member {
  std::uint64_t partners;
  std::uint64_t place;
};

class TableArranger {
 public:
  TableArranger(const ConjunctionWeights& weights, ConjunctionArrays& arrays, std::vector<Rank> ranks)
      : weights_(weights),
        arrays_(arrays),
        index_(weights.map.degree, weights.basis),
        head_(weights.map.degree, weights.basis),
        ranks_(std::move(ranks)),
        scores_(weights.intercept.size()) {}

  void fill_head() {
    const std::uint64_t unfused = arrays_.head - arrays_.fused;
    arrays_.head_low.assign((head_.low_count(unfused) << arrays_.fused) * scores_, 0.0);
    arrays_.head_top.assign(head_.top(unfused) * scores_, 0.0);
    owner_begins_.assign(arrays_.used() - arrays_.head + 1, 0);
    for_each_entry([&](std::size_t k, const Entry& entry) {
      if (entry.ranks[0] < arrays_.head) {
        std::copy_n(weights_.weights.data() + k * scores_, scores_, head_place(entry));
      } else {
        ++owner_begins_[entry.ranks[0] - arrays_.head + 1];
      }
    });
    for (std::size_t key = 0; key < head_.low_count(unfused); ++key) {
      sum_over_subsets(arrays_.head_low.data() + (key << arrays_.fused) * scores_, arrays_.fused, scores_);
    }
  }

  void fill_trie(int threads) {
    std::partial_sum(owner_begins_.begin(), owner_begins_.end(), owner_begins_.begin());
    members_.resize(owner_begins_.back());
    std::vector<std::size_t> next(owner_begins_.begin(), owner_begins_.end() - 1);
    for_each_entry([&](std::size_t k, const Entry& entry) {
      if (entry.ranks[0] < arrays_.head) return;
      // Partner ranks plus one, so that a conjunction without further partners comes first.
      std::uint64_t partners = 0;
      for (int i = 1; i < 3; ++i)
        partners = partners << 32 | (i < entry.size ? std::uint64_t{entry.ranks[i]} + 1 : 0);
      members_[next[entry.ranks[0] - arrays_.head]++] = {partners, k};
    });
    const std::size_t owners = owner_begins_.size() - 1;
    const std::size_t pieces = std::clamp<std::size_t>(members_.size() >> 16, 1, 64);
    std::vector<TrieWriter> writers;
    for (std::size_t p = 0; p < pieces; ++p) {
      writers.emplace_back(scores_, arrays_.head + static_cast<std::uint32_t>(owners * p / pieces));
    }
    parallel_for(threads, static_cast<std::int64_t>(pieces), [&](std::int64_t p) {
      const auto piece = static_cast<std::size_t>(p);
      for (std::size_t owner = owners * piece / pieces; owner < owners * (piece + 1) / pieces; ++owner)
        write(owner, writers[piece]);
    });
    TrieWriter::join(writers, arrays_);
  }

 private:
  // Calls visit(k, entry) for the k-th conjunction of the model.
  template <class Visit>
  void for_each_entry(const Visit& visit) const {
    Conjunction conjunction;
    for (std::size_t k = 0; k < weights_.keys.size(); ++k) {
      conjunction = index_.decode(weights_.keys[k], conjunction);
      visit(k, entry_of(conjunction, ranks_));
    }
  }

  double* head_place(const Entry& entry) {
    std::uint32_t state = 0;
    Rank unfused_ranks[most_degree];
    int size = 0;
    for (int i = 0; i < entry.size; ++i) {
      if (entry.ranks[i] < arrays_.fused) {
        state |= std::uint32_t{1} << entry.ranks[i];
      } else {
        unfused_ranks[size++] = entry.ranks[i] - arrays_.fused;
      }
    }
    if (size == head_.degree()) return arrays_.head_top.data() + head_.top_place(unfused_ranks) * scores_;
    return arrays_.head_low.data() +
           ((head_.low_key(unfused_ranks, size) << arrays_.fused) + state) * scores_;
  }

  void write(std::size_t owner, TrieWriter& writer) {
    const auto begin = members_.begin() + static_cast<std::ptrdiff_t>(owner_begins_[owner]);
    const auto end = members_.begin() + static_cast<std::ptrdiff_t>(owner_begins_[owner + 1]);
    std::sort(begin, end, [](const Member& a, const Member& b) { return a.partners < b.partners; });
    Rank path[3] = {static_cast<Rank>(arrays_.head + owner), 0, 0};
    for (auto member = begin; member != end; ++member) {
      std::size_t size = 1;
      if (member->partners >> 32 != 0) path[size++] = static_cast<Rank>((member->partners >> 32) - 1);
      if ((member->partners & 0xffffffff) != 0)
        path[size++] = static_cast<Rank>((member->partners & 0xffffffff) - 1);
      writer.add(path, size, weights_.weights.data() + member->place * scores_);
    }
  }

  const ConjunctionWeights& weights_;
  ConjunctionArrays& arrays_;
  ConjunctionIndex index_;
  HeadIndex head_;
  std::vector<Rank> ranks_;
  std::size_t scores_;
  std::vector<std::size_t> owner_begins_;
  std::vector<Member> members_;
};

}  // namespace

void check(const ConjunctionWeights& weights) {
  if (weights.map.degree > 3) fail_model("the degree is out of range");
  check_weights(weights, ConjunctionIndex(weights.map.degree, weights.basis));
  check_columns(weights);
}

ConjunctionArrays arrange(const ConjunctionWeights& weights, HeadPlan head, GroupPlan plan,
                          const data::CsrView<std::int32_t, double>& sample, int threads) {
  check(weights);
  const auto used = static_cast<std::uint32_t>(weights.columns.size());
  ConjunctionArrays arrays{};
  arrays.basis = weights.basis;
  arrays.map = weights.map;
  arrays.head = static_cast<std::uint32_t>(std::min<std::uint64_t>(head.ranks, used));
  if (head.by_frequency) arrays.head = std::min(arrays.head, most_sorted_head);
  arrays.fused = weights.basis == Basis::sets && !head.by_frequency ? std::min(head.fused, arrays.head) : 0;
  FeatureGroups groups;
  if (weights.basis == Basis::sets && arrays.fused == 0 && !head.by_frequency &&
      arrays.head <= most_sorted_head) {
    plan.features = std::min(plan.features, arrays.head);
    groups = group_rows(sample, Ranking(weights.columns), plan, weights.map.degree);
  }
  arrays.rare = used;
  arrays.intercept.assign(weights.intercept.begin(), weights.intercept.end());
  std::vector<Rank> ranks = map_ranks(weights, arrays, head, groups);
  arrays.columns.resize(used);
  for (std::size_t rank = 0; rank < used; ++rank) arrays.columns[ranks[rank]] = weights.columns[rank];
  arrays.items = LargeVector<std::uint32_t>{};
  TableArranger arranger(weights, arrays, std::move(ranks));
  arranger.fill_head();
  arranger.fill_trie(threads);
  sum_states(std::move(groups), threads, arrays);
  finish(arrays);
  return arrays;
}

}  // namespace unkernel::engines
