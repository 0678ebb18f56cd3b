#include "unkernel/parsing/chunks/decoder.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "unkernel/base/parallel.hpp"

namespace unkernel::parsing {
namespace {

constexpr std::int64_t sentences_at_once = 64;
constexpr std::int32_t no_class = -1;

// The buffers of one thread, reused from sentence to sentence.
class Decoder {
 public:
  Decoder(const data::ColumnText& text, const ChunkModel& model)
      : text_(text),
        model_(model),
        worker_(model.engine.worker()),
        scores_(std::max<std::size_t>(model.classes.size(), model.engine.scores())) {}

  void decode(std::int64_t sentence, std::span<ChunkTag> tags, const Monitor& monitor) {
    model_.features.read(text_, sentence, model_.backward, words_, room_);
    ChunkTag before = outside;
    for (std::size_t i = 0; i < tags.size(); ++i) {
      monitor.throw_if_stopped();
      score(i);
      const std::int32_t best = best_class(before, i + 1 == tags.size());
      before = best == no_class ? outside : model_.classes[static_cast<std::size_t>(best)];
      words_.set_tag(i, model_.features.tag_code(best));
      tags[model_.backward ? tags.size() - 1 - i : i] = before;
    }
    recode(tags, ChunkScheme::iob2, chunks_);
  }

 private:
  void score(std::size_t word) {
    model_.features.row(words_, word, row_);
    model_.engine.score(engines::SparseRow<std::int32_t>{row_}, *worker_, scores_.data());
    if (model_.engine.scores() == 1) {  // two classes have one score, that of the second
      scores_[1] = scores_[0];
      scores_[0] = -scores_[0];
    }
  }

  bool may_follow_read(ChunkTag before, ChunkTag after) const {
    return model_.backward ? may_follow(model_.scheme, after, before)
                           : may_follow(model_.scheme, before, after);
  }

  // The best valid class here. If the training text had neither O nor single-word chunks, there may be none;
  // then the word is outside.
  std::int32_t best_class(ChunkTag before, bool last) const {
    std::int32_t best = no_class;
    for (std::size_t k = 0; k < model_.classes.size(); ++k) {
      if (best != no_class && !(scores_[k] > scores_[static_cast<std::size_t>(best)])) continue;
      const ChunkTag tag = model_.classes[k];
      if (may_follow_read(before, tag) && (!last || may_follow_read(tag, outside)))
        best = static_cast<std::int32_t>(k);
    }
    return best;
  }

  const data::ColumnText& text_;
  const ChunkModel& model_;
  std::unique_ptr<engines::Worker> worker_;
  std::vector<double> scores_;
  ChunkSentence words_;
  std::string room_;
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
    throw std::invalid_argument("there are features of tags that the classifier does not have");
  for (const ChunkTag tag : model.classes) {
    if (tag < 0) throw std::invalid_argument("a tag is out of range");
  }
}

}  // namespace

std::vector<ChunkTag> chunk_text(const data::ColumnText& text, const ChunkModel& model, Threads threads) {
  check(model);
  std::vector<ChunkTag> tags(static_cast<std::size_t>(text.tokens()));
  const std::int64_t blocks = (text.sentences() + sentences_at_once - 1) / sentences_at_once;
  std::vector<std::unique_ptr<Decoder>> decoders(static_cast<std::size_t>(std::max(threads.count, 1)));
  parallel_slots(threads.count, blocks, [&](std::size_t slot, std::int64_t block) {
    if (decoders[slot] == nullptr) decoders[slot] = std::make_unique<Decoder>(text, model);
    const std::int64_t last = std::min(text.sentences(), (block + 1) * sentences_at_once);
    for (std::int64_t s = block * sentences_at_once; s < last; ++s) {
      const auto first = static_cast<std::size_t>(text.first_token(s));
      decoders[slot]->decode(
          s, std::span(tags).subspan(first, static_cast<std::size_t>(text.first_token(s + 1)) - first),
          *threads.monitor);
    }
  });
  return tags;
}

}  // namespace unkernel::parsing
