// Threads, used in one way only: a fixed list of tasks that do not depend on each
// other. What a task computes never depends on how many threads there are.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace unkernel {

// Runs task(slot, 0) .. task(slot, count - 1) on at most `threads` threads, the caller's included. Tasks are
// begun in order; those that run at the same time have different slots, 0 .. threads - 1: buffers go by slot.
// The first exception is rethrown here once all threads have ended.
template <class Task>
void parallel_slots(int threads, std::int64_t count, const Task& task) {
  const auto workers = static_cast<int>(std::min<std::int64_t>(std::max(threads, 1), count));
  if (workers <= 1) {
    for (std::int64_t i = 0; i < count; ++i) task(std::size_t{0}, i);
    return;
  }
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_lock;
  const auto work = [&](std::size_t slot) {
    try {
      for (std::int64_t i = next++; i < count; i = next++) task(slot, i);
    } catch (...) {
      const std::lock_guard guard(failure_lock);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> pool;
  pool.reserve(static_cast<std::size_t>(workers - 1));
  try {
    for (int i = 1; i < workers; ++i) pool.emplace_back(work, static_cast<std::size_t>(i));
  } catch (const std::exception&) {
    // The system gives no more threads: those that there are do the work.
  }
  work(0);
  for (auto& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

// The same for tasks that need no slot.
template <class Task>
void parallel_for(int threads, std::int64_t count, const Task& task) {
  parallel_slots(threads, count, [&](std::size_t, std::int64_t i) { task(i); });
}

// Tasks that run at the same time, and do their last part one after another, in the order of their numbers.
class Turns {
 public:
  void wait_for(std::int64_t number) {
    std::unique_lock guard(lock_);
    changed_.wait(guard, [&] { return next_ >= number; });
  }
  void finish(std::int64_t number) {
    const std::lock_guard guard(lock_);
    next_ = std::max(next_, number + 1);
    changed_.notify_all();
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::int64_t next_ = 0;
};

// One task's turn; it ends with this, also where the task fails: those behind must not wait for ever.
class Turn {
 public:
  Turn(Turns& turns, std::int64_t number) : turns_(turns), number_(number) {}
  ~Turn() { turns_.finish(number_); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  void wait() const { turns_.wait_for(number_); }

 private:
  Turns& turns_;
  std::int64_t number_;
};

// Cuts [0, total) into pieces of about `grain` and runs body(begin, end) on each.
template <class Body>
void parallel_ranges(int threads, std::int64_t total, std::int64_t grain, const Body& body) {
  const std::int64_t pieces = (total + grain - 1) / grain;
  parallel_for(threads, pieces,
               [&](std::int64_t piece) { body(piece * grain, std::min(total, (piece + 1) * grain)); });
}

}  // namespace unkernel
