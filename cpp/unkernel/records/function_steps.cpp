#include "unkernel/records/function_steps.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "unkernel/base/accurate_functions.hpp"

namespace unkernel::records {
namespace {

bool are_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

// --- Elementary functions ----------------------------------------------------------------------------------

using Function = double (*)(double);

struct NamedFunction {
  const char* name;
  Function function;
  bool keeps_zero;
};

constexpr double pi = 3.141592653589793;

constexpr auto functions = std::to_array<NamedFunction>({
    {"absolute", [](double x) { return std::abs(x); }, true},
    {"arcsinh", accurate::arcsinh, true},
    {"arctan", accurate::arctan, true},
    {"cbrt", accurate::cbrt, true},
    {"ceil", [](double x) { return std::ceil(x); }, true},
    {"cos", accurate::cos, false},
    {"degrees", [](double x) { return x * (180.0 / pi); }, true},
    {"exp", accurate::exp, false},
    {"exp2", accurate::exp2, false},
    {"expm1", accurate::expm1, true},
    {"floor", [](double x) { return std::floor(x); }, true},
    {"log", accurate::log, false},
    {"log10", accurate::log10, false},
    {"log1p", accurate::log1p, true},
    {"log2", accurate::log2, false},
    {"negative", [](double x) { return -x; }, true},
    {"radians", [](double x) { return x * (pi / 180.0); }, true},
    {"reciprocal", [](double x) { return 1.0 / x; }, false},
    {"rint", [](double x) { return std::nearbyint(x); }, true},
    {"sign", [](double x) { return x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : x); }, true},
    {"sin", accurate::sin, true},
    {"sqrt", [](double x) { return std::sqrt(x); }, true},
    {"square", [](double x) { return x * x; }, true},
    {"tanh", accurate::tanh, true},
    {"trunc", [](double x) { return std::trunc(x); }, true},
});

const NamedFunction& find_function(const std::string& name) {
  for (const NamedFunction& candidate : functions) {
    if (name == candidate.name) return candidate;
  }
  throw std::invalid_argument("not a sound plan: there is no function '" + escape_nul(name) + "'");
}

class FunctionStep final : public Step {
 public:
  FunctionStep(Input input, const NamedFunction& named)
      : Step(input.shape), input_(input), function_(named.function) {
    check_plan(input.shape.dense || named.keeps_zero, "a sparse block has zeros that would change");
  }

  void run(const Record&, std::span<const Block> blocks, Block& out) const override {
    const Block& in = blocks[input_.step];
    out.ids = in.ids;
    for (const double value : in.values) out.values.push_back(function_(value));
  }

 private:
  Input input_;
  Function function_;
};

class Finite final : public Step {
 public:
  Finite(Input input, bool allows_missing)
      : Step(input.shape), input_(input), allows_missing_(allows_missing) {}

  void run(const Record&, std::span<const Block> blocks, Block& out) const override {
    const Block& in = blocks[input_.step];
    for (const double value : in.values) {
      if (std::isinf(value)) throw std::invalid_argument("a function of a number is infinite");
      if (std::isnan(value) && !allows_missing_) throw std::invalid_argument("a number is missing");
    }
    out.ids = in.ids;
    out.values = in.values;
  }

 private:
  Input input_;
  bool allows_missing_;
};

class Snap final : public Step {
 public:
  Snap(Input input, Points points) : Step(input.shape), input_(input), points_(std::move(points)) {
    const std::vector<std::int32_t>& begins = points_.begins;
    const auto width = static_cast<std::size_t>(input.shape.width);
    check_plan(input.shape.dense && begins.size() == width + 1 && begins.front() == 0 &&
                   std::is_sorted(begins.begin(), begins.end()) &&
                   static_cast<std::size_t>(begins.back()) == points_.points.size() &&
                   points_.tolerances.size() == points_.points.size(),
               "points do not fit the columns");
    check_plan(are_finite(points_.points) && are_finite(points_.tolerances), "a point is not finite");
    for (std::size_t k = 0; k < width; ++k)
      check_plan(std::is_sorted(points_.points.data() + begins[k], points_.points.data() + begins[k + 1]),
                 "points do not ascend");
  }

  void run(const Record&, std::span<const Block> blocks, Block& out) const override {
    out.values = blocks[input_.step].values;
    for (std::size_t k = 0; k < out.values.size(); ++k) out.values[k] = move_to_point(out.values[k], k);
  }

 private:
  double move_to_point(double x, std::size_t column) const {
    const auto begin = static_cast<std::size_t>(points_.begins[column]);
    const auto end = static_cast<std::size_t>(points_.begins[column + 1]);
    const double* points = points_.points.data();
    const auto above = static_cast<std::size_t>(std::lower_bound(points + begin, points + end, x) - points);
    double nearest = x, distance = std::numeric_limits<double>::infinity();
    for (std::size_t k = std::max(above, begin + 1) - 1; k < std::min(above + 1, end); ++k) {
      const double difference = std::abs(x - points[k]);
      if (!(difference <= points_.tolerances[k] && difference < distance)) continue;  // also NaN
      nearest = points[k];
      distance = difference;
    }
    return nearest;
  }

  Input input_;
  Points points_;
};

// --- Power transforms --------------------------------------------------------------------------------------

double yeo_johnson(double x, double lambda) {
  constexpr double epsilon = std::numeric_limits<double>::epsilon();
  if (x >= 0.0)
    return std::abs(lambda) < epsilon ? accurate::log1p(x)
                                      : accurate::expm1(lambda * accurate::log1p(x)) / lambda;
  const double rest = 2.0 - lambda;
  return std::abs(lambda - 2.0) > epsilon ? -accurate::expm1(rest * accurate::log1p(-x)) / rest
                                          : -accurate::log1p(-x);
}

double box_cox(double x, double lambda) {
  constexpr double negligible = 1e-19;     // lambda log(x) is then less than the least relative difference
  constexpr double max_exponent = 709.78;  // above it, expm1 may be infinite and its quotient finite
  const double logarithm = accurate::log(x);
  if (std::abs(lambda) < negligible) return logarithm;
  if (lambda * logarithm < max_exponent) return accurate::expm1(lambda * logarithm) / lambda;
  const double grown = accurate::exp(lambda * logarithm - accurate::log(std::abs(lambda)));
  return std::copysign(grown, lambda) - 1.0 / lambda;
}

class PowerStep final : public Step {
 public:
  PowerStep(Input input, Powers powers) : Step(input.shape), input_(input), powers_(std::move(powers)) {
    const auto width = static_cast<std::size_t>(input.shape.width);
    check_plan(input.shape.dense && powers_.lambdas.size() == width && powers_.names.size() == width,
               "exponents do not fit the columns");
    check_plan(are_finite(powers_.lambdas), "an exponent is not finite");
  }

  void run(const Record&, std::span<const Block> blocks, Block& out) const override {
    const std::vector<double>& values = blocks[input_.step].values;
    for (std::size_t k = 0; k < values.size(); ++k)
      out.values.push_back(std::isnan(values[k]) ? values[k] : transform(values[k], k));
  }

 private:
  double transform(double value, std::size_t k) const {
    if (!powers_.are_box_cox) return yeo_johnson(value, powers_.lambdas[k]);
    if (value > 0.0) return box_cox(value, powers_.lambdas[k]);
    throw std::invalid_argument("column '" + escape_nul(powers_.names[k]) +
                                "': the Box-Cox transform takes positive numbers");
  }

  Input input_;
  Powers powers_;
};

// --- Quantiles ---------------------------------------------------------------------------------------------

class QuantileStep final : public Step {
 public:
  QuantileStep(Input input, Quantiles quantiles)
      : Step(input.shape), input_(input), quantiles_(std::move(quantiles)) {
    const std::vector<double>& all = quantiles_.quantiles;
    const std::size_t count = quantiles_.ranks.size();
    check_plan(input.shape.dense && count > 0 && all.size() % count == 0 &&
                   all.size() / count == static_cast<std::size_t>(input.shape.width),
               "quantiles do not fit the columns");
    check_plan(are_finite(all) && are_finite(quantiles_.ranks), "a quantile is not finite");
    check_plan(std::is_sorted(quantiles_.ranks.begin(), quantiles_.ranks.end()), "ranks do not ascend");
    for (auto first = all.begin(); first != all.end(); first += static_cast<std::ptrdiff_t>(count))
      check_plan(std::is_sorted(first, first + static_cast<std::ptrdiff_t>(count)),
                 "quantiles do not ascend");
    // scikit-learn's bounds keep the inverse transform consistent.
    constexpr double end = bound_width - std::numeric_limits<double>::epsilon();
    least_ = accurate::normal_quantile(end);
    most_ = accurate::normal_quantile(1.0 - end);
  }

  void run(const Record&, std::span<const Block> blocks, Block& out) const override {
    for (const double value : blocks[input_.step].values)
      out.values.push_back(std::isnan(value) ? value : transform(value, out.values.size()));
  }

 private:
  static constexpr double bound_width = 1e-7;

  double transform(double x, std::size_t column) const {
    const std::size_t count = quantiles_.ranks.size();
    const std::span all = std::span(quantiles_.quantiles).subspan(column * count, count);
    if (!quantiles_.normal) {
      if (x == all.front()) return 0.0;
      return x == all.back() ? 1.0 : rank_of(x, all);
    }
    if (x - bound_width < all.front()) return least_;
    if (x + bound_width > all.back()) return most_;
    return std::min(std::max(accurate::normal_quantile(rank_of(x, all)), least_), most_);
  }

  // Returns the mean of two interpolations, upwards from the quantiles that are at most x, and downwards from
  // those that are at least x. They differ where quantiles are equal.
  double rank_of(double x, std::span<const double> all) const {
    const std::vector<double>& ranks = quantiles_.ranks;
    if (x < all.front()) return ranks.front();
    if (x > all.back()) return ranks.back();
    const auto above = std::upper_bound(all.begin(), all.end(), x);
    const auto lower = static_cast<std::size_t>(above - all.begin()) - 1;
    if (all[lower] == x) {
      const auto first = static_cast<std::size_t>(std::lower_bound(all.begin(), above, x) - all.begin());
      return 0.5 * (ranks[lower] + ranks[first]);
    }
    const std::size_t upper = lower + 1;
    const double slope = (ranks[upper] - ranks[lower]) / (all[upper] - all[lower]);
    return 0.5 * ((slope * (x - all[lower]) + ranks[lower]) - (slope * (all[upper] - x) - ranks[upper]));
  }

  Input input_;
  Quantiles quantiles_;
  double least_, most_;
};

// --- Splines -----------------------------------------------------------------------------------------------

class SplineStep final : public Step {
 public:
  SplineStep(Input input, Splines splines)
      : Step(shape_of(input, splines)),
        input_(input),
        splines_(std::move(splines)),
        degree_(static_cast<std::size_t>(splines_.degree)),
        knots_(splines_.knots.size() / splines_.names.size()),
        count_(count_splines(splines_)) {}

  void run(const Record&, std::span<const Block> blocks, Block& out) const override {
    const std::vector<double>& values = blocks[input_.step].values;
    for (std::size_t k = 0; k < values.size(); ++k) add_column(k, values[k], out);
  }

 private:
  using Values = std::array<double, Splines::max_degree + 1>;

  static std::size_t count_splines(const Splines& splines) {
    const std::size_t knots = splines.knots.size() / splines.names.size();
    const auto degree = static_cast<std::size_t>(splines.degree);
    return knots - degree - 1 - (splines.are_periodic ? degree : 0);
  }

  static Shape shape_of(const Input& input, const Splines& splines) {
    const auto columns = static_cast<std::size_t>(input.shape.width);
    check_plan(input.shape.dense && columns > 0 && splines.names.size() == columns &&
                   splines.knots.size() % columns == 0 && splines.low.size() == columns &&
                   splines.high.size() == columns,
               "knots do not fit the columns");
    const std::size_t knots = splines.knots.size() / columns;
    const bool has_degree = splines.degree >= 0 && splines.degree <= Splines::max_degree;
    // Two knots at least bound the range. The last splines of periodic ones join as many others.
    check_plan(has_degree && knots >= 2 * static_cast<std::size_t>(splines.degree) + 2 &&
                   (!splines.are_periodic || knots >= 3 * static_cast<std::size_t>(splines.degree) + 1),
               "too few knots for the degree of the splines");
    check_plan(are_finite(splines.knots) && are_finite(splines.low) && are_finite(splines.high),
               "a knot is not finite");
    for (auto first = splines.knots.begin(); first != splines.knots.end();
         first += static_cast<std::ptrdiff_t>(knots))
      check_plan(std::is_sorted(first, first + static_cast<std::ptrdiff_t>(knots)), "knots do not ascend");
    const std::size_t count = count_splines(splines);
    check_plan(count <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()) / columns,
               "too many splines");
    const std::size_t values = columns * count;
    check_lines(splines.below, splines.low_values, splines.low_slopes, values);
    check_lines(splines.above, splines.high_values, splines.high_slopes, values);
    check_plan(!splines.are_periodic || (splines.below == Splines::Outside::polynomials &&
                                         splines.above == Splines::Outside::polynomials),
               "periodic splines have no bounds");
    return {static_cast<std::int32_t>(columns * (count - (splines.drops_last ? 1 : 0))), false};
  }

  static void check_lines(Splines::Outside outside, const std::vector<double>& values,
                          const std::vector<double>& slopes, std::size_t count) {
    const std::size_t size = outside == Splines::Outside::lines ? count : 0;
    check_plan(values.size() == size && slopes.size() == size && are_finite(values) && are_finite(slopes),
               "lines do not fit the splines");
  }

  [[noreturn]] void fail(std::size_t column, const char* what) const {
    throw std::invalid_argument("column '" + escape_nul(splines_.names[column]) + "': " + what);
  }

  void add_column(std::size_t column, double x, Block& out) const {
    if (std::isnan(x)) {
      if (!splines_.allows_missing) fail(column, "the value is missing, and has no splines");
      return;
    }
    if (std::isinf(x)) fail(column, "the number is infinite");
    if (splines_.are_periodic) return add_splines(column, move_into_period(column, x), out);
    const bool is_below = x<splines_.low[column], is_above = x> splines_.high[column];
    const Splines::Outside outside = is_above ? splines_.above : splines_.below;
    if (!(is_below || is_above) || outside == Splines::Outside::polynomials)
      return add_splines(column, x, out);
    if (outside == Splines::Outside::error) fail(column, "the number is outside of the range of the splines");
    if (is_above) {
      add_lines(column, x - splines_.high[column], splines_.high_values, splines_.high_slopes, out);
    } else {
      add_lines(column, x - splines_.low[column], splines_.low_values, splines_.low_slopes, out);
    }
  }

  void add_lines(std::size_t column, double distance, const std::vector<double>& values,
                 const std::vector<double>& slopes, Block& out) const {
    for (std::size_t k = 0; k < count_; ++k)
      add(column, k, values[column * count_ + k] + distance * slopes[column * count_ + k], out);
  }

  std::span<const double> knots_of(std::size_t column) const {
    return std::span(splines_.knots).subspan(column * knots_, knots_);
  }

  // Returns x moved by whole periods, as NumPy's operator % does.
  double move_into_period(std::size_t column, double x) const {
    const std::span<const double> knots = knots_of(column);
    const double first = knots[degree_], period = knots[knots_ - degree_ - 1] - first;
    if (!(period > 0.0)) return 0.0;
    double rest = std::fmod(x - first, period);
    if (rest < 0.0) rest += period;
    return first + rest;
  }

  void add_splines(std::size_t column, double x, Block& out) const {
    const std::span<const double> knots = knots_of(column);
    const std::size_t interval = find_interval(knots, x);
    Values values = evaluate(knots, interval, x);
    const std::size_t first = interval - degree_;
    // Of periodic splines, those from `count_` on join the first ones, which may be among the values.
    const std::size_t last = std::min(first + degree_ + 1, count_);
    for (std::size_t k = last - first; k <= degree_; ++k) {
      const std::size_t joined = first + k - count_;
      if (joined >= first) {
        values[joined - first] += values[k];
      } else {
        add(column, joined, values[k], out);
      }
    }
    for (std::size_t spline = first; spline < last; ++spline)
      add(column, spline, values[spline - first], out);
  }

  // Returns the last interval [knots[k], knots[k + 1]) of the range that begins at or below x, or the first.
  std::size_t find_interval(std::span<const double> knots, double x) const {
    const auto begin = knots.begin() + static_cast<std::ptrdiff_t>(degree_);
    const auto end = knots.end() - static_cast<std::ptrdiff_t>(degree_ + 1);
    const auto above = std::upper_bound(begin, end, x);
    return static_cast<std::size_t>((above == begin ? begin : above - 1) - knots.begin());
  }

  // Evaluates the splines that are not 0 in an interval, by the recurrence of Cox and de Boor (Dierckx,
  // "Curve and surface fitting with splines", 1993).
  Values evaluate(std::span<const double> knots, std::size_t interval, double x) const {
    Values values{}, earlier{};
    values[0] = 1.0;
    for (std::size_t order = 1; order <= degree_; ++order) {
      std::copy_n(values.begin(), order, earlier.begin());
      values[0] = 0.0;
      for (std::size_t k = 1; k <= order; ++k) {
        const double right = knots[interval + k], left = knots[interval + k - order];
        if (left == right) {
          values[k] = 0.0;
          continue;
        }
        const double share = earlier[k - 1] / (right - left);
        values[k - 1] += share * (right - x);
        values[k] = share * (x - left);
      }
    }
    return values;
  }

  void add(std::size_t column, std::size_t spline, double value, Block& out) const {
    const std::size_t features = count_ - (splines_.drops_last ? 1 : 0);
    if (value == 0.0 || spline == features) return;
    out.add(static_cast<std::int32_t>(column * features + spline), value);
  }

  Input input_;
  Splines splines_;
  std::size_t degree_;
  std::size_t knots_, count_;  // numbers of knots and of splines of each column
};

}  // namespace

std::unique_ptr<Step> function(Input input, const std::string& name) {
  return std::make_unique<FunctionStep>(input, find_function(name));
}
std::unique_ptr<Step> finite(Input input, bool allows_missing) {
  return std::make_unique<Finite>(input, allows_missing);
}
std::unique_ptr<Step> snap(Input input, Points points) {
  return std::make_unique<Snap>(input, std::move(points));
}
std::unique_ptr<Step> power(Input input, Powers powers) {
  return std::make_unique<PowerStep>(input, std::move(powers));
}
std::unique_ptr<Step> quantiles(Input input, Quantiles quantiles) {
  return std::make_unique<QuantileStep>(input, std::move(quantiles));
}
std::unique_ptr<Step> splines(Input input, Splines splines) {
  return std::make_unique<SplineStep>(input, std::move(splines));
}

}  // namespace unkernel::records
