#include "unkernel/data/rows/block_file.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "unkernel/base/checksum.hpp"
#include "unkernel/base/error.hpp"

namespace unkernel::data {
namespace {

static_assert(std::endian::native == std::endian::little,
              "blocks are used without changing their byte order");

constexpr const char* remedy = "; delete the file, so that it is created again from its sources";

Layout layout_of(std::int64_t code) {
  return {static_cast<ColumnKind>(code % 2), static_cast<ValueKind>(code / 2)};
}

RowBlock block_at(const unsigned char* bytes, const Layout& layout, std::int64_t first_row, std::int64_t rows,
                  std::int64_t entries) {
  RowBlock block;
  block.layout = layout;
  block.first_row = first_row;
  block.offsets = {reinterpret_cast<const std::int64_t*>(bytes), static_cast<std::size_t>(rows) + 1};
  const unsigned char* const values = bytes + block.offsets.size_bytes();
  const std::size_t value_bytes = entry_bytes(layout) - entry_bytes({layout.columns, ValueKind::ones});
  if (layout.values != ValueKind::ones) block.values = values;
  block.columns = values + static_cast<std::size_t>(entries) * value_bytes;
  return block;
}

bool offsets_are_valid(std::span<const std::int64_t> offsets, std::int64_t entries) {
  return offsets.front() == 0 && offsets.back() == entries && std::ranges::is_sorted(offsets);
}

// Returns whether all columns are valid. Has no early exit, so that the compiler vectorises it.
template <class Column>
bool all_below(std::span<const Column> columns, std::size_t features) {
  Column largest = 0;
  for (const Column column : columns) largest = std::max(largest, column);
  return columns.empty() || largest < features;
}

template <class Value>
bool all_finite(const Value* values, std::size_t count) {
  bool is_finite = true;
  for (std::size_t k = 0; k < count; ++k) is_finite &= std::isfinite(values[k]);
  return is_finite;
}

bool all_finite(const Ones*, std::size_t) { return true; }

}  // namespace

std::int64_t layout_code(const Layout& layout) {
  return static_cast<std::int64_t>(layout.columns) + 2 * static_cast<std::int64_t>(layout.values);
}

std::int64_t aligned_position(std::int64_t position) {
  return (position + block_alignment - 1) / block_alignment * block_alignment;
}

std::size_t block_bytes(std::int64_t rows, std::int64_t entries, const Layout& layout) {
  return (static_cast<std::size_t>(rows) + 1) * sizeof(std::int64_t) +
         static_cast<std::size_t>(entries) * entry_bytes(layout);
}

std::unique_ptr<BlockBuffers::Buffer> BlockBuffers::take_unused_or_create() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    free_.reserve(++created_buffers_);  // so that returning a buffer allocates no memory
    return std::make_unique<Buffer>();
  }
  std::unique_ptr<Buffer> buffer = std::move(free_.back());
  free_.pop_back();
  return buffer;
}

std::shared_ptr<BlockBuffers::Buffer> BlockBuffers::take(std::size_t size) {
  std::unique_ptr<Buffer> buffer = take_unused_or_create();
  if (buffer->size() < size) {
    buffer->clear();  // so that resizing copies nothing
    buffer->resize(size);
  }
  return {buffer.release(), [owner = shared_from_this()](Buffer* used) {
            const std::lock_guard lock(owner->mutex_);
            owner->free_.emplace_back(used);
          }};
}

BlockFile::BlockFile(const BlockRegion& region, std::size_t features, std::span<const BlockEntry> index)
    : file_(region.file),
      features_(features),
      handle_(region.descriptor, region.file),
      version_(handle_.version()) {
  if (features > std::numeric_limits<std::uint32_t>::max()) {
    throw FormatError(file_, 0, 0, std::string("there are more columns than 32-bit numbers") + remedy);
  }
  if (region.end > version_.size)
    throw FormatError(file_, 0, 0, std::string("the file has been cut short") + remedy);
  if (region.end < block_alignment)
    throw FormatError(file_, 0, 0, std::string("the blocks end before they begin") + remedy);
  extents_.reserve(index.size());
  std::int64_t end = block_alignment;
  for (const BlockEntry& entry : index) {
    add_extent(entry, end, region.end);
    const auto bytes =
        static_cast<std::int64_t>(block_bytes(entry.rows, entry.entries, extents_.back().layout));
    end = aligned_position(entry.position + bytes);
  }
  if (end != region.end)
    throw FormatError(file_, 0, 0, std::string("the end of the blocks differs from the index") + remedy);
  is_checked_ = std::make_unique<std::atomic<bool>[]>(extents_.size());
}

// The checks are ordered so that none of them overflows.
void BlockFile::add_extent(const BlockEntry& entry, std::int64_t expected_position, std::int64_t region_end) {
  const auto k = static_cast<std::int64_t>(extents_.size());
  if (entry.layout < 0 || entry.layout > layout_code({ColumnKind::wide, ValueKind::full}))
    fail(k, "has an unknown layout");
  const Layout layout = layout_of(entry.layout);
  const std::int64_t available = region_end - expected_position;
  const auto entry_size = static_cast<std::int64_t>(entry_bytes(layout));
  const bool fits = entry.position == expected_position && entry.rows > 0 && entry.rows < available / 8 &&
                    entry.entries >= 0 && entry.entries <= available / entry_size &&
                    static_cast<std::int64_t>(block_bytes(entry.rows, entry.entries, layout)) <= available;
  if (!fits) fail(k, "does not begin where the block before it ends");
  extents_.push_back({entry.position, rows_, entry.rows, entry.entries, layout, entry.checksum});
  rows_ += entry.rows;
  entries_ += entry.entries;
}

BlockLease BlockFile::block(std::int64_t k) const {
  const BlockExtent& extent = extents_[static_cast<std::size_t>(k)];
  const std::size_t size = block_bytes(extent.rows, extent.entries, extent.layout);
  const std::shared_ptr<BlockBuffers::Buffer> buffer = buffers_->take(size);
  const std::span<unsigned char> bytes(buffer->data(), size);
  read(extent.position, bytes);
  check_unchanged();  // after reading, because the file may change meanwhile
  const RowBlock block = block_at(bytes.data(), extent.layout, extent.first_row, extent.rows, extent.entries);
  std::atomic<bool>& checked = is_checked_[static_cast<std::size_t>(k)];
  if (!checked.load(std::memory_order_relaxed)) {
    check(k, block, bytes);
    checked.store(true, std::memory_order_relaxed);
  }
  return {block, buffer};
}

void BlockFile::read(std::int64_t position, std::span<unsigned char> bytes) const {
  while (!bytes.empty()) {
    const std::size_t count = handle_.read(position, bytes);
    if (count == 0) check_unchanged();
    if (count == 0) throw FormatError(file_, 0, 0, std::string("the file has been cut short") + remedy);
    position += static_cast<std::int64_t>(count);
    bytes = bytes.subspan(count);
  }
}

void BlockFile::check_unchanged() const {
  if (handle_.version() == version_) return;
  throw FormatError(file_, 0, 0, std::string("the file was changed while it was in use") + remedy);
}

void BlockFile::check(std::int64_t k, const RowBlock& block, std::span<const unsigned char> bytes) const {
  const BlockExtent& extent = extents_[static_cast<std::size_t>(k)];
  if (checksum(bytes) != extent.checksum) fail(k, "is damaged");
  if (!offsets_are_valid(block.offsets, extent.entries)) fail(k, "has rows that do not fit its entries");
  const auto count = static_cast<std::size_t>(extent.entries);
  with_types(block, [&](const auto* columns, const auto* values) {
    if (!all_below(std::span(columns, count), features_)) fail(k, "has a column outside the matrix");
    if (!all_finite(values, count)) fail(k, "has a value that is not finite");
  });
}

void BlockFile::fail(std::int64_t k, const char* what) const {
  throw FormatError(file_, 0, 0, "block " + std::to_string(k) + " of the rows " + what + remedy);
}

}  // namespace unkernel::data
