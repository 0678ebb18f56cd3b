// Caches the scores of rows.
//
// The hash of a row selects a set of eight slots; each slot holds one row and its scores. A row is found only
// if all its columns and values are equal, not merely its hash. If a set is full, a new row preferably
// replaces a row that has not been found since it was stored.
//
// Threads never wait for each other. Each stored row has a version, which is odd while a thread writes to the
// row. A reader loads the version before and after it reads the row. If the version is odd or has changed,
// the row counts as not found. A writer that loads an odd version does not write. All words are atomic:
// written with release and read with acquire semantics, so a reader that sees a new word also sees an odd or
// newer version. Replaced rows are freed only with the cache, because a reader may still use them.
//
// Bytes   16 per slot; per stored row 32, 4 per column, 8 per value and score, rounded up to 64.
// Query   the hash of the row, two cache lines of slots, and the stored row.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace unkernel::engines {

class AnswerCache {
 public:
  // The most columns of a stored row; longer rows are not cached.
  static constexpr std::size_t longest_row = 1024;

  // The lowest bit of a stored hash: set when a lookup finds the row. It is 0 in the hash of a Key.
  static constexpr std::uint64_t was_found = 1;

  // A row to look up: ascending columns, and values. If `values` is null, all values are 1.
  struct Key {
    std::span<const std::int32_t> columns;
    const double* values = nullptr;
    std::uint64_t hash = 0;

    Key() = default;
    Key(std::span<const std::int32_t> columns, const double* values);
  };

  struct Counts {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t rows = 0;  // stored now
  };

  // Creates a cache of at most `most_rows` rows, at least 1, with `scores` scores each.
  AnswerCache(std::size_t most_rows, std::size_t scores);
  ~AnswerCache();
  AnswerCache(const AnswerCache&) = delete;
  AnswerCache& operator=(const AnswerCache&) = delete;

  std::size_t most_rows() const { return most_rows_; }

  // Prefetch the data that find() reads. prefetch_row reads the slots, so call it some time after
  // prefetch_slots.
  void prefetch_slots(const Key& key) const {
    const Set& set = sets_[set_of(key.hash)];
    __builtin_prefetch(&set.hashes);
    __builtin_prefetch(&set.rows);
  }
  void prefetch_row(const Key& key) const;

  // Returns whether the cache has the scores of the row; if so, writes them to `out`. With `decision_only`,
  // also accepts scores that are valid only for a decision.
  bool find(const Key& key, bool decision_only, double* out);
  // Stores the scores of a row. The caller must read generation() before it scores the row: if clear() is
  // called in between, the stored scores are outdated and will not be found.
  void store(const Key& key, bool decision_only, std::uint32_t generation, const double* scores);

  // Only rows of the current generation are found. clear() begins the next generation and resets the counts.
  std::uint32_t generation() const { return generation_.load(std::memory_order_acquire); }
  void clear();

  // Each thread adds to its own counter. If there are more threads than counters, threads share them.
  std::size_t new_counter() { return counters_.fetch_add(1, std::memory_order_relaxed); }
  void count(std::size_t counter, std::uint64_t hits, std::uint64_t misses);
  // Returns the counts. They are exact while no row is being scored.
  Counts counts() const;

 private:
  using Word = std::atomic<std::uint64_t>;
  static constexpr std::size_t ways = 8;

  // The fields of a stored row. Its words follow in memory: a header word, scores, columns in pairs, values.
  struct StoredRow {
    StoredRow* former;     // the slot's previous, smaller row; other threads may still read it
    std::size_t capacity;  // words
    Word version = 0;

    const Word* words() const { return reinterpret_cast<const Word*>(this + 1); }
    Word* words() { return reinterpret_cast<Word*>(this + 1); }
  };

  // A set of slots. A hash of 0 marks an empty slot.
  struct alignas(64) Set {
    std::array<Word, ways> hashes{};
    std::array<std::atomic<StoredRow*>, ways> rows{};

    // Returns the index of the slot with this hash, or `ways` if there is none.
    std::size_t find_way(std::uint64_t hash) const;
  };
  // Each counter has its own cache line, so that threads do not write to the same line.
  struct alignas(64) Tally {
    Word hits = 0;
    Word misses = 0;
  };

  std::size_t set_of(std::uint64_t hash) const {
    return static_cast<std::size_t>((hash >> 32) * sets_.size() >> 32);
  }
  std::size_t count_words(const Key& key) const;
  bool read(const StoredRow& row, const Key& key, bool decision_only, double* out) const;
  std::size_t slot_to_replace(Set& set, const Key& key) const;
  StoredRow* lock_row(std::atomic<StoredRow*>& place, std::size_t words);
  void write(const Key& key, std::uint64_t header, const double* scores, Word* words) const;

  std::size_t most_rows_;
  std::size_t ways_;  // slots used in each set
  std::size_t scores_;
  std::vector<Set> sets_;
  std::atomic<std::uint32_t> generation_ = 1;
  Word rows_ = 0;
  std::array<Tally, 16> tallies_;
  std::atomic<std::size_t> counters_ = 0;
};

}  // namespace unkernel::engines
