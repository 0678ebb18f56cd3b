// Threads, used in one way only: a fixed list of tasks that do not depend on each
// other. What a task computes never depends on how many threads there are.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "unkernel/base/function_ref.hpp"

namespace unkernel {

// Runs task(slot, 0) .. task(slot, count - 1) on at most `threads` threads, the caller's included. Tasks are
// begun in order; those that run at the same time have different slots, 0 .. threads - 1: buffers go by slot.
// The first exception is rethrown here once all threads have ended.
void parallel_slots(int threads, std::int64_t count, FunctionRef<void(std::size_t, std::int64_t)> task);

// The same for tasks that need no slot.
void parallel_for(int threads, std::int64_t count, FunctionRef<void(std::int64_t)> task);

// Tasks that run at the same time, and do their last part one after another, in the order of their numbers.
class Turns {
 public:
  void wait_for(std::int64_t number);
  void finish(std::int64_t number);

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
void parallel_ranges(int threads, std::int64_t total, std::int64_t grain,
                     FunctionRef<void(std::int64_t, std::int64_t)> body);

}  // namespace unkernel
