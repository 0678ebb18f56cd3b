// Answers are JSON that represents scores to the last bit.
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "unkernel/records/json_answers.hpp"

namespace {

using namespace unkernel::records;

std::string answer(const JsonAnswers& answers, double score) {
  std::string out = "before ";
  answers.append(score, out);
  return out;
}

JsonAnswers without_probabilities(bool zero_is_positive) {
  return JsonAnswers({{{"no ", "."}, {"yes ", "!"}}}, std::nullopt, zero_is_positive);
}

void check_numbers() {
  const JsonAnswers answers = without_probabilities(false);
  CHECK(answer(answers, 1.0) == "before yes 1.0!");
  CHECK(answer(answers, -0.1) == "before no -0.1.");
  CHECK(answer(answers, 1e-7) == "before yes 1e-07!");
  CHECK(answer(answers, -1e22) == "before no -1e+22.");
  CHECK(answer(answers, 1.0 / 3.0) == "before yes 0.3333333333333333!");
  CHECK(answer(answers, 123456789.0) == "before yes 123456789.0!");
}

void check_the_class_of_zero() {
  CHECK(answer(without_probabilities(false), 0.0) == "before no 0.0.");
  CHECK(answer(without_probabilities(true), 0.0) == "before yes 0.0!");
  CHECK(answer(without_probabilities(true), -0.0) == "before yes -0.0!");
}

void check_probabilities() {
  const JsonAnswers answers({{{"a", "b", "c", "d"}, {"A", "B", "C", "D"}}}, JsonSigmoid{-1.0, 0.0, false},
                            false);
  CHECK(answer(answers, 0.0) == "before a0.0b0.5c0.5d");
  CHECK(answer(answers, 1000.0) == "before A1000.0B0.0C1.0D");
  CHECK(answer(answers, -1000.0) == "before a-1000.0b1.0c0.0d");
}

void check_small_probabilities() {
  const JsonAnswers answers({{{"a", "b", "c", "d"}, {"A", "B", "C", "D"}}}, JsonSigmoid{-1.0, 0.0, true},
                            false);
  CHECK(answer(answers, 0.0) == "before a0.0b0.5c0.5d");
  CHECK(answer(answers, 100.0) == "before A100.0B3.7200759760208356e-44C1.0D");
  CHECK(answer(answers, -100.0) == "before a-100.0b1.0c3.7200759760208356e-44d");
}

void check_infinite_numbers() {
  const double infinity = std::numeric_limits<double>::infinity();
  const JsonAnswers answers({{{"a", "b", "c", "d"}, {"A", "B", "C", "D"}}}, JsonSigmoid{-1.0, 0.0, false},
                            false);
  CHECK(answer(answers, infinity) == "before AnullB0.0C1.0D");
  CHECK(answer(answers, std::numeric_limits<double>::quiet_NaN()) == "before anullbnullcnulld");
}

std::string text_of(JsonShape shape, std::vector<double> scores) {
  const JsonAnswers answers = without_probabilities(false);
  JsonAnswerText text(answers, shape);
  for (const double score : scores) text.add(score);
  return text.end();
}

void check_shapes() {
  CHECK(text_of(JsonShape::one, {1.0}) == "yes 1.0!");
  CHECK(text_of(JsonShape::list, {}) == "[]");
  CHECK(text_of(JsonShape::list, {1.0}) == "[yes 1.0!]");
  CHECK(text_of(JsonShape::list, {1.0, -1.0}) == "[yes 1.0!,no -1.0.]");
  CHECK(text_of(JsonShape::lines, {}).empty());
  CHECK(text_of(JsonShape::lines, {1.0, -1.0}) == "yes 1.0!\nno -1.0.\n");
}

void check_that_missing_texts_are_refused() {
  CHECK_THROWS((JsonAnswers({{{"a"}, {"b"}}}, std::nullopt, false)), std::invalid_argument);
  CHECK_THROWS((JsonAnswers({{{"a", "b"}, {"c", "d"}}}, JsonSigmoid{-1.0, 0.0, false}, false)),
               std::invalid_argument);
}

}  // namespace

int main() {
  check_numbers();
  check_the_class_of_zero();
  check_probabilities();
  check_small_probabilities();
  check_infinite_numbers();
  check_shapes();
  check_that_missing_texts_are_refused();
  return 0;
}
