// Dual coordinate descent for L2-regularised hinge and squared-hinge SVMs.
//
// Problem     see loss.hpp; w = sum_i u_i phi(x_i) is kept up to date.
// Step        the best u_i for the dual with all others fixed, in closed form (Hsieh et al. 2008,
//             Algorithm 3, extended to rows that carry both labels)
// Order       a fresh random permutation each epoch, from one seeded generator. Where rows are many,
//             blocks of a thousand neighbours are shuffled, and the rows in each: as good as a full
//             shuffle there, and twice as fast, because neighbours share pages and caches.
// Rest        a row that sits at a corner of g_i and wants to stay there sleeps for 1, 2, 4 .. 16
//             epochs; one that is further inside than the last epoch's largest violation leaves
//             the active set (shrinking) until a certifying pass finds it eager again.
// Busy rows   rows whose step gained more than the average are visited again, up to four times, at
//             the end of an epoch: a heavy row (many merged duplicates) needs more steps than a light one.
// Stop        (P - D) / P <= tolerance, P and D the primal and dual objectives, so that the
//             tolerance means the same for every C, n and scale. Each epoch gives an estimate of
//             the gap for free; once the estimate is small enough a full pass over all rows
//             certifies it, or wakes everyone up again.
//
// Three accelerations, all exact:
//   Growing box   where costs times |phi_i|^2 are large, u_i needs many epochs to climb to its bound.
//                 Solve roughly for small costs first, then stretch u and w by s = min(2, best s for
//                 the dual) while the costs double. Every stretch raises the dual objective.
//   Kernel space  where few rows still move and a mapped row is long (dense data, degree 3), the
//                 rest of the work is done on the Gram matrix of those rows (GramRows), by this
//                 same solver; w is then brought up to date and the gap certified on all rows.
//   Second order  where the gap falls too slowly and rows or conjunctions are few, an interior-point
//                 method takes over (interior_point.hpp), when that promises to be cheaper.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/solve/gram_rows.hpp"
#include "unkernel/solve/interior_point.hpp"
#include "unkernel/solve/loss.hpp"
#include "unkernel/solve/normal_system.hpp"
#include "unkernel/solve/row_view.hpp"

namespace unkernel::solve {

struct Options {
  double tolerance;
  std::int64_t max_epochs;
  std::uint64_t seed;
  int threads;  // for the certifying passes and the Gram matrix; the steps themselves are sequential
};

struct Outcome {
  double objective = 0.0;       // primal, at the weights returned
  double dual_objective = 0.0;  // a certified lower bound of the optimum
  std::int64_t epochs = 0;
  bool converged = false;

  double relative_gap() const {
    return objective > 0.0 ? std::max(objective - dual_objective, 0.0) / objective : 0.0;
  }
};

// One row of the dual problem; 40 bytes, so that a visit touches one or two cache lines.
struct Coordinate {
  double u = 0.0;
  Costs costs;
  double curvature = 0.0;  // phi_i'phi_i
  std::uint32_t asleep_until = 0;
  std::uint16_t nap = 0;
};

using Coordinates = LargeVector<Coordinate>;

template <TrainingRows Rows, class LossKind>
class DualCoordinateDescent {
 public:
  // `weights` holds w for the given u (both zero for a cold start) and is updated in place.
  DualCoordinateDescent(const Rows& rows, Coordinates coordinates, std::span<double> weights,
                        const Options& options, Monitor& monitor)
      : rows_(rows),
        coordinates_(std::move(coordinates)),
        weights_(weights),
        options_(options),
        monitor_(monitor),
        random_(options.seed) {
    for (std::int64_t i = 0; i < rows_.size(); ++i) {
      at(i).curvature = rows_.squared_norm(i);
      if (!std::isfinite(at(i).curvature)) {
        throw std::invalid_argument(
            "the kernel of a row with itself is not finite: scale the features, or lower gamma or coef0");
      }
    }
    wake_everyone();
  }

  // Sweeps until the relative duality gap is certified, or the epochs run out.
  Outcome run(Progress progress) {
    if (const double squared_weights = squared_weights_of_start(); squared_weights > 0.0) {
      dual_objective_ = dual_value() - 0.5 * squared_weights;
    } else {
      dual_objective_ = dual_value();
      grow_box(progress);
    }
    while (epoch_ < options_.max_epochs) {
      sweep();
      publish(progress);
      if (seems_done() || finished_in_kernel_space()) {
        if (const Outcome outcome = certify(); outcome.converged) return outcome;
      }
      if (second_order_pays()) {
        solve_by_interior_point();
        if (const Outcome outcome = certify(); outcome.converged) return outcome;
      }
    }
    return certify();
  }

  // Sweeps until the sum of the rows' gap terms is at most `target`: for a part of a larger problem,
  // whose objective this part does not know.
  void run_part(double target) {
    while (epoch_ < options_.max_epochs) {
      sweep();
      if (estimated_gap_ <= target && pass_over_all_rows().gap <= target) return;
    }
  }

  const Coordinates& coordinates() const { return coordinates_; }

 private:
  static constexpr std::uint16_t longest_nap = 16;
  static constexpr std::uint32_t shrunk = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::size_t header_distance = 16;  // rows ahead, for the two prefetches
  static constexpr std::size_t row_distance = 8;
  static constexpr std::int64_t certify_grain = 4096;
  static constexpr int busy_rounds = 4;
  static constexpr std::size_t neighbours = 1024;

  struct Sums {
    double gap = 0.0;
    double loss = 0.0;
    double squared_weights = 0.0;  // w'w = sum_i u_i f_i
  };

  Coordinate& at(std::int64_t i) { return coordinates_[static_cast<std::size_t>(i)]; }
  const Coordinate& at(std::int64_t i) const { return coordinates_[static_cast<std::size_t>(i)]; }

  double score(std::int64_t i) const { return rows_.dot(i, weights_.data()); }

  static double gap_term(const Coordinate& c, double f) {
    return LossKind::loss(c.costs, f) - LossKind::dual(c.costs, c.u) + c.u * f;
  }

  // How fast the dual would rise by moving u: positive where it wants to move, else minus the
  // distance by which the score f is inside the corner that holds it there.
  static double eagerness(const Coordinate& c, double f) {
    constexpr double never = -std::numeric_limits<double>::infinity();
    const double up = c.u < LossKind::high(c.costs) ? LossKind::right_slope(c.costs, c.u) - f : never;
    const double down = c.u > LossKind::low(c.costs) ? f - LossKind::left_slope(c.costs, c.u) : never;
    return std::max(up, down);
  }

  void sweep() {
    ++epoch_;
    collect_awake_rows();
    shuffle_nearby();
    estimated_gap_ = 0.0;
    busy_.clear();
    double most_eager = 0.0;
    const double before_sweep = dual_objective_;
    std::size_t steps = 0;
    for (std::size_t k = 0; k < awake_.size(); ++k) {
      prefetch_after(k);
      if ((k & 255) == 0) monitor_.throw_if_stopped();
      const std::int32_t i = awake_[k];
      Coordinate& c = at(i);
      const double f = score(i);
      const double eager = eagerness(c, f);
      if (eager < -shrink_beyond_) {
        c.asleep_until = shrunk;
        continue;
      }
      estimated_gap_ += gap_term(c, f);
      if (eager > 0.0) {
        most_eager = std::max(most_eager, eager);
        c.nap = 0;
        ++steps;
        if (step(i, c, f) > busy_gain_) busy_.push_back(i);
      } else {
        put_to_sleep(c);
      }
    }
    monitor_.throw_if_stopped();
    shrink_beyond_ = std::max(most_eager, 1e-12);
    busy_gain_ = steps > 0 ? (dual_objective_ - before_sweep) / static_cast<double>(steps) : 0.0;
    revisit_busy_rows();
  }

  // Leaves the shrunk rows out of active_ and the sleeping ones out of awake_; both stay in storage order.
  void collect_awake_rows() {
    std::size_t kept = 0;
    awake_.clear();
    for (const std::int32_t i : active_) {
      const std::uint32_t asleep_until = at(i).asleep_until;
      if (asleep_until == shrunk) continue;
      active_[kept++] = i;
      if (asleep_until <= epoch_) awake_.push_back(i);
    }
    active_.resize(kept);
  }

  void shuffle_nearby() {
    if (awake_.size() <= 16 * neighbours) return random_.shuffle(std::span(awake_));
    std::vector<std::size_t> blocks((awake_.size() + neighbours - 1) / neighbours);
    std::iota(blocks.begin(), blocks.end(), std::size_t{0});
    random_.shuffle(std::span(blocks));
    shuffled_.clear();
    for (const std::size_t block : blocks) {
      const std::size_t first = block * neighbours;
      const auto rows = std::span(awake_).subspan(first, std::min(neighbours, awake_.size() - first));
      random_.shuffle(rows);
      shuffled_.insert(shuffled_.end(), rows.begin(), rows.end());
    }
    awake_.swap(shuffled_);
  }

  void revisit_busy_rows() {
    for (int round = 0; round < busy_rounds && !busy_.empty(); ++round) {
      random_.shuffle(std::span(busy_));
      std::size_t still_busy = 0;
      for (std::size_t k = 0; k < busy_.size(); ++k) {
        if (k + row_distance < busy_.size()) rows_.prefetch(busy_[k + row_distance]);
        const std::int32_t i = busy_[k];
        if (step(i, at(i), score(i)) > busy_gain_) busy_[still_busy++] = i;
      }
      busy_.resize(still_busy);
      monitor_.throw_if_stopped();
    }
  }

  void prefetch_after(std::size_t k) const {
    if (k + header_distance < awake_.size()) {
      const std::int32_t ahead = awake_[k + header_distance];
      __builtin_prefetch(&coordinates_[static_cast<std::size_t>(ahead)], 1);
      rows_.prefetch_header(ahead);
    }
    if (k + row_distance < awake_.size()) rows_.prefetch(awake_[k + row_distance]);
  }

  void put_to_sleep(Coordinate& c) const {
    c.nap = c.nap == 0 ? std::uint16_t{1}
                       : std::min<std::uint16_t>(static_cast<std::uint16_t>(2 * c.nap), longest_nap);
    // A first nap of one epoch is no nap at all: many examples rest at a bound only by accident.
    c.asleep_until = c.nap == 1 ? 0 : static_cast<std::uint32_t>(epoch_) + 1U + c.nap;
  }

  // Returns what the dual objective gained.
  double step(std::int64_t i, Coordinate& c, double f) {
    const double before = c.u;
    c.u = LossKind::best(c.costs, f - before * c.curvature, c.curvature);
    const double change = c.u - before;
    if (change == 0.0) return 0.0;
    rows_.axpy(i, change, weights_.data());
    const double gain = LossKind::dual(c.costs, c.u) - LossKind::dual(c.costs, before) -
                        change * (f + 0.5 * change * c.curvature);
    dual_objective_ += gain;
    return gain;
  }

  void wake_everyone() {
    active_.resize(coordinates_.size());
    std::iota(active_.begin(), active_.end(), 0);
    shrink_beyond_ = std::numeric_limits<double>::infinity();
    for (Coordinate& c : coordinates_) c.asleep_until = 0;
  }

  // One pass over all rows: the exact gap, and everyone who is eager is awake and active again.
  // Summed in pieces of fixed size, so that the result is the same for any number of threads.
  Sums pass_over_all_rows() {
    const std::int64_t pieces = (rows_.size() + certify_grain - 1) / certify_grain;
    std::vector<Sums> parts(static_cast<std::size_t>(pieces));
    parallel_ranges(options_.threads, rows_.size(), certify_grain, [&](std::int64_t begin, std::int64_t end) {
      monitor_.throw_if_stopped();
      Sums part;
      for (std::int64_t i = begin; i < end; ++i) {
        Coordinate& c = at(i);
        const double f = score(i);
        part.gap += gap_term(c, f);
        part.loss += LossKind::loss(c.costs, f);
        part.squared_weights += c.u * f;
        if (eagerness(c, f) > 0.0) c.asleep_until = 0;
      }
      parts[static_cast<std::size_t>(begin / certify_grain)] = part;
    });
    reactivate_awake_rows();
    Sums total;
    for (const Sums& part : parts) {
      total.gap += part.gap;
      total.loss += part.loss;
      total.squared_weights += part.squared_weights;
    }
    return total;
  }

  void reactivate_awake_rows() {
    active_.clear();
    for (std::size_t i = 0; i < coordinates_.size(); ++i) {
      if (coordinates_[i].asleep_until != shrunk) active_.push_back(static_cast<std::int32_t>(i));
    }
    shrink_beyond_ = std::numeric_limits<double>::infinity();
  }

  Outcome certify() {
    const Sums sums = pass_over_all_rows();
    Outcome outcome;
    outcome.objective = 0.5 * sums.squared_weights + sums.loss;
    outcome.dual_objective = outcome.objective - sums.gap;
    if (!std::isfinite(outcome.objective)) {
      throw std::invalid_argument("the objective is not finite: lower C or the sample weights");
    }
    outcome.epochs = epoch_;
    outcome.converged = sums.gap <= options_.tolerance * std::max(outcome.objective, 0.0);
    if (estimated_gap_ > 0.0) underestimate_ = std::clamp(sums.gap / estimated_gap_, 1.0, 1.5);
    estimated_gap_ = sums.gap;
    dual_objective_ = outcome.dual_objective;  // sheds what rounding the running value has gathered
    return outcome;
  }

  double squared_weights_of_start() {
    bool cold = true;
    for (const Coordinate& c : coordinates_) cold = cold && c.u == 0.0;
    return cold ? 0.0 : pass_over_all_rows().squared_weights;
  }

  double dual_value() const {  // without the -1/2 w'w
    double value = 0.0;
    for (const Coordinate& c : coordinates_) value += LossKind::dual(c.costs, c.u);
    return value;
  }

  bool seems_done() const {
    return underestimate_ * estimated_gap_ <= options_.tolerance * (dual_objective_ + estimated_gap_);
  }

  void publish(Progress& progress) {
    progress.epoch = epoch_;
    progress.active = static_cast<std::int64_t>(active_.size());
    const double objective = dual_objective_ + estimated_gap_;
    progress.relative_gap = objective > 0.0 ? estimated_gap_ / objective : 0.0;
    monitor_.report(progress);
  }

  // --- Growing box -------------------------------------------------------------------------

  // Only worth its two epochs per doubling where the box is several steps wide.
  void grow_box(Progress& progress) {
    if (!LossKind::boxed || coordinates_.empty()) return;
    std::vector<Costs> costs;
    double steps = 0.0;  // mean width of the box, in lengths of a first step
    for (const Coordinate& c : coordinates_) {
      costs.push_back(c.costs);
      steps += (c.costs.positive + c.costs.negative) * c.curvature;
    }
    double scale = static_cast<double>(coordinates_.size()) / steps;
    if (!(scale < 1.0 / 8.0)) return;
    scale_costs(costs, scale);
    while (scale < 1.0 && epoch_ + 2 < options_.max_epochs) {
      dual_objective_ = dual_value() - 0.5 * squared_weights_;
      sweep();
      sweep();
      publish(progress);
      stretch(std::min(2.0, 1.0 / scale));
      scale = scale < 0.5 ? 2.0 * scale : 1.0;
      scale_costs(costs, scale);
      wake_everyone();
    }
    scale_costs(costs, 1.0);
    dual_objective_ = dual_value() - 0.5 * squared_weights_;
  }

  void scale_costs(std::span<const Costs> costs, double scale) {
    for (std::size_t i = 0; i < costs.size(); ++i) {
      coordinates_[i].costs = {costs[i].positive * scale, costs[i].negative * scale};
    }
  }

  // The best multiple of u for the dual while the costs are multiplied too, max_s s sum(g) - s^2/2 w'w,
  // as far as the box allows.
  void stretch(double limit) {
    const double value = dual_value();
    squared_weights_ = 2.0 * (value - dual_objective_);
    if (!(squared_weights_ > 0.0)) return;
    const double factor = std::clamp(value / squared_weights_, 1.0, limit);
    for (Coordinate& c : coordinates_) c.u *= factor;
    for (double& w : weights_) w *= factor;
    squared_weights_ *= factor * factor;
  }

  // --- Kernel space ------------------------------------------------------------------------

  static constexpr bool has_kernel_space = KernelView<Rows> && !std::same_as<Rows, GramRows>;

  bool kernel_space_pays() const {
    if constexpr (has_kernel_space) {
      constexpr double largest_gram = 4096;         // rows; 128 MiB
      constexpr double epochs_saved_at_least = 16;  // what the tail costs without it, at the least
      const auto moving = static_cast<double>(awake_.size());
      return epoch_ >= next_kernel_finish_ && moving <= largest_gram && moving <= rows_.mean_map_size() &&
             moving * rows_.mean_row_size() <= epochs_saved_at_least * rows_.mean_map_size();
    } else {
      return false;
    }
  }

  // Does so if it pays, and says whether it did.
  bool finished_in_kernel_space() {
    if (!kernel_space_pays()) return false;
    if constexpr (has_kernel_space) {
      std::vector<std::int32_t> moving;
      for (const std::int32_t i : active_) {
        if (at(i).asleep_until <= epoch_ + 1) moving.push_back(i);
      }
      Coordinates part;
      std::vector<double> scores;
      for (const std::int32_t i : moving) {
        part.push_back(at(i));
        scores.push_back(score(i));
      }
      const GramRows gram(rows_.gram(moving, options_.threads), moving.size());
      constexpr std::int64_t epochs = 2000;  // each is cheaper than a handful of visits to mapped rows
      const Options options{options_.tolerance, epochs, random_.next(), 1};
      DualCoordinateDescent<GramRows, LossKind> solver(gram, std::move(part), scores, options, monitor_);
      solver.run_part(0.1 * options_.tolerance * std::max(dual_objective_, 0.0));
      std::vector<double> solved;
      for (const Coordinate& c : solver.coordinates()) solved.push_back(c.u);
      adopt(moving, solved);
      next_kernel_finish_ = epoch_ + 3;  // let the woken rows settle first
    }
    return true;
  }

  void adopt(std::span<const std::int32_t> moving, std::span<const double> solved) {
    for (std::size_t k = 0; k < moving.size(); ++k) {
      Coordinate& c = at(moving[k]);
      const double u = std::clamp(solved[k], LossKind::low(c.costs), LossKind::high(c.costs));
      const double change = u - c.u;
      if (change == 0.0) continue;
      c.u = u;
      rows_.axpy(moving[k], change, weights_.data());
    }
  }

  // --- Second order ------------------------------------------------------------------------

  // Compares what is left to do here, if the gap goes on falling as a power of the epochs, with the
  // interior-point method's thirty-odd factorisations. Asked at every doubling of the epochs.
  bool second_order_pays() {
    if constexpr (KernelView<Rows>) {
      if (epoch_ < next_comparison_) return false;
      next_comparison_ = 2 * epoch_;
      const double gap = estimated_gap_ / std::max(dual_objective_ + estimated_gap_, 1e-300);
      const double before = std::exchange(gap_at_comparison_, gap);
      if (before == 0.0) return false;  // nothing to compare with yet
      const double power = std::max(std::log2(before / gap), 0.2);
      const double epochs =
          std::pow(std::max(gap / options_.tolerance, 1.0), 1.0 / power) * static_cast<double>(epoch_);
      constexpr double overhead = 1000.0;  // of an epoch, however few rows it visits
      const double epoch_cost = 4.0 * static_cast<double>(awake_.size()) * rows_.mean_map_size() + overhead;
      // Where the epochs would not suffice, a good end is worth ten times their price.
      constexpr double worth = 10.0;
      const auto most_epochs = static_cast<double>(options_.max_epochs);
      return interior_point_cost() < epoch_cost * (epochs > most_epochs ? worth * most_epochs : epochs);
    } else {
      return false;
    }
  }

  // In multiplications. Infinite where the matrices would be too large, and once it has been tried.
  double interior_point_cost() const {
    constexpr double largest = 2048.0;
    constexpr double iterations = 30.0;
    const auto rows = static_cast<double>(rows_.size());
    double columns = rows;
    if constexpr (MappedView<Rows>) {
      // Every conjunction that occurs has been given some weight by now.
      columns = static_cast<double>(weights_.size()) - static_cast<double>(std::ranges::count(weights_, 0.0));
    }
    const double size = std::min(rows, columns);
    if (tried_second_order_ || size > largest) return std::numeric_limits<double>::infinity();
    const double fill =
        columns < rows ? 0.5 * rows * rows_.mean_map_size() * rows_.mean_map_size() : rows * rows;
    return iterations * (size * size * size / 3.0 + fill);
  }

  void solve_by_interior_point() {
    if constexpr (KernelView<Rows>) {
      tried_second_order_ = true;
      std::vector<Costs> costs;
      std::vector<std::int32_t> everyone;
      for (const Coordinate& c : coordinates_) {
        costs.push_back(c.costs);
        everyone.push_back(static_cast<std::int32_t>(everyone.size()));
      }
      const std::unique_ptr<NormalSystem> system = normal_system(everyone);
      InteriorPoint<LossKind> solver(costs, *system, monitor_);
      if (!solver.run(0.1 * options_.tolerance)) return;
      // From zero, not from where w stands: badly scaled rows would leave rounding behind.
      for (double& w : weights_) w = 0.0;
      for (Coordinate& c : coordinates_) c.u = 0.0;
      adopt(everyone, solver.duals());
    }
  }

  std::unique_ptr<NormalSystem> normal_system(std::span<const std::int32_t> everyone) const {
    if constexpr (MappedView<Rows>) {
      // The matrix over rows is the more accurate one, so it serves wherever it is small.
      constexpr std::size_t small = 512;
      if (rows_.dimension() < coordinates_.size() && coordinates_.size() > small) {
        return std::make_unique<ColumnSystem>(rows_.mapped(), options_.threads);
      }
    }
    return std::make_unique<RowSystem>(rows_.gram(everyone, options_.threads), coordinates_.size());
  }

  const Rows& rows_;
  Coordinates coordinates_;
  std::span<double> weights_;
  Options options_;
  Monitor& monitor_;
  Random random_;
  std::vector<std::int32_t> active_;  // not shrunk, ascending
  std::vector<std::int32_t> awake_;   // of those, the ones to visit this epoch, in their order
  std::vector<std::int32_t> shuffled_;
  std::vector<std::int32_t> busy_;
  double busy_gain_ = std::numeric_limits<double>::infinity();
  std::int64_t epoch_ = 0;
  std::int64_t next_kernel_finish_ = 3;
  std::int64_t next_comparison_ = 64;
  double gap_at_comparison_ = 0.0;
  bool tried_second_order_ = false;
  double shrink_beyond_ = std::numeric_limits<double>::infinity();
  double estimated_gap_ = 0.0;
  double underestimate_ = 1.0;  // by how much the last certified gap exceeded its estimate
  double dual_objective_ = 0.0;
  double squared_weights_ = 0.0;  // w'w; kept only while the box grows
};

}  // namespace unkernel::solve
