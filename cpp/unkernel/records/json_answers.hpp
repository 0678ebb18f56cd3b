// Writes the answers of classifiers of two classes as JSON.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace unkernel::records {

// The layout of records, and of answers, in a text: a single object, a list of objects, or one per line.
enum class JsonShape { one, list, lines };

// The probability of the second class is sigmoid(a * score + b).
struct JsonSigmoid {
  double a;
  double b;
  // If true, the probability of the first class is sigmoid(-(a * score + b)), else 1 minus the probability of
  // the second class. The two differ by rounding.
  bool log_linear;
};

class JsonAnswers {
 public:
  // `texts` has the texts before, between and after the numbers of an answer, for each class. The numbers are
  // the score and, with a sigmoid, the probabilities of both classes. A score of zero gives the second class
  // if `zero_is_positive`.
  JsonAnswers(std::array<std::vector<std::string>, 2> texts, std::optional<JsonSigmoid> sigmoid,
              bool zero_is_positive);

  // Appends the answer for a score to `out`. Numbers that are not finite are null.
  void append(double score, std::string& out) const;

 private:
  std::array<std::vector<std::string>, 2> texts_;
  std::optional<JsonSigmoid> sigmoid_;
  bool zero_is_positive_;
};

// The answers to the records of one text, in its shape.
class JsonAnswerText {
 public:
  JsonAnswerText(const JsonAnswers& answers, JsonShape shape) : answers_(answers), shape_(shape) {
    if (shape_ == JsonShape::list) text_ = "[";
  }

  void reserve(std::size_t bytes) { text_.reserve(bytes); }

  // Adds the answer of the next score.
  void add(double score);

  // Ends the text and returns it. No answer can be added after this call.
  const std::string& end();

 private:
  const JsonAnswers& answers_;
  JsonShape shape_;
  std::string text_;
};

}  // namespace unkernel::records
