#include "unkernel/engines/conjunctions/expansion.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <stdexcept>

#include "unkernel/base/error.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/engines/conjunctions/ranked_vectors.hpp"
#include "unkernel/engines/conjunctions/table_builder.hpp"

namespace unkernel::engines {
namespace {

// Which weights are kept.
class Pruning {
 public:
  Pruning(const SupportVectors& machine, const ExpansionPlan& plan, std::size_t scores)
      : active_(plan.threshold > 0.0) {
    const auto vectors = machine.coefficients.size() / scores;
    for (std::size_t s = 0; s < scores; ++s) {
      double positive = 0.0, negative = 0.0;
      for (std::size_t j = 0; j < vectors; ++j) {
        positive += machine.coefficients[j * scores + s] > 0.0;
        negative += machine.coefficients[j * scores + s] < 0.0;
      }
      const double all = std::max(positive + negative, 1.0);
      above_.push_back(plan.threshold * positive / all);
      below_.push_back(plan.threshold * negative / all);
    }
    for (int size = most_degree; size >= 1; --size) {
      largest_[size] = std::max(std::abs(plan.map.set(size)), size < most_degree ? largest_[size + 1] : 0.0);
      turns_ = turns_ || plan.map.set(size) < 0.0;
    }
  }

  bool active() const { return active_; }
  bool keeps(const double* weights) const {
    for (std::size_t s = 0; active_ && s < above_.size(); ++s) {
      if (weights[s] > 0.0 ? weights[s] >= above_[s] : -weights[s] >= below_[s] && weights[s] != 0.0)
        return true;
    }
    return !active_;
  }
  // Can a conjunction of `size` or more features, whose positive and negative parts are at most these, be
  // kept?
  bool may_keep(const double* positive, const double* negative, int size) const {
    for (std::size_t s = 0; active_ && s < above_.size(); ++s) {
      const double lower = std::min(above_[s], below_[s]);
      if (positive[s] * largest_[size] >= (turns_ ? lower : above_[s]) && positive[s] > 0.0) return true;
      if (negative[s] * largest_[size] >= (turns_ ? lower : below_[s]) && negative[s] > 0.0) return true;
    }
    return !active_;
  }

 private:
  bool active_;
  bool turns_ = false;                 // some D is negative, so that positive parts make negative weights
  std::vector<double> above_, below_;  // by score
  double largest_[most_degree + 1] = {};
};

// What every part of the expansion reads.
struct Task {
  const RankedVectors& vectors;
  const SupportVectors& machine;
  const ExpansionPlan& plan;
  const Pruning& pruning;
  std::size_t scores;

  bool sets() const { return plan.basis == Basis::sets; }
  const double* coefficients(std::uint32_t vector) const {
    return machine.coefficients.data() + vector * scores;
  }
  double value(std::uint32_t place) const { return sets() ? 1.0 : vectors.values[place]; }
  // c^2 of a conjunction of `size` features; `repeats`: factorials of a monomial's exponents, multiplied.
  double constant(int size, int repeats) const {
    return sets() ? plan.map.set(size) : plan.map.monomial(size, repeats);
  }
};

// --- The dense head ----------------------------------------------------------------------------------

// Adds an owner's conjunctions up, vector by vector: U, the owner and other ranks that are not fused,
// with every T of fused ones.
class HeadFiller {
 public:
  HeadFiller(const Task& task, const Zones& zones, ConjunctionArrays& arrays)
      : task_(task),
        index_(task.plan.map.degree, task.plan.basis),
        fused_(zones.fused),
        low_(arrays.head_low.data()),
        top_(arrays.head_top.data()) {}

  void fill(Rank owner) {
    const auto& vectors = task_.vectors;
    for (std::uint32_t h = vectors.owner_begins[owner]; h < vectors.owner_begins[owner + 1]; ++h) {
      const std::uint32_t vector = vectors.holders[h];
      begin_ = vectors.begins[vector];
      coefficients_ = task_.coefficients(vector);
      list_fused(vectors.places[h]);
      if (owner < fused_) {
        for (const FusedSet& set : sets_)
          add_low(0, set.mask | std::uint32_t{1} << owner, set.size + 1, 1, 1.0);
      } else {
        add_single(owner - fused_, vectors.places[h]);
      }
    }
    if (owner >= fused_) finish(owner - fused_);
  }

  // The entry of the empty U, when all fused owners are done.
  void finish_fused() { finish_low(0, 1); }

 private:
  struct FusedSet {
    std::uint32_t mask;
    int size;
  };

  // The sets of fused ranks among the items before `end`, of fewer than `degree` members, by size.
  void list_fused(std::uint32_t end) {
    sets_.assign(1, {0, 0});
    for (std::uint32_t k = begin_; k < end && task_.vectors.items[k] < fused_; ++k) {
      for (std::size_t i = 0, count = sets_.size(); i < count; ++i) {
        if (sets_[i].size + 1 < index_.degree())
          sets_.push_back({sets_[i].mask | std::uint32_t{1} << task_.vectors.items[k], sets_[i].size + 1});
      }
    }
  }

  void add(double* weights, double factor) const {
    for (std::size_t s = 0; s < task_.scores; ++s) weights[s] += factor * coefficients_[s];
  }
  void add_low(Key key, std::uint32_t mask, int size, int repeats, double product) const {
    add(low_ + ((key << fused_) + mask) * task_.scores, product * task_.constant(size, repeats));
  }
  // U alone and with all T.
  void add_fused(Key key, int size, int repeats, double product) const {
    for (const FusedSet& set : sets_) {
      if (size + set.size <= index_.degree()) add_low(key, set.mask, size + set.size, repeats, product);
    }
  }

  std::uint32_t own() const { return task_.sets() ? 0 : 1; }  // does a feature stand beside itself?
  std::uint32_t first_partner(std::uint32_t end) const {
    std::uint32_t k = begin_;
    while (k < end && task_.vectors.items[k] < fused_) ++k;
    return k;
  }

  void add_single(Rank a, std::uint32_t place) {
    const double product = task_.value(place);
    if (index_.degree() == 1) return add(top_ + a * task_.scores, product * task_.constant(1, 1));
    const Key block = index_.low().block(a);
    add_fused(block, 1, 1, product);
    partners_ = first_partner(place);
    for (std::uint32_t k = partners_; k < place + own(); ++k) {
      const Rank b = task_.vectors.items[k] - fused_;
      add_pair(a, b, k, b == a ? 2 : 1, product * task_.value(k));
    }
  }

  void add_pair(Rank a, Rank b, std::uint32_t place, int repeats, double product) {
    if (index_.degree() == 2)
      return add(top_ + (index_.top(a) + b) * task_.scores, product * task_.constant(2, repeats));
    add_fused(index_.low().block(a) + 1 + b, 2, repeats, product);
    for (std::uint32_t k = partners_; k < place + own(); ++k) {
      const Rank c = task_.vectors.items[k] - fused_;
      const int run = c != b ? 1 : c == a ? 3 : 2;  // how often the last feature stands at the end
      add_triple(a, b, c, k, run, repeats * run, product * task_.value(k));
    }
  }

  void add_triple(Rank a, Rank b, Rank c, std::uint32_t place, int run, int repeats, double product) {
    const ConjunctionIndex& low = index_.low();
    if (index_.degree() == 3) {
      return add(top_ + (index_.top(a) + low.triangle(b) + c) * task_.scores,
                 product * task_.constant(3, repeats));
    }
    add_fused(low.block(a) + low.triples(a) + low.triangle(b) + c, 3, repeats, product);
    const Key row = index_.top(a) + low.tetrahedron(b) + low.triangle(c);
    for (std::uint32_t k = partners_; k < place + own(); ++k) {
      const Rank e = task_.vectors.items[k] - fused_;
      add(top_ + (row + e) * task_.scores,
          product * task_.value(k) * task_.constant(4, e == c ? repeats * (run + 1) : repeats));
    }
  }

  void finish(Rank a) {
    if (index_.degree() > 1) finish_low(index_.low().block(a), index_.low().block(a + 1));
    prune(top_ + index_.top(a) * task_.scores, index_.top(a + 1) - index_.top(a));
  }
  void finish_low(Key first, Key last) {
    prune(low_ + (first << fused_) * task_.scores, (last - first) << fused_);
    for (Key key = first; key < last; ++key)
      sum_over_subsets(low_ + (key << fused_) * task_.scores, fused_, task_.scores);
  }
  void prune(double* weights, std::size_t count) const {
    for (std::size_t k = 0; task_.pruning.active() && k < count; ++k, weights += task_.scores) {
      if (!task_.pruning.keeps(weights)) std::fill_n(weights, task_.scores, 0.0);
    }
  }

  const Task& task_;
  HeadIndex index_;
  std::uint32_t fused_;
  double* low_;
  double* top_;
  std::uint32_t begin_ = 0;
  std::uint32_t partners_ = 0;  // where the items that are not fused begin
  const double* coefficients_ = nullptr;
  std::vector<FusedSet> sets_;
};

// --- The trie ----------------------------------------------------------------------------------------

// Lists an owner's conjunctions depth first: at each node the vectors that contain it, cut off at its
// smallest rank, are shared out among the partners they still have.
class OwnerExpander {
 public:
  OwnerExpander(const Task& task, std::size_t used, TrieWriter& writer)
      : task_(task), writer_(writer), weights_(task.scores), positive_(task.scores), negative_(task.scores) {
    for (auto& level : levels_) level.slot_of.assign(used, 0);
  }

  void expand(Rank owner) {
    const auto& vectors = task_.vectors;
    std::vector<Occurrence>& node = levels_[0].shared;
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
    std::uint32_t end;  // partners stand before this place
    double product;     // of the values so far
  };
  struct Level {
    std::vector<Occurrence> shared;  // occurrences, partner by partner
    std::vector<Rank> partners;
    std::vector<std::uint32_t> slot_of;  // rank -> place among the partners, plus one
    std::vector<std::uint32_t> ends;
    std::vector<double> sums;  // of the last level
  };

  // A node of `size` features; `repeats` and `run` are those of its monomial.
  template <int Size>
  void visit(std::span<const Occurrence> node, int repeats, int run) {
    const double constant = task_.constant(Size, repeats);
    std::fill(positive_.begin(), positive_.end(), 0.0);
    std::fill(negative_.begin(), negative_.end(), 0.0);
    for (const Occurrence& occurrence : node) add_parts(occurrence);
    for (std::size_t s = 0; s < task_.scores; ++s) weights_[s] = constant * (positive_[s] - negative_[s]);
    if (task_.pruning.keeps(weights_.data())) writer_.add(path_.data(), Size, weights_.data());
    if constexpr (Size < most_degree) {
      if (Size == task_.plan.map.degree ||
          !task_.pruning.may_keep(positive_.data(), negative_.data(), Size + 1))
        return;
      share_out(Size, node);
      Level& level = levels_[Size];
      if (Size + 1 == task_.plan.map.degree && !task_.pruning.active())
        return write_leaves(Size, repeats, run, level);
      std::uint32_t begin = 0;
      for (std::size_t p = 0; p < level.partners.size(); ++p) {
        path_[Size] = level.partners[p];
        const int next_run = path_[Size] == path_[Size - 1] ? run + 1 : 1;
        visit<Size + 1>(std::span(level.shared).subspan(begin, level.ends[p] - begin), repeats * next_run,
                        next_run);
        begin = level.ends[p];
      }
    }
  }

  void add_parts(const Occurrence& occurrence) {
    const double* b = task_.coefficients(occurrence.vector);
    for (std::size_t s = 0; s < task_.scores; ++s) {
      const double part = b[s] * occurrence.product;
      (part > 0.0 ? positive_ : negative_)[s] += std::abs(part);
    }
  }

  // Finds the partners of a node; unless they are leaves, also which occurrences each has.
  void share_out(int size, std::span<const Occurrence> node) {
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
    if (size + 1 == task_.plan.map.degree && !task_.pruning.active()) return sum_leaves(level, node);
    level.ends.clear();
    std::uint32_t total = 0;
    for (const Rank partner : level.partners) {
      const std::uint32_t count = level.slot_of[partner];
      level.slot_of[partner] = total;
      total += count;
      level.ends.push_back(total);
    }
    level.shared.resize(total);
    for (const Occurrence& o : node) {
      for (std::uint32_t k = begins[o.vector]; k < o.end; ++k) {
        level.shared[level.slot_of[items[k]]++] = {o.vector, k + (task_.sets() ? 0 : 1),
                                                   o.product * task_.value(k)};
      }
    }
    for (const Rank partner : level.partners) level.slot_of[partner] = 0;
  }

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

  const Task& task_;
  TrieWriter& writer_;
  std::array<Level, most_degree> levels_;
  std::array<Rank, most_degree> path_ = {};
  std::vector<double> weights_, positive_, negative_;
};

// The tables cannot grow beyond what they were allowed to.
class Budget {
 public:
  explicit Budget(double bytes) : left_(bytes) {}
  void spend(double bytes) {
    const std::lock_guard guard(lock_);
    left_ -= bytes;
    if (left_ < 0.0) throw NotEnoughMemory("the expanded model does not fit into the memory it was given");
  }

 private:
  std::mutex lock_;
  double left_;
};

// --- The rare -----------------------------------------------------------------------------------------

// Support vectors that have some rare rank, numbered as they are met.
class VectorNumbers {
 public:
  explicit VectorNumbers(std::size_t vectors) : number_of_(vectors, 0) {}
  std::uint32_t of(std::uint32_t vector) {
    if (number_of_[vector] == 0) number_of_[vector] = ++count_;
    return number_of_[vector] - 1;
  }

 private:
  std::vector<std::uint32_t> number_of_;
  std::uint32_t count_ = 0;
};

// Whether postings can be records: few enough ranks are common, and no vector has too many others.
bool go_into_records(const RankedVectors& vectors, const ConjunctionArrays& arrays) {
  if (arrays.bit_words() > most_bit_words) return false;
  for (std::size_t v = 0; v + 1 < vectors.begins.size(); ++v) {
    const auto begin = vectors.items.begin() + static_cast<std::ptrdiff_t>(vectors.begins[v]);
    const auto end = vectors.items.begin() + static_cast<std::ptrdiff_t>(vectors.begins[v + 1]);
    if (end - std::lower_bound(begin, end, arrays.rare) > most_records_of_vector) return false;
  }
  return true;
}

void write_record(std::span<const Rank> ranks, const double* weights, std::uint32_t number,
                  ConjunctionArrays& arrays) {
  const std::size_t begin = arrays.posting_records.size();
  arrays.posting_records.resize(begin + arrays.record_words(), 0);
  std::uint64_t* record = arrays.posting_records.data() + begin;
  for (const Rank rank : ranks) {
    if (rank < arrays.rare) record[rank / 64] |= std::uint64_t{1} << rank % 64;
  }
  for (std::size_t s = 0; s < arrays.scores(); ++s)
    record[arrays.bit_words() + s] = std::bit_cast<std::uint64_t>(weights[s]);
  record[arrays.record_words() - 1] = number;
}

void write_postings(const Task& task, Budget& budget, ConjunctionArrays& arrays) {
  auto& items = std::get<LargeVector<std::uint32_t>>(arrays.items);
  arrays.item_begins.assign(1, 0);
  arrays.posting_begins.assign(1, 0);
  const auto& vectors = task.vectors;
  const bool as_records = go_into_records(vectors, arrays);
  VectorNumbers numbers(vectors.begins.size());
  std::size_t postings = 0;
  for (std::size_t owner = arrays.rare; owner < arrays.used(); ++owner) {
    for (std::uint32_t h = vectors.owner_begins[owner]; h < vectors.owner_begins[owner + 1];
         ++h, ++postings) {
      const std::uint32_t vector = vectors.holders[h];
      const std::span<const Rank> ranks(vectors.items.data() + vectors.begins[vector],
                                        vectors.items.data() + vectors.places[h]);
      const double* b = task.coefficients(vector);
      if (as_records) {
        budget.spend(8.0 * static_cast<double>(arrays.record_words()));
        write_record(ranks, b, numbers.of(vector), arrays);
      } else {
        budget.spend(4.0 * static_cast<double>(ranks.size()) + 4.0 + 8.0 * static_cast<double>(task.scores));
        items.insert(items.end(), ranks.begin(), ranks.end());
        arrays.item_begins.push_back(static_cast<std::uint32_t>(items.size()));
        arrays.posting_weights.insert(arrays.posting_weights.end(), b, b + task.scores);
      }
    }
    if (items.size() > most_entries)
      throw std::length_error("there are too many rare features: lower `rare`");
    arrays.posting_begins.push_back(static_cast<std::uint32_t>(postings));
  }
}

std::vector<std::uint32_t> frequencies_of(const data::CsrView<std::int32_t, double>& rows) {
  std::vector<std::uint32_t> frequencies(static_cast<std::size_t>(rows.features), 0);
  for (const std::int32_t column : rows.columns) ++frequencies[static_cast<std::size_t>(column)];
  return frequencies;
}

// Owners in ranges of about equal work, for threads to take one after the other.
std::vector<std::uint32_t> owner_ranges(const RankedVectors& vectors, std::uint32_t head,
                                        std::uint32_t rare) {
  const std::size_t occurrences = vectors.owner_begins[rare] - vectors.owner_begins[head];
  const std::size_t share = std::max<std::size_t>(occurrences / 64, 256);
  std::vector<std::uint32_t> borders{head};
  std::size_t held = 0;
  for (std::uint32_t owner = head; owner < rare; ++owner) {
    held += vectors.owner_begins[owner + 1] - vectors.owner_begins[owner];
    if (held >= share) {
      borders.push_back(owner + 1);
      held = 0;
    }
  }
  if (borders.back() != rare || borders.size() == 1) borders.push_back(rare);
  return borders;
}

void fill_head(const Task& task, const Zones& zones, int threads, Monitor& monitor,
               ConjunctionArrays& arrays) {
  const HeadIndex index(task.plan.map.degree, task.plan.basis);
  const std::uint64_t unfused = zones.head - zones.fused;
  arrays.head_low.assign((index.low_count(unfused) << zones.fused) * task.scores, 0.0);
  arrays.head_top.assign(index.top(unfused) * task.scores, 0.0);
  parallel_for(threads, zones.head, [&](std::int64_t owner) {
    monitor.throw_if_stopped();
    HeadFiller(task, zones, arrays).fill(static_cast<Rank>(owner));
  });
  HeadFiller(task, zones, arrays).finish_fused();
}

void fill_trie(const Task& task, const Zones& zones, int threads, Monitor& monitor, Budget& budget,
               ConjunctionArrays& arrays) {
  const std::vector<std::uint32_t> borders = owner_ranges(task.vectors, zones.head, zones.rare);
  std::vector<TrieWriter> writers;
  for (std::size_t r = 0; r + 1 < borders.size(); ++r) writers.emplace_back(task.scores, borders[r]);
  Progress progress;
  progress.stage = "expanding";
  progress.problems = static_cast<std::int64_t>(writers.size());
  monitor.report(progress);
  parallel_for(threads, static_cast<std::int64_t>(writers.size()), [&](std::int64_t r) {
    const auto range = static_cast<std::size_t>(r);
    OwnerExpander expander(task, zones.columns.size(), writers[range]);
    std::size_t spent = 0;
    for (std::uint32_t owner = borders[range]; owner < borders[range + 1]; ++owner) {
      monitor.throw_if_stopped();
      expander.expand(owner);
      budget.spend(static_cast<double>(writers[range].bytes() - spent));
      spent = writers[range].bytes();
    }
    monitor.finish_one();
  });
  TrieWriter::join(writers, arrays);
}

}  // namespace

ConjunctionArrays expand(const SupportVectors& machine, const ExpansionPlan& plan, int threads,
                         Monitor& monitor) {
  const std::size_t scores = machine.intercepts.size();
  const HeadIndex index(plan.map.degree, plan.basis);
  if (machine.rows.columns.size() > most_entries)
    throw std::length_error("the support vectors have too many entries");
  const std::vector<std::uint32_t> frequencies = frequencies_of(machine.rows);
  Zones zones = choose_zones(frequencies, plan.head, plan.rare_below);
  if (plan.basis == Basis::sets) group_zones(zones, frequencies, machine.rows, plan.groups, plan.map.degree);
  Budget budget(plan.most_bytes);
  budget.spend(8.0 * static_cast<double>(scores) *
               static_cast<double>(index.count(zones.head - zones.fused, zones.fused)));
  const RankedVectors vectors = rank_vectors(machine.rows, zones.columns, plan.basis == Basis::sets);
  const Pruning pruning(machine, plan, scores);
  const Task task{vectors, machine, plan, pruning, scores};

  ConjunctionArrays arrays{};
  arrays.basis = plan.basis;
  arrays.map = plan.map;
  arrays.fused = zones.fused;
  arrays.head = zones.head;
  arrays.rare = zones.rare;
  arrays.columns.assign(zones.columns.begin(), zones.columns.end());
  arrays.items = LargeVector<std::uint32_t>{};
  arrays.constants.assign(machine.intercepts.begin(), machine.intercepts.end());
  for (std::size_t j = 0; j < static_cast<std::size_t>(machine.rows.rows()); ++j) {
    for (std::size_t s = 0; s < scores; ++s)
      arrays.constants[s] += plan.map.set(0) * machine.coefficients[j * scores + s];
  }
  fill_head(task, zones, threads, monitor, arrays);
  fill_trie(task, zones, threads, monitor, budget, arrays);
  write_postings(task, budget, arrays);
  budget.spend(8.0 * static_cast<double>(scores) * sums_of_states(zones.groups, plan.map.degree));
  sum_states(std::move(zones.groups), threads, arrays);
  finish(arrays);
  return arrays;
}

}  // namespace unkernel::engines
