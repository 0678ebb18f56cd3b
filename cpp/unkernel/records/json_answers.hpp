// Writes the answers of classifiers of two classes as JSON.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace unkernel::records {

// The probability of the second class, of a score: 1 / (1 + exp(a * score + b)).
struct JsonSigmoid {
  double a;
  double b;
};

class JsonAnswers {
 public:
  // The texts around the numbers of an answer, for each class: the score, and with a sigmoid the
  // probabilities of both classes as well. Scores of zero are the second class if `zero_is_positive`.
  JsonAnswers(std::array<std::vector<std::string>, 2> texts, std::optional<JsonSigmoid> sigmoid,
              bool zero_is_positive);

  // Writes the answer of a finite score behind `out`.
  void append(double score, std::string& out) const;

 private:
  std::array<std::vector<std::string>, 2> texts_;
  std::optional<JsonSigmoid> sigmoid_;
  bool zero_is_positive_;
};

}  // namespace unkernel::records
