// Progress reporting and cancellation for long-running work.
//
// Workers write their progress into a Monitor and read `stopped`. The thread that called into the core
// sleeps meanwhile, wakes every few hundredths of a second and calls `on_progress` (`supervise`). So
// Ctrl-C is noticed promptly whatever the workers are doing, and workers never call back into Python.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>

#include "unkernel/base/error.hpp"
#include "unkernel/base/function_ref.hpp"

namespace unkernel {

struct Progress {
  std::string stage;         // "expanding", "training"
  std::int64_t problem = 0;  // which of the one-vs-rest problems
  std::int64_t problems = 1;
  std::int64_t finished = 0;  // how many of them are done
  std::int64_t epoch = 0;
  std::int64_t active = 0;    // rows still being worked on
  double relative_gap = 1.0;  // estimated; certified when the problem is done
  double objective = 0.0;     // of the best weights so far, where the solver knows it all the time
  double bound = 0.0;         // below the optimum
};

class Monitor {
 public:
  void report(const Progress& progress);
  void finish_one();
  Progress latest() const;
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  void throw_if_stopped() const {
    if (stopped()) throw Interrupted();
  }

  // --- For `supervise` ---

  // Waits for the end of the work, for its first report, or for 50 ms. True at the end.
  bool wait();
  void end();
  Progress to_show();
  bool has_news() const;

 private:
  mutable std::mutex lock_;
  std::condition_variable changed_;
  Progress progress_;
  std::int64_t reports_ = 0;
  std::int64_t shown_ = 0;  // how many of them `on_progress` has seen
  bool ended_ = false;
  std::atomic<bool> stopped_{false};
};

// Runs `work` on a thread of its own, once per monitor, while this thread calls `on_progress`: at the first
// report, about twenty times a second, and after the end if the last report has not been shown. So however
// short the work is, and however busy the machine, its first and its last report are seen. An exception from
// `on_progress` stops the work and is rethrown.
void supervise(Monitor& monitor, FunctionRef<void()> work, FunctionRef<void(const Progress&)> on_progress);

}  // namespace unkernel
