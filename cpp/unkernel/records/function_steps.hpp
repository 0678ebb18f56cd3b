// Steps that apply functions to each number of a block: elementary functions, power transforms, quantiles and
// splines. NaN stays NaN unless a comment says otherwise. The formulas are those of NumPy, SciPy and
// scikit-learn, operation by operation; exp, log and others come from base/accurate_functions.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "unkernel/records/step.hpp"

namespace unkernel::records {

// Applies the NumPy function of this name. A sparse block needs a function that maps 0 to 0.
std::unique_ptr<Step> function(Input input, const std::string& name);

// Passes numbers on. Throws for an infinite number and, unless `allows_missing`, for NaN.
std::unique_ptr<Step> finite(Input input, bool allows_missing);

// Replaces a number by the nearest point of its column, if their difference is at most the tolerance of the
// point. Steps that jump at these points then give the same results in spite of rounding errors. Column k has
// the ascending points points[begins[k] .. begins[k + 1]).
struct Points {
  std::vector<double> points;
  std::vector<std::int32_t> begins;
  std::vector<double> tolerances;  // one per point
};
std::unique_ptr<Step> snap(Input input, Points points);

// Power transforms, with one exponent per column: ((x + 1)^lambda - 1) / lambda for x >= 0 and
// -((1 - x)^(2 - lambda) - 1) / (2 - lambda) below (Yeo and Johnson), or (x^lambda - 1) / lambda (Box and
// Cox; throws unless x > 0).
struct Powers {
  bool are_box_cox;
  std::vector<double> lambdas;
  std::vector<std::string> names;  // of the columns, for messages
};
std::unique_ptr<Step> power(Input input, Powers powers);

// Maps a number to its rank among the quantiles of its column, which lies between the first and the last of
// the ascending ranks. Column k has the ascending quantiles quantiles[k * n .. (k + 1) * n), where n is the
// number of ranks. If `normal`, maps the rank to the quantile of the normal distribution.
struct Quantiles {
  std::vector<double> quantiles, ranks;
  bool normal;
};
std::unique_ptr<Step> quantiles(Input input, Quantiles quantiles);

// Evaluates B-splines of a degree: all splines of the first column, all of the second column, and so on, as a
// sparse block. Column k has the ascending knots knots[k * n .. (k + 1) * n) and n - degree - 1 splines; the
// numbers between the knots `degree` and n - degree - 1 are the range of the splines.
struct Splines {
  // The values of splines beyond a bound: an error; those of the polynomials at the bound; or straight lines,
  // value + (x - bound) * slope.
  enum class Outside { error, polynomials, lines };

  std::int32_t degree;
  std::vector<double> knots;
  bool are_periodic;  // numbers are moved into the range by its length; the last splines join the first ones
  bool drops_last;    // the last spline of each column has no feature
  bool allows_missing;  // NaN gives no features; otherwise, it is an error
  Outside below, above;
  std::vector<double> low, high;  // the bounds of each column
  // Values and slopes at the bounds, one per column and spline; empty unless there are lines.
  std::vector<double> low_values, low_slopes, high_values, high_slopes;
  std::vector<std::string> names;  // of the columns, for messages

  static constexpr std::int32_t max_degree = 31;
};
std::unique_ptr<Step> splines(Input input, Splines splines);

}  // namespace unkernel::records
