#include <atomic>
#include <cstdint>
#include <map>
#include <thread>
#include <vector>

#include "check.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/engines/answer_cache.hpp"

namespace {

using unkernel::Random;
using unkernel::engines::AnswerCache;

using Columns = std::vector<std::int32_t>;

Columns random_columns(Random& random, std::size_t max_columns) {
  Columns columns;
  std::int32_t column = -1;
  const std::size_t count = random.below(max_columns + 1);
  for (std::size_t k = 0; k < count; ++k) {
    column += 1 + static_cast<std::int32_t>(random.below(3));
    columns.push_back(column);
  }
  return columns;
}

// Returns scores that differ between rows and within a row.
double score_of(const Columns& columns, const double* values, std::size_t score) {
  std::uint64_t sum = score;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    sum = Random::mix(sum + static_cast<std::uint64_t>(columns[k]));
    if (values != nullptr) sum = Random::mix(sum + static_cast<std::uint64_t>(values[k] * 16.0));
  }
  return static_cast<double>(sum % 1000003) + static_cast<double>(score) / 16.0;
}

constexpr std::size_t scores = 3;

// Looks up the scores of a row, and stores them if they are missing. Returns whether they were found.
bool find_or_store(AnswerCache& cache, const Columns& columns, const double* values, bool decision_only) {
  const AnswerCache::Key key(columns, values);
  double out[scores];
  if (cache.find(key, decision_only, out)) {
    for (std::size_t s = 0; s < scores; ++s) CHECK(out[s] == score_of(columns, values, s));
    return true;
  }
  for (std::size_t s = 0; s < scores; ++s) out[s] = score_of(columns, values, s);
  cache.store(key, decision_only, cache.generation(), out);
  return false;
}

void test_cached_scores_were_stored_before() {
  Random random(1);
  for (const std::size_t max_rows : {1, 2, 7, 8, 9, 100, 1000}) {
    AnswerCache cache(max_rows, scores);
    // True if all scores were stored, false if only the decision was.
    std::map<std::pair<Columns, std::vector<double>>, bool> stored_all;
    for (int k = 0; k < 3000; ++k) {
      const Columns columns = random_columns(random, 5);
      const bool valued = !columns.empty() && random.below(3) == 0, decision_only = random.below(2) == 0;
      std::vector<double> values(valued ? columns.size() : 0);
      for (double& value : values) value = static_cast<double>(random.below(2)) + 0.5;
      const auto stored = stored_all.find({columns, values});
      const bool found = find_or_store(cache, columns, valued ? values.data() : nullptr, decision_only);
      if (found) CHECK(stored != stored_all.end() && (stored->second || decision_only));
      if (!found) stored_all[{columns, values}] = !decision_only;
    }
    CHECK(cache.counts().rows <= max_rows);
  }
}

// Frequently requested rows stay cached while many other rows are stored.
void test_frequent_rows_stay_cached() {
  Random random(2);
  AnswerCache cache(8, scores);
  const Columns first_frequent{1, 2, 3}, second_frequent{4, 5};
  std::size_t hits = 0;
  for (int k = 0; k < 1000; ++k) {
    hits += find_or_store(cache, first_frequent, nullptr, false);
    hits += find_or_store(cache, second_frequent, nullptr, false);
    find_or_store(cache, {k, k + 1}, nullptr, false);
  }
  CHECK(hits >= 1990);
}

void test_scores_of_earlier_generations_are_not_stored() {
  AnswerCache cache(10, scores);
  const Columns row{3, 5};
  CHECK(!find_or_store(cache, row, nullptr, false) && find_or_store(cache, row, nullptr, false));
  const std::uint32_t old_generation = cache.generation();
  cache.clear();
  CHECK(cache.counts().rows == 0);
  double out[scores] = {};
  CHECK(!cache.find({row, nullptr}, false, out));
  cache.store({row, nullptr}, false, old_generation, out);
  CHECK(!cache.find({row, nullptr}, false, out));
  CHECK(!find_or_store(cache, row, nullptr, false) && find_or_store(cache, row, nullptr, false));
}

void test_counters_of_threads_are_added() {
  AnswerCache cache(10, scores);
  for (int k = 0; k < 40; ++k) cache.count(cache.new_counter(), 2, 1);
  CHECK(cache.counts().hits == 80 && cache.counts().misses == 40);
}

// Threads write rows of different lengths to the same few slots, read them, and sometimes clear the cache.
void test_threads_share_a_cache() {
  AnswerCache cache(16, scores);
  std::atomic<std::uint64_t> total_hits = 0;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      std::uint64_t hits = 0;
      for (int k = 0; k < 20000; ++k) {
        const Columns columns = random_columns(random, k % 100 == 0 ? 200 : 3);
        hits += find_or_store(cache, columns, nullptr, random.below(2) == 0);
        if (k % 5000 == 4999 && t == 0) cache.clear();
      }
      total_hits += hits;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(total_hits > 1000);
}

}  // namespace

int main() {
  test_cached_scores_were_stored_before();
  test_frequent_rows_stay_cached();
  test_scores_of_earlier_generations_are_not_stored();
  test_counters_of_threads_are_added();
  test_threads_share_a_cache();
  return 0;
}
