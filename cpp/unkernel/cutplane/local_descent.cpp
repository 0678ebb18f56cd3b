#include "unkernel/cutplane/local_descent.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/data/rows/row_loops.hpp"

namespace unkernel::cutplane {
namespace {

// More parts would give a worse guess. With fewer, threads would be idle.
constexpr std::int64_t most_parts = 2;
constexpr std::int64_t min_blocks = 8;  // per part

template <class LossKind>
class PartDescent {
 public:
  PartDescent(const LossKind& loss, const data::RowStore& store, double intercept,
              std::span<const double> signed_costs, double C, const Monitor& monitor)
      : loss_(loss),
        store_(store),
        intercept_(intercept),
        signed_costs_(signed_costs),
        C_(C),
        monitor_(monitor) {
    weights_.resize(store.features() + (intercept != 0.0 ? 1 : 0));
  }

  void run(std::int64_t first_block, std::int64_t end_block) {
    first_row_ = store_.block(first_block)->first_row;
    const data::BlockLease last = store_.block(end_block - 1);
    duals_.assign(static_cast<std::size_t>(last->first_row + last->rows() - first_row_), 0.0);
    for (int pass = 0; pass < local_passes; ++pass) {
      for (std::int64_t k = first_block; k < end_block; ++k) {
        monitor_.throw_if_stopped();
        visit(*store_.block(k), Random(static_cast<std::uint64_t>(k * local_passes + pass)));
      }
    }
  }

  std::span<const double> weights() const { return weights_; }

  // Returns sum_i g_i(u_i).
  double dual_value() const {
    double sum = 0.0;
    for (std::size_t i = 0; i < duals_.size(); ++i)
      sum += loss_.dual(costs(first_row_ + static_cast<std::int64_t>(i)), duals_[i]);
    return sum;
  }

 private:
  solve::Costs costs(std::int64_t row) const {
    const double cost = C_ * signed_costs_[static_cast<std::size_t>(row)];
    return {std::max(cost, 0.0), std::max(-cost, 0.0)};
  }

  void visit(const data::RowBlock& block, Random random) {
    order_.resize(static_cast<std::size_t>(block.rows()));
    std::iota(order_.begin(), order_.end(), 0);
    random.shuffle(std::span(order_));
    data::with_types(block, [&](const auto* columns, const auto* values) {
      for (const std::int32_t i : order_) step(block.first_row + i, data::row_of(block, columns, values, i));
    });
  }

  template <class Row>
  void step(std::int64_t place, const Row& row) {
    const solve::Costs cost = costs(place);
    if (cost.positive + cost.negative == 0.0) return;
    double& u = duals_[static_cast<std::size_t>(place - first_row_)];
    const double constant = intercept_ != 0.0 ? intercept_ * weights_.back() : 0.0;
    const double score = constant + dot(row, weights_.data());
    const double curvature = intercept_ * intercept_ + squared_norm(row);
    const double best = loss_.best(cost, score - u * curvature, curvature);
    const double change = best - u;
    if (change == 0.0) return;
    u = best;
    add(row, change, weights_.data());
    if (intercept_ != 0.0) weights_.back() += change * intercept_;
  }

  const LossKind loss_;
  const data::RowStore& store_;
  double intercept_;
  std::span<const double> signed_costs_;
  double C_;
  const Monitor& monitor_;
  std::int64_t first_row_ = 0;
  LargeVector<double> weights_;
  LargeVector<double> duals_;
  std::vector<std::int32_t> order_;
};

template <class LossKind>
double descend(const LossKind& loss, const data::RowStore& store, double intercept,
               std::span<const double> signed_costs, double C, Threads threads, std::span<double> weights,
               std::span<double> gradient) {
  const std::int64_t parts = std::clamp<std::int64_t>(store.blocks() / min_blocks, 1, most_parts);
  std::vector<double> values(static_cast<std::size_t>(parts));
  std::ranges::fill(gradient, 0.0);
  Turns turns;
  parallel_for(threads.count, parts, [&](std::int64_t part) {
    const Turn turn(turns, part);
    PartDescent<LossKind> descent(loss, store, intercept, signed_costs, C, *threads.monitor);
    descent.run(part * store.blocks() / parts, (part + 1) * store.blocks() / parts);
    values[static_cast<std::size_t>(part)] = descent.dual_value();
    turn.wait();
    for (std::size_t j = 0; j < gradient.size(); ++j) gradient[j] += descent.weights()[j];
  });
  for (std::size_t j = 0; j < gradient.size(); ++j) {
    weights[j] = gradient[j] / static_cast<double>(parts);
    gradient[j] /= C;
  }
  return std::accumulate(values.begin(), values.end(), 0.0) / C;
}

}  // namespace

double descend_locally(const data::RowStore& store, double intercept, const RowLosses& losses, double C,
                       Threads threads, std::span<double> weights, std::span<double> gradient) {
  return solve::with_loss(losses.loss, [&](const auto& loss) {
    return descend(loss, store, intercept, losses.signed_costs, C, threads, weights, gradient);
  });
}

}  // namespace unkernel::cutplane
