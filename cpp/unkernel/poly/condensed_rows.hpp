// Stores the mapped rows phi(x) with column numbers for the conjunctions that occur.
//
// All conjunctions with the same rarest feature share a *segment* of the weight vector, so a column is stored
// as its place in the segment: 2 bytes per non-zero if no segment is longer than 65,536, else 4 bytes.
// (Numbering all columns by frequency made a pass a third slower, because the weights of a row were then
// scattered over the whole vector.) Values are not stored: they are products of the entries of x.
//
// Each row is one contiguous record, so that reading a row at random touches only neighbouring cache lines.
// The record holds, in this order, the number of features m, the first column of each feature's segment, and
// the places, feature by feature.
//
// Memory   2 or 4 bytes per non-zero of phi, 4 per feature of x, 8 per conjunction that occurs.
// Cost     one sequential and one random load per non-zero.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/poly/kernel_rows.hpp"

namespace unkernel::poly {

// Maps columns to conjunctions. Column 0 is the constant; segment r begins with the single feature of rank r.
struct Columns {
  std::vector<std::int64_t> segments;  // used features + 1
  std::vector<kernels::Key> keys;      // one per column
};

// The longest segment whose places fit into 2 bytes.
inline constexpr std::int64_t most_short_places = 65536;

// Returns an upper bound on the length of the longest segment.
std::int64_t longest_segment(const DistinctRows& examples, int degree);

// Stores the records of all rows in 4-byte words.
template <class Local>
struct Records {
  Records(const DistinctRows& examples, int degree);

  const std::uint32_t* operator[](std::int64_t i) const {
    return words.data() + offsets[static_cast<std::size_t>(i)];
  }
  std::uint32_t* operator[](std::int64_t i) { return words.data() + offsets[static_cast<std::size_t>(i)]; }
  static const Local* places(const std::uint32_t* record) {
    return reinterpret_cast<const Local*>(record + 1 + record[0]);
  }
  static Local* places(std::uint32_t* record) { return reinterpret_cast<Local*>(record + 1 + record[0]); }

  LargeVector<std::int64_t> offsets;
  LargeVector<std::uint32_t> words;
};

// Numbers the conjunctions that occur, and fills the records with these numbers.
template <class Local>
Columns condense(const DistinctRows& examples, int degree, Records<Local>& records, int threads,
                 const Monitor& monitor);

template <int Degree, bool Binary, class Local>
class CondensedRows : public KernelRows {
 public:
  CondensedRows(const DistinctRows& examples, const kernels::FeatureMap& map, int threads,
                const Monitor& monitor)
      : KernelRows(examples, map),
        mean_map_size_(mean_mapped_size(examples, Degree)),
        records_(examples, Degree) {
    columns_ = condense<Local>(examples, Degree, records_, threads, monitor);
  }

  std::size_t dimension() const { return columns_.keys.size(); }
  double mean_map_size() const { return mean_map_size_; }
  const Columns& columns() const { return columns_; }

  void prefetch_header(std::int64_t i) const {
    __builtin_prefetch(&records_.offsets[static_cast<std::size_t>(i)]);
    if constexpr (!Binary) KernelRows::prefetch_header(i);
  }
  void prefetch(std::int64_t i) const {
    const auto* first = reinterpret_cast<const char*>(records_[i]);
    const auto* last = reinterpret_cast<const char*>(records_[i + 1]);
    constexpr std::ptrdiff_t most_bytes = 512;  // the hardware prefetches the remainder of a longer record
    for (const auto* line = first; line < std::min(last, first + most_bytes); line += 64)
      __builtin_prefetch(line);
    if constexpr (!Binary) __builtin_prefetch(values(i));
  }

  double dot(std::int64_t i, const double* weights) const {
    const std::uint32_t* record = records_[i];
    const Local* local = Records<Local>::places(record);
    const double* x = Binary ? nullptr : values(i);
    double total = weights[0];
    for (std::size_t a = 0; a < record[0]; ++a) {
      const double* segment = weights + record[1 + a];
      const double sum = segment[0] + dot_segment(segment, local, x, a);
      total += Binary ? sum : x[a] * sum;
    }
    return total;
  }

  void axpy(std::int64_t i, double step, double* weights) const {
    const std::uint32_t* record = records_[i];
    const Local* local = Records<Local>::places(record);
    const double* x = Binary ? nullptr : values(i);
    weights[0] += step * constants_.constant;
    for (std::size_t a = 0; a < record[0]; ++a) {
      double* segment = weights + record[1 + a];
      const double scaled = Binary ? step : step * x[a];
      segment[0] += scaled * constants_.single;
      add_segment(segment, local, x, a, scaled);
    }
  }

 private:
  static std::size_t partners(std::size_t a) { return Binary ? a : a + 1; }

  // Adds up the weights of the non-zeros whose rarest feature is at position `a` of the row. Like
  // add_segment, moves `local` past these non-zeros.
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
          scatter<false>(segment, local, x, b,
                         scaled * (a == b ? constants_.square_times_other : constants_.triple));
          segment[local[b]] += scaled * (a == b ? constants_.cube : constants_.square_times_other) * x[b];
          local += b + 1;
        }
      }
    }
  }

  double mean_map_size_;
  Records<Local> records_;
  Columns columns_;
};

}  // namespace unkernel::poly
