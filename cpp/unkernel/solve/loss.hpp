// The two losses of an L2-regularised SVM, with the functions that the dual solver needs.
//
// A row may have both labels: equal rows are merged into one, with a cost p_i for its positive and a cost q_i
// for its negative occurrences (mostly one of the two is zero). With f_i = w'phi_i, the problem and its dual,
// in one variable per row, are
//
//   primal   min_w  1/2 w'w + sum_i [ p_i loss(1 - f_i) + q_i loss(1 + f_i) ]
//   dual     max_u  sum_i g_i(u_i) - 1/2 |sum_i u_i phi_i|^2        w = sum_i u_i phi_i
//
// u_i is y_i a_i of the textbooks (a+ - a- if both labels occur), and g_i is concave:
//
//   hinge           g(u) = min(2p - u, 2q + u)                             -q <= u <= p
//   squared hinge   g(u) = u t + p max(1-t, 0)^2 + q max(1+t, 0)^2         u <= 0 unless p > 0,
//                   at the t where that is stationary                      u >= 0 unless q > 0
//
// The duality gap is a sum over rows, each term >= 0:  loss_i(f_i) - g_i(u_i) + u_i f_i.
#pragma once

#include <algorithm>
#include <limits>

namespace unkernel::solve {

enum class Loss { hinge, squared_hinge };

struct Costs {
  double positive = 0.0;  // p
  double negative = 0.0;  // q
};

// Each loss defines: the range of u, the one-sided slopes of g at u, g itself, the loss, and the best u for a
// row whose score without its own share, u * curvature, is `others`.
struct Hinge {
  static constexpr Loss loss_name = Loss::hinge;
  static constexpr bool boxed = true;

  static double low(const Costs& c) { return -c.negative; }
  static double high(const Costs& c) { return c.positive; }
  static double left_slope(const Costs& c, double u) { return u <= c.positive - c.negative ? 1.0 : -1.0; }
  static double right_slope(const Costs& c, double u) { return u < c.positive - c.negative ? 1.0 : -1.0; }
  static double dual(const Costs& c, double u) {
    return std::min(2.0 * c.positive - u, 2.0 * c.negative + u);
  }
  static double loss(const Costs& c, double f) {
    return c.positive * std::max(1.0 - f, 0.0) + c.negative * std::max(1.0 + f, 0.0);
  }
  static double best(const Costs& c, double others, double curvature) {
    const double kink = c.positive - c.negative;
    if (curvature <= 0.0) return others < -1.0 ? c.positive : others > 1.0 ? -c.negative : kink;
    if (const double u = (1.0 - others) / curvature; u <= kink) return std::max(u, -c.negative);
    return std::clamp((-1.0 - others) / curvature, kink, c.positive);
  }
};

struct SquaredHinge {
  static constexpr Loss loss_name = Loss::squared_hinge;
  static constexpr bool boxed = false;

  static double low(const Costs& c) {
    return c.negative > 0.0 ? -std::numeric_limits<double>::infinity() : 0.0;
  }
  static double high(const Costs& c) {
    return c.positive > 0.0 ? std::numeric_limits<double>::infinity() : 0.0;
  }
  static double left_slope(const Costs& c, double u) { return stationary(c, u); }
  static double right_slope(const Costs& c, double u) { return stationary(c, u); }
  static double dual(const Costs& c, double u) {
    const double t = stationary(c, u);
    return u * t + loss(c, t);
  }
  static double loss(const Costs& c, double f) {
    const double below = std::max(1.0 - f, 0.0);
    const double above = std::max(1.0 + f, 0.0);
    return c.positive * below * below + c.negative * above * above;
  }
  static double best(const Costs& c, double others, double curvature) {
    const double p = 2.0 * c.positive;
    const double q = 2.0 * c.negative;
    const double both = (p * (1.0 - others) - q * (1.0 + others)) / (1.0 + curvature * (p + q));
    const double f = others + curvature * both;
    if (f < -1.0) return p * (1.0 - others) / (1.0 + curvature * p);
    if (f > 1.0) return -q * (1.0 + others) / (1.0 + curvature * q);
    return both;
  }

 private:
  // Returns the score t where the loss has slope -u; any t will do for a row that costs nothing.
  static double stationary(const Costs& c, double u) {
    if (c.positive + c.negative == 0.0) return 0.0;
    const double t = (2.0 * (c.positive - c.negative) - u) / (2.0 * (c.positive + c.negative));
    if (t < -1.0 && c.positive > 0.0) return 1.0 - u / (2.0 * c.positive);
    if (t > 1.0 && c.negative > 0.0) return -1.0 - u / (2.0 * c.negative);
    return t;
  }
};

// Calls body with a value of the loss type: for loops that are compiled once per loss.
template <class Body>
decltype(auto) with_loss(Loss loss, const Body& body) {
  return loss == Loss::hinge ? body(Hinge{}) : body(SquaredHinge{});
}

// The same functions with the loss chosen at run time, for infrequent calls.
inline bool is_boxed(Loss loss) { return loss == Loss::hinge; }
inline double low_of(Loss loss, const Costs& c) {
  return loss == Loss::hinge ? Hinge::low(c) : SquaredHinge::low(c);
}
inline double high_of(Loss loss, const Costs& c) {
  return loss == Loss::hinge ? Hinge::high(c) : SquaredHinge::high(c);
}
inline double dual_of(Loss loss, const Costs& c, double u) {
  return loss == Loss::hinge ? Hinge::dual(c, u) : SquaredHinge::dual(c, u);
}
inline double loss_of(Loss loss, const Costs& c, double f) {
  return loss == Loss::hinge ? Hinge::loss(c, f) : SquaredHinge::loss(c, f);
}

}  // namespace unkernel::solve
