// An arc-eager parser without its weights: templates, strings, labels, features, and the classifiers among
// which decisions are divided.
//
// There are two kinds of decisions: the next move, and the label of an arc that a move makes. Each kind may
// be split into parts by a tag (Yamada & Matsumoto 2003; section 5 of Chang et al.). Each part has a
// classifier, which chooses among the classes that occurred in this part in training.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/data/text/column_text.hpp"
#include "unkernel/parsing/arc_eager/features.hpp"
#include "unkernel/parsing/arc_eager/projective.hpp"

namespace unkernel::parsing {

// Returns the index of a class in an ascending list of classes, or the size of the list if it is not there.
inline std::size_t index_of_class(const std::vector<std::int32_t>& classes, std::int32_t number) {
  const auto place = std::lower_bound(classes.begin(), classes.end(), number);
  if (place == classes.end() || *place != number) return classes.size();
  return static_cast<std::size_t>(place - classes.begin());
}

// Divides the decisions of one kind into parts. A decision has a case (such as the tag of the next word),
// each case belongs to a part, and each part has its own classes.
class DecisionParts {
 public:
  std::size_t size() const { return classes_.size(); }
  const std::vector<std::int32_t>& classes(std::size_t part) const { return classes_[part]; }
  // Returns the part of a case. Cases that did not occur in training belong to the first part.
  std::size_t part_of(std::size_t case_number) const {
    return static_cast<std::size_t>(part_of_case_[case_number]);
  }
  const std::vector<std::int32_t>& part_of_case() const { return part_of_case_; }

  // How often each class occurs in each case.
  using Counts = FlatMap<std::uint64_t, std::int64_t>;
  static void count(std::size_t case_number, std::int32_t decision, Counts& counts);
  // Creates one part per case that has counts, with the classes of the case; the most frequent case comes
  // first. If there are no counts, creates one part with the class `default_class`.
  void make_parts(const Counts& counts, std::size_t cases, std::int32_t default_class);
  // Throws std::invalid_argument unless every case has a part, and every part has classes below `limit`.
  void restore(std::vector<std::int32_t> part_of_case, std::vector<std::vector<std::int32_t>> classes,
               std::size_t cases, std::size_t limit);

 private:
  std::vector<std::int32_t> part_of_case_;
  std::vector<std::vector<std::int32_t>> classes_;
};

struct SpecOptions {
  bool split_moves;        // by the xpos tag of the next word
  bool split_labels;       // by the upos tag of the dependent and the side of its head
  std::int64_t min_count;  // the fewest occurrences of a feature in training
};

class ArcEagerSpec {
 public:
  ArcEagerSpec(const std::string& file, std::string_view template_text, const SpecOptions& options,
               Lexicon clusters = {});
  ArcEagerSpec(const ArcEagerSpec&) = delete;
  ArcEagerSpec& operator=(const ArcEagerSpec&) = delete;

  // Learns strings, labels, features and parts from a treebank, which must have heads. Returns its trees,
  // made projective.
  std::vector<LabelledTree> learn(const data::ColumnText& text, const Monitor& monitor);

  const SpecOptions& options() const { return options_; }
  const ParserTemplates& templates() const { return templates_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  // Looks up the words of a sentence.
  void look_up(const data::ColumnText& text, std::int64_t sentence, SentenceSymbols& symbols) const {
    vocabulary_.look_up(text, sentence, symbols);
    move_features_->look_up(symbols, symbols.move_columns);
    arc_features_->look_up(symbols, symbols.arc_columns);
  }
  const LabelSet& labels() const { return labels_; }
  std::int32_t root_label() const { return root_label_; }
  const DecisionParts& moves() const { return moves_; }
  const DecisionParts& arcs() const { return arcs_; }
  const FeatureSpace& move_features() const { return *move_features_; }
  const FeatureSpace& arc_features() const { return *arc_features_; }
  std::size_t lifted() const { return lifted_; }

  std::size_t move_part(const ArcEagerState& state, const SentenceSymbols& symbols) const {
    return moves_.part_of(move_case(state, symbols));
  }
  std::size_t arc_part(const Arc& arc, const SentenceSymbols& symbols) const {
    return arcs_.part_of(arc_case(arc, symbols));
  }

  // The spec as files store it. restore() throws std::invalid_argument if it is inconsistent.
  struct Stored {
    std::array<std::vector<std::string_view>, string_attributes> strings;
    std::vector<std::string_view> labels;
    // By lifted label (numbered after plain labels): its plain label, and the label of the true head.
    std::vector<std::int32_t> lifted_labels;
    std::int32_t root_label;
    std::vector<std::int32_t> move_parts, arc_parts;
    std::vector<std::vector<std::int32_t>> move_classes, arc_classes;
    std::span<const FeatureKey> move_keys, arc_keys;
    std::span<const std::int64_t> move_begins, arc_begins;
  };
  void restore(const Stored& stored);

 private:
  // Returns the case of a move; unknown tags have case 0.
  std::size_t move_case(const ArcEagerState& state, const SentenceSymbols& symbols) const {
    return options_.split_moves ? static_cast<std::size_t>(symbols.of(Attribute::xpos, state.next()) + 1) : 0;
  }
  std::size_t arc_case(const Arc& arc, const SentenceSymbols& symbols) const {
    const auto tag = static_cast<std::size_t>(symbols.of(Attribute::upos, arc.child) + 1);
    return options_.split_labels ? 2 * tag + (arc.child < arc.head ? 1 : 0) : 0;
  }
  std::size_t move_cases() const {
    return options_.split_moves ? vocabulary_.symbols(Attribute::xpos) + 1 : 1;
  }
  std::size_t arc_cases() const {
    return options_.split_labels ? 2 * (vocabulary_.symbols(Attribute::upos) + 1) : 1;
  }

  std::vector<LabelledTree> read_trees(const data::ColumnText& text, const Monitor& monitor);
  void projectivise_all(std::span<LabelledTree> trees, const Monitor& monitor);
  void make_features();
  void count(const data::ColumnText& text, std::span<const LabelledTree> trees, const Monitor& monitor);

  SpecOptions options_;
  ParserTemplates templates_;
  Vocabulary vocabulary_;
  LabelSet labels_;
  std::int32_t root_label_ = no_label;
  std::size_t lifted_ = 0;
  DecisionParts moves_;
  DecisionParts arcs_;
  std::unique_ptr<FeatureSpace> move_features_;
  std::unique_ptr<FeatureSpace> arc_features_;
};

// Return the situations in which the next move is chosen, and in which an arc is labelled.
inline Situation before_move(const ArcEagerState& state, const SentenceSymbols& symbols) {
  return {state, symbols, symbols.move_columns, {state.top(), state.next()}};
}
inline Situation situation_of_arc(const ArcEagerState& state, const SentenceSymbols& symbols,
                                  const Arc& arc) {
  return {state, symbols, symbols.arc_columns, arc};
}

// Applies the canonical moves of a tree, and calls visit(move) before each move.
template <class Visit>
void for_each_canonical_move(const LabelledTree& tree, ArcEagerState& state, const Visit& visit) {
  state.begin(tree.heads.size() - 1);
  while (!state.finished()) {
    const Move move = canonical_move(state, tree.heads);
    visit(move);
    apply(state, move,
          makes_arc(move) ? tree.labels[static_cast<std::size_t>(arc_of(state, move).child)] : no_label);
  }
}

}  // namespace unkernel::parsing
