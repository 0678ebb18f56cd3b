#include "unkernel/parsing/chunks/decoder.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>

#include "unkernel/base/elementary.hpp"
#include "unkernel/base/exponential.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/parsing/sequences/reader.hpp"

namespace unkernel::parsing {
namespace {

constexpr std::int64_t sentences_at_once = 64;
constexpr std::int32_t no_class = -1;

// The scores of classes are margins. A margin of 1 counts as log-odds of `sharpness`. Sums of margins would
// find worse tags than sums of log-probabilities, because a word with large margins would outvote its
// neighbours.
constexpr double sharpness = 2.0;
// A tagging is dropped if its log-probability is below that of the best tagging by more than this.
constexpr double max_log_odds_behind = 3.0;

void to_log_probabilities(std::span<double> scores) {
  const double largest = std::ranges::max(scores);
  double sum = 0.0;
  for (double& score : scores) {
    score = sharpness * (score - largest);
    double exponential = score;
    exponentials(1.0, &exponential, 1);
    sum += exponential;
  }
  const double log_sum = natural_logarithm(sum);
  for (double& score : scores) score -= log_sum;
}

// Replaces NaN, which huge weights can cause and which cannot be sorted.
double sortable(double score) { return std::isnan(score) ? -std::numeric_limits<double>::infinity() : score; }

// A tagging of the words read so far: the class of the last word, and a link to the tagging that it extends.
struct Tagging {
  double score;
  std::int32_t last;      // a class, or no_class
  std::int32_t previous;  // index of the extended tagging in the previous word's beam
};

// Decodes sentences with the buffers of one thread, reused for each sentence.
class Decoder {
 public:
  Decoder(const data::ColumnText& text, const ChunkModel& model)
      : text_(text),
        model_(model),
        worker_(model.engine.worker()),
        reader_(model.features),
        tags_used_(std::max<std::size_t>(model.features.tags_seen(), 1)),
        scores_(std::max<std::size_t>(model.classes.size(), model.engine.scores())) {}

  void decode(std::int64_t sentence, std::span<ChunkTag> tags, const Monitor& monitor) {
    reader_.forget_words_if_many();
    reader_.read({.text = text_, .backward = model_.backward}, sentence, words_);
    taggings_.clear();
    begins_.assign(1, 0);
    for (std::size_t i = 0; i < tags.size(); ++i) {
      monitor.throw_if_stopped();
      extend(i, i + 1 == tags.size());
    }
    std::int32_t place = 0;  // the best tagging comes first
    for (std::size_t i = tags.size(); i-- > 0;) {
      const Tagging& tagging = beam_of(i)[static_cast<std::size_t>(place)];
      tags[model_.backward ? tags.size() - 1 - i : i] = tag_of(tagging.last);
      place = tagging.previous;
    }
    recode(tags, ChunkScheme::iob2, chunks_);
  }

 private:
  ChunkTag tag_of(std::int32_t last) const {
    return last == no_class ? outside : model_.classes[static_cast<std::size_t>(last)];
  }

  // Returns the best taggings of the words up to this one, the best first.
  std::span<const Tagging> beam_of(std::size_t word) const {
    return std::span(taggings_).subspan(begins_[word], begins_[word + 1] - begins_[word]);
  }

  // Extends all taggings of the previous words by all tags of this word, and keeps the best extensions.
  void extend(std::size_t word, bool is_last) {
    extended_.clear();
    const std::size_t taggings = word == 0 ? 1 : beam_of(word - 1).size();
    for (std::size_t place = 0; place < taggings; ++place) {
      const Tagging* before = word == 0 ? nullptr : &beam_of(word - 1)[place];
      set_previous_tags(word, before);
      score(word);
      extend(before, static_cast<std::int32_t>(place), is_last);
    }
    // If the training text had neither O nor single-word chunks, there may be no valid tag. Then the word is
    // outside.
    if (extended_.empty())
      extended_.push_back({word == 0 ? 0.0 : beam_of(word - 1).front().score, no_class, 0});
    keep_best(word);
  }

  // Sets the tags of previous words that features of this word may use.
  void set_previous_tags(std::size_t word, const Tagging* tagging) {
    for (std::size_t k = 1; k <= std::min(word, tags_used_); ++k) {
      words_.set_tag(word - k, model_.features.tag_code(tagging->last));
      if (k < word) tagging = &beam_of(word - k - 1)[static_cast<std::size_t>(tagging->previous)];
    }
  }

  void score(std::size_t word) {
    model_.features.row(words_, word, row_);
    model_.engine.score(engines::SparseRow<std::int32_t>{row_}, *worker_, scores_.data());
    if (model_.engine.scores() == 1) {  // the score of the second of two classes
      scores_[1] = scores_[0];
      scores_[0] = -scores_[0];
    }
    if (model_.beam > 1) to_log_probabilities(std::span(scores_).first(model_.classes.size()));
  }

  // Returns whether a tag may follow another tag in reading direction.
  bool may_follow_in_reading(ChunkTag before, ChunkTag after) const {
    return model_.backward ? may_follow(model_.scheme, after, before)
                           : may_follow(model_.scheme, before, after);
  }

  void extend(const Tagging* before, std::int32_t place, bool is_last) {
    // With a beam of 1, the scores of a word alone decide its tag.
    const double sum = before == nullptr || model_.beam == 1 ? 0.0 : before->score;
    const ChunkTag last = before == nullptr ? outside : tag_of(before->last);
    for (std::size_t k = 0; k < model_.classes.size(); ++k) {
      const ChunkTag tag = model_.classes[k];
      if (may_follow_in_reading(last, tag) && (!is_last || may_follow_in_reading(tag, outside)))
        extended_.push_back({sortable(sum + scores_[k]), static_cast<std::int32_t>(k), place});
    }
  }

  // Keeps the best extensions. Taggings with the same last tags have the same further extensions, so only the
  // one with the largest score is kept.
  void keep_best(std::size_t word) {
    const auto is_better = [](const Tagging& a, const Tagging& b) { return a.score > b.score; };
    std::ranges::stable_sort(extended_, is_better);
    const std::size_t begin = taggings_.size();
    for (const Tagging& tagging : extended_) {
      const auto beam = std::span(taggings_).subspan(begin);
      if (beam.size() == model_.beam || tagging.score < extended_.front().score - max_log_odds_behind) break;
      const auto has_same_tags = [&](const Tagging& b) { return have_same_tags(word, tagging, b); };
      if (std::ranges::none_of(beam, has_same_tags)) taggings_.push_back(tagging);
    }
    begins_.push_back(taggings_.size());
  }

  // Returns whether two taggings end with the same tags, as far back as features can depend on tags.
  bool have_same_tags(std::size_t word, Tagging a, Tagging b) const {
    for (std::size_t k = 1;; ++k) {
      if (a.last != b.last) return false;
      if (k == tags_used_ || word == 0 || a.previous == b.previous) return true;
      --word;
      a = beam_of(word)[static_cast<std::size_t>(a.previous)];
      b = beam_of(word)[static_cast<std::size_t>(b.previous)];
    }
  }

  const data::ColumnText& text_;
  const ChunkModel& model_;
  std::unique_ptr<engines::Worker> worker_;
  SequenceReader reader_;
  std::size_t tags_used_;  // how many previous tags features can use
  std::vector<double> scores_;
  std::vector<Tagging> taggings_;    // the beams of all words, one after another
  std::vector<std::size_t> begins_;  // words + 1, into taggings_
  std::vector<Tagging> extended_;
  Sequence words_;
  std::vector<std::int32_t> row_;
  std::vector<Chunk> chunks_;
};

void check(const ChunkModel& model) {
  const std::size_t scores = model.engine.scores();
  if (model.classes.size() < 2 ||
      (scores != model.classes.size() && !(scores == 1 && model.classes.size() == 2))) {
    throw std::invalid_argument("the classifier must have one score per tag");
  }
  if (static_cast<std::size_t>(model.features.tags()) > model.classes.size())
    throw std::invalid_argument("features use tags that the classifier does not have");
  if (model.beam < 1 || model.beam > widest_beam)
    throw std::invalid_argument("the beam must be 1 to " + std::to_string(widest_beam));
  for (const ChunkTag tag : model.classes) {
    if (tag < 0) throw std::invalid_argument("a tag is out of range");
  }
}

}  // namespace

std::vector<ChunkTag> chunk_text(const data::ColumnText& text, const ChunkModel& model, Threads threads) {
  check(model);
  std::vector<ChunkTag> tags(static_cast<std::size_t>(text.tokens()));
  const std::int64_t blocks = (text.sentences() + sentences_at_once - 1) / sentences_at_once;
  const auto make = [&] { return std::make_unique<Decoder>(text, model); };
  parallel_workers(threads.count, blocks, make, [&](Decoder& decoder, std::int64_t block) {
    const std::int64_t last = std::min(text.sentences(), (block + 1) * sentences_at_once);
    for (std::int64_t s = block * sentences_at_once; s < last; ++s) {
      const auto first = static_cast<std::size_t>(text.first_token(s));
      decoder.decode(
          s, std::span(tags).subspan(first, static_cast<std::size_t>(text.first_token(s + 1)) - first),
          *threads.monitor);
    }
  });
  return tags;
}

}  // namespace unkernel::parsing
