#include "unkernel/cutplane/passes.hpp"

#include <algorithm>

#include "unkernel/base/parallel.hpp"
#include "unkernel/data/rows/row_loops.hpp"

namespace unkernel::cutplane {
namespace {

constexpr std::int64_t most_pieces = 16;

// Each piece clears and adds a whole weight vector, so its rows must have several times as many entries as
// this vector.
std::int64_t piece_count(const data::RowStore& store) {
  const auto features = static_cast<std::int64_t>(std::max<std::size_t>(store.features(), 1));
  const std::int64_t max_useful_pieces = store.entries() / (8 * features);
  return std::clamp<std::int64_t>(std::min(max_useful_pieces, store.blocks()), 1, most_pieces);
}

}  // namespace

Passes::Passes(const data::RowStore& store, double intercept, Threads threads)
    : store_(store), intercept_(intercept), threads_(threads) {
  const std::int64_t count = piece_count(store);
  for (std::int64_t k = 0; k <= count; ++k) pieces_.push_back(k * store.blocks() / count);
  buffers_.resize(static_cast<std::size_t>(std::max(threads.count, 1)));
}

void Passes::scores(std::span<const double> weights, std::span<double> scores) const {
  const double constant = intercept_ != 0.0 ? intercept_ * weights.back() : 0.0;
  parallel_for(threads_.count, store_.blocks(), [&](std::int64_t k) {
    threads_.monitor->throw_if_stopped();
    const data::BlockLease block = store_.block(k);
    double* const out = scores.data() + block->first_row;
    data::with_types(*block, [&](const auto* columns, const auto* values) {
      for (std::int64_t i = 0; i < block->rows(); ++i) {
        const auto row = data::row_of(*block, columns, values, i);
        out[i] = constant + dot(row, weights.data());
      }
    });
  });
}

void Passes::add_piece(std::int64_t piece, std::span<const double> coefficients,
                       std::span<double> sum) const {
  const auto p = static_cast<std::size_t>(piece);
  double total = 0.0;
  for (std::int64_t k = pieces_[p]; k < pieces_[p + 1]; ++k) {
    threads_.monitor->throw_if_stopped();
    const data::BlockLease block = store_.block(k);
    const double* const c = coefficients.data() + block->first_row;
    data::with_types(*block, [&](const auto* columns, const auto* values) {
      for (std::int64_t i = 0; i < block->rows(); ++i) {
        if (c[i] == 0.0) continue;
        total += c[i];
        add(data::row_of(*block, columns, values, i), c[i], sum.data());
      }
    });
  }
  if (intercept_ != 0.0) sum.back() += intercept_ * total;
}

void Passes::add_transposed(std::span<const double> coefficients, std::span<double> result) {
  const auto pieces = static_cast<std::int64_t>(pieces_.size()) - 1;
  if (pieces == 1) return add_piece(0, coefficients, result);
  Turns turns;
  parallel_slots(threads_.count, pieces, [&](std::size_t slot, std::int64_t piece) {
    const Turn turn(turns, piece);
    LargeVector<double>& sum = buffers_[slot];
    sum.assign(dimension(), 0.0);
    add_piece(piece, coefficients, sum);
    turn.wait();
    for (std::size_t j = 0; j < sum.size(); ++j) result[j] += sum[j];
  });
}

}  // namespace unkernel::cutplane
