#include "unkernel/poly/condensed_rows.hpp"

#include <memory>
#include <numeric>

#include "unkernel/base/flat_map.hpp"

namespace unkernel::poly {
namespace {

using engines::Basis;
using engines::ConjunctionIndex;
using engines::Key;

Basis basis_of(const Examples& examples) { return examples.binary() ? Basis::sets : Basis::monomials; }

// Where each feature occurs: row and position in the row, by feature.
struct Occurrences {
  struct Place {
    std::int32_t row;
    std::int32_t position;
  };
  std::vector<std::int64_t> offsets;
  std::vector<Place> places;

  explicit Occurrences(const Examples& examples) : offsets(static_cast<std::size_t>(examples.used_features()) + 2, 0) {
    for (const std::int32_t f : examples.features) ++offsets[static_cast<std::size_t>(f) + 2];
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
    places.resize(examples.features.size());
    for (std::size_t i = 0; i < examples.hashes.size(); ++i) {
      for (std::int64_t k = examples.offsets[i]; k < examples.offsets[i + 1]; ++k) {
        const auto f = static_cast<std::size_t>(examples.features[static_cast<std::size_t>(k)]);
        places[static_cast<std::size_t>(offsets[f + 1]++)] = {static_cast<std::int32_t>(i),
                                                             static_cast<std::int32_t>(k - examples.offsets[i])};
      }
    }
    offsets.pop_back();
  }
};

// Gives the conjunctions of one block numbers in the order they turn up. Small blocks use an array
// over the block, large ones a hash map; both are reused from block to block.
class SegmentNumbers {
 public:
  void begin(Key block_size) {
    use_array_ = block_size <= largest_array;
    found_.clear();
    if (use_array_ && array_.size() < block_size) array_.resize(block_size, 0);
    if (!use_array_) map_.clear();
  }
  // The first number given out is 1: place 0 of a segment is the single feature.
  std::uint32_t number(Key place) {
    std::uint32_t& slot = use_array_ ? array_[place] : map_[place];
    if (slot == 0) {
      found_.push_back(place);
      slot = static_cast<std::uint32_t>(found_.size());
    }
    return slot;
  }
  const std::vector<Key>& end() {
    if (use_array_) {
      for (const Key place : found_) array_[place] = 0;
    }
    return found_;
  }

 private:
  static constexpr Key largest_array = Key{1} << 20;
  bool use_array_ = true;
  std::vector<std::uint32_t> array_;
  FlatMap<Key, std::uint32_t> map_;
  std::vector<Key> found_;
};

template <class Local>
class Condenser {
 public:
  Condenser(const Examples& examples, int degree, const LargeVector<std::int64_t>& offsets, LargeVector<Local>& local)
      : examples_(examples), index_(degree, basis_of(examples)), occurrences_(examples), offsets_(offsets), local_(local) {}

  // The keys of rank a's segment; also writes the places of all its non-zeros.
  void segment(std::uint64_t a, SegmentNumbers& numbers, std::vector<Key>& keys) {
    const Key block = index_.block(a);
    numbers.begin(index_.block(a + 1) - block);
    const auto first = static_cast<std::size_t>(occurrences_.offsets[a]);
    const auto last = static_cast<std::size_t>(occurrences_.offsets[a + 1]);
    for (std::size_t k = first; k < last; ++k) write(occurrences_.places[k], a, numbers);
    keys.push_back(block);
    for (const Key place : numbers.end()) keys.push_back(block + place);
  }

 private:
  void write(const typename Occurrences::Place& place, std::uint64_t a, SegmentNumbers& numbers) {
    const auto row = static_cast<std::size_t>(place.row);
    const std::int32_t* f = examples_.features.data() + examples_.offsets[row];
    const auto position = static_cast<std::int64_t>(place.position);
    // What comes before in this row: the mapped size of its first `position` features, less the singles.
    const auto before = static_cast<std::int64_t>(index_.count(static_cast<std::uint64_t>(position))) - 1 - position;
    Local* out = local_.data() + offsets_[row] + before;
    const std::int64_t partners = examples_.binary() ? position : position + 1;
    for (std::int64_t b = 0; b < partners; ++b) {
      *out++ = static_cast<Local>(numbers.number(1 + static_cast<Key>(f[b])));
    }
    if (index_.degree() < 3) return;
    for (std::int64_t b = 0; b < partners; ++b) {
      const Key base = index_.triples(a) + index_.triangle(static_cast<std::uint64_t>(f[b]));
      const std::int64_t thirds = examples_.binary() ? b : b + 1;
      for (std::int64_t c = 0; c < thirds; ++c) {
        *out++ = static_cast<Local>(numbers.number(base + static_cast<Key>(f[c])));
      }
    }
  }

  const Examples& examples_;
  ConjunctionIndex index_;
  Occurrences occurrences_;
  const LargeVector<std::int64_t>& offsets_;
  LargeVector<Local>& local_;
};

}  // namespace

std::int64_t longest_segment(const Examples& examples, int degree) {
  const ConjunctionIndex index(degree, basis_of(examples));
  std::vector<std::int64_t> written(static_cast<std::size_t>(examples.used_features()), 0);
  for (std::size_t i = 0; i < examples.hashes.size(); ++i) {
    for (std::int64_t k = examples.offsets[i]; k < examples.offsets[i + 1]; ++k) {
      const auto position = static_cast<std::uint64_t>(k - examples.offsets[i]);
      written[static_cast<std::size_t>(examples.features[static_cast<std::size_t>(k)])] +=
          static_cast<std::int64_t>(index.block(position + 1) - index.block(position)) - 1;
    }
  }
  std::int64_t longest = 1;
  for (std::size_t a = 0; a < written.size(); ++a) {
    const auto possible = static_cast<std::int64_t>(index.block(a + 1) - index.block(a));
    longest = std::max(longest, std::min(possible, written[a] + 1));
  }
  return longest;
}

template <class Local>
Columns condense(const Examples& examples, int degree, const LargeVector<std::int64_t>& offsets,
                 LargeVector<Local>& local, int threads, const Monitor& monitor) {
  Condenser<Local> condenser(examples, degree, offsets, local);
  constexpr std::int64_t grain = 64;  // features a task; their keys are joined in order afterwards
  const std::int64_t features = examples.used_features();
  std::vector<std::vector<Key>> keys(static_cast<std::size_t>((features + grain - 1) / grain));
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(features));
  parallel_ranges(threads, features, grain, [&](std::int64_t first, std::int64_t last) {
    SegmentNumbers numbers;
    std::vector<Key>& part = keys[static_cast<std::size_t>(first / grain)];
    for (std::int64_t a = first; a < last; ++a) {
      monitor.throw_if_stopped();
      const std::size_t before = part.size();
      condenser.segment(static_cast<std::uint64_t>(a), numbers, part);
      lengths[static_cast<std::size_t>(a)] = static_cast<std::int64_t>(part.size() - before);
    }
  });
  Columns columns;
  columns.keys.push_back(0);
  for (auto& part : keys) {
    columns.keys.insert(columns.keys.end(), part.begin(), part.end());
    part = {};
  }
  columns.segments.push_back(1);
  for (const std::int64_t length : lengths) columns.segments.push_back(columns.segments.back() + length);
  return columns;
}

template Columns condense(const Examples&, int, const LargeVector<std::int64_t>&, LargeVector<std::uint16_t>&, int,
                          const Monitor&);
template Columns condense(const Examples&, int, const LargeVector<std::int64_t>&, LargeVector<std::uint32_t>&, int,
                          const Monitor&);

}  // namespace unkernel::poly
