#include "unkernel/base/parallel.hpp"

#include <atomic>
#include <exception>
#include <thread>

namespace unkernel {

void parallel_slots(int threads, std::int64_t count, FunctionRef<void(std::size_t, std::int64_t)> task) {
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
    // The system cannot start more threads; the threads that have started do all tasks.
  }
  work(0);
  for (auto& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

void parallel_for(int threads, std::int64_t count, FunctionRef<void(std::int64_t)> task) {
  parallel_slots(threads, count, [&](std::size_t, std::int64_t i) { task(i); });
}

void parallel_ranges(int threads, std::int64_t total, std::int64_t grain,
                     FunctionRef<void(std::int64_t, std::int64_t)> body) {
  const std::int64_t pieces = (total + grain - 1) / grain;
  parallel_for(threads, pieces,
               [&](std::int64_t piece) { body(piece * grain, std::min(total, (piece + 1) * grain)); });
}

void Turns::wait_for(std::int64_t number) {
  std::unique_lock guard(lock_);
  changed_.wait(guard, [&] { return next_ >= number; });
}

void Turns::finish(std::int64_t number) {
  const std::lock_guard guard(lock_);
  next_ = std::max(next_, number + 1);
  changed_.notify_all();
}

}  // namespace unkernel
