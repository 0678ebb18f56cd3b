// Parallel loops over a fixed list of independent tasks. The result of a task never depends on the number of
// threads.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "unkernel/base/function_ref.hpp"

namespace unkernel {

// Runs task(slot, 0) .. task(slot, count - 1) on at most `threads` threads, including the caller's. Tasks
// start in order. Tasks that run concurrently have different slots in 0 .. threads - 1, so that callers can
// keep one buffer per slot. Rethrows the first exception once all threads have ended.
void parallel_slots(int threads, std::int64_t count, FunctionRef<void(std::size_t, std::int64_t)> task);

// Runs task(0) .. task(count - 1) like parallel_slots, for tasks that need no slot.
void parallel_for(int threads, std::int64_t count, FunctionRef<void(std::int64_t)> task);

// Runs task(worker, 0) .. task(worker, count - 1) like parallel_slots, with one worker per slot. make()
// returns a worker as a unique_ptr; the first task of a slot calls it.
template <class Make, class Task>
void parallel_workers(int threads, std::int64_t count, const Make& make, const Task& task) {
  std::vector<decltype(make())> workers(static_cast<std::size_t>(std::max(threads, 1)));
  parallel_slots(threads, count, [&](std::size_t slot, std::int64_t k) {
    if (workers[slot] == nullptr) workers[slot] = make();
    task(*workers[slot], k);
  });
}

// Lets concurrent tasks run their last part one after another, in the order of their numbers.
class Turns {
 public:
  void wait_for(std::int64_t number);
  void finish(std::int64_t number);

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::int64_t next_ = 0;
};

// The turn of one task. The destructor ends it even if the task throws, so that later tasks do not wait
// forever.
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

// Splits [0, total) into pieces of about `grain` and runs body(begin, end) on each.
void parallel_ranges(int threads, std::int64_t total, std::int64_t grain,
                     FunctionRef<void(std::int64_t, std::int64_t)> body);

}  // namespace unkernel
