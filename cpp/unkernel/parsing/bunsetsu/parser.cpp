#include "unkernel/parsing/bunsetsu/parser.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "unkernel/base/parallel.hpp"

namespace unkernel::parsing {

using data::BunsetsuText;
using data::no_head;

BunsetsuDecisions bunsetsu_decisions(const BunsetsuText& text, std::span<const std::int32_t> heads,
                                     const BunsetsuFeatures& features, const Monitor& monitor) {
  if (heads.size() != text.bunsetsu()) throw std::invalid_argument("heads must have one entry per bunsetsu");
  const BunsetsuSymbols symbols(text, features);
  BunsetsuRows rows(symbols);
  BunsetsuDecisions decisions;
  std::vector<std::size_t> stack;
  for (std::size_t s = 0; s < text.sentences(); ++s) {
    monitor.throw_if_stopped();
    rows.load(s);
    const auto sentence_heads = heads.subspan(text.first_bunsetsu(s), rows.size());
    const auto depends = [&](std::size_t modifier, std::size_t candidate) {
      const auto row = rows.row(modifier, candidate);
      const bool is_dependent = sentence_heads[modifier] == static_cast<std::int32_t>(candidate);
      decisions.rows.columns.insert(decisions.rows.columns.end(), row.begin(), row.end());
      decisions.rows.end_row();
      decisions.labels.push_back(is_dependent ? 1 : 0);
      return is_dependent;
    };
    shift_reduce(
        rows.size(), stack, [&](std::size_t) { rows.begin_candidate(); }, depends,
        [&](std::size_t modifier, std::size_t) { rows.add_dependent(modifier); });
  }
  return decisions;
}

BunsetsuTraining bunsetsu_training(const BunsetsuText& text, std::span<const std::int32_t> heads,
                                   std::vector<BunsetsuTemplate> templates, std::int64_t min_count,
                                   const Monitor& monitor) {
  const BunsetsuFeatures all = BunsetsuFeatures::all_of(std::move(templates), text.names());
  BunsetsuDecisions decisions = bunsetsu_decisions(text, heads, all, monitor);
  const auto new_numbers = frequent_columns(decisions.rows, all.columns(), min_count);
  renumber(decisions.rows, new_numbers);
  return {all.keep_columns(new_numbers), std::move(decisions)};
}

namespace {

// The buffers of one parsing thread.
class Parsing {
 public:
  Parsing(const BunsetsuSymbols& symbols, const engines::Engine& engine)
      : rows_(symbols), engine_(engine), worker_(engine.worker()) {}

  void operator()(std::size_t sentence, std::span<std::int32_t> heads, const Monitor& monitor) {
    rows_.load(sentence);
    shift_reduce(
        rows_.size(), stack_,
        [&](std::size_t) {
          monitor.throw_if_stopped();  // a sentence may be long
          rows_.begin_candidate();
        },
        [&](std::size_t modifier, std::size_t candidate) { return depends(modifier, candidate); },
        [&](std::size_t modifier, std::size_t candidate) {
          heads[modifier] = static_cast<std::int32_t>(candidate);
          rows_.add_dependent(modifier);
        });
  }

 private:
  bool depends(std::size_t modifier, std::size_t candidate) {
    double score = 0.0;
    engine_.score_until_decided(engines::SparseRow<std::int32_t>{rows_.row(modifier, candidate)}, *worker_,
                                &score);
    return score > 0.0;
  }

  BunsetsuRows rows_;
  const engines::Engine& engine_;
  std::unique_ptr<engines::Worker> worker_;
  std::vector<std::size_t> stack_;
};

}  // namespace

std::vector<std::int32_t> parse_bunsetsu(const BunsetsuText& text, const BunsetsuFeatures& features,
                                         const engines::Engine& engine, Threads threads) {
  if (engine.scores() != 1)
    throw std::invalid_argument("a bunsetsu parser needs an engine with one score; this engine has " +
                                std::to_string(engine.scores()));
  constexpr std::int64_t min_sentences_per_task = 32;  // fewer do not justify another worker
  const auto sentences = static_cast<std::int64_t>(text.sentences());
  const std::int64_t grain = std::max(min_sentences_per_task, sentences / (8 * std::max(threads.count, 1)));
  std::vector<std::int32_t> heads(text.bunsetsu(), no_head);
  const BunsetsuSymbols symbols(text, features);
  parallel_ranges(threads.count, sentences, grain, [&](std::int64_t from, std::int64_t to) {
    Parsing parse(symbols, engine);
    for (auto s = static_cast<std::size_t>(from); s < static_cast<std::size_t>(to); ++s) {
      threads.monitor->throw_if_stopped();
      const std::size_t first = text.first_bunsetsu(s);
      parse(s, std::span(heads).subspan(first, text.first_bunsetsu(s + 1) - first), *threads.monitor);
    }
  });
  return heads;
}

}  // namespace unkernel::parsing
