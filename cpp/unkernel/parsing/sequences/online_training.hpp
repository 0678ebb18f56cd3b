// Learns the classes of words online, from its mistakes: the averaged perceptron
// (online/averaged_weights.hpp), word by word in reading direction.
//
// From epoch `gold_epochs` on, the features of a word use the predicted classes of previous words, even if
// these are wrong, as they may be after training.
//
// Decisions may be split into parts, each with its own weights and classes. The classes of words without a
// part are given, not learnt.
//
// The result depends only on the input and the seed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/parsing/online/averaged_weights.hpp"
#include "unkernel/parsing/sequences/features.hpp"
#include "unkernel/parsing/sequences/reader.hpp"

namespace unkernel::parsing {

// The class of each token, and the part that decides it; the part is -1 if the class is given.
struct SequenceAnswers {
  std::vector<std::int32_t> classes;
  std::vector<std::int32_t> parts;
};

struct SequenceTrainingOptions {
  int degree;
  std::uint32_t min_updates;
  int gold_epochs;
  std::uint64_t seed;
};

// Counts the words that had more than one class to choose from, and the wrong predictions.
struct SequenceEpoch {
  std::int64_t words = 0;
  std::int64_t wrong = 0;
};

class SequenceTrainer {
 public:
  // The features must have learnt from this text; both must outlive the trainer. Throws std::invalid_argument
  // unless every answer is among the classes of its part, which must ascend.
  SequenceTrainer(const SequenceFeatures& features, const data::ColumnText& text, SequenceAnswers answers,
                  std::vector<std::vector<std::int32_t>> classes, const SequenceTrainingOptions& options);

  SequenceEpoch run_epoch(const Monitor& monitor);
  // Returns the classes that the current averages predict. Words without a part keep their given class.
  std::vector<std::int32_t> answers(const data::ColumnText& text, const SequenceAnswers& given,
                                    const Monitor& monitor);

  const std::vector<AveragedWeights>& parts() const { return weights_; }

 private:
  void learn_sentence(std::int64_t sentence, SequenceEpoch& counts);
  std::int32_t learn_word(std::size_t word, std::int64_t token, SequenceEpoch& counts);
  std::int32_t answer(std::size_t word, std::size_t part);

  const SequenceFeatures& features_;
  const data::ColumnText& text_;
  SequenceAnswers answers_;
  std::vector<std::vector<std::int32_t>> classes_;
  SequenceTrainingOptions options_;
  Random random_;
  int epochs_ = 0;
  std::vector<std::int64_t> order_;
  std::vector<AveragedWeights> weights_;
  SequenceReader reader_;
  Sequence words_;
  std::vector<std::int32_t> row_;
};

}  // namespace unkernel::parsing
