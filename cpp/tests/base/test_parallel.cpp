#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "posix.hpp"
#include "unkernel/base/parallel.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNDER_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#endif

namespace {

using unkernel::parallel_for;
using unkernel::parallel_ranges;
using unkernel::parallel_slots;
using unkernel::Turn;
using unkernel::Turns;

void test_every_task_runs_once() {
  for (const int threads : {-1, 0, 1, 2, 7, 64}) {
    for (const std::int64_t count : {0, 1, 2, 5, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
      parallel_for(threads, count, [&](std::int64_t i) { ++runs[static_cast<std::size_t>(i)]; });
      for (const auto& run : runs) CHECK(run == 1);
    }
  }
}

void test_ranges_cover_every_index_once() {
  for (const int threads : {1, 3}) {
    for (const std::int64_t total : {0, 1, 99, 100, 101, 1234}) {
      std::vector<std::atomic<int>> covered(static_cast<std::size_t>(total));
      parallel_ranges(threads, total, 100, [&](std::int64_t begin, std::int64_t end) {
        CHECK(begin % 100 == 0 && begin < end && end - begin <= 100);
        for (std::int64_t i = begin; i < end; ++i) ++covered[static_cast<std::size_t>(i)];
      });
      for (const auto& times : covered) CHECK(times == 1);
    }
  }
}

std::vector<double> sums_of_pieces(int threads) {
  std::vector<double> sums(50);
  parallel_ranges(threads, 5000, 100, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      sums[static_cast<std::size_t>(begin / 100)] += 1.0 / static_cast<double>(i + 1);
  });
  return sums;
}

void test_results_do_not_depend_on_threads() {
  const std::vector<double> on_one_thread = sums_of_pieces(1);
  for (const int threads : {2, 3, 16}) CHECK(sums_of_pieces(threads) == on_one_thread);
}

void test_an_exception_is_rethrown_and_cancels_later_tasks() {
  for (const int threads : {1, 2, 8}) {
    std::atomic<std::int64_t> started{0};
    std::string message;
    try {
      parallel_for(threads, 1'000'000, [&](std::int64_t i) {
        ++started;
        if (i == 10) throw std::out_of_range("task 10");
      });
    } catch (const std::out_of_range& error) { message = error.what(); }
    CHECK(message == "task 10");
    CHECK(started >= 11 && started < 1'000'000);
  }
}

void test_one_of_several_exceptions_is_rethrown() {
  CHECK_THROWS(parallel_for(4, 100, [](std::int64_t) { throw std::runtime_error("each"); }),
               std::runtime_error);
}

void test_tasks_run_on_several_threads_including_the_callers() {
  std::atomic<int> arrived{0};
  std::set<std::thread::id> ids;
  std::mutex lock;
  // Each of the four tasks waits for the other three, so the loop ends only if there are four threads.
  parallel_for(4, 4, [&](std::int64_t) {
    {
      const std::lock_guard guard(lock);
      ids.insert(std::this_thread::get_id());
    }
    ++arrived;
    while (arrived < 4) std::this_thread::yield();
  });
  CHECK(ids.size() == 4 && ids.contains(std::this_thread::get_id()));
}

// One buffer per slot is enough: tasks that run concurrently have different slots.
void test_concurrent_tasks_have_different_slots() {
  for (const int threads : {1, 3, 8}) {
    std::vector<std::atomic<int>> inside(static_cast<std::size_t>(threads));
    std::atomic<std::int64_t> runs{0};
    parallel_slots(threads, 300, [&](std::size_t slot, std::int64_t) {
      CHECK(slot < inside.size() && ++inside[slot] == 1);
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      --inside[slot];
      ++runs;
    });
    CHECK(runs == 300);
  }
}

void test_turns_are_taken_in_order() {
  for (const int threads : {1, 2, 8}) {
    Turns turns;
    std::vector<std::int64_t> order;
    parallel_slots(threads, 100, [&](std::size_t, std::int64_t i) {
      const Turn turn(turns, i);
      std::this_thread::sleep_for(std::chrono::microseconds(37 * i % 101));
      turn.wait();
      order.push_back(i);  // one task at a time; otherwise this is a race
    });
    for (std::int64_t i = 0; i < 100; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
  }
}

// A task that fails before or during its turn must not leave later tasks waiting.
void test_a_failing_task_does_not_block_later_turns() {
  for (const int threads : {1, 2, 8}) {
    for (const std::int64_t failing : {0, 1, 7, 99}) {
      for (const bool in_turn : {false, true}) {
        Turns turns;
        std::string message;
        try {
          parallel_slots(threads, 100, [&](std::size_t, std::int64_t i) {
            const Turn turn(turns, i);
            if (i == failing && !in_turn) throw std::out_of_range("before its turn");
            turn.wait();
            if (i == failing) throw std::out_of_range("in its turn");
          });
        } catch (const std::out_of_range& error) { message = error.what(); }
        CHECK(message == (in_turn ? "in its turn" : "before its turn"));
      }
    }
  }
}

// If the system provides no more threads, the existing ones do the work.
void test_work_completes_if_threads_cannot_be_created() {
#if !defined(UNDER_SANITIZER) && !defined(_WIN32)
  rlimit original_limit{};
  CHECK(getrlimit(RLIMIT_AS, &original_limit) == 0);
  rlimit lowered_limit = original_limit;
  lowered_limit.rlim_cur = rlim_t{256} << 20;  // enough for some stacks of 8 MiB, but not for a thousand
  CHECK(setrlimit(RLIMIT_AS, &lowered_limit) == 0);
  std::vector<std::atomic<int>> runs(1000);
  parallel_for(1000, 1000, [&](std::int64_t i) {
    ++runs[static_cast<std::size_t>(i)];
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  });
  CHECK(setrlimit(RLIMIT_AS, &original_limit) == 0);
  for (const auto& run : runs) CHECK(run == 1);
#endif
}

}  // namespace

int main() {
  test_every_task_runs_once();
  test_ranges_cover_every_index_once();
  test_results_do_not_depend_on_threads();
  test_an_exception_is_rethrown_and_cancels_later_tasks();
  test_one_of_several_exceptions_is_rethrown();
  test_tasks_run_on_several_threads_including_the_callers();
  test_concurrent_tasks_have_different_slots();
  test_turns_are_taken_in_order();
  test_a_failing_task_does_not_block_later_turns();
  test_work_completes_if_threads_cannot_be_created();
  return 0;
}
