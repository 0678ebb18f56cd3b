#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "engines/brute_force.hpp"
#include "engines/conjunctions/random_model.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/engines/conjunctions/row_contributions.hpp"

namespace {

using brute_force::Ranks;
using unkernel::Random;
using unkernel::engines::ConjunctionLookup;
using unkernel::engines::find_largest;
using unkernel::engines::LargestContributions;
using unkernel::engines::RowContributions;
using unkernel::kernels::Basis;
using unkernel::kernels::FeatureMap;

RandomModel random_model(Basis basis, int degree, std::size_t scores, Random& random) {
  RandomModel model({basis, {degree, FeatureMap::Kind::kernel, 0.5, 1.5}, 12, 40, scores}, random);
  std::vector<Ranks> chosen;
  for (Ranks& ranks : brute_force::all_conjunctions(12, degree, basis)) {
    if (random.below(2) == 0) chosen.push_back(std::move(ranks));
  }
  model.add(std::move(chosen), random);
  return model;
}

// Checks each contribution of a row, given as columns in any order, against the weights of the model.
void check_contributions(const RandomModel& model, const scoring::Row& row, const RowContributions& found) {
  std::size_t expected = 0;
  Ranks present;
  for (const auto& [column, value] : row) {
    if (model.rank_of.contains(column)) present.push_back(model.rank_of.at(column));
  }
  std::sort(present.begin(), present.end());
  for (const Ranks& ranks : brute_force::conjunctions(present, model.shape.map.degree, model.shape.basis))
    expected += model.weight_rows.contains(ranks);
  CHECK(found.size() == expected);
  for (std::size_t i = 0; i < found.size(); ++i) {
    Ranks ranks;
    std::vector<double> values;
    for (const std::int64_t column : found.columns_of(i)) {
      if (column < 0) continue;
      ranks.push_back(model.rank_of.at(column));
      values.push_back(row.at(column));
    }
    CHECK(std::is_sorted(ranks.rbegin(), ranks.rend()));
    const double factor = brute_force::factor(model.shape.map, model.shape.basis, values);
    const std::size_t weight_row = model.weight_rows.at(ranks);
    for (std::size_t s = 0; s < found.scores(); ++s)
      CHECK(close(found.values_of(i)[s], factor * model.weights[weight_row * found.scores() + s], 1e-12));
  }
}

void check_largest(const RowContributions& contributions, const std::vector<std::size_t>& shown,
                   std::size_t top) {
  const auto effect = [&](std::size_t i) {
    const auto values = contributions.values_of(i);
    return std::abs(shown.size() > 1 ? values[shown[0]] - values[shown[1]] : values[shown[0]]);
  };
  const LargestContributions largest = find_largest(contributions, shown, top);
  CHECK(largest.conjunctions.size() == std::min(top, largest.count));
  std::vector<bool> is_listed(contributions.size(), false);
  double least = INFINITY;
  for (const std::size_t i : largest.conjunctions) {
    CHECK(!is_listed[i] && effect(i) <= least);
    is_listed[i] = true;
    least = effect(i);
  }
  std::vector<double> rest(contributions.scores(), 0.0);
  for (std::size_t i = 0; i < contributions.size(); ++i) {
    if (is_listed[i]) continue;
    CHECK(top == 0 || effect(i) <= least);
    for (std::size_t s = 0; s < rest.size(); ++s) rest[s] += contributions.values_of(i)[s];
  }
  for (std::size_t s = 0; s < rest.size(); ++s) CHECK(close(largest.rest[s], rest[s], 1e-12));
}

void test_contributions_are_those_of_the_weights() {
  Random random(1);
  for (const Basis basis : {Basis::sets, Basis::monomials}) {
    for (int degree = 1; degree <= 3; ++degree) {
      for (const std::size_t scores : {1U, 3U}) {
        const RandomModel model = random_model(basis, degree, scores, random);
        const ConjunctionLookup lookup(model.view());
        for (const Values kind : {Values::ones, Values::mixed}) {
          scoring::Row row{{model.unknown_column(), 1.0}};
          for (const auto& [column, value] : entries_of(model, draw_ranks(12, 7, random), kind, random)) {
            if (value != 0.0) row[column] = value;
          }
          std::vector<std::int64_t> columns;
          std::vector<double> values;
          for (const auto& [column, value] : row) {
            columns.push_back(column);
            values.push_back(value);
          }
          const RowContributions found = lookup.find(columns, values);
          check_contributions(model, row, found);
          const scoring::Sums expected = model.slow_scores(row);
          for (std::size_t s = 0; s < scores; ++s) CHECK(close(found.total()[s], expected[s].value, 1e-11));
          for (const std::size_t top : {std::size_t{0}, std::size_t{3}, found.size(), found.size() + 5}) {
            check_largest(found, {0}, top);
            if (scores > 1) check_largest(found, {2, 1}, top);
          }
        }
      }
    }
  }
}

void test_rows_that_are_too_long_are_refused() {
  Random random(2);
  RandomModel model({Basis::sets, {3, FeatureMap::Kind::plain, 1.0, 1.0}, 400, 400, 1}, random);
  const ConjunctionLookup lookup(model.view());
  const std::vector<double> ones(400, 1.0);
  bool is_refused = false;
  try {
    lookup.find(model.columns, ones);
  } catch (const std::invalid_argument&) { is_refused = true; }
  CHECK(is_refused);
}

}  // namespace

int main() {
  test_contributions_are_those_of_the_weights();
  test_rows_that_are_too_long_are_refused();
  return 0;
}
