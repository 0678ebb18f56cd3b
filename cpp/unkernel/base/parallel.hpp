// Threads, used in one way only: a fixed list of tasks that do not depend on each
// other. What a task computes never depends on how many threads there are.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace unkernel {

// Runs task(0) .. task(count - 1) on at most `threads` threads, the caller's included.
// The first exception is rethrown here once all threads have ended.
template <class Task>
void parallel_for(int threads, std::int64_t count, const Task& task) {
  const auto workers = static_cast<int>(std::min<std::int64_t>(std::max(threads, 1), count));
  if (workers <= 1) {
    for (std::int64_t i = 0; i < count; ++i) task(i);
    return;
  }
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_lock;
  const auto work = [&] {
    try {
      for (std::int64_t i = next++; i < count; i = next++) task(i);
    } catch (...) {
      const std::lock_guard guard(failure_lock);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> pool;
  pool.reserve(static_cast<std::size_t>(workers - 1));
  try {
    for (int i = 1; i < workers; ++i) pool.emplace_back(work);
  } catch (const std::exception&) {
    // The system gives no more threads: those that there are do the work.
  }
  work();
  for (auto& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

// Cuts [0, total) into pieces of about `grain` and runs body(begin, end) on each.
template <class Body>
void parallel_ranges(int threads, std::int64_t total, std::int64_t grain, const Body& body) {
  const std::int64_t pieces = (total + grain - 1) / grain;
  parallel_for(threads, pieces, [&](std::int64_t piece) {
    body(piece * grain, std::min(total, (piece + 1) * grain));
  });
}

}  // namespace unkernel
