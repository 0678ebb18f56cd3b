#include "unkernel/engines/vectors/pair_scores.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace unkernel::engines {

void add_pair_sums(const double* sums, std::size_t class_index, std::size_t classes, double* scores) {
  // Pairs with an earlier class: (earlier + 1, class_index) comes classes - 2 - earlier places after
  // (earlier, class_index).
  for (std::size_t earlier = 0, pair = class_index - 1; earlier < class_index;
       pair += classes - 2 - earlier, ++earlier)
    scores[pair] += sums[earlier];
  // Pairs with a later class: adjacent, from (class_index, class_index + 1) on.
  double* later_pairs = scores + class_index * (2 * classes - class_index - 1) / 2;
  for (std::size_t k = class_index; k < classes - 1; ++k) later_pairs[k - class_index] += sums[k];
}

void count_votes(std::span<const double> scores, std::span<std::int64_t> votes) {
  std::fill(votes.begin(), votes.end(), 0);
  const double* score = scores.data();
  for (std::size_t i = 0; i < votes.size(); ++i) {
    std::int64_t wins_of_i = 0;
    for (std::size_t j = i + 1; j < votes.size(); ++j) {
      const std::int64_t i_wins = *score++ > 0.0 ? 1 : 0;
      wins_of_i += i_wins;
      votes[j] += 1 - i_wins;
    }
    votes[i] += wins_of_i;
  }
}

void sum_votes(std::span<const double> scores, std::span<double> merits) {
  const std::size_t classes = merits.size();
  std::vector<double> sums(classes, 0.0);
  std::fill(merits.begin(), merits.end(), 0.0);
  const double* score = scores.data();
  for (std::size_t i = 0; i < classes; ++i) {
    for (std::size_t j = i + 1; j < classes; ++j, ++score) {
      merits[*score >= 0.0 ? i : j] += 1.0;
      sums[i] += *score;
      sums[j] -= *score;
    }
  }
  for (std::size_t k = 0; k < classes; ++k) merits[k] += sums[k] / (3.0 * (std::abs(sums[k]) + 1.0));
}

std::size_t choose_by_votes(std::span<const double> scores, std::size_t classes) {
  std::vector<std::int64_t> votes(classes);
  count_votes(scores, votes);
  return static_cast<std::size_t>(std::max_element(votes.begin(), votes.end()) - votes.begin());
}

std::size_t choose_by_votes_and_sums(std::span<const double> scores, std::size_t classes) {
  std::vector<double> merits(classes);
  sum_votes(scores, merits);
  return static_cast<std::size_t>(std::max_element(merits.begin(), merits.end()) - merits.begin());
}

}  // namespace unkernel::engines
