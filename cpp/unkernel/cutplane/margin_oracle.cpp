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
struct Lack {
  double here;
  double there;
  double cost;
};

struct HingeTerm {
  static constexpr solve::Loss loss = solve::Loss::hinge;
  static Parabola parabola(const Lack& lack) {
    return {lack.cost * lack.here, lack.cost * (lack.there - lack.here), 0.0};
  }
  static double coefficient(double z, double) { return z; }
  static double offset(double z, double) { return std::abs(z); }
};

struct SquaredHingeTerm {
  static constexpr solve::Loss loss = solve::Loss::squared_hinge;
  static Parabola parabola(const Lack& lack) {
    const double change = lack.there - lack.here;
    return {lack.cost * lack.here * lack.here, 2.0 * lack.cost * lack.here * change,
            lack.cost * change * change};
  }
  static double coefficient(double z, double lack) { return 2.0 * z * lack; }
  static double offset(double z, double lack) {
    return std::abs(z) * lack * (2.0 - lack);
  }  // loss + c s, s = y (1 - lack)
};

// The contribution of a piece of the rows, on a line.
struct Piece {
  Parabola always;          // sum over rows with a loss at both ends
  std::size_t turning = 0;  // number of rows with a loss at one end only
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

  void face(std::span<const double> here, std::span<const double> there) override {
    here_ = here;
    there_ = there;
    sorted_ = false;
  }

  LinePoint along(double step, int threads) override {
    const bool between = step >= 0.0 && step <= 1.0;
    if (between && !std::exchange(sorted_, true)) sort_rows(threads);
    each_piece(threads, [&](Piece& piece, std::size_t begin, std::size_t end) {
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
    each_piece(threads, [&](Piece& piece, std::size_t begin, std::size_t end) {
      double offset = 0.0;
      const double* const costs = costs_.data();
      for (std::size_t i = begin; i < end; ++i) {
        const double lack = lack_at(costs[i], here_[i] + step * (there_[i] - here_[i]));
        coefficients[i] = lack > 0.0 ? Term::coefficient(costs[i], lack) : 0.0;
        offset += lack > 0.0 ? Term::offset(costs[i], lack) : 0.0;
      }
      piece.offset = offset;
    });
    double total = 0.0;
    for (const Piece& piece : pieces_) total += piece.offset;
    return total;
  }

 private:
  static double lack_at(double z, double score) { return 1.0 - std::copysign(score, z * score); }

  Lack lack_of(std::size_t i) const {
    return {lack_at(costs_[i], here_[i]), lack_at(costs_[i], there_[i]), std::abs(costs_[i])};
  }

  // Uses pieces of fixed size, so that sums do not depend on the number of threads.
  template <class Body>
  void each_piece(int threads, const Body& body) {
    parallel_ranges(threads, rows(), grain, [&](std::int64_t begin, std::int64_t end) {
      body(pieces_[static_cast<std::size_t>(begin / grain)], static_cast<std::size_t>(begin),
           static_cast<std::size_t>(end));
    });
  }

  void sort_rows(int threads) {
    each_piece(threads, [&](Piece& piece, std::size_t begin, std::size_t end) {
      Parabola sum;
      Lack* turning = turning_.data() + begin;
      for (std::size_t i = begin; i < end; ++i) {
        const Lack lack = lack_of(i);
        // Always written, but kept only if it turns: a branch could not be predicted.
        *turning = lack;
        turning += (lack.here > 0.0) != (lack.there > 0.0);
        const bool always = std::min(lack.here, lack.there) > 0.0;
        sum += Term::parabola({lack.here, lack.there, always ? lack.cost : 0.0});
      }
      piece.always = sum;
      piece.turning = static_cast<std::size_t>(turning - turning_.data()) - begin;
    });
  }

  LinePoint point_between(const Piece& piece, std::size_t begin, double step) const {
    LinePoint sum = piece.always.at(step);
    for (std::size_t k = begin; k < begin + piece.turning; ++k) add(turning_[k], step, sum);
    return sum;
  }

  LinePoint point_beyond(std::size_t begin, std::size_t end, double step) const {
    LinePoint sum;
    for (std::size_t i = begin; i < end; ++i) add(lack_of(i), step, sum);
    return sum;
  }

  static void add(const Lack& lack, double step, LinePoint& sum) {
    const bool counts = lack.here + step * (lack.there - lack.here) > 0.0;
    const LinePoint point = Term::parabola({lack.here, lack.there, counts ? lack.cost : 0.0}).at(step);
    sum.value += point.value;
    sum.slope += point.slope;
  }

  std::vector<double> costs_;  // y_i cost_i
  std::span<const double> here_;
  std::span<const double> there_;
  bool sorted_ = false;
  LargeVector<Lack> turning_;  // those of each piece start where the piece starts
  std::vector<Piece> pieces_;
};

}  // namespace

std::unique_ptr<Oracle> margin_oracle(solve::Loss loss, std::vector<double> signed_costs) {
  if (loss == solve::Loss::hinge) return std::make_unique<MarginOracle<HingeTerm>>(std::move(signed_costs));
  return std::make_unique<MarginOracle<SquaredHingeTerm>>(std::move(signed_costs));
}

}  // namespace unkernel::cutplane
