// The scores of k classes one against one, ordered by pairs (0, 1), (0, 2), ..., (1, 2), ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace unkernel::engines {

// Adds `sums`, one per class other than c, to the scores of the pairs with class c. The scores of (c, c + 1),
// (c, c + 2), ... are adjacent; the scores of (0, c), (1, c), ... are not.
void add_pair_sums(const double* sums, std::size_t c, std::size_t classes, double* scores);

// Counts the pairs that each class wins: pair i < j is won by i if its score is above 0.
void count_votes(std::span<const double> scores, std::span<std::int64_t> votes);

// Counts the pairs by scikit-learn's rule: i also wins at a score of 0. Adds a term of less than half a vote
// that grows with the sum of the scores of a class.
void sum_votes(std::span<const double> scores, std::span<double> merits);

// Return the first of the classes with the most votes.
std::size_t choose_by_votes(std::span<const double> scores, std::size_t classes);
std::size_t choose_by_votes_and_sums(std::span<const double> scores, std::size_t classes);

}  // namespace unkernel::engines
