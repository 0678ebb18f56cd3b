#include "unkernel/records/json_answers.hpp"

#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "unkernel/base/probability.hpp"

namespace unkernel::records {
namespace {

constexpr std::size_t longest_json_number = 32;

// Appends the fewest digits that identify the number. A number without an exponent has a point, so that
// readers do not take 1.0 for an integer.
void append_json_number(double number, std::string& out) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  std::array<char, longest_json_number> digits;
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  const std::string_view written(digits.data(), static_cast<std::size_t>(end - digits.data()));
  out += written;
  if (written.find_first_of(".e") == std::string_view::npos) out += ".0";
}

}  // namespace

JsonAnswers::JsonAnswers(std::array<std::vector<std::string>, 2> texts, std::optional<JsonSigmoid> sigmoid,
                         bool zero_is_positive)
    : texts_(std::move(texts)), sigmoid_(sigmoid), zero_is_positive_(zero_is_positive) {
  const std::size_t count = sigmoid_ ? 4 : 2;  // one more than the numbers of an answer
  if (texts_[0].size() != count || texts_[1].size() != count)
    throw std::invalid_argument("the texts of answers do not fit their numbers");
}

void JsonAnswers::append(double score, std::string& out) const {
  const bool is_second_class = score > 0 || (zero_is_positive_ && score == 0);
  const std::vector<std::string>& texts = texts_[is_second_class ? 1 : 0];
  out += texts[0];
  append_json_number(score, out);
  out += texts[1];
  if (!sigmoid_) return;
  const double exponent = sigmoid_->a * score + sigmoid_->b;
  const double probability = sigmoid(exponent);
  append_json_number(sigmoid_->log_linear ? sigmoid(-exponent) : 1.0 - probability, out);
  out += texts[2];
  append_json_number(probability, out);
  out += texts[3];
}

void JsonAnswerText::add(double score) {
  if (shape_ == JsonShape::list && text_.size() > 1) text_ += ',';
  answers_.append(score, text_);
  if (shape_ == JsonShape::lines) text_ += '\n';
}

const std::string& JsonAnswerText::end() {
  if (shape_ == JsonShape::list) text_ += ']';
  return text_;
}

}  // namespace unkernel::records
