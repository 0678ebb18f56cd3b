// The losses of L2-regularised SVMs and of support vector regression, with the functions that the dual solver
// needs.
//
// A row pays cost p per unit by which its score is too low, and cost q per unit by which its score is too
// high. With score f_i = w'phi_i, target t_i, residual r = f_i - t_i, and z+ = max(z, 0), the problem and its
// dual, which has one variable u_i per row, are
//
//   primal   min_w  1/2 w'w + sum_i loss_i(f_i - t_i)      loss(r) = p (low - r)+ + q (r - high)+, or squared
//   dual     max_u  sum_i [ g_i(u_i) + u_i t_i ] - 1/2 |sum_i u_i phi_i|^2         w = sum_i u_i phi_i
//
//   hinge, squared hinge   low = 1, high = -1, t = 0. A row may have both labels: equal rows are merged into
//                          one row, with one cost for the positive and one for the negative occurrences
//                          (usually one of the two is zero). Textbooks write y a for u.
//   epsilon-insensitive    low = -epsilon, high = epsilon, t = y. epsilon = 0 gives the absolute loss, or
//                          least squares; p : q = tau : 1 - tau gives the loss of a quantile
//
// g(u) = min_r loss(r) + u r is concave:
//
//   linear    g(u) = min(p d + u high, q d + u low)         -q <= u <= p;  d = low - high, or 0 if negative
//   squared   g(u) = u r + loss(r) at the r where           u <= 0 unless p > 0,
//             this sum is stationary                        u >= 0 unless q > 0
//
// The duality gap is a sum over rows, each term >= 0:  loss(r) - g(u) + u r.
#pragma once

#include <algorithm>
#include <limits>

namespace unkernel::solve {

struct Loss {
  bool squared = false;
  double low = 1.0;
  double high = -1.0;

  static const Loss hinge;
  static const Loss squared_hinge;
  static constexpr Loss insensitive(double epsilon, bool squared) { return {squared, -epsilon, epsilon}; }

  bool operator==(const Loss&) const = default;
};

inline constexpr Loss Loss::hinge{};
inline constexpr Loss Loss::squared_hinge{true};

struct Costs {
  double positive = 0.0;  // p
  double negative = 0.0;  // q
};

// Each kind of loss provides the range of u, g and its one-sided slopes at u, the loss, and the best u of a
// row. `other_residual` is the residual of the row minus the row's own contribution, u * curvature.
class LinearLoss {
 public:
  static constexpr bool boxed = true;

  explicit constexpr LinearLoss(const Loss& loss)
      : low_(loss.low),
        high_(loss.high),
        steep_(std::max(loss.low, loss.high)),
        flat_(std::min(loss.low, loss.high)),
        overlap_(std::max(loss.low - loss.high, 0.0)),
        overlaps_(loss.low > loss.high ? 1.0 : 0.0) {}

  double low(const Costs& c) const { return -c.negative; }
  double high(const Costs& c) const { return c.positive; }
  double left_slope(const Costs& c, double u) const { return u <= kink(c) ? steep_ : flat_; }
  double right_slope(const Costs& c, double u) const { return u < kink(c) ? steep_ : flat_; }
  double dual(const Costs& c, double u) const {
    return std::min(overlap_ * c.positive + u * high_, overlap_ * c.negative + u * low_);
  }
  double loss(const Costs& c, double r) const {
    return c.positive * std::max(low_ - r, 0.0) + c.negative * std::max(r - high_, 0.0);
  }
  double best(const Costs& c, double other_residual, double curvature) const {
    const double middle = kink(c);
    if (curvature <= 0.0) {
      if (other_residual < flat_) return c.positive;
      return other_residual > steep_ ? -c.negative : middle;
    }
    if (const double u = (steep_ - other_residual) / curvature; u <= middle) return std::max(u, -c.negative);
    return std::clamp((flat_ - other_residual) / curvature, middle, c.positive);
  }
  // Returns the u at which the slope of g changes.
  double kink(const Costs& c) const { return overlaps_ * (c.positive - c.negative); }

 private:
  double low_, high_;
  double steep_, flat_;  // the slopes of g to the left and to the right of its kink
  double overlap_;       // length of the interval of residuals where both costs are paid
  double overlaps_;      // 1 if this interval is not empty, else 0
};

class SquaredLoss {
 public:
  static constexpr bool boxed = false;

  explicit constexpr SquaredLoss(const Loss& loss)
      : low_(loss.low), high_(loss.high), overlaps_(loss.low > loss.high) {}

  double low(const Costs& c) const {
    return c.negative > 0.0 ? -std::numeric_limits<double>::infinity() : 0.0;
  }
  double high(const Costs& c) const {
    return c.positive > 0.0 ? std::numeric_limits<double>::infinity() : 0.0;
  }
  double left_slope(const Costs& c, double u) const {
    return u == 0.0 && !overlaps_ ? high_ : stationary(c, u);
  }
  double right_slope(const Costs& c, double u) const { return stationary(c, u); }
  double dual(const Costs& c, double u) const {
    const double r = stationary(c, u);
    return u * r + loss(c, r);
  }
  double loss(const Costs& c, double r) const {
    const double below = std::max(low_ - r, 0.0);
    const double above = std::max(r - high_, 0.0);
    return c.positive * below * below + c.negative * above * above;
  }
  double best(const Costs& c, double other_residual, double curvature) const {
    const double p = 2.0 * c.positive;
    const double q = 2.0 * c.negative;
    const double from_low = p * (low_ - other_residual);
    const double from_high = q * (high_ - other_residual);
    if (overlaps_) {
      const double from_both = (from_low + from_high) / (1.0 + curvature * (p + q));
      const double r = other_residual + curvature * from_both;
      if (r >= high_ && r <= low_) return from_both;
      return r < high_ ? from_low / (1.0 + curvature * p) : from_high / (1.0 + curvature * q);
    }
    if (other_residual < low_) return from_low / (1.0 + curvature * p);
    return other_residual > high_ ? from_high / (1.0 + curvature * q) : 0.0;
  }

 private:
  // Returns the residual at which the loss has slope -u. For a row without costs, any residual will do.
  double stationary(const Costs& c, double u) const {
    if (!overlaps_ && u == 0.0) return low_;
    if (!overlaps_) return u > 0.0 ? at_low(c, u) : at_high(c, u);
    if (c.positive + c.negative == 0.0) return 0.0;
    const double r = (2.0 * (c.positive * low_ + c.negative * high_) - u) / (2.0 * (c.positive + c.negative));
    if (r < high_ && c.positive > 0.0) return at_low(c, u);
    if (r > low_ && c.negative > 0.0) return at_high(c, u);
    return r;
  }
  double at_low(const Costs& c, double u) const { return low_ - u / (2.0 * c.positive); }
  double at_high(const Costs& c, double u) const { return high_ - u / (2.0 * c.negative); }

  double low_, high_;
  bool overlaps_;
};

// Calls `body` with a LinearLoss or a SquaredLoss, so that loops are compiled for both.
template <class Body>
decltype(auto) with_loss(const Loss& loss, const Body& body) {
  return loss.squared ? body(SquaredLoss(loss)) : body(LinearLoss(loss));
}

// These functions choose the kind of loss at run time, for infrequent calls.
inline double low_of(const Loss& loss, const Costs& c) {
  return with_loss(loss, [&](const auto& kind) { return kind.low(c); });
}
inline double high_of(const Loss& loss, const Costs& c) {
  return with_loss(loss, [&](const auto& kind) { return kind.high(c); });
}
inline double dual_of(const Loss& loss, const Costs& c, double u) {
  return with_loss(loss, [&](const auto& kind) { return kind.dual(c, u); });
}
inline double loss_of(const Loss& loss, const Costs& c, double r) {
  return with_loss(loss, [&](const auto& kind) { return kind.loss(c, r); });
}

}  // namespace unkernel::solve
