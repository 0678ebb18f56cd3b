#include "unkernel/engines/answer_cache.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "unkernel/base/hash_seed.hpp"
#include "unkernel/base/random.hpp"

namespace unkernel::engines {
namespace {

constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;
constexpr auto relaxed = std::memory_order_relaxed;

std::uint64_t word_at(const std::int32_t* columns) {
  std::uint64_t word = 0;
  std::memcpy(&word, columns, sizeof(word));
  return word;
}

// Visits the words of a key in the order in which they are stored: columns in pairs, then values.
template <class Body>
[[gnu::always_inline]] inline void for_each_word(const AnswerCache::Key& key, const Body& body) {
  const std::size_t count = key.columns.size();
  std::size_t k = 0;
  for (; k + 2 <= count; k += 2) body(word_at(key.columns.data() + k));
  if (k < count) body(std::uint64_t{static_cast<std::uint32_t>(key.columns[k])});
  if (key.values == nullptr) return;
  for (k = 0; k < count; ++k) body(std::bit_cast<std::uint64_t>(key.values[k]));
}

std::uint64_t hash_word(std::uint64_t chain, std::uint64_t word) {
  const std::uint64_t product = (chain ^ word) * 0x9e3779b97f4a7c15ULL;
  return product ^ product >> 32;
}

// Returns the hash of a key. Uses two chains of multiplications, because in a single chain each step would
// wait for the previous one.
std::uint64_t hash_of(const AnswerCache::Key& key) {
  const std::int32_t* columns = key.columns.data();
  const std::size_t count = key.columns.size();
  std::uint64_t first = hash_seed.word, second = count;
  std::size_t k = 0;
  for (; k + 4 <= count; k += 4) {
    first = hash_word(first, word_at(columns + k));
    second = hash_word(second, word_at(columns + k + 2));
  }
  if (count >= 4) {  // hashes some columns twice, which is faster than a loop over the rest
    first = hash_word(first, word_at(columns + count - 4));
    second = hash_word(second, word_at(columns + count - 2));
  } else {
    for (; k < count; ++k) first = hash_word(first, static_cast<std::uint32_t>(columns[k]));
  }
  if (key.values != nullptr) {
    for (k = 0; k < count; ++k) second = hash_word(second, std::bit_cast<std::uint64_t>(key.values[k]));
  }
  constexpr std::uint64_t not_empty = 2;  // always set, because a hash of 0 marks an empty slot
  return (Random::mix(first + std::rotl(second, 32)) | not_empty) & ~AnswerCache::was_found;
}

// Bits of a header. Bit 0: the row has values. Bit 1: the scores are complete, not only valid for a decision.
// Bits 2 to 31: the number of columns. Bits 32 to 63: the generation.
constexpr std::uint64_t complete = 2;
std::uint64_t header_of(const AnswerCache::Key& key, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | static_cast<std::uint64_t>(key.columns.size()) << 2 |
         static_cast<std::uint64_t>(key.values != nullptr);
}

}  // namespace

AnswerCache::Key::Key(std::span<const std::int32_t> row_columns, const double* row_values)
    : columns(row_columns), values(row_values) {
  hash = hash_of(*this);
}

AnswerCache::AnswerCache(std::size_t most_rows, std::size_t scores)
    : most_rows_(most_rows),
      ways_(std::min(most_rows, ways)),
      scores_(scores),
      sets_(std::max<std::size_t>(1, most_rows / ways)) {}

AnswerCache::~AnswerCache() {
  for (Set& set : sets_) {
    for (auto& slot : set.rows) {
      for (StoredRow* row = slot.load(relaxed); row != nullptr;)
        ::operator delete(std::exchange(row, row->former));
    }
  }
}

std::size_t AnswerCache::Set::find_way(std::uint64_t hash) const {
  std::uint32_t equal = 0;  // without branches, which would be mispredicted
  for (std::size_t way = 0; way < ways; ++way)
    equal |= static_cast<std::uint32_t>((hashes[way].load(relaxed) & ~was_found) == hash) << way;
  return equal == 0 ? ways : static_cast<std::size_t>(std::countr_zero(equal));
}

std::size_t AnswerCache::count_words(const Key& key) const {
  const std::size_t count = key.columns.size();
  return 1 + scores_ + (count + 1) / 2 + (key.values == nullptr ? 0 : count);
}

void AnswerCache::prefetch_row(const Key& key) const {
  const Set& set = sets_[set_of(key.hash)];
  const std::size_t way = set.find_way(key.hash);
  if (way == ways) return;
  const auto* row = reinterpret_cast<const char*>(set.rows[way].load(relaxed));
  const std::size_t bytes = sizeof(StoredRow) + sizeof(Word) * count_words(key);
  for (std::size_t offset = 0; offset < bytes; offset += 64) __builtin_prefetch(row + offset);
}

bool AnswerCache::find(const Key& key, bool decision_only, double* out) {
  Set& set = sets_[set_of(key.hash)];
  const std::size_t way = set.find_way(key.hash);
  if (way == ways) return false;
  const StoredRow* row = set.rows[way].load(acquire);
  if (row == nullptr || !read(*row, key, decision_only, out)) return false;
  if ((set.hashes[way].load(relaxed) & was_found) == 0) set.hashes[way].fetch_or(was_found, relaxed);
  return true;
}

bool AnswerCache::read(const StoredRow& row, const Key& key, bool decision_only, double* out) const {
  const std::uint64_t version = row.version.load(acquire);
  if (version % 2 != 0) return false;
  const Word* words = row.words();
  const std::uint64_t header = words[0].load(acquire);
  if ((header & ~complete) != header_of(key, generation())) return false;
  if ((header & complete) == 0 && !decision_only) return false;
  // A row with this header has capacity for all words of the key, so the reads below stay inside the row.
  const Word* next = words + 1 + scores_;
  std::uint64_t difference = 0;
  for_each_word(key, [&](std::uint64_t word) { difference |= (next++)->load(acquire) ^ word; });
  if (difference != 0) return false;
  for (std::size_t s = 0; s < scores_; ++s) out[s] = std::bit_cast<double>(words[1 + s].load(acquire));
  return row.version.load(relaxed) == version;
}

void AnswerCache::store(const Key& key, bool decision_only, std::uint32_t generation, const double* scores) {
  if (key.columns.size() > longest_row) return;
  Set& set = sets_[set_of(key.hash)];
  const std::size_t way = slot_to_replace(set, key);
  StoredRow* row = lock_row(set.rows[way], count_words(key));
  if (row == nullptr) return;
  write(key, header_of(key, generation) | (decision_only ? 0 : complete), scores, row->words());
  if (set.hashes[way].exchange(key.hash, relaxed) == 0) rows_.fetch_add(1, relaxed);
  row->version.store(row->version.load(relaxed) + 1, release);
}

// Returns the slot for a new row: the slot of a row with the same hash, else a free slot, else the slot of a
// row that has not been found since it was stored. If all rows of the set have been found, clears their marks
// and returns one of the slots.
std::size_t AnswerCache::slot_to_replace(Set& set, const Key& key) const {
  if (const std::size_t way = set.find_way(key.hash); way < ways) return way;
  const std::size_t first = static_cast<std::size_t>(key.hash >> 2) % ways_;
  std::size_t free = ways_, not_found = ways_;
  for (std::size_t way = 0; way < ways_; ++way) {
    const std::uint64_t hash = set.hashes[way].load(relaxed);
    if (hash == 0) free = way;
    if ((hash & was_found) == 0 && (not_found == ways_ || way <= first)) not_found = way;
  }
  if (free < ways_) return free;
  if (not_found < ways_) return not_found;
  for (std::size_t way = 0; way < ways_; ++way) set.hashes[way].fetch_and(~was_found, relaxed);
  return first;
}

// Returns a row with capacity for this number of words. It is locked against other writers until its version
// is even again. Returns null if another thread is writing to the slot, or if memory is exhausted.
AnswerCache::StoredRow* AnswerCache::lock_row(std::atomic<StoredRow*>& place, std::size_t words) {
  StoredRow* row = place.load(acquire);
  if (row != nullptr) {
    std::uint64_t version = row->version.load(relaxed);
    if (version % 2 != 0 || !row->version.compare_exchange_strong(version, version + 1, acquire, relaxed))
      return nullptr;
    if (row->capacity >= words) return row;
  }
  // Capacity at least doubles, so the former rows of a slot take no more memory together than the current
  // one.
  constexpr std::size_t cache_line = 64;  // bytes
  const std::size_t min_capacity = row == nullptr ? words : std::max(words, 2 * row->capacity);
  const std::size_t bytes =
      (sizeof(StoredRow) + sizeof(Word) * min_capacity + cache_line - 1) / cache_line * cache_line;
  void* memory = ::operator new(bytes, std::nothrow);
  if (memory != nullptr) {
    auto* new_row = new (memory) StoredRow{row, (bytes - sizeof(StoredRow)) / sizeof(Word), 1};
    for (std::size_t k = 0; k < new_row->capacity; ++k) new (new_row->words() + k) Word(0);
    if (place.compare_exchange_strong(row, new_row, release, relaxed)) return new_row;
    ::operator delete(memory);
  } else if (row != nullptr) {
    row->version.fetch_add(1, release);  // the row is unchanged
  }
  return nullptr;
}

void AnswerCache::write(const Key& key, std::uint64_t header, const double* scores, Word* words) const {
  words[0].store(header, release);
  for (std::size_t s = 0; s < scores_; ++s)
    words[1 + s].store(std::bit_cast<std::uint64_t>(scores[s]), release);
  Word* next = words + 1 + scores_;
  for_each_word(key, [&](std::uint64_t word) { (next++)->store(word, release); });
}

void AnswerCache::clear() {
  generation_.fetch_add(1, std::memory_order_acq_rel);
  for (Set& set : sets_) {
    for (Word& hash : set.hashes) hash.store(0, relaxed);
  }
  rows_.store(0, relaxed);
  for (Tally& tally : tallies_) {
    tally.hits.store(0, relaxed);
    tally.misses.store(0, relaxed);
  }
}

void AnswerCache::count(std::size_t counter, std::uint64_t hits, std::uint64_t misses) {
  Tally& tally = tallies_[counter % tallies_.size()];
  if (hits != 0) tally.hits.fetch_add(hits, relaxed);
  if (misses != 0) tally.misses.fetch_add(misses, relaxed);
}

AnswerCache::Counts AnswerCache::counts() const {
  Counts counts;
  for (const Tally& tally : tallies_) {
    counts.hits += tally.hits.load(relaxed);
    counts.misses += tally.misses.load(relaxed);
  }
  counts.rows = std::min<std::uint64_t>(rows_.load(relaxed), most_rows_);
  return counts;
}

}  // namespace unkernel::engines
