// phi(x) stored, by column numbers that count only the conjunctions that occur.
//
// All conjunctions with the same rarest feature share a *segment* of the weight vector, so a column
// is stored as its place in the segment: 2 bytes a non-zero where no segment is longer than 65,536,
// else 4. (Numbering all columns by frequency, which we tried first, made a pass a third slower:
// what a row reads then lies scattered over the whole vector.) Values are never stored; they are
// products of the x that the loops hold anyway.
//
// Memory   2 or 4 bytes per non-zero of phi, 8 per conjunction that occurs.
// Cost     one sequential and one random load per non-zero.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/poly/kernel_rows.hpp"

namespace unkernel::poly {

// Which conjunction stands in which column. Column 0 is the constant; segment r begins with rank r alone.
struct Columns {
  std::vector<std::int64_t> segments;  // used features + 1
  std::vector<engines::Key> keys;      // one per column
};

// An upper bound of the longest segment: decides how wide the stored numbers must be.
std::int64_t longest_segment(const Examples& examples, int degree);

// Fills `local` (the rows' non-zeros beyond the single features, in row order; offsets[i] is where row i
// begins) with places in segments.
template <class Local>
Columns condense(const Examples& examples, int degree, const LargeVector<std::int64_t>& offsets,
                 LargeVector<Local>& local, int threads, const Monitor& monitor);

template <int Degree, bool Binary, class Local>
class CondensedRows : public KernelRows {
 public:
  CondensedRows(const Examples& examples, const engines::FeatureMap& map, int threads, const Monitor& monitor)
      : KernelRows(examples, map), mean_map_size_(mean_mapped_size(examples, Degree)) {
    offsets_.push_back(0);
    for (std::int64_t i = 0; i < examples.rows(); ++i) {
      offsets_.push_back(offsets_.back() + mapped_size(Degree, Binary, examples.row_size(i)) - 1 - examples.row_size(i));
    }
    local_.resize(static_cast<std::size_t>(offsets_.back()));
    columns_ = condense<Local>(examples, Degree, offsets_, local_, threads, monitor);
  }

  std::size_t dimension() const { return columns_.keys.size(); }
  double mean_map_size() const { return mean_map_size_; }
  const Columns& columns() const { return columns_; }

  void prefetch_header(std::int64_t i) const {
    KernelRows::prefetch_header(i);
    __builtin_prefetch(&offsets_[static_cast<std::size_t>(i)]);
  }
  void prefetch(std::int64_t i) const {
    prefetch_features(i);
    const auto* first = reinterpret_cast<const char*>(local_.data() + offsets_[static_cast<std::size_t>(i)]);
    const auto* last = reinterpret_cast<const char*>(local_.data() + offsets_[static_cast<std::size_t>(i) + 1]);
    // A long row is prefetched by the hardware once it is under way.
    for (const auto* line = first; line < std::min(last, first + 512); line += 64) __builtin_prefetch(line);
  }

  double dot(std::int64_t i, const double* weights) const {
    const std::int32_t* f = features(i);
    const double* x = values(i);
    const std::size_t size = end(i) - begin(i);
    const Local* local = local_.data() + offsets_[static_cast<std::size_t>(i)];
    double total = weights[0];
    for (std::size_t a = 0; a < size; ++a) {
      const double* segment = weights + columns_.segments[static_cast<std::size_t>(f[a])];
      const double sum = segment[0] + dot_segment(segment, local, x, a);
      if constexpr (Binary) {
        total += sum;
      } else {
        total += x[a] * sum;
      }
    }
    return total;
  }

  void axpy(std::int64_t i, double step, double* weights) const {
    const std::int32_t* f = features(i);
    const double* x = values(i);
    const std::size_t size = end(i) - begin(i);
    const Local* local = local_.data() + offsets_[static_cast<std::size_t>(i)];
    weights[0] += step * constants_.constant;
    for (std::size_t a = 0; a < size; ++a) {
      double* segment = weights + columns_.segments[static_cast<std::size_t>(f[a])];
      const double scaled = Binary ? step : step * x[a];
      segment[0] += scaled * constants_.single;
      add_segment(segment, local, x, a, scaled);
    }
  }

 private:
  static std::size_t partners(std::size_t a) { return Binary ? a : a + 1; }

  // Both walk `local` forward over the non-zeros whose rarest feature is the row's a-th.
  static double dot_segment(const double* segment, const Local*& local, const double* x, std::size_t a) {
    const std::size_t pairs = partners(a);
    if constexpr (Binary) {
      const std::size_t count = Degree == 3 ? pairs + pairs * (pairs - (pairs > 0)) / 2 : pairs;
      const double sum = gather<true>(segment, local, x, count);
      local += count;
      return sum;
    } else {
      if constexpr (Degree == 2) {
        const double sum = gather<false>(segment, local, x, pairs);
        local += pairs;
        return sum;
      }
      const Local* pair = local;
      local += pairs;
      double sum = 0.0;
      for (std::size_t b = 0; b < pairs; ++b) {
        sum += x[b] * (segment[pair[b]] + gather<false>(segment, local, x, b + 1));
        local += b + 1;
      }
      return sum;
    }
  }

  void add_segment(double* segment, const Local*& local, const double* x, std::size_t a, double step) const {
    const std::size_t pairs = partners(a);
    scatter<Binary>(segment, local, x, a, step * constants_.pair);
    if constexpr (!Binary) segment[local[a]] += step * constants_.square * x[a];
    local += pairs;
    if constexpr (Degree == 3) {
      for (std::size_t b = 0; b < pairs; ++b) {
        if constexpr (Binary) {
          scatter<true>(segment, local, x, b, step * constants_.triple);
          local += b;
        } else {
          const double scaled = step * x[b];
          scatter<false>(segment, local, x, b, scaled * (a == b ? constants_.square_times_other : constants_.triple));
          segment[local[b]] += scaled * (a == b ? constants_.cube : constants_.square_times_other) * x[b];
          local += b + 1;
        }
      }
    }
  }

  double mean_map_size_;
  LargeVector<std::int64_t> offsets_;
  LargeVector<Local> local_;
  Columns columns_;
};

}  // namespace unkernel::poly
