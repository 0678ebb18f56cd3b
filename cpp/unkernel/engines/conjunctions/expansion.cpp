#include "unkernel/engines/conjunctions/expansion.hpp"

#include <algorithm>
#include <stdexcept>

#include "unkernel/base/parallel.hpp"
#include "unkernel/engines/conjunctions/expansion_head.hpp"
#include "unkernel/engines/conjunctions/expansion_postings.hpp"
#include "unkernel/engines/conjunctions/expansion_task.hpp"
#include "unkernel/engines/conjunctions/expansion_trie.hpp"

namespace unkernel::engines {
namespace {

std::vector<std::uint32_t> count_frequencies(const data::CsrView<std::int32_t, double>& rows) {
  std::vector<std::uint32_t> frequencies(static_cast<std::size_t>(rows.features), 0);
  for (const std::int32_t column : rows.columns) ++frequencies[static_cast<std::size_t>(column)];
  return frequencies;
}

// Splits the owners into ranges, one task each, of about equal work.
std::vector<std::uint32_t> owner_ranges(const RankedVectors& vectors, std::uint32_t head,
                                        std::uint32_t rare) {
  const std::size_t occurrences = vectors.owner_begins[rare] - vectors.owner_begins[head];
  const std::size_t occurrences_per_range = std::max<std::size_t>(occurrences / 64, 256);
  std::vector<std::uint32_t> borders{head};
  std::size_t occurrences_in_range = 0;
  for (std::uint32_t owner = head; owner < rare; ++owner) {
    occurrences_in_range += vectors.owner_begins[owner + 1] - vectors.owner_begins[owner];
    if (occurrences_in_range >= occurrences_per_range) {
      borders.push_back(owner + 1);
      occurrences_in_range = 0;
    }
  }
  if (borders.back() != rare || borders.size() == 1) borders.push_back(rare);
  return borders;
}

void fill_head(const ExpansionTask& task, const Zones& zones, int threads, Monitor& monitor,
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

void fill_trie(const ExpansionTask& task, const Zones& zones, int threads, Monitor& monitor,
               MemoryBudget& budget, ConjunctionArrays& arrays) {
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
    std::size_t spent_bytes = 0;
    for (std::uint32_t owner = borders[range]; owner < borders[range + 1]; ++owner) {
      monitor.throw_if_stopped();
      expander.expand(owner);
      budget.spend(static_cast<double>(writers[range].bytes() - spent_bytes));
      spent_bytes = writers[range].bytes();
    }
    monitor.finish_one();
  });
  TrieWriter::join(writers, arrays);
}

}  // namespace

ConjunctionArrays expand(const SupportVectors& machine, const ExpansionPlan& plan, int threads,
                         Monitor& monitor) {
  const std::size_t scores = machine.intercept.size();
  const HeadIndex index(plan.map.degree, plan.basis);
  if (machine.rows.columns.size() > most_entries)
    throw std::length_error("the support vectors have too many entries");
  const std::vector<std::uint32_t> frequencies = count_frequencies(machine.rows);
  Zones zones = choose_zones(frequencies, plan.head, plan.rare_below);
  if (plan.basis == Basis::sets) group_zones(zones, frequencies, machine.rows, plan.groups, plan.map.degree);
  MemoryBudget budget(plan.most_bytes);
  budget.spend(8.0 * static_cast<double>(scores) *
               static_cast<double>(index.count(zones.head - zones.fused, zones.fused)));
  const RankedVectors vectors = rank_vectors(machine.rows, zones.columns, plan.basis == Basis::sets);
  const Pruning pruning(machine, plan, scores);
  const ExpansionTask task{vectors, machine, plan, pruning, scores};

  ConjunctionArrays arrays{};
  arrays.basis = plan.basis;
  arrays.map = plan.map;
  arrays.fused = zones.fused;
  arrays.head = zones.head;
  arrays.rare = zones.rare;
  arrays.columns.assign(zones.columns.begin(), zones.columns.end());
  arrays.items = LargeVector<std::uint32_t>{};
  arrays.intercept.assign(machine.intercept.begin(), machine.intercept.end());
  for (std::size_t j = 0; j < static_cast<std::size_t>(machine.rows.rows()); ++j) {
    for (std::size_t s = 0; s < scores; ++s)
      arrays.intercept[s] += plan.map.set(0) * machine.coefficients[j * scores + s];
  }
  fill_head(task, zones, threads, monitor, arrays);
  fill_trie(task, zones, threads, monitor, budget, arrays);
  write_postings(task, budget, arrays);
  budget.spend(8.0 * static_cast<double>(scores) * count_state_sums(zones.groups, plan.map.degree));
  sum_states(std::move(zones.groups), threads, arrays);
  finish(arrays);
  return arrays;
}

}  // namespace unkernel::engines
