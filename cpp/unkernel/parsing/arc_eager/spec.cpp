#include "unkernel/parsing/arc_eager/spec.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <utility>

namespace unkernel::parsing {
namespace {

namespace conll = data::conll;

constexpr std::uint64_t class_bits = 20;  // a key of Counts is a case, then a class of this many bits
constexpr std::int64_t min_lifted_count = 5;

UsedAttributes with_tags(UsedAttributes used, const SpecOptions& options) {
  if (options.split_labels) used[static_cast<std::size_t>(Attribute::upos)] = true;
  if (options.split_moves) used[static_cast<std::size_t>(Attribute::xpos)] = true;
  return used;
}

}  // namespace

// --- Parts ---------------------------------------------------------------------------------------------

void DecisionParts::count(std::size_t case_number, std::int32_t decision, Counts& counts) {
  ++counts[static_cast<std::uint64_t>(case_number) << class_bits | static_cast<std::uint64_t>(decision)];
}

void DecisionParts::make_parts(const Counts& counts, std::size_t cases, std::int32_t default_class) {
  std::map<std::size_t, std::pair<std::int64_t, std::vector<std::int32_t>>> by_case;
  counts.for_each([&](std::uint64_t key, std::int64_t times) {
    auto& [total, classes] = by_case[key >> class_bits];
    total += times;
    classes.push_back(static_cast<std::int32_t>(key & ((1 << class_bits) - 1)));
  });
  std::vector<std::pair<std::int64_t, std::size_t>> order;
  for (const auto& [case_number, classes] : by_case) order.emplace_back(-classes.first, case_number);
  std::sort(order.begin(), order.end());
  part_of_case_.assign(cases, 0);
  classes_.clear();
  for (const auto& [times, case_number] : order) {
    part_of_case_[case_number] = static_cast<std::int32_t>(classes_.size());
    classes_.push_back(by_case[case_number].second);
    std::sort(classes_.back().begin(), classes_.back().end());
  }
  if (classes_.empty()) classes_ = {{default_class}};
}

void DecisionParts::restore(std::vector<std::int32_t> part_of_case,
                            std::vector<std::vector<std::int32_t>> classes, std::size_t cases,
                            std::size_t limit) {
  bool is_consistent = part_of_case.size() == cases;
  for (const std::int32_t part : part_of_case)
    is_consistent &= part >= 0 && static_cast<std::size_t>(part) < classes.size();
  for (const auto& part_classes : classes) {
    is_consistent &= !part_classes.empty() &&
                     std::adjacent_find(part_classes.begin(), part_classes.end(), std::greater_equal<>()) ==
                         part_classes.end();
    for (const std::int32_t number : part_classes)
      is_consistent &= number >= 0 && static_cast<std::size_t>(number) < limit;
  }
  if (!is_consistent) throw std::invalid_argument("the parts of the parser do not fit its tags and labels");
  part_of_case_ = std::move(part_of_case);
  classes_ = std::move(classes);
}

// --- The spec -----------------------------------------------------------------------------------------

ArcEagerSpec::ArcEagerSpec(const std::string& file, std::string_view template_text,
                           const SpecOptions& options, Lexicon clusters)
    : options_(options),
      templates_(read_templates(file, template_text)),
      vocabulary_(with_tags(used_attributes(templates_), options), std::move(clusters)) {}

void ArcEagerSpec::make_features() {
  move_features_ = std::make_unique<FeatureSpace>(templates_.moves, vocabulary_, labels_.size());
  arc_features_ = std::make_unique<FeatureSpace>(templates_.labels, vocabulary_, labels_.size());
}

std::vector<LabelledTree> ArcEagerSpec::learn(const data::ColumnText& text, const Monitor& monitor) {
  if (text.sentences() == 0) throw std::invalid_argument("the treebank has no sentences to learn from");
  for (std::int64_t sentence = 0; sentence < text.sentences(); ++sentence) vocabulary_.learn(text, sentence);
  vocabulary_.precompute_forms();
  std::vector<LabelledTree> trees = read_trees(text, monitor);
  make_features();
  count(text, trees, monitor);
  return trees;
}

std::vector<LabelledTree> ArcEagerSpec::read_trees(const data::ColumnText& text, const Monitor& monitor) {
  std::vector<LabelledTree> trees(static_cast<std::size_t>(text.sentences()));
  std::map<std::int32_t, std::int64_t> roots;
  for (std::size_t s = 0; s < trees.size(); ++s) {
    LabelledTree& tree = trees[s];
    tree.heads.push_back(no_word);
    tree.labels.push_back(no_label);
    for (std::int64_t token = text.first_token(static_cast<std::int64_t>(s));
         token < text.first_token(static_cast<std::int64_t>(s) + 1); ++token) {
      tree.heads.push_back(text.heads()[static_cast<std::size_t>(token)]);
      tree.labels.push_back(labels_.add(text.field(token, conll::deprel)));
      if (tree.heads.back() == no_word) ++roots[tree.labels.back()];
    }
  }
  const auto is_rarer = [](const auto& a, const auto& b) { return a.second < b.second; };
  root_label_ = std::max_element(roots.begin(), roots.end(), is_rarer)->first;
  projectivise_all(trees, monitor);  // when all plain labels have their numbers
  if (labels_.size() >> class_bits != 0)
    throw std::invalid_argument("there are " + std::to_string(labels_.size()) +
                                " relations; is this the right column?");
  return trees;
}

// Makes the trees projective. If the label of a lifted word is too rare to be learnt, the word gets its plain
// label, and parsing cannot restore its true head.
void ArcEagerSpec::projectivise_all(std::span<LabelledTree> trees, const Monitor& monitor) {
  LabelSet all = labels_;
  for (LabelledTree& tree : trees) lifted_ += projectivise(tree, all, monitor);
  std::vector<std::int64_t> times(all.size(), 0);
  for (const LabelledTree& tree : trees) {
    for (std::size_t word = 1; word < tree.labels.size(); ++word)
      ++times[static_cast<std::size_t>(tree.labels[word])];
  }
  std::vector<std::int32_t> final_label(all.size());
  for (std::int32_t label = 0; label < static_cast<std::int32_t>(all.size()); ++label) {
    const std::int32_t head = all.head_label(label);
    const bool is_learnable = head != no_label && times[static_cast<std::size_t>(label)] >= min_lifted_count;
    final_label[static_cast<std::size_t>(label)] =
        is_learnable ? labels_.add_lifted(all.plain(label), head) : all.plain(label);
  }
  for (LabelledTree& tree : trees) {
    for (std::size_t word = 1; word < tree.labels.size(); ++word)
      tree.labels[word] = final_label[static_cast<std::size_t>(tree.labels[word])];
  }
}

void ArcEagerSpec::count(const data::ColumnText& text, std::span<const LabelledTree> trees,
                         const Monitor& monitor) {
  FeatureCounts move_counts = move_features_->no_counts();
  FeatureCounts arc_counts = arc_features_->no_counts();
  DecisionParts::Counts move_parts, arc_parts;
  SentenceSymbols symbols;
  ArcEagerState state;
  FeatureRow row;
  for (std::size_t s = 0; s < trees.size(); ++s) {
    vocabulary_.look_up(text, static_cast<std::int64_t>(s), symbols);
    for_each_canonical_move(trees[s], state, [&](Move move) {
      monitor.throw_if_stopped();
      move_features_->count(before_move(state, symbols), row, move_counts);
      DecisionParts::count(move_case(state, symbols), static_cast<std::int32_t>(move), move_parts);
      if (!makes_arc(move)) return;
      const Arc arc = arc_of(state, move);
      arc_features_->count(situation_of_arc(state, symbols, arc), row, arc_counts);
    });
    for (std::size_t word = 1; word < trees[s].heads.size(); ++word) {
      if (trees[s].heads[word] == no_word) continue;
      DecisionParts::count(arc_case({trees[s].heads[word], static_cast<Word>(word)}, symbols),
                           trees[s].labels[word], arc_parts);
    }
  }
  move_features_->assign_columns(move_counts, options_.min_count);
  arc_features_->assign_columns(arc_counts, options_.min_count);
  moves_.make_parts(move_parts, move_cases(), static_cast<std::int32_t>(Move::shift));
  arcs_.make_parts(arc_parts, arc_cases(), root_label_);
}

void ArcEagerSpec::restore(const Stored& stored) {
  for (std::size_t k = 0; k < string_attributes; ++k) {
    if (!vocabulary_.used()[k] && !stored.strings[k].empty())
      throw std::invalid_argument("the parser has strings of an attribute that no template uses");
  }
  vocabulary_.restore(stored.strings);
  const std::size_t lifted = stored.lifted_labels.size() / 2;
  if (stored.lifted_labels.size() % 2 != 0 || stored.labels.size() < 1)
    throw std::invalid_argument("the labels are damaged");
  for (const std::string_view name : stored.labels) labels_.add(name);
  const std::size_t plain = labels_.size();
  const auto is_plain_label = [&](std::int32_t label) {
    return label >= 0 && static_cast<std::size_t>(label) < plain;
  };
  for (std::size_t k = 0; k < lifted; ++k) {
    const std::int32_t label = stored.lifted_labels[2 * k], head = stored.lifted_labels[2 * k + 1];
    if (!is_plain_label(label) || !is_plain_label(head))
      throw std::invalid_argument("the labels of lifted words are damaged");
    labels_.add_lifted(label, head);
  }
  if (plain != stored.labels.size() || labels_.size() != plain + lifted || !is_plain_label(stored.root_label))
    throw std::invalid_argument("the labels are damaged");
  root_label_ = stored.root_label;
  make_features();
  move_features_->restore(stored.move_keys, stored.move_begins);
  arc_features_->restore(stored.arc_keys, stored.arc_begins);
  moves_.restore(stored.move_parts, stored.move_classes, move_cases(), move_count);
  arcs_.restore(stored.arc_parts, stored.arc_classes, arc_cases(), labels_.size());
}

}  // namespace unkernel::parsing
