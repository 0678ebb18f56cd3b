#include "unkernel/parsing/tagging/tagger.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "unkernel/base/parallel.hpp"
#include "unkernel/parsing/features/part_scorer.hpp"

namespace unkernel::parsing {
namespace {

constexpr std::int64_t sentences_at_once = 64;

using Answers = std::vector<std::vector<std::int32_t>>;

void check(std::span<const TagColumn> columns) {
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const TagColumn& column = columns[k];
    bool sound = !column.classes.empty() && column.engines.size() == column.classes.size() &&
                 column.split <= std::min(k, most_split_columns) &&
                 static_cast<std::size_t>(column.features.tags()) <= column.names.size();
    for (std::size_t part = 0; sound && part < column.classes.size(); ++part) {
      const std::vector<std::int32_t>& own = column.classes[part];
      const engines::Engine* engine = column.engines[part];
      sound = !own.empty() && std::ranges::is_sorted(own) && own.front() >= 0 &&
              static_cast<std::size_t>(own.back()) < column.names.size() &&
              (own.size() == 1 ? engine == nullptr
                               : engine != nullptr && engine->scores() == (own.size() == 2 ? 1 : own.size()));
    }
    column.part_of.for_each([&](std::uint64_t, std::int32_t part) {
      sound = sound && part >= 1 && static_cast<std::size_t>(part) <= column.classes.size();
    });
    if (!sound) throw std::invalid_argument("the classifiers of a column do not fit its classes");
  }
}

// Decides the words of one column; the buffers of one thread, reused from sentence to sentence.
class ColumnDecider {
 public:
  explicit ColumnDecider(const TagColumn& column)
      : column_(column), by_word_(!column.features.look_around()) {
    for (std::size_t part = 0; part < column.classes.size(); ++part)
      parts_.emplace_back(column.engines[part], column.classes[part].size());
  }

  void decide(const SequenceText& text, std::int64_t sentence, Answers& answers, std::size_t own) {
    column_.features.read(text, sentence, words_, room_);
    const auto first = static_cast<std::size_t>(text.text.first_token(sentence));
    for (std::size_t i = 0; i < words_.words(); ++i) {
      const std::size_t token = first + i;
      const std::int32_t found = decide_word(i, part_of(answers, token));
      answers[own][token] = found;
      words_.set_tag(i, column_.features.tag_code(found));
    }
  }

 private:
  std::size_t part_of(const Answers& answers, std::size_t token) const {
    std::int32_t classes[most_split_columns] = {};
    for (std::size_t k = 0; k < column_.split; ++k) classes[k] = answers[k][token];
    const std::int32_t* part = column_.part_of.find(case_of(std::span(classes).first(column_.split)));
    return part == nullptr ? 0 : static_cast<std::size_t>(*part - 1);
  }

  std::int32_t decide_word(std::size_t word, std::size_t part) {
    const std::vector<std::int32_t>& classes = column_.classes[part];
    if (classes.size() == 1) return classes.front();
    if (!by_word_) return decide_by_scores(word, part);
    key_.clear();
    append_bytes(static_cast<std::int32_t>(part));
    for (std::size_t a = 0; a < column_.features.values().size(); ++a) append_bytes(*words_.at(a, word));
    if (known_.size() == most_known) known_.clear();
    const auto [place, is_new] = known_.try_emplace(key_, 0);
    if (is_new) place->second = decide_by_scores(word, part);
    return place->second;
  }

  void append_bytes(std::int32_t code) { key_.append(reinterpret_cast<const char*>(&code), sizeof code); }

  std::int32_t decide_by_scores(std::size_t word, std::size_t part) {
    const std::vector<std::int32_t>& classes = column_.classes[part];
    column_.features.row(words_, word, row_);
    const std::span<const double> scores = parts_[part].decide(row_);
    return classes[static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin())];
  }

  static constexpr std::size_t most_known = std::size_t{1} << 16;

  const TagColumn& column_;
  bool by_word_;  // decisions depend on the word alone, and are remembered
  std::unordered_map<std::string, std::int32_t> known_;
  std::string key_;
  std::vector<PartScorer> parts_;
  Sequence words_;
  std::string room_;
  std::vector<std::int32_t> row_;
};

class SentenceTagger {
 public:
  SentenceTagger(const data::ColumnText& text, std::span<const TagColumn> columns, Answers& answers)
      : text_(text), answers_(answers) {
    for (std::size_t k = 0; k < columns.size(); ++k) {
      deciders_.emplace_back(columns[k]);
      given_.push_back({columns[k].text_column, answers[k], columns[k].names});
    }
  }

  void tag(std::int64_t sentence) {
    for (std::size_t k = 0; k < deciders_.size(); ++k) {
      const SequenceText seen{.text = text_, .given = std::span(given_).first(k)};
      deciders_[k].decide(seen, sentence, answers_, k);
    }
  }

 private:
  const data::ColumnText& text_;
  Answers& answers_;
  std::vector<ColumnDecider> deciders_;
  std::vector<GivenColumn> given_;
};

}  // namespace

std::uint64_t case_of(std::span<const std::int32_t> classes) {
  std::uint64_t number = 0;
  for (const std::int32_t one : classes) number = number << 32 | static_cast<std::uint32_t>(one);
  return number;
}

std::vector<std::vector<std::int32_t>> tag_text(const data::ColumnText& text,
                                                std::span<const TagColumn> columns, Threads threads) {
  check(columns);
  Answers answers(columns.size(), std::vector<std::int32_t>(static_cast<std::size_t>(text.tokens())));
  const std::int64_t blocks = (text.sentences() + sentences_at_once - 1) / sentences_at_once;
  std::vector<std::unique_ptr<SentenceTagger>> taggers(static_cast<std::size_t>(std::max(threads.count, 1)));
  parallel_slots(threads.count, blocks, [&](std::size_t slot, std::int64_t block) {
    if (taggers[slot] == nullptr) taggers[slot] = std::make_unique<SentenceTagger>(text, columns, answers);
    const std::int64_t last = std::min(text.sentences(), (block + 1) * sentences_at_once);
    for (std::int64_t s = block * sentences_at_once; s < last; ++s) {
      threads.monitor->throw_if_stopped();
      taggers[slot]->tag(s);
    }
  });
  return answers;
}

}  // namespace unkernel::parsing
