// The losses of the dual solver as types with static functions, so that a template can test all losses.
#pragma once

#include <algorithm>

#include "unkernel/solve/loss.hpp"

namespace static_loss {

using unkernel::solve::Costs;
using unkernel::solve::Loss;

template <const Loss& loss_options>
struct StaticLoss {
  static constexpr Loss name = loss_options;
  static constexpr bool has_box = !loss_options.squared;
  static constexpr bool has_targets = loss_options.low <= loss_options.high;  // of regression

  static double low(const Costs& c) { return low_of(name, c); }
  static double high(const Costs& c) { return high_of(name, c); }
  static double dual(const Costs& c, double u) { return dual_of(name, c, u); }
  static double loss(const Costs& c, double r) { return loss_of(name, c, r); }
  static double left_slope(const Costs& c, double u) {
    return with_loss(name, [&](const auto& kind) { return kind.left_slope(c, u); });
  }
  static double right_slope(const Costs& c, double u) {
    return with_loss(name, [&](const auto& kind) { return kind.right_slope(c, u); });
  }
  static double best(const Costs& c, double others, double curvature) {
    return with_loss(name, [&](const auto& kind) { return kind.best(c, others, curvature); });
  }

  // Returns the loss by its definition.
  static double plain(const Costs& c, double r) {
    const double below = std::max(0.0, name.low - r);
    const double above = std::max(0.0, r - name.high);
    return has_box ? c.positive * below + c.negative * above
                   : c.positive * below * below + c.negative * above * above;
  }
  static double kink(const Costs& c) { return has_targets ? 0.0 : c.positive - c.negative; }
};

inline constexpr Loss insensitive = Loss::insensitive(0.3, false);
inline constexpr Loss squared_insensitive = Loss::insensitive(0.3, true);
inline constexpr Loss absolute = Loss::insensitive(0.0, false);
inline constexpr Loss squares = Loss::insensitive(0.0, true);

using Hinge = StaticLoss<Loss::hinge>;
using SquaredHinge = StaticLoss<Loss::squared_hinge>;
using Insensitive = StaticLoss<insensitive>;
using SquaredInsensitive = StaticLoss<squared_insensitive>;
using Absolute = StaticLoss<absolute>;
using Squares = StaticLoss<squares>;

// Calls test with a value of each loss.
template <class Test>
void for_all_losses(const Test& test) {
  test(Hinge{});
  test(SquaredHinge{});
  test(Insensitive{});
  test(SquaredInsensitive{});
  test(Absolute{});
  test(Squares{});
}

}  // namespace static_loss
