#include "unkernel/solve/row_sums.hpp"

#include <algorithm>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/base/parallel.hpp"

namespace unkernel::solve {
namespace {

constexpr std::int64_t most_sums = 16;
constexpr std::int64_t rows_per_task = 256;

// Returns the number of pieces. Each piece clears and adds a whole weight vector, so its rows must have
// several times as many entries as this vector.
std::int64_t choose_piece_count(const RowPasses& rows, std::size_t dimension) {
  if (!rows.has_kernel()) return 1;
  const double entries = static_cast<double>(rows.size()) * rows.mean_map_size();
  const double max_pieces = entries / (8.0 * static_cast<double>(std::max<std::size_t>(dimension, 1)));
  return static_cast<std::int64_t>(std::clamp(max_pieces, 1.0, static_cast<double>(most_sums)));
}

void add_rows_of_piece(const RowPasses& rows, std::int64_t begin, std::int64_t end,
                       std::span<const double> coefficients, std::span<double> sum, const Monitor& monitor) {
  for (std::int64_t first = begin; first < end; first += rows_per_task) {
    monitor.throw_if_stopped();
    rows.add(first, std::min(first + rows_per_task, end), coefficients.data(), sum.data());
  }
}

}  // namespace

void sum_rows(const RowPasses& rows, std::span<const double> coefficients, std::span<double> sum,
              Threads threads) {
  const std::int64_t pieces = choose_piece_count(rows, sum.size());
  if (pieces == 1) return add_rows_of_piece(rows, 0, rows.size(), coefficients, sum, *threads.monitor);
  std::vector<LargeVector<double>> buffers(static_cast<std::size_t>(std::max(threads.count, 1)));
  Turns turns;
  parallel_slots(threads.count, pieces, [&](std::size_t slot, std::int64_t piece) {
    const Turn turn(turns, piece);
    LargeVector<double>& piece_sum = buffers[slot];
    piece_sum.assign(sum.size(), 0.0);
    add_rows_of_piece(rows, piece * rows.size() / pieces, (piece + 1) * rows.size() / pieces, coefficients,
                      piece_sum, *threads.monitor);
    turn.wait();
    for (std::size_t j = 0; j < piece_sum.size(); ++j) sum[j] += piece_sum[j];
  });
}

void score_rows(const RowPasses& rows, std::span<const double> weights, std::span<double> scores,
                Threads threads) {
  parallel_ranges(threads.count, rows.size(), rows_per_task, [&](std::int64_t begin, std::int64_t end) {
    threads.monitor->throw_if_stopped();
    rows.dots(begin, end, weights.data(), scores.data());
  });
}

}  // namespace unkernel::solve
