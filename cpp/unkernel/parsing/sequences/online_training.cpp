#include "unkernel/parsing/sequences/online_training.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace unkernel::parsing {
namespace {

std::size_t class_index(const std::vector<std::int32_t>& classes, std::int32_t number) {
  return static_cast<std::size_t>(std::ranges::lower_bound(classes, number) - classes.begin());
}

void check_answers(const SequenceAnswers& answers, std::int64_t tokens, std::size_t parts) {
  const auto is_out_of_range = [&](std::int32_t part) {
    return part < -1 || part >= static_cast<std::int32_t>(parts);
  };
  if (answers.parts.size() != static_cast<std::size_t>(tokens) ||
      answers.classes.size() != answers.parts.size() || std::ranges::any_of(answers.parts, is_out_of_range))
    throw std::invalid_argument("the answers do not fit the text");
}

}  // namespace

SequenceTrainer::SequenceTrainer(const SequenceFeatures& features, const data::ColumnText& text,
                                 SequenceAnswers answers, std::vector<std::vector<std::int32_t>> classes,
                                 const SequenceTrainingOptions& options)
    : features_(features),
      text_(text),
      answers_(std::move(answers)),
      classes_(std::move(classes)),
      options_(options),
      random_(options.seed),
      order_(static_cast<std::size_t>(text.sentences())),
      reader_(features) {
  check_answers(answers_, text.tokens(), classes_.size());
  for (std::size_t token = 0; token < answers_.classes.size(); ++token) {
    if (answers_.parts[token] < 0) continue;
    const auto& part_classes = classes_[static_cast<std::size_t>(answers_.parts[token])];
    if (!std::ranges::binary_search(part_classes, answers_.classes[token]))
      throw std::invalid_argument("a word has a class that its part does not have");
  }
  if (features.features() > AveragedWeights::most_columns)
    throw std::invalid_argument("there are " + std::to_string(features.features()) +
                                " features, but online learning supports at most " +
                                std::to_string(AveragedWeights::most_columns) + ": raise min_count");
  std::iota(order_.begin(), order_.end(), 0);
  for (const auto& part_classes : classes_)
    weights_.emplace_back(options.degree, part_classes.size(), options.min_updates, features.core_columns());
}

SequenceEpoch SequenceTrainer::run_epoch(const Monitor& monitor) {
  random_.shuffle(std::span(order_));
  SequenceEpoch counts;
  for (const std::int64_t sentence : order_) {
    monitor.throw_if_stopped();
    learn_sentence(sentence, counts);
  }
  ++epochs_;
  return counts;
}

void SequenceTrainer::learn_sentence(std::int64_t sentence, SequenceEpoch& counts) {
  reader_.read({.text = text_}, sentence, words_);
  const std::int64_t first = text_.first_token(sentence);
  for (std::size_t i = 0; i < words_.words(); ++i) {
    const std::int32_t shown = learn_word(i, first + static_cast<std::int64_t>(i), counts);
    words_.set_tag(i, features_.tag_code(shown));
  }
}

// Learns from one word. Returns the class that the following words use as its tag.
std::int32_t SequenceTrainer::learn_word(std::size_t word, std::int64_t token, SequenceEpoch& counts) {
  const auto place = static_cast<std::size_t>(token);
  if (answers_.parts[place] < 0) return answers_.classes[place];
  const auto part = static_cast<std::size_t>(answers_.parts[place]);
  const std::vector<std::int32_t>& classes = classes_[part];
  if (classes.size() == 1) return classes.front();
  AveragedWeights& weights = weights_[part];
  features_.row(words_, word, row_);
  const std::span<const float> scores = weights.score(row_);
  weights.next_example();
  const std::size_t correct = class_index(classes, answers_.classes[place]);
  const std::size_t wrong = best_except(scores, correct);
  ++counts.words;
  if (scores[wrong] < scores[correct]) return classes[correct];
  ++counts.wrong;
  weights.update(correct, wrong);
  return classes[epochs_ < options_.gold_epochs ? correct : wrong];
}

std::vector<std::int32_t> SequenceTrainer::answers(const data::ColumnText& text, const SequenceAnswers& given,
                                                   const Monitor& monitor) {
  check_answers(given, text.tokens(), classes_.size());
  for (AveragedWeights& weights : weights_) weights.update_rounding_unit();
  std::vector<std::int32_t> predicted;
  for (std::int64_t sentence = 0; sentence < text.sentences(); ++sentence) {
    monitor.throw_if_stopped();
    reader_.read({.text = text}, sentence, words_);
    for (std::size_t i = 0; i < words_.words(); ++i) {
      const std::int32_t part = given.parts[predicted.size()];
      predicted.push_back(part < 0 ? given.classes[predicted.size()]
                                   : answer(i, static_cast<std::size_t>(part)));
      words_.set_tag(i, features_.tag_code(predicted.back()));
    }
  }
  return predicted;
}

std::int32_t SequenceTrainer::answer(std::size_t word, std::size_t part) {
  const std::vector<std::int32_t>& classes = classes_[part];
  if (classes.size() == 1) return classes.front();
  features_.row(words_, word, row_);
  const std::span<const double> scores = weights_[part].averaged_score(row_);
  return classes[static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin())];
}

}  // namespace unkernel::parsing
