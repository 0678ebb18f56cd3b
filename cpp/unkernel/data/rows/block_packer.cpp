#include "unkernel/data/rows/block_packer.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "unkernel/base/checksum.hpp"

namespace unkernel::data {
namespace {

constexpr std::size_t most_block_bytes = std::size_t{1} << 22;
// Enough for the largest entries, of 12 bytes: the layout is chosen only when the block is full.
constexpr std::size_t most_block_entries = most_block_bytes / 12;

}  // namespace

template <class Index>
void BlockPacker::add(const CsrView<Index, double>& rows) {
  if (rows.features > most_features)
    throw std::invalid_argument("there are more columns than 32-bit numbers");
  for (std::size_t i = 0; i + 1 < rows.offsets.size(); ++i) {
    const auto begin = static_cast<std::size_t>(rows.offsets[i]);
    const auto size = static_cast<std::size_t>(rows.offsets[i + 1]) - begin;
    if (offsets_.size() > 1 && columns_.size() + size > most_block_entries) close_block();
    for (const Index column : rows.columns.subspan(begin, size)) {
      if (column < 0 || column >= rows.features)
        throw std::invalid_argument("a column index is outside the matrix");
      columns_.push_back(static_cast<std::uint32_t>(column));
    }
    const auto values = rows.values.subspan(begin, size);
    values_.insert(values_.end(), values.begin(), values.end());
    offsets_.push_back(static_cast<std::int64_t>(columns_.size()));
    if (static_cast<std::int64_t>(offsets_.size()) > rows_per_block) close_block();
  }
}

void BlockPacker::finish() {
  if (offsets_.size() > 1) close_block();
}

std::vector<unsigned char> BlockPacker::take() { return std::exchange(bytes_, {}); }

template <class Number, class From>
void BlockPacker::put(std::span<const From> numbers) {
  const std::size_t begin = bytes_.size();
  bytes_.resize(begin + numbers.size() * sizeof(Number));
  unsigned char* to = bytes_.data() + begin;
  for (const From from : numbers) {
    const auto number = static_cast<Number>(from);
    std::memcpy(to, &number, sizeof(Number));
    to += sizeof(Number);
  }
}

void BlockPacker::close_block() {
  const std::uint32_t largest = columns_.empty() ? 0 : std::ranges::max(columns_);
  const Layout layout{kind_of_columns(std::size_t{largest} + 1), kind_of_values(survey_values(values_, 1))};
  const std::size_t begin = bytes_.size();
  put<std::int64_t>(std::span<const std::int64_t>(offsets_));
  if (layout.values == ValueKind::single) put<float>(std::span<const double>(values_));
  if (layout.values == ValueKind::full) put<double>(std::span<const double>(values_));
  if (layout.columns == ColumnKind::narrow) put<std::uint16_t>(std::span<const std::uint32_t>(columns_));
  if (layout.columns == ColumnKind::wide) put<std::uint32_t>(std::span<const std::uint32_t>(columns_));
  const auto count = static_cast<std::int64_t>(columns_.size());
  const auto size = static_cast<std::int64_t>(bytes_.size() - begin);
  const std::uint64_t sum = checksum(std::span(bytes_).subspan(begin));
  index_.push_back({end_, static_cast<std::int64_t>(offsets_.size()) - 1, count, layout_code(layout), sum});
  const std::int64_t end = aligned_position(end_ + size);
  bytes_.resize(begin + static_cast<std::size_t>(end - end_));  // padded with zeros
  end_ = end;
  entries_ += count;
  offsets_.resize(1);
  columns_.clear();
  values_.clear();
}

template void BlockPacker::add(const CsrView<std::int32_t, double>&);
template void BlockPacker::add(const CsrView<std::int64_t, double>&);

}  // namespace unkernel::data
