#include "unkernel/parsing/tagging/tagger.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>

#include "unkernel/base/parallel.hpp"
#include "unkernel/parsing/features/part_scorer.hpp"
#include "unkernel/parsing/sequences/reader.hpp"

namespace unkernel::parsing {
namespace {

constexpr std::int64_t sentences_at_once = 64;

using Answers = std::vector<std::vector<std::int32_t>>;

void check_engines(std::span<const ScoredColumn> columns) {
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const auto& [column, engines] = columns[k];
    bool consistent = engines.size() == column.classes.size() && column.split <= k;
    for (std::size_t part = 0; consistent && part < engines.size(); ++part) {
      const std::size_t classes = column.classes[part].size();
      consistent = classes == 1
                       ? engines[part] == nullptr
                       : engines[part] != nullptr && engines[part]->scores() == (classes == 2 ? 1 : classes);
    }
    if (!consistent) throw std::invalid_argument("the classifiers of a column do not fit its classes");
  }
}

// Decides the words of one column, with the buffers of one thread, reused for each sentence.
class ColumnDecider {
 public:
  ColumnDecider(const ScoredColumn& scored, std::span<const GivenColumn> before)
      : column_(scored.column),
        engines_(scored.engines),
        uses_word_alone_(!column_.features.look_around()),
        reader_(column_.features, before),
        parts_(engines_.size()) {}

  void decide(const data::ColumnText& text, std::int64_t sentence, Answers& answers,
              std::size_t column_number, const Monitor& monitor) {
    if (reader_.forget_words_if_many()) cache_.clear();
    reader_.read({.text = text}, sentence, words_);
    const auto first = static_cast<std::size_t>(text.first_token(sentence));
    for (std::size_t i = 0; i < words_.words(); ++i) {
      monitor.throw_if_stopped();  // a sentence may be long
      const std::size_t token = first + i;
      const std::int32_t predicted = decide_word(i, part_of(answers, token));
      answers[column_number][token] = predicted;
      words_.set_tag(i, column_.features.tag_code(predicted));
    }
  }

 private:
  // The cached decision about a word in a part: undecided, dependent on the context, or the class plus
  // `first_class`.
  static constexpr std::int32_t undecided = 0;
  static constexpr std::int32_t by_context = 1;
  static constexpr std::int32_t first_class = 2;

  std::size_t part_of(const Answers& answers, std::size_t token) const {
    if (column_.split == 0) return 0;
    std::int32_t classes[most_split_columns] = {};
    for (std::size_t k = 0; k < column_.split; ++k) classes[k] = answers[k][token];
    const std::int32_t* part = column_.part_of.find(case_of(std::span(classes).first(column_.split)));
    return part == nullptr ? 0 : static_cast<std::size_t>(*part - 1);
  }

  std::int32_t decide_word(std::size_t word, std::size_t part) {
    std::int32_t& cached = cache_[word_in_part(reader_.number(word), part)];
    if (cached == undecided) cached = decide_without_context(word, part);
    return cached == by_context ? decide_by_scores(word, part) : cached - first_class;
  }

  std::int32_t decide_without_context(std::size_t word, std::size_t part) {
    const CertainClasses& certain = column_.certain;
    const std::int32_t known = certain.words.find(reader_.form(word));
    const std::int32_t* predicted = known < 0 ? nullptr : certain.classes.find(word_in_part(known, part));
    if (predicted != nullptr) return first_class + *predicted - 1;
    const std::vector<std::int32_t>& classes = column_.classes[part];
    if (classes.size() == 1) return first_class + classes.front();
    return uses_word_alone_ ? first_class + decide_by_scores(word, part) : by_context;
  }

  std::int32_t decide_by_scores(std::size_t word, std::size_t part) {
    const std::vector<std::int32_t>& classes = column_.classes[part];
    column_.features.row(words_, word, row_);
    if (!parts_[part]) parts_[part].emplace(engines_[part], classes.size());
    const std::span<const double> scores = parts_[part]->decide(row_);
    return classes[static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin())];
  }

  const TagColumn& column_;
  std::span<const engines::Engine* const> engines_;
  bool uses_word_alone_;  // no feature uses other words or tags
  SequenceReader reader_;
  FlatMap<std::uint64_t, std::int32_t> cache_;    // by word_in_part, with the reader's word numbers
  std::vector<std::optional<PartScorer>> parts_;  // created on first use, because most texts use few parts
  Sequence words_;
  std::vector<std::int32_t> row_;
};

class SentenceTagger {
 public:
  SentenceTagger(const data::ColumnText& text, std::span<const ScoredColumn> columns, Answers& answers)
      : text_(text), answers_(answers) {
    for (std::size_t k = 0; k < columns.size(); ++k)
      given_.push_back({columns[k].column.text_column, answers[k], columns[k].column.names});
    for (std::size_t k = 0; k < columns.size(); ++k)
      deciders_.emplace_back(columns[k], std::span(given_).first(k));
  }

  void tag(std::int64_t sentence, const Monitor& monitor) {
    for (std::size_t k = 0; k < deciders_.size(); ++k)
      deciders_[k].decide(text_, sentence, answers_, k, monitor);
  }

 private:
  const data::ColumnText& text_;
  Answers& answers_;
  std::vector<GivenColumn> given_;
  std::vector<ColumnDecider> deciders_;
};

}  // namespace

std::uint64_t case_of(std::span<const std::int32_t> classes) {
  std::uint64_t number = 0;
  for (const std::int32_t one : classes) number = number << 32 | static_cast<std::uint32_t>(one);
  return number;
}

void check(const TagColumn& column) {
  const auto names = static_cast<std::int32_t>(column.names.size());
  bool consistent =
      !column.classes.empty() && column.split <= most_split_columns && column.features.tags() <= names;
  for (const std::vector<std::int32_t>& classes : column.classes)
    consistent = consistent && !classes.empty() && std::ranges::is_sorted(classes) && classes.front() >= 0 &&
                 classes.back() < names;
  const auto parts = static_cast<std::int32_t>(column.classes.size());
  column.part_of.for_each(
      [&](std::uint64_t, std::int32_t part) { consistent = consistent && part >= 1 && part <= parts; });
  column.certain.classes.for_each([&](std::uint64_t, std::int32_t predicted) {
    consistent = consistent && predicted >= 1 && predicted <= names;
  });
  if (!consistent) throw std::invalid_argument("the classes of a column do not fit its parts");
}

std::vector<std::vector<std::int32_t>> tag_text(const data::ColumnText& text,
                                                std::span<const ScoredColumn> columns, Threads threads) {
  check_engines(columns);
  Answers answers(columns.size(), std::vector<std::int32_t>(static_cast<std::size_t>(text.tokens())));
  const std::int64_t blocks = (text.sentences() + sentences_at_once - 1) / sentences_at_once;
  const auto make = [&] { return std::make_unique<SentenceTagger>(text, columns, answers); };
  parallel_workers(threads.count, blocks, make, [&](SentenceTagger& tagger, std::int64_t block) {
    const std::int64_t last = std::min(text.sentences(), (block + 1) * sentences_at_once);
    for (std::int64_t s = block * sentences_at_once; s < last; ++s) tagger.tag(s, *threads.monitor);
  });
  return answers;
}

}  // namespace unkernel::parsing
