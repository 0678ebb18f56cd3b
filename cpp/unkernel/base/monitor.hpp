// Progress reporting and cancellation for long-running work.
//
// Workers write their progress into a Monitor and read `stopped`. The thread that called into the core
// sleeps meanwhile, wakes every few hundredths of a second and calls `on_progress` (`supervise`). So
// Ctrl-C is noticed promptly whatever the workers are doing, and workers never call back into Python.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "unkernel/base/error.hpp"

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
  void report(const Progress& progress) {
    const std::lock_guard guard(lock_);
    const std::int64_t finished = progress_.finished;
    progress_ = progress;
    progress_.finished = finished;
    if (++reports_ == 1) changed_.notify_one();
  }
  void finish_one() {
    const std::lock_guard guard(lock_);
    ++progress_.finished;
    if (reports_ > 0) ++reports_;  // nothing to show before the first report
  }
  Progress latest() const {
    const std::lock_guard guard(lock_);
    return progress_;
  }
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  void throw_if_stopped() const {
    if (stopped()) throw Interrupted();
  }

  // --- For `supervise` ---

  // Waits for the end of the work, for its first report, or for 50 ms. True at the end.
  bool wait() {
    std::unique_lock guard(lock_);
    const auto first_report = [&] { return reports_ > 0 && shown_ == 0 && !stopped(); };
    changed_.wait_for(guard, std::chrono::milliseconds(50), [&] { return ended_ || first_report(); });
    return ended_;
  }
  void end() {
    const std::lock_guard guard(lock_);
    ended_ = true;
    changed_.notify_one();
  }
  Progress to_show() {
    const std::lock_guard guard(lock_);
    shown_ = reports_;
    return progress_;
  }
  bool has_news() const {
    const std::lock_guard guard(lock_);
    return shown_ != reports_;
  }

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
template <class Work>
void supervise(Monitor& monitor, const Work& work, const std::function<void(const Progress&)>& on_progress) {
  std::exception_ptr failure;
  std::thread worker([&] {
    try {
      work();
    } catch (...) { failure = std::current_exception(); }
    monitor.end();
  });
  std::exception_ptr refusal;
  const auto show = [&] {
    try {
      on_progress(monitor.to_show());
    } catch (...) {
      refusal = std::current_exception();
      monitor.stop();
    }
  };
  while (!monitor.wait())
    if (!refusal) show();
  worker.join();
  if (!failure && !refusal && monitor.has_news()) show();
  if (refusal) std::rethrow_exception(refusal);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace unkernel
