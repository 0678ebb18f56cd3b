#include "unkernel/poly/distinct_rows.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "unkernel/base/flat_map.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/base/random.hpp"

namespace unkernel::poly {
namespace {

struct HashedRow {
  std::uint64_t hash;
  std::int64_t row;
};

template <class Number>
using Entries = std::vector<std::pair<Number, double>>;

// Sorts the entries of a row by their numbers.
template <class Number>
void sort_entries(std::span<Number> numbers, std::span<double> values, Entries<Number>& scratch) {
  if (std::is_sorted(numbers.begin(), numbers.end())) return;
  scratch.clear();
  for (std::size_t k = 0; k < numbers.size(); ++k) scratch.emplace_back(numbers[k], values[k]);
  std::sort(scratch.begin(), scratch.end());
  for (std::size_t k = 0; k < numbers.size(); ++k) std::tie(numbers[k], values[k]) = scratch[k];
}

template <class Index>
class DistinctRowsBuilder {
 public:
  DistinctRowsBuilder(const data::CsrView<Index, double>& input, std::span<const std::int32_t> classes,
                      std::span<const double> weights, Merge merge, int threads)
      : input_(input), classes_(classes), weights_(weights), merge_(merge), threads_(threads) {}

  DistinctRows build() {
    scan_rows();
    merge_equal_rows();
    number_features();
    fill();
    return std::move(result_);
  }

 private:
  double weight(std::int64_t row) const {
    return weights_.empty() ? 1.0 : weights_[static_cast<std::size_t>(row)];
  }
  std::int32_t code(std::int64_t row) const { return classes_[static_cast<std::size_t>(row)]; }
  std::size_t begin(std::int64_t row) const {
    return static_cast<std::size_t>(input_.offsets[static_cast<std::size_t>(row)]);
  }
  std::size_t end(std::int64_t row) const {
    return static_cast<std::size_t>(input_.offsets[static_cast<std::size_t>(row) + 1]);
  }

  // Checks and hashes the rows and counts their non-zeros in one pass over the input.
  void scan_rows() {
    hashed_.resize(static_cast<std::size_t>(input_.rows()));
    sizes_.resize(static_cast<std::size_t>(input_.rows()));
    std::atomic<bool> is_binary{true};
    parallel_ranges(threads_, input_.rows(), row_grain, [&](std::int64_t first, std::int64_t last) {
      bool ones = true;
      for (std::int64_t row = first; row < last; ++row) {
        bool row_of_ones = true;
        scan_row(row, row_of_ones);
        if (weight(row) > 0.0) ones = ones && row_of_ones;  // rows without weight have no influence
      }
      if (!ones) is_binary = false;
    });
    binary_ = is_binary;
    std::erase_if(hashed_, [&](const HashedRow& item) { return !(weight(item.row) > 0.0); });
    if (hashed_.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
      throw std::invalid_argument("more than 2^31 - 1 training rows");
    }
    std::sort(hashed_.begin(), hashed_.end(), [](const HashedRow& a, const HashedRow& b) {
      return a.hash != b.hash ? a.hash < b.hash : a.row < b.row;
    });
  }

  void scan_row(std::int64_t row, bool& ones) {
    std::uint64_t hash = 0;
    std::int32_t size = 0;
    std::int64_t previous = -1;
    for (std::size_t k = begin(row); k < end(row); ++k) {
      const auto column = static_cast<std::int64_t>(input_.columns[k]);
      if (column <= previous || column >= input_.features) {
        throw std::invalid_argument("row " + std::to_string(row) +
                                    ": column indices must be sorted, unique and inside the matrix");
      }
      previous = column;
      const double value = input_.values[k];
      if (value == 0.0) continue;
      ++size;
      ones = ones && value == 1.0;
      hash = Random::mix(hash ^ (static_cast<std::uint64_t>(column + 1) * std::uint64_t{0x9e3779b97f4a7c15} +
                                 std::bit_cast<std::uint64_t>(value)));
    }
    if (merge_ == Merge::examples) hash = Random::mix(hash ^ static_cast<std::uint64_t>(code(row)));
    hashed_[static_cast<std::size_t>(row)] = {hash, row};
    sizes_[static_cast<std::size_t>(row)] = size;
  }

  std::size_t next_nonzero(std::size_t k, std::size_t stop) const {
    while (k < stop && input_.values[k] == 0.0) ++k;
    return k;
  }

  bool are_equal(std::int64_t a, std::int64_t b) const {
    if (merge_ == Merge::examples && code(a) != code(b)) return false;
    std::size_t i = next_nonzero(begin(a), end(a));
    std::size_t j = next_nonzero(begin(b), end(b));
    while (i < end(a) && j < end(b)) {
      if (input_.columns[i] != input_.columns[j] || input_.values[i] != input_.values[j]) return false;
      i = next_nonzero(i + 1, end(a));
      j = next_nonzero(j + 1, end(b));
    }
    return i == end(a) && j == end(b);
  }

  // Merges equal rows. After scan_rows, rows with equal hashes are contiguous, but they need not be equal, so
  // the rows of each run of equal hashes are compared.
  void merge_equal_rows() {
    result_.places.assign(static_cast<std::size_t>(input_.rows()), -1);
    result_.label_offsets.push_back(0);
    for (std::size_t first = 0; first < hashed_.size();) {
      std::size_t end_of_hash = first + 1;
      while (end_of_hash < hashed_.size() && hashed_[end_of_hash].hash == hashed_[first].hash) ++end_of_hash;
      while (first < end_of_hash) {
        const std::int64_t row = hashed_[first].row;
        const auto first_different =
            std::stable_partition(hashed_.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                                  hashed_.begin() + static_cast<std::ptrdiff_t>(end_of_hash),
                                  [&](const HashedRow& item) { return are_equal(row, item.row); });
        const auto end_of_equal = static_cast<std::size_t>(first_different - hashed_.begin());
        add_distinct_row(first, end_of_equal);
        first = end_of_equal;
      }
    }
    hashed_ = {};
  }

  void add_distinct_row(std::size_t first, std::size_t last) {
    sources_.push_back(hashed_[first].row);
    result_.hashes.push_back(hashed_[first].hash);
    const std::size_t first_label = result_.labels.size();
    for (std::size_t i = first; i < last; ++i) {
      result_.places[static_cast<std::size_t>(hashed_[i].row)] =
          static_cast<std::int32_t>(sources_.size()) - 1;
      add_label(first_label, code(hashed_[i].row), weight(hashed_[i].row));
    }
    std::sort(result_.labels.begin() + static_cast<std::ptrdiff_t>(first_label), result_.labels.end(),
              [](const Label& a, const Label& b) { return a.code < b.code; });
    result_.label_offsets.push_back(static_cast<std::int64_t>(result_.labels.size()));
  }

  void add_label(std::size_t first_label, std::int32_t code, double weight) {
    for (std::size_t i = first_label; i < result_.labels.size(); ++i) {
      if (result_.labels[i].code == code) {
        result_.labels[i].weight += weight;
        return;
      }
    }
    result_.labels.push_back({code, weight});
  }

  // Counts the rows of each column. If there are few columns, counts in an array over all of them, else in an
  // array over the sorted columns that occur.
  void number_features() {
    const auto nonzeros = static_cast<std::int64_t>(input_.columns.size());
    const bool is_dense = input_.features <= std::max<std::int64_t>(std::int64_t{1} << 20, 4 * nonzeros);
    if (!is_dense) collect_columns();
    std::vector<std::int32_t> counts(
        is_dense ? static_cast<std::size_t>(input_.features) : occurring_columns_.size(), 0);
    std::vector<bool> is_source(static_cast<std::size_t>(input_.rows()), false);
    for (const std::int64_t row : sources_) is_source[static_cast<std::size_t>(row)] = true;
    for (std::int64_t row = 0; row < input_.rows(); ++row) {
      if (!is_source[static_cast<std::size_t>(row)]) continue;
      for (std::size_t k = begin(row); k < end(row); ++k) {
        if (input_.values[k] != 0.0) ++counts[slot(k)];
      }
    }
    rank_by(counts, is_dense);
  }

  void rank_by(std::vector<std::int32_t>& counts, bool is_dense) {
    std::vector<std::int64_t> order;
    for (std::size_t s = 0; s < counts.size(); ++s) {
      if (counts[s] > 0) order.push_back(static_cast<std::int64_t>(s));
    }
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return counts[static_cast<std::size_t>(a)] > counts[static_cast<std::size_t>(b)];
    });
    ranks_ = std::move(counts);
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
      const auto s = static_cast<std::size_t>(order[rank]);
      ranks_[s] = static_cast<std::int32_t>(rank);
      result_.columns.push_back(is_dense ? order[rank] : static_cast<std::int64_t>(occurring_columns_[s]));
    }
  }

  void collect_columns() {
    for (const std::int64_t row : sources_) {
      for (std::size_t k = begin(row); k < end(row); ++k) {
        if (input_.values[k] != 0.0) occurring_columns_.push_back(input_.columns[k]);
      }
    }
    std::sort(occurring_columns_.begin(), occurring_columns_.end());
    occurring_columns_.erase(std::unique(occurring_columns_.begin(), occurring_columns_.end()),
                             occurring_columns_.end());
  }

  std::size_t slot(std::size_t k) const {
    const Index column = input_.columns[k];
    if (occurring_columns_.empty()) return static_cast<std::size_t>(column);
    return static_cast<std::size_t>(
        std::lower_bound(occurring_columns_.begin(), occurring_columns_.end(), column) -
        occurring_columns_.begin());
  }

  void fill() {
    result_.offsets.push_back(0);
    for (const std::int64_t row : sources_) {
      result_.offsets.push_back(result_.offsets.back() + sizes_[static_cast<std::size_t>(row)]);
    }
    const auto nonzeros = static_cast<std::size_t>(result_.offsets.back());
    result_.features.resize(nonzeros);
    if (!binary_) result_.values.resize(nonzeros);
    parallel_ranges(threads_, result_.rows(), row_grain, [&](std::int64_t first, std::int64_t last) {
      Entries<std::int32_t> scratch;
      for (std::int64_t i = first; i < last; ++i) {
        if (binary_) {
          fill_binary_row(i);
        } else {
          fill_real_row(i, scratch);
        }
      }
    });
  }

  void fill_binary_row(std::int64_t i) {
    const std::int64_t row = sources_[static_cast<std::size_t>(i)];
    std::int32_t* const first = result_.features.data() + result_.offsets[static_cast<std::size_t>(i)];
    std::int32_t* last = first;
    for (std::size_t k = begin(row); k < end(row); ++k) {
      if (input_.values[k] != 0.0) *last++ = ranks_[slot(k)];
    }
    std::sort(first, last);
  }

  void fill_real_row(std::int64_t i, Entries<std::int32_t>& scratch) {
    const std::int64_t row = sources_[static_cast<std::size_t>(i)];
    const auto first = static_cast<std::size_t>(result_.offsets[static_cast<std::size_t>(i)]);
    std::size_t place = first;
    for (std::size_t k = begin(row); k < end(row); ++k) {
      if (input_.values[k] == 0.0) continue;
      result_.features[place] = ranks_[slot(k)];
      result_.values[place++] = input_.values[k];
    }
    sort_entries(std::span(result_.features).subspan(first, place - first),
                 std::span(result_.values).subspan(first, place - first), scratch);
  }

  const data::CsrView<Index, double>& input_;
  std::span<const std::int32_t> classes_;
  std::span<const double> weights_;
  Merge merge_;
  int threads_;
  bool binary_ = true;
  std::vector<HashedRow> hashed_;
  std::vector<std::int32_t> sizes_;    // non-zeros of each input row
  std::vector<std::int64_t> sources_;  // input row of each distinct row
  // The sorted columns that occur; empty if an array over all columns is small enough.
  std::vector<Index> occurring_columns_;
  std::vector<std::int32_t> ranks_;  // by column, or by index in occurring_columns_
  DistinctRows result_;
};

}  // namespace

template <class Index>
DistinctRows distinct_examples(const data::CsrView<Index, double>& input,
                               std::span<const std::int32_t> classes, std::span<const double> weights,
                               Merge merge, int threads) {
  return DistinctRowsBuilder<Index>(input, classes, weights, merge, threads).build();
}

template DistinctRows distinct_examples(const data::CsrView<std::int32_t, double>&,
                                        std::span<const std::int32_t>, std::span<const double>, Merge, int);
template DistinctRows distinct_examples(const data::CsrView<std::int64_t, double>&,
                                        std::span<const std::int32_t>, std::span<const double>, Merge, int);

DistinctRows renumbered(const DistinctRows& rows, std::span<const std::int64_t> columns, bool binary) {
  if (binary && !rows.binary())
    throw std::invalid_argument("rows with values other than 1 cannot become binary");
  FlatMap<std::uint64_t, std::int32_t> ranks;
  for (std::size_t rank = 0; rank < columns.size(); ++rank)
    ranks[static_cast<std::uint64_t>(columns[rank])] = static_cast<std::int32_t>(rank);
  if (ranks.size() != columns.size())
    throw std::invalid_argument("a column occurs twice in the list of columns");
  std::vector<std::int32_t> rank_of(rows.columns.size());
  for (std::size_t k = 0; k < rank_of.size(); ++k) {
    const std::int32_t* rank = ranks.find(static_cast<std::uint64_t>(rows.columns[k]));
    if (rank == nullptr)
      throw std::invalid_argument("a column of the rows is missing from the list of columns");
    rank_of[k] = *rank;
  }
  DistinctRows result = rows;
  result.columns.assign(columns.begin(), columns.end());
  if (!binary && rows.binary()) result.values.resize(rows.features.size(), 1.0);
  for (std::int32_t& feature : result.features) feature = rank_of[static_cast<std::size_t>(feature)];
  Entries<std::int32_t> scratch;
  for (std::size_t i = 0; i < rows.hashes.size(); ++i) {
    const auto first = static_cast<std::size_t>(rows.offsets[i]);
    const auto size = static_cast<std::size_t>(rows.offsets[i + 1]) - first;
    const auto features = std::span(result.features).subspan(first, size);
    if (binary) {
      std::sort(features.begin(), features.end());
    } else {
      sort_entries(features, std::span(result.values).subspan(first, size), scratch);
    }
  }
  return result;
}

ChosenRows choose_rows(const DistinctRows& rows, std::span<const std::int64_t> rows_to_choose) {
  ChosenRows result;
  result.offsets.push_back(0);
  for (const std::int64_t row : rows_to_choose) {
    if (row < 0 || row >= rows.rows()) throw std::out_of_range("there is no row " + std::to_string(row));
    result.offsets.push_back(result.offsets.back() + rows.row_size(row));
  }
  result.columns.resize(static_cast<std::size_t>(result.offsets.back()));
  result.values.resize(result.columns.size(), 1.0);
  Entries<std::int64_t> scratch;
  for (std::size_t i = 0; i < rows_to_choose.size(); ++i) {
    const auto source = static_cast<std::size_t>(rows.offsets[static_cast<std::size_t>(rows_to_choose[i])]);
    const auto first = static_cast<std::size_t>(result.offsets[i]);
    const auto size = static_cast<std::size_t>(result.offsets[i + 1]) - first;
    for (std::size_t k = 0; k < size; ++k) {
      result.columns[first + k] = rows.columns[static_cast<std::size_t>(rows.features[source + k])];
      if (!rows.binary()) result.values[first + k] = rows.values[source + k];
    }
    sort_entries(std::span(result.columns).subspan(first, size),
                 std::span(result.values).subspan(first, size), scratch);
  }
  return result;
}

double weighted_variance(const DistinctRows& examples, std::int64_t columns) {
  const auto sum_over_entries = [&](const auto& term) {
    double total = 0.0;
    for (std::size_t row = 0; row < examples.hashes.size(); ++row) {
      double part = 0.0;
      for (auto k = examples.offsets[row]; k < examples.offsets[row + 1]; ++k) {
        part += term(examples.binary() ? 1.0 : examples.values[static_cast<std::size_t>(k)]);
      }
      total += examples.weight(static_cast<std::int64_t>(row)) * part;
    }
    return total;
  };
  double rows = 0.0;
  for (const Label& label : examples.labels) rows += label.weight;
  const double entries = rows * static_cast<double>(columns);
  if (!(entries > 0.0)) return 0.0;
  const double mean = sum_over_entries([](double x) { return x; }) / entries;
  const double nonzero = sum_over_entries([](double) { return 1.0; });
  const double squares = sum_over_entries([&](double x) { return (x - mean) * (x - mean); });
  return (squares + (entries - nonzero) * mean * mean) / entries;
}

}  // namespace unkernel::poly
