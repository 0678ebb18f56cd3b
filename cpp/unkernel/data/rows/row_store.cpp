#include "unkernel/data/rows/row_store.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "unkernel/base/parallel.hpp"

namespace unkernel::data {
namespace {

constexpr std::int64_t grain = 1 << 16;
constexpr std::size_t most_narrow_features = 1 << 16;

// Returns the offsets of the ordered rows. Throws std::invalid_argument if a row number is out of range.
template <class Index>
LargeVector<std::int64_t> offsets_of(std::span<const Index> offsets, RowOrder order) {
  if (!order) return {offsets.begin(), offsets.end()};
  LargeVector<std::int64_t> result{0};
  for (const std::int64_t row : *order) {
    if (row < 0 || row + 1 >= static_cast<std::int64_t>(offsets.size()))
      throw std::invalid_argument("a row number is outside the matrix");
    const auto i = static_cast<std::size_t>(row);
    result.push_back(result.back() + static_cast<std::int64_t>(offsets[i + 1] - offsets[i]));
  }
  return result;
}

// Copies the entries of rows to their new positions.
template <class Index>
class EntryCopier {
 public:
  EntryCopier(std::span<const Index> from, RowOrder order, std::span<const std::int64_t> to, int threads)
      : from_(from), order_(order), to_(to), threads_(threads) {}

  template <class To, class From, class Change>
  void copy(std::span<const From> from, LargeVector<To>& to, const Change& change) const {
    to.resize(static_cast<std::size_t>(to_.back()));
    const auto copy_entries = [&](std::size_t source, std::size_t target, std::size_t count) {
      for (std::size_t k = 0; k < count; ++k) to[target + k] = static_cast<To>(change(from[source + k]));
    };
    if (!order_) {
      parallel_ranges(threads_, to_.back(), grain, [&](std::int64_t begin, std::int64_t end) {
        const auto first = static_cast<std::size_t>(begin);
        copy_entries(first, first, static_cast<std::size_t>(end - begin));
      });
      return;
    }
    parallel_ranges(threads_, static_cast<std::int64_t>(order_->size()), rows_per_block,
                    [&](std::int64_t begin, std::int64_t end) {
                      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
                        const auto source = static_cast<std::size_t>((*order_)[i]);
                        copy_entries(static_cast<std::size_t>(from_[source]),
                                     static_cast<std::size_t>(to_[i]),
                                     static_cast<std::size_t>(to_[i + 1] - to_[i]));
                      }
                    });
  }

 private:
  std::span<const Index> from_;
  RowOrder order_;
  std::span<const std::int64_t> to_;
  int threads_;
};

template <class Index>
void check_columns(std::span<const Index> columns, std::int64_t features, int threads) {
  std::atomic<bool> is_valid{true};
  parallel_ranges(threads, static_cast<std::int64_t>(columns.size()), grain,
                  [&](std::int64_t begin, std::int64_t end) {
                    // As unsigned numbers, negative columns are larger than all valid columns. Compilers
                    // vectorise the maximum.
                    using Unsigned = std::make_unsigned_t<Index>;
                    Unsigned largest = 0;
                    for (auto k = static_cast<std::size_t>(begin); k < static_cast<std::size_t>(end); ++k)
                      largest = std::max(largest, static_cast<Unsigned>(columns[k]));
                    if (begin < end && largest >= static_cast<std::uint64_t>(features)) is_valid = false;
                  });
  if (!is_valid) throw std::invalid_argument("a column index is outside the matrix");
}

// Numbers columns by descending use, with a counting sort. Columns with equally many uses keep their order.
Numbering number_by_uses(std::span<const std::uint32_t> uses) {
  // next[n] is the number of the next column that is used n times.
  std::vector<std::uint32_t> next(uses.empty() ? 1 : std::size_t{*std::ranges::max_element(uses)} + 1, 0);
  for (const std::uint32_t times : uses) ++next[times];
  std::uint32_t used = 0;
  for (std::size_t times = next.size(); times-- > 1;) used += std::exchange(next[times], used);
  Numbering numbering{std::vector<std::uint32_t>(uses.size()), std::vector<std::uint32_t>(used)};
  for (std::size_t column = 0; column < uses.size(); ++column) {
    if (uses[column] == 0) continue;
    const std::uint32_t number = next[uses[column]]++;
    numbering.number_of[column] = number;
    numbering.column_of[number] = static_cast<std::uint32_t>(column);
  }
  return numbering;
}

}  // namespace

std::size_t entry_bytes(const Layout& layout) {
  const std::size_t column = layout.columns == ColumnKind::narrow ? 2 : 4;
  if (layout.values == ValueKind::ones) return column;
  return column + (layout.values == ValueKind::single ? 4 : 8);
}

ValueSurvey survey_values(std::span<const double> values, int threads) {
  std::atomic<bool> ones{true}, single{true}, finite{true};
  parallel_ranges(threads, static_cast<std::int64_t>(values.size()), grain,
                  [&](std::int64_t begin, std::int64_t end) {
                    // Compare bits, because comparisons of doubles would not be vectorised.
                    const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
                    constexpr std::uint64_t exponent = 0x7FF0'0000'0000'0000;
                    std::uint64_t differs_from_one = 0, differs_from_single = 0, infinite = 0;
                    for (auto k = static_cast<std::size_t>(begin); k < static_cast<std::size_t>(end); ++k) {
                      const std::uint64_t value = bits(values[k]);
                      differs_from_one |= value ^ bits(1.0);
                      differs_from_single |= value ^ bits(static_cast<double>(static_cast<float>(values[k])));
                      infinite |= static_cast<std::uint64_t>((value & exponent) == exponent);
                    }
                    if (differs_from_one != 0) ones = false;
                    if (differs_from_single != 0) single = false;
                    if (infinite != 0) finite = false;
                  });
  return {ones, single, finite};
}

ValueKind kind_of_values(const ValueSurvey& survey) {
  if (!survey.finite) throw std::invalid_argument("the rows have values that are not finite");
  if (survey.ones) return ValueKind::ones;
  return survey.single ? ValueKind::single : ValueKind::full;
}

ColumnKind kind_of_columns(std::size_t features) {
  return features <= most_narrow_features ? ColumnKind::narrow : ColumnKind::wide;
}

std::int64_t PackedRows::blocks() const { return (rows() + rows_per_block - 1) / rows_per_block; }

RowBlock PackedRows::whole() const {
  const void* const columns =
      layout_.columns == ColumnKind::narrow ? static_cast<const void*>(narrow_.data()) : wide_.data();
  const void* values = nullptr;
  if (layout_.values == ValueKind::single) values = single_.data();
  if (layout_.values == ValueKind::full) values = full_.data();
  return {layout_, 0, std::span(offsets_), columns, values};
}

BlockLease PackedRows::block(std::int64_t k) const {
  RowBlock part = whole();
  part.first_row = k * rows_per_block;
  const std::int64_t count = std::min(rows_per_block, rows() - part.first_row);
  part.offsets =
      part.offsets.subspan(static_cast<std::size_t>(part.first_row), static_cast<std::size_t>(count + 1));
  return {part, nullptr};
}

std::size_t PackedRows::bytes() const {
  return static_cast<std::size_t>(entries()) * entry_bytes(layout_) + offsets_.size() * sizeof(std::int64_t);
}

template <class Index>
Numbering number_by_frequency(const CsrView<Index, double>& rows, int threads) {
  check_columns(rows.columns, rows.features, threads);
  std::vector<std::uint32_t> uses(static_cast<std::size_t>(rows.features), 0);
  for (const Index column : rows.columns) ++uses[static_cast<std::size_t>(column)];
  return number_by_uses(uses);
}

template <class Index>
PackedRows pack(const CsrView<Index, double>& rows, RowOrder order, const Numbering& numbering, int threads) {
  const bool is_renumbered = !numbering.number_of.empty();
  if (!is_renumbered && rows.features > most_features) {
    throw std::invalid_argument(
        "there are more columns than 32-bit numbers: leave out those that no row uses");
  }
  if (!is_renumbered)
    check_columns(rows.columns, rows.features, threads);  // otherwise, number_by_frequency has done this
  PackedRows packed;
  packed.features_ = is_renumbered ? numbering.column_of.size() : static_cast<std::size_t>(rows.features);
  packed.layout_.columns = kind_of_columns(packed.features_);
  packed.layout_.values = kind_of_values(survey_values(rows.values, threads));
  packed.offsets_ = offsets_of(rows.offsets, order);
  const EntryCopier<Index> entries(rows.offsets, order, packed.offsets_, threads);
  const auto number = [&](Index column) {
    return is_renumbered ? numbering.number_of[static_cast<std::size_t>(column)]
                         : static_cast<std::uint32_t>(column);
  };
  if (packed.layout_.columns == ColumnKind::narrow) {
    entries.copy(rows.columns, packed.narrow_, number);
  } else {
    entries.copy(rows.columns, packed.wide_, number);
  }
  if (packed.layout_.values == ValueKind::single) entries.copy(rows.values, packed.single_, std::identity());
  if (packed.layout_.values == ValueKind::full) entries.copy(rows.values, packed.full_, std::identity());
  return packed;
}

template Numbering number_by_frequency(const CsrView<std::int32_t, double>&, int);
template Numbering number_by_frequency(const CsrView<std::int64_t, double>&, int);
template PackedRows pack(const CsrView<std::int32_t, double>&, RowOrder, const Numbering&, int);
template PackedRows pack(const CsrView<std::int64_t, double>&, RowOrder, const Numbering&, int);

}  // namespace unkernel::data
