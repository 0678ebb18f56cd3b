// Progress reporting and cancellation for long-running work.
//
// Workers write their progress into a Monitor and read `stopped`. The thread that called into the core
// sleeps meanwhile, wakes every few hundredths of a second and calls `on_progress` (`supervise`). So Ctrl-C
// takes effect within a fraction of a second, and workers never call back into Python.
//
// Short work runs on the caller's thread, with a Monitor that has a callback. If the work takes longer than
// expected, `throw_if_stopped` calls the callback about twenty times per second.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "unkernel/base/error.hpp"
#include "unkernel/base/function_ref.hpp"

namespace unkernel {

struct Progress {
  std::string stage;         // "expanding", "training"
  std::int64_t problem = 0;  // index of the current one-vs-rest problem
  std::int64_t problems = 1;
  std::int64_t finished = 0;  // number of problems that are done
  std::int64_t epoch = 0;
  std::int64_t active = 0;    // rows that are still in the active set
  double relative_gap = 1.0;  // an estimate; certified when the problem is done
  double objective = 0.0;     // of the best weights so far, if the solver tracks it
  double bound = 0.0;         // lower bound of the optimum
};

class Monitor {
 public:
  Monitor() = default;
  // For work on this thread: `throw_if_stopped` calls `callback` from time to time. The callback may throw.
  explicit Monitor(FunctionRef<void()> callback)
      : callback_(callback), own_thread_(std::this_thread::get_id()) {}

  void report(const Progress& progress);
  // Counts one more finished problem; reports do not change this count.
  void finish_one();
  Progress latest() const;
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  void throw_if_stopped() const {
    if (stopped()) throw Interrupted();
    if (callback_) call_back();
  }

  // --- For `supervise` ---

  // Waits for the end of the work, its first report, or 50 ms. Returns true at the end.
  bool wait();
  void end();
  Progress take_latest();
  // Returns whether there has been a report since the last take_latest().
  bool has_news() const;

 private:
  using Clock = std::chrono::steady_clock;

  void call_back() const;

  mutable std::mutex lock_;
  std::condition_variable changed_;
  Progress progress_;
  std::int64_t reports_ = 0;
  std::int64_t shown_ = 0;  // number of reports that `on_progress` has received
  bool ended_ = false;
  mutable std::atomic<bool> stopped_{false};

  std::optional<FunctionRef<void()>> callback_;
  std::thread::id own_thread_;
  mutable std::int64_t polls_ = 0;  // how often the thread of the callback has polled
  mutable Clock::time_point next_callback_;
};

// The number of threads to use, and the monitor that can stop them.
struct Threads {
  int count;
  const Monitor* monitor;  // polled for cancellation
};

// Runs `work` on a new thread, once per monitor. Meanwhile, the calling thread calls `on_progress`: at the
// first report, about twenty times per second, and after the end if the last report has not been passed on.
// So `on_progress` always receives the last report, even of very short work on a busy machine. An exception
// from `on_progress` stops the work and is rethrown.
void supervise(Monitor& monitor, FunctionRef<void()> work, FunctionRef<void(const Progress&)> on_progress);

}  // namespace unkernel
