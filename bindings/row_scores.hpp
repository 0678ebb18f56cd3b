// The scores of one row, in the forms that Python receives.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "unkernel/engines/vectors/pair_scores.hpp"

namespace unkernel::bindings {

// The scores of a row. Throws std::invalid_argument for scores that are not finite.
class RowScores {
 public:
  explicit RowScores(std::size_t count) : scores_(count) {}

  std::size_t size() const { return scores_.size(); }
  double* data() { return scores_.data(); }

  nb::object as_python() const {
    check_finite();
    return scores_.size() == 1 ? nb::object(nb::float_(scores_[0])) : list_of(scores_);
  }
  // Returns the score of an engine with a single score.
  double only() const {
    check_finite();
    return scores_.at(0);
  }
  // Returns one number per class, by votes and sums of pairs of classes.
  nb::object sum_votes(std::size_t classes) const {
    check_pairs(classes);
    check_finite();
    std::vector<double> merits(classes);
    engines::sum_votes(scores_, merits);
    return list_of(std::move(merits));
  }
  // Returns the index of the largest score. If there is a single score, returns 1 if it is positive (or zero,
  // if `zero_is_positive`), else 0.
  std::size_t choose(bool zero_is_positive) const {
    check_finite();
    if (scores_.size() == 1) return scores_[0] > 0.0 || (zero_is_positive && scores_[0] == 0.0) ? 1 : 0;
    return static_cast<std::size_t>(std::max_element(scores_.begin(), scores_.end()) - scores_.begin());
  }
  // Returns the index of the class that wins the most pairs.
  std::size_t choose_by_pairs(std::size_t classes, bool by_sums) const {
    check_pairs(classes);
    check_finite();
    return by_sums ? engines::choose_by_votes_and_sums(scores_, classes)
                   : engines::choose_by_votes(scores_, classes);
  }

 private:
  void check_pairs(std::size_t classes) const {
    if (classes > std::size_t{1} << 31 || scores_.size() != classes * (classes - 1) / 2)
      throw std::invalid_argument("the number of scores does not fit the number of classes");
  }
  void check_finite() const {
    for (const double score : scores_) {
      if (!std::isfinite(score))
        throw std::invalid_argument(
            "a score is not finite: the values are too large for the kernel; scale them");
    }
  }
  // Takes a copy of the numbers, because making a list may run Python code that scores other rows.
  static nb::object list_of(std::vector<double> numbers) {
    nb::list list;
    for (const double number : numbers) list.append(number);
    return list;
  }

  std::vector<double> scores_;
};

}  // namespace unkernel::bindings
