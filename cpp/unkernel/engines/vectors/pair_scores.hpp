// The scores of k classes one against one, in the order of the pairs (0, 1), (0, 2), ..., (1, 2), ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace unkernel::engines {

// Adds `sums`, which has one entry per class other than c = class_index, to the scores of the pairs with
// class c. The scores of (c, c + 1), (c, c + 2), ... are adjacent; the scores of (0, c), (1, c), ... are not.
void add_pair_sums(const double* sums, std::size_t class_index, std::size_t classes, double* scores);

// Counts the pairs that each class wins: class i wins the pair i < j if the score is above 0.
void count_votes(std::span<const double> scores, std::span<std::int64_t> votes);

// Counts the pairs that each class wins by scikit-learn's rule: i also wins at a score of 0. Adds less than
// half a vote, which grows with the sum of the class's scores, to break ties.
void sum_votes(std::span<const double> scores, std::span<double> merits);

// Return the class with the most votes; among equals, the first.
std::size_t choose_by_votes(std::span<const double> scores, std::size_t classes);
std::size_t choose_by_votes_and_sums(std::span<const double> scores, std::size_t classes);

}  // namespace unkernel::engines
