#include "unkernel/cutplane/margin_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "unkernel/base/large_array.hpp"
#include "unkernel/base/parallel.hpp"

namespace unkernel::cutplane {
namespace {

using solve::LinePoint;

constexpr std::int64_t grain = 1 << 14;  // rows per partial sum

// constant + linear t + square t^2
struct Parabola {
  double constant = 0.0;
  double linear = 0.0;
  double square = 0.0;

  LinePoint at(double t) const { return {constant + t * (linear + t * square), linear + 2.0 * t * square}; }
  Parabola& operator+=(const Parabola& other) {
    constant += other.constant;
    linear += other.linear;
    square += other.square;
    return *this;
  }
};

// The missing margin 1 - y s of a row, at both ends of the line, and its cost.
struct MissingMargin {
  double current;
  double proposed;
  double cost;
};

struct HingeTerm {
  static constexpr solve::Loss loss = solve::Loss::hinge;
  static Parabola parabola(const MissingMargin& missing) {
    return {missing.cost * missing.current, missing.cost * (missing.proposed - missing.current), 0.0};
  }
  static double coefficient(double z, double) { return z; }
  static double offset(double z, double) { return std::abs(z); }
};

struct SquaredHingeTerm {
  static constexpr solve::Loss loss = solve::Loss::squared_hinge;
  static Parabola parabola(const MissingMargin& missing) {
    const double change = missing.proposed - missing.current;
    return {missing.cost * missing.current * missing.current, 2.0 * missing.cost * missing.current * change,
            missing.cost * change * change};
  }
  static double coefficient(double z, double missing) { return 2.0 * z * missing; }
  static double offset(double z, double missing) {
    return std::abs(z) * missing * (2.0 - missing);
  }  // loss + c s, where s = y (1 - missing)
};

// The sums over a piece of the rows, on a line.
struct Piece {
  Parabola both_ends;       // sum over the rows with a loss at both ends of the line
  std::size_t turning = 0;  // rows with a loss at one end of the line only
  LinePoint point;
  double offset = 0.0;
};

template <class Term>
class MarginOracle final : public Oracle {
 public:
  explicit MarginOracle(std::vector<double> signed_costs)
      : costs_(std::move(signed_costs)),
        turning_(costs_.size()),
        pieces_((costs_.size() + grain - 1) / grain) {}

  std::int64_t rows() const override { return static_cast<std::int64_t>(costs_.size()); }

  std::optional<RowLosses> row_losses() const override { return RowLosses{Term::loss, costs_}; }

  void face(std::span<const double> current, std::span<const double> proposed) override {
    current_scores_ = current;
    proposed_scores_ = proposed;
    classified_ = false;
  }

  LinePoint along(double step, int threads) override {
    const bool between = step >= 0.0 && step <= 1.0;
    if (between && !std::exchange(classified_, true)) classify_rows(threads);
    for_each_piece(threads, [&](Piece& piece, std::size_t begin, std::size_t end) {
      piece.point = between ? point_between(piece, begin, step) : point_beyond(begin, end, step);
    });
    LinePoint total;
    for (const Piece& piece : pieces_) {
      total.value += piece.point.value;
      total.slope += piece.point.slope;
    }
    return total;
  }

  double cut(double step, std::span<double> coefficients, int threads) override {
    for_each_piece(threads, [&](Piece& piece, std::size_t begin, std::size_t end) {
      double offset = 0.0;
      const double* const costs = costs_.data();
      for (std::size_t i = begin; i < end; ++i) {
        const double missing =
            missing_margin(costs[i], current_scores_[i] + step * (proposed_scores_[i] - current_scores_[i]));
        coefficients[i] = missing > 0.0 ? Term::coefficient(costs[i], missing) : 0.0;
        offset += missing > 0.0 ? Term::offset(costs[i], missing) : 0.0;
      }
      piece.offset = offset;
    });
    double total = 0.0;
    for (const Piece& piece : pieces_) total += piece.offset;
    return total;
  }

 private:
  static double missing_margin(double z, double score) { return 1.0 - std::copysign(score, z * score); }

  MissingMargin missing_margins(std::size_t i) const {
    return {missing_margin(costs_[i], current_scores_[i]), missing_margin(costs_[i], proposed_scores_[i]),
            std::abs(costs_[i])};
  }

  // Uses pieces of fixed size, so that sums do not depend on the number of threads.
  template <class Body>
  void for_each_piece(int threads, const Body& body) {
    parallel_ranges(threads, rows(), grain, [&](std::int64_t begin, std::int64_t end) {
      body(pieces_[static_cast<std::size_t>(begin / grain)], static_cast<std::size_t>(begin),
           static_cast<std::size_t>(end));
    });
  }

  void classify_rows(int threads) {
    for_each_piece(threads, [&](Piece& piece, std::size_t begin, std::size_t end) {
      Parabola sum;
      MissingMargin* turning = turning_.data() + begin;
      for (std::size_t i = begin; i < end; ++i) {
        const MissingMargin missing = missing_margins(i);
        // Writes every row, and the next one overwrites it unless it has a loss at one end only: a branch
        // would be mispredicted.
        *turning = missing;
        turning += (missing.current > 0.0) != (missing.proposed > 0.0);
        const bool both_ends = std::min(missing.current, missing.proposed) > 0.0;
        sum += Term::parabola({missing.current, missing.proposed, both_ends ? missing.cost : 0.0});
      }
      piece.both_ends = sum;
      piece.turning = static_cast<std::size_t>(turning - turning_.data()) - begin;
    });
  }

  LinePoint point_between(const Piece& piece, std::size_t begin, double step) const {
    LinePoint sum = piece.both_ends.at(step);
    for (std::size_t k = begin; k < begin + piece.turning; ++k) add(turning_[k], step, sum);
    return sum;
  }

  LinePoint point_beyond(std::size_t begin, std::size_t end, double step) const {
    LinePoint sum;
    for (std::size_t i = begin; i < end; ++i) add(missing_margins(i), step, sum);
    return sum;
  }

  static void add(const MissingMargin& missing, double step, LinePoint& sum) {
    const bool has_loss = missing.current + step * (missing.proposed - missing.current) > 0.0;
    const LinePoint point =
        Term::parabola({missing.current, missing.proposed, has_loss ? missing.cost : 0.0}).at(step);
    sum.value += point.value;
    sum.slope += point.slope;
  }

  std::vector<double> costs_;  // y_i cost_i
  std::span<const double> current_scores_;
  std::span<const double> proposed_scores_;
  bool classified_ = false;
  LargeVector<MissingMargin> turning_;  // the rows of a piece start at the begin of the piece
  std::vector<Piece> pieces_;
};

}  // namespace

std::unique_ptr<Oracle> margin_oracle(solve::Loss loss, std::vector<double> signed_costs) {
  if (loss == solve::Loss::hinge) return std::make_unique<MarginOracle<HingeTerm>>(std::move(signed_costs));
  return std::make_unique<MarginOracle<SquaredHingeTerm>>(std::move(signed_costs));
}

}  // namespace unkernel::cutplane
