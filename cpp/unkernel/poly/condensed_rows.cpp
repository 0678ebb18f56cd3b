#include "unkernel/poly/condensed_rows.hpp"

#include <atomic>
#include <bit>
#include <memory>

#include "unkernel/base/error.hpp"
#include "unkernel/base/flat_map.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/poly/occurrences.hpp"
#include "unkernel/poly/stored_rows.hpp"

namespace unkernel::poly {
namespace {

using kernels::Basis;
using kernels::ConjunctionIndex;
using kernels::Key;

// Numbers the conjunctions of one block in the order in which they first appear. Uses an array for a small
// block and a hash map for a large one; both are reused for later blocks.
class SegmentNumbering {
 public:
  void begin_block(Key block_size) {
    use_array_ = block_size <= largest_array;
    numbered_places_.clear();
    if (use_array_ && array_.size() < block_size) array_.resize(block_size, 0);
    if (!use_array_) map_.clear();
  }
  // Returns the number of a place, and gives a new place the next number. The first number is 1, because
  // number 0 of a segment stands for the single feature.
  std::uint32_t number(Key place) {
    std::uint32_t& slot = use_array_ ? array_[place] : map_[place];
    if (slot == 0) {
      numbered_places_.push_back(place);
      slot = static_cast<std::uint32_t>(numbered_places_.size());
    }
    return slot;
  }
  // Returns the places of the block, sorted by their numbers.
  const std::vector<Key>& end_block() {
    if (use_array_) {
      for (const Key place : numbered_places_) array_[place] = 0;
    }
    return numbered_places_;
  }

 private:
  static constexpr Key largest_array = Key{1} << 20;
  bool use_array_ = true;
  std::vector<std::uint32_t> array_;
  FlatMap<Key, std::uint32_t> map_;
  std::vector<Key> numbered_places_;
};

template <class Local>
class Condenser {
 public:
  Condenser(const DistinctRows& examples, int degree, Records<Local>& records)
      : examples_(examples),
        index_(degree, kernels::basis_of(examples.binary())),
        occurrences_(examples),
        records_(records) {}

  // Appends the keys of the conjunctions whose rarest feature has rank `a`, and writes the places of these
  // conjunctions into the records of all rows.
  void write_segment(std::uint64_t a, SegmentNumbering& numbers, std::vector<Key>& keys) {
    const Key block = index_.block(a);
    numbers.begin_block(index_.block(a + 1) - block);
    const auto first = static_cast<std::size_t>(occurrences_.offsets[a]);
    const auto last = static_cast<std::size_t>(occurrences_.offsets[a + 1]);
    for (std::size_t k = first; k < last; ++k) write(occurrences_.places[k], a, numbers);
    keys.push_back(block);
    for (const Key place : numbers.end_block()) keys.push_back(block + place);
  }

 private:
  using Place = Occurrences::Place;

  // Returns how many places precede those of the feature at `position` in a row's record.
  std::int64_t places_before(std::int64_t position) const {
    return static_cast<std::int64_t>(index_.count(static_cast<std::uint64_t>(position))) - 1 - position;
  }

  void write(const Place& place, std::uint64_t a, SegmentNumbering& numbers) {
    const auto row = static_cast<std::size_t>(place.row);
    const std::int32_t* f = examples_.features.data() + examples_.offsets[row];
    const auto position = static_cast<std::int64_t>(place.position);
    Local* out = Records<Local>::places(records_[place.row]) + places_before(position);
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

  const DistinctRows& examples_;
  ConjunctionIndex index_;
  Occurrences occurrences_;
  Records<Local>& records_;
};

Columns check_column_count(Columns columns) {
  if (columns.keys.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw NotEnoughMemory("more than 2^32 conjunctions occur; drop rare features or lower the degree");
  }
  return columns;
}

// Condenses feature by feature. Needs no memory per possible conjunction, so it also works for very many of
// them.
template <class Local>
Columns condense_by_feature(const DistinctRows& examples, int degree, Records<Local>& records, int threads,
                            const Monitor& monitor) {
  constexpr std::int64_t grain = 64;  // features per task
  const std::int64_t features = examples.used_features();
  std::vector<std::vector<Key>> keys(static_cast<std::size_t>((features + grain - 1) / grain));
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(features));
  Condenser<Local> condenser(examples, degree, records);
  parallel_ranges(threads, features, grain, [&](std::int64_t first, std::int64_t last) {
    SegmentNumbering numbers;
    std::vector<Key>& task_keys = keys[static_cast<std::size_t>(first / grain)];
    for (std::int64_t a = first; a < last; ++a) {
      monitor.throw_if_stopped();
      const std::size_t old_size = task_keys.size();
      condenser.write_segment(static_cast<std::uint64_t>(a), numbers, task_keys);
      lengths[static_cast<std::size_t>(a)] = static_cast<std::int64_t>(task_keys.size() - old_size);
    }
  });
  Columns columns;
  columns.keys.push_back(0);
  for (auto& task_keys : keys) {
    columns.keys.insert(columns.keys.end(), task_keys.begin(), task_keys.end());
    task_keys = {};
  }
  columns.segments.push_back(1);
  for (const std::int64_t length : lengths) columns.segments.push_back(columns.segments.back() + length);
  return check_column_count(std::move(columns));
}

// A set of keys. After count(), rank(key) returns the number of members smaller than the key.
class RankedBits {
 public:
  explicit RankedBits(Key size) : words_(size / 64 + 1), smaller_(words_.size()) {}

  // Inserts a key; thread-safe. Does not write if the bit is already set, so that threads share the cache
  // line.
  void insert(Key key) {
    std::atomic<std::uint64_t>& word = words_[key / 64];
    const std::uint64_t bit = std::uint64_t{1} << (key % 64);
    if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit, std::memory_order_relaxed);
  }
  void count() {
    std::uint32_t total = 0;
    for (std::size_t w = 0; w < words_.size(); ++w) {
      smaller_[w] = total;
      total += static_cast<std::uint32_t>(std::popcount(word(w)));
    }
  }
  std::uint32_t rank(Key key) const {
    const std::uint64_t smaller_bits = (std::uint64_t{1} << (key % 64)) - 1;
    return smaller_[key / 64] + static_cast<std::uint32_t>(std::popcount(word(key / 64) & smaller_bits));
  }
  std::vector<Key> members() const {
    std::vector<Key> keys;
    for (std::size_t w = 0; w < words_.size(); ++w) {
      for (std::uint64_t remaining = word(w); remaining != 0; remaining &= remaining - 1) {
        keys.push_back(64 * w + static_cast<Key>(std::countr_zero(remaining)));
      }
    }
    return keys;
  }

 private:
  std::uint64_t word(std::size_t w) const { return words_[w].load(std::memory_order_relaxed); }

  LargeVector<std::atomic<std::uint64_t>> words_;
  LargeVector<std::uint32_t> smaller_;
};

// Calls visit(a, key) for each conjunction of two or more features of row i, in the order of the row's
// record. `a` is the rank of the conjunction's rarest feature.
template <class Visit>
void for_each_place(const DistinctRows& examples, const ConjunctionIndex& index,
                    const std::vector<Key>& blocks, std::int64_t i, const Visit& visit) {
  const std::int32_t* f = examples.features.data() + examples.offsets[static_cast<std::size_t>(i)];
  const std::int64_t self_partners = examples.binary() ? 0 : 1;
  for (std::int64_t a = 0; a < examples.row_size(i); ++a) {
    const auto rank = static_cast<std::size_t>(f[a]);
    for (std::int64_t b = 0; b < a + self_partners; ++b)
      visit(rank, blocks[rank] + 1 + static_cast<Key>(f[b]));
    if (index.degree() < 3) continue;
    for (std::int64_t b = 0; b < a + self_partners; ++b) {
      const Key base = blocks[rank] + index.triples(rank) + index.triangle(static_cast<std::uint64_t>(f[b]));
      for (std::int64_t c = 0; c < b + self_partners; ++c) visit(rank, base + static_cast<Key>(f[c]));
    }
  }
}

// Condenses row by row in two passes, with one bit per possible conjunction. Numbers the columns in the order
// of their keys.
template <class Local>
Columns condense_by_row(const DistinctRows& examples, const ConjunctionIndex& index, Records<Local>& records,
                        int threads, const Monitor& monitor) {
  const auto features = static_cast<std::uint64_t>(examples.used_features());
  std::vector<Key> blocks;
  for (std::uint64_t rank = 0; rank <= features; ++rank) blocks.push_back(index.block(rank));
  RankedBits occurring(blocks.back());
  occurring.insert(0);
  for (std::uint64_t rank = 0; rank < features; ++rank) occurring.insert(blocks[rank]);
  const auto for_each_row = [&](const auto& work) {
    parallel_ranges(threads, examples.rows(), row_grain, [&](std::int64_t first, std::int64_t last) {
      monitor.throw_if_stopped();
      for (std::int64_t i = first; i < last; ++i) work(i);
    });
  };
  for_each_row([&](std::int64_t i) {
    for_each_place(examples, index, blocks, i, [&](std::size_t, Key key) { occurring.insert(key); });
  });
  occurring.count();
  Columns columns;
  for (const Key block : blocks) columns.segments.push_back(occurring.rank(block));
  for_each_row([&](std::int64_t i) {
    Local* place = Records<Local>::places(records[i]);
    for_each_place(examples, index, blocks, i, [&](std::size_t rank, Key key) {
      *place++ = static_cast<Local>(occurring.rank(key) - static_cast<std::uint32_t>(columns.segments[rank]));
    });
  });
  columns.keys = occurring.members();
  return check_column_count(std::move(columns));
}

}  // namespace

std::int64_t longest_segment(const DistinctRows& examples, int degree) {
  const ConjunctionIndex index(degree, kernels::basis_of(examples.binary()));
  std::vector<std::int64_t> written_columns(static_cast<std::size_t>(examples.used_features()), 0);
  for (std::size_t i = 0; i < examples.hashes.size(); ++i) {
    for (std::int64_t k = examples.offsets[i]; k < examples.offsets[i + 1]; ++k) {
      const auto position = static_cast<std::uint64_t>(k - examples.offsets[i]);
      written_columns[static_cast<std::size_t>(examples.features[static_cast<std::size_t>(k)])] +=
          static_cast<std::int64_t>(index.block(position + 1) - index.block(position)) - 1;
    }
  }
  std::int64_t longest = 1;
  for (std::size_t a = 0; a < written_columns.size(); ++a) {
    const auto possible = static_cast<std::int64_t>(index.block(a + 1) - index.block(a));
    longest = std::max(longest, std::min(possible, written_columns[a] + 1));
  }
  return longest;
}

template <class Local>
Records<Local>::Records(const DistinctRows& examples, int degree) {
  constexpr std::int64_t places_per_word = sizeof(std::uint32_t) / sizeof(Local);
  offsets.push_back(0);
  for (std::int64_t i = 0; i < examples.rows(); ++i) {
    const std::int64_t size = examples.row_size(i);
    const std::int64_t places_of_row = mapped_size(degree, examples.binary(), size) - 1 - size;
    offsets.push_back(offsets.back() + 1 + size + (places_of_row + places_per_word - 1) / places_per_word);
  }
  words.resize(static_cast<std::size_t>(offsets.back()));
  for (std::int64_t i = 0; i < examples.rows(); ++i) {
    (*this)[i][0] = static_cast<std::uint32_t>(examples.row_size(i));
  }
}

template <class Local>
Columns condense(const DistinctRows& examples, int degree, Records<Local>& records, int threads,
                 const Monitor& monitor) {
  constexpr Key largest_bitmap = Key{1} << 28;  // 32 MiB of bits, 16 MiB of counts
  const ConjunctionIndex index(degree, kernels::basis_of(examples.binary()));
  Columns columns = index.count(static_cast<std::uint64_t>(examples.used_features())) <= largest_bitmap
                        ? condense_by_row(examples, index, records, threads, monitor)
                        : condense_by_feature(examples, degree, records, threads, monitor);
  parallel_ranges(threads, examples.rows(), row_grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int32_t* f = examples.features.data() + examples.offsets[static_cast<std::size_t>(i)];
      std::uint32_t* record = records[i];
      for (std::size_t a = 0; a < record[0]; ++a) {
        record[1 + a] = static_cast<std::uint32_t>(columns.segments[static_cast<std::size_t>(f[a])]);
      }
    }
  });
  return columns;
}

template struct Records<std::uint16_t>;
template struct Records<std::uint32_t>;
template Columns condense(const DistinctRows&, int, Records<std::uint16_t>&, int, const Monitor&);
template Columns condense(const DistinctRows&, int, Records<std::uint32_t>&, int, const Monitor&);

namespace {

template <int Degree, bool Binary>
std::unique_ptr<StoredRows> condensed_of(const DistinctRows& examples, const kernels::FeatureMap& map,
                                         int threads, const Monitor& monitor) {
  if (longest_segment(examples, Degree) <= most_short_places) {
    return std::make_unique<StoredIn<CondensedRows<Degree, Binary, std::uint16_t>>>(examples, map, threads,
                                                                                    monitor);
  }
  return std::make_unique<StoredIn<CondensedRows<Degree, Binary, std::uint32_t>>>(examples, map, threads,
                                                                                  monitor);
}

}  // namespace

std::unique_ptr<StoredRows> store_condensed(const DistinctRows& examples, const kernels::FeatureMap& map,
                                            int threads, const Monitor& monitor) {
  if (map.degree == 2) {
    return examples.binary() ? condensed_of<2, true>(examples, map, threads, monitor)
                             : condensed_of<2, false>(examples, map, threads, monitor);
  }
  return examples.binary() ? condensed_of<3, true>(examples, map, threads, monitor)
                           : condensed_of<3, false>(examples, map, threads, monitor);
}

}  // namespace unkernel::poly
