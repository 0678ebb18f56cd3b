#include "unkernel/tree/gram_block.hpp"

#include <algorithm>
#include <utility>

#include "unkernel/base/parallel.hpp"

namespace unkernel::tree {
namespace {

constexpr std::size_t tile = 64;

class RowSink final : public kernels::GramSink {
 public:
  RowSink(float* values, std::size_t stride) : values_(values), stride_(stride) {}
  void take(std::size_t i, std::size_t first, std::span<const double> kernels) override {
    float* row = values_ + i * stride_ + first;
    for (std::size_t j = 0; j < kernels.size(); ++j) row[j] = static_cast<float>(kernels[j]);
  }

 private:
  float* values_;
  std::size_t stride_;
};

// Copies the entries left of the diagonal in rows `begin` .. `end` - 1 to their mirror images above the
// diagonal, tile by tile.
void mirror(float* values, std::size_t stride, std::size_t begin, std::size_t end, int threads) {
  parallel_for(threads, static_cast<std::int64_t>((end - begin + tile - 1) / tile), [&](std::int64_t part) {
    const std::size_t top = begin + static_cast<std::size_t>(part) * tile;
    const std::size_t bottom = std::min(end, top + tile);
    for (std::size_t left = 0; left < bottom; left += tile) {
      for (std::size_t j = left; j < std::min(left + tile, bottom); ++j) {
        for (std::size_t i = std::max(top, j + 1); i < bottom; ++i)
          values[j * stride + i] = values[i * stride + j];
      }
    }
  });
}

}  // namespace

GramBlock::GramBlock(const TrainingExamples& all, std::size_t capacity, int threads)
    : all_(all), capacity_(capacity), threads_(threads), place_(all.size(), -1) {}

// Grows by a quarter: less would copy the matrix more often, and more would clear more unused memory. From
// half of the capacity on, grows to the capacity, because both copies of a large matrix are in memory.
void GramBlock::reserve_side(std::size_t size) {
  if (size <= stride_) return;
  const std::size_t stride = 2 * size > capacity_ ? capacity_ : (size + size / 4 + 15) / 16 * 16;
  LargeArray<float> values(stride * stride);
  for (std::size_t i = 0; i < examples_.size(); ++i) {
    std::copy_n(values_.data() + i * stride_, examples_.size(), values.data() + i * stride);
  }
  values_ = std::move(values);
  stride_ = stride;
}

void GramBlock::add(std::span<const std::int32_t> examples) {
  const std::size_t before = size();
  const std::vector<std::int32_t> old = examples_;
  reserve_side(before + examples.size());
  for (const std::int32_t example : examples) {
    place_[static_cast<std::size_t>(example)] = static_cast<std::int32_t>(examples_.size());
    examples_.push_back(example);
  }
  float* rows = values_.data() + before * stride_;
  if (before > 0) {
    RowSink sink(rows, stride_);
    all_.compute_kernels(examples, old, false, sink);
  }
  RowSink sink(rows + before, stride_);
  all_.compute_kernels(examples, examples, true, sink);
  mirror(values_.data(), stride_, before, size(), threads_);
}

void GramBlock::keep(const std::vector<bool>& is_kept) {
  std::vector<std::size_t> old_places;
  std::vector<std::int32_t> examples;
  for (std::size_t i = 0; i < examples_.size(); ++i) {
    const auto example = static_cast<std::size_t>(examples_[i]);
    if (is_kept[example]) {
      place_[example] = static_cast<std::int32_t>(old_places.size());
      old_places.push_back(i);
      examples.push_back(examples_[i]);
    } else {
      place_[example] = -1;
    }
  }
  examples_ = std::move(examples);
  // Every value moves left or up, over values that have already moved.
  float* values = values_.data();
  for (std::size_t i = 0; i < old_places.size(); ++i) {
    for (std::size_t j = 0; j < old_places.size(); ++j)
      values[i * stride_ + j] = values[old_places[i] * stride_ + old_places[j]];
  }
}

}  // namespace unkernel::tree
