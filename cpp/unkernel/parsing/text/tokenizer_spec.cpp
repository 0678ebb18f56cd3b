#include "unkernel/parsing/text/tokenizer_spec.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace unkernel::parsing {
namespace {

constexpr std::int64_t fewest_pairs = 200;  // fewer pairs may lack an exception in training by chance
constexpr std::int64_t per_exception = 1000;
constexpr std::int64_t fewest_uses = 3;
constexpr std::size_t pair_tables = 3;

// Looks up the gold boundaries of a text, in ascending order.
class GoldBoundaries {
 public:
  explicit GoldBoundaries(const SplitText& given) : given_(given) {
    bool consistent = given.ends.size() == given.boundaries.size();
    for (std::size_t k = 0; consistent && k < given.ends.size(); ++k) {
      consistent = given.ends[k] > (k == 0 ? 0 : given.ends[k - 1]) &&
                   given.ends[k] <= static_cast<std::int64_t>(given.text.size()) &&
                   given.boundaries[k] < boundary_count;
    }
    if (!consistent) throw std::invalid_argument("the ends of tokens do not match the text");
  }

  Boundary after(std::size_t end) {
    while (next_ < given_.ends.size() && given_.ends[next_] < static_cast<std::int64_t>(end)) ++next_;
    const bool ends = next_ < given_.ends.size() && given_.ends[next_] == static_cast<std::int64_t>(end);
    return ends ? static_cast<Boundary>(given_.boundaries[next_]) : Boundary::inside;
  }

 private:
  const SplitText& given_;
  std::size_t next_ = 0;
};

const auto ignore_token = [](const CharacterWindow&, const TokenFound&) {};

}  // namespace

TokenizerSpec::TokenizerSpec(const Stored& stored)
    : characters_(stored.characters),
      pairs_(stored.pairs.begin(), stored.pairs.end()),
      words_(stored.words.begin(), stored.words.end()),
      word_uses_(stored.uses.begin(), stored.uses.end()),
      features_(stored.features.begin(), stored.features.end()) {
  const std::size_t kinds = characters_.kinds();
  if (pairs_.empty()) pairs_.assign(pair_tables * kinds * kinds, use_classifier);
  if (pairs_.size() != pair_tables * kinds * kinds || std::ranges::max(pairs_) > use_classifier)
    throw std::invalid_argument("the tokenizer's table of neighbours is damaged");
  if (words_.size() != word_uses_.size()) throw std::invalid_argument("the tokenizer's words are damaged");
  if (features_.size() >= std::size_t{1} << 31)
    throw std::invalid_argument("the tokenizer has too many features");
  index_words();
  index_features();
}

void TokenizerSpec::index_words() {
  for (std::size_t k = 0; k < words_.size(); ++k) uses_[words_[k]] = word_uses_[k];
}

void TokenizerSpec::index_features() {
  for (std::size_t k = 0; k < features_.size(); ++k) column_of_[features_[k]] = static_cast<std::int32_t>(k);
}

void TokenizerSpec::learn(const SplitText& given, std::int64_t min_count, const Monitor& monitor) {
  learn_pairs(given, monitor);
  learn_uses(given, monitor);
  learn_features(given, min_count, monitor);
}

// Learns between which kinds of characters the boundary is known. No token ends before a combining mark that
// did not occur in training.
void TokenizerSpec::learn_pairs(const SplitText& given, const Monitor& monitor) {
  std::vector<std::array<std::int64_t, boundary_count>> counts(pairs_.size());
  GoldBoundaries gold(given);
  const auto count = [&](const CharacterWindow& text, std::size_t at, const SentenceSoFar&) {
    const Boundary found = gold.after(text.end_of(at));
    ++counts[pair(text, at)][static_cast<std::size_t>(found)];
    return found;
  };
  scan_text(characters_, given.text, count, ignore_token, monitor);
  const std::size_t kinds = characters_.kinds();
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const auto most = std::ranges::max_element(counts[k]);
    const std::int64_t all = counts[k][0] + counts[k][1] + counts[k][2];
    const bool known = all >= fewest_pairs && (all - *most) * per_exception <= all;
    pairs_[k] = known ? static_cast<std::uint8_t>(most - counts[k].begin()) : use_classifier;
    const bool mark_follows =
        k < kinds * kinds && characters_.shape(static_cast<Kind>(k % kinds)) == Shape::mark;
    if (all == 0 && mark_follows) pairs_[k] = static_cast<std::uint8_t>(Boundary::inside);
  }
}

void TokenizerSpec::learn_uses(const SplitText& given, const Monitor& monitor) {
  FlatMap<std::uint64_t, std::array<std::int32_t, 3>> counts;
  GoldBoundaries gold(given);
  bool first = true;
  const auto decide = [&](const CharacterWindow& text, std::size_t at, const SentenceSoFar&) {
    return gold.after(text.end_of(at));
  };
  const auto end = [&](const CharacterWindow& text, const TokenFound& token) {
    const TextWord word = BoundaryFeatures::word_at(characters_, text, token.first);
    auto& seen = counts[word.hash];
    seen[0] += !word.capital;
    seen[1] += word.capital && !first;
    seen[2] += first;
    first = token.boundary == Boundary::sentence;
  };
  scan_text(characters_, given.text, decide, end, monitor);
  std::vector<std::pair<std::uint64_t, std::uint8_t>> found;
  counts.for_each([&](std::uint64_t word, const std::array<std::int32_t, 3>& seen) {
    const auto bit = [&](std::size_t k, std::uint8_t use) { return seen[k] >= fewest_uses ? use : 0; };
    const int uses = bit(0, WordUse::lower) | bit(1, WordUse::upper_inside) | bit(2, WordUse::first);
    if (uses != 0) found.emplace_back(word, static_cast<std::uint8_t>(uses));
  });
  std::ranges::sort(found);
  for (const auto& [word, uses] : found) {
    words_.push_back(word);
    word_uses_.push_back(uses);
  }
  index_words();
}

namespace {

// Calls visit(features, answer) for each decision that needs a classifier.
template <class Visit>
void for_each_classifier_decision(const TokenizerSpec& spec, const SplitText& given, const Monitor& monitor,
                                  Visit&& visit) {
  GoldBoundaries gold(given);
  const BoundaryFeatures features = spec.features();
  std::vector<std::uint64_t> found;
  const auto decide = [&](const CharacterWindow& text, std::size_t at, const SentenceSoFar& sentence) {
    const Boundary answer = gold.after(text.end_of(at));
    if (spec.known_answer(text, at) == TokenizerSpec::use_classifier) {
      features.list(text, at, sentence, found);
      visit(found, answer);
    }
    return answer;
  };
  scan_text(spec.characters(), given.text, decide, ignore_token, monitor);
}

}  // namespace

void TokenizerSpec::learn_features(const SplitText& given, std::int64_t min_count, const Monitor& monitor) {
  FlatMap<std::uint64_t, std::int64_t> counts;
  std::vector<std::vector<std::uint64_t>> features_by_position;  // by position in the list of features
  for_each_classifier_decision(*this, given, monitor,
                               [&](const std::vector<std::uint64_t>& features, Boundary) {
                                 features_by_position.resize(features.size());
                                 for (std::size_t k = 0; k < features.size(); ++k) {
                                   if (++counts[features[k]] == min_count)
                                     features_by_position[k].push_back(features[k]);
                                 }
                               });
  for (const auto& features_of_position : features_by_position)
    features_.insert(features_.end(), features_of_position.begin(), features_of_position.end());
  index_features();
}

BoundaryRows TokenizerSpec::rows(const SplitText& given, const Monitor& monitor) const {
  BoundaryRows boundary_rows;
  std::vector<std::int32_t> columns;
  for_each_classifier_decision(
      *this, given, monitor, [&](const std::vector<std::uint64_t>& features, Boundary answer) {
        find_columns(column_of_, features, columns);
        boundary_rows.rows.columns.insert(boundary_rows.rows.columns.end(), columns.begin(), columns.end());
        boundary_rows.rows.end_row();
        boundary_rows.answers.push_back(static_cast<std::int32_t>(answer));
      });
  return boundary_rows;
}

}  // namespace unkernel::parsing
