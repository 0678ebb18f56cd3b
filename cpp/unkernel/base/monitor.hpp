// How long work tells the outside where it is, and learns that it should stop.
//
// Workers write into a Monitor and read `stopped`; the thread that called into the core
// sleeps, wakes every few hundredths of a second, and lets its owner look (`supervise`).
// So a Ctrl-C is noticed promptly, whatever the workers are in the middle of, and the
// workers never call back into Python.
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
  }
  void finish_one() {
    const std::lock_guard guard(lock_);
    ++progress_.finished;
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

 private:
  mutable std::mutex lock_;
  Progress progress_;
  std::atomic<bool> stopped_{false};
};

// Runs `work` on a thread of its own while this one calls `look(progress)` about twenty
// times a second. An exception from `look` stops the work and is rethrown.
template <class Work>
void supervise(Monitor& monitor, const Work& work, const std::function<void(const Progress&)>& on_progress) {
  std::mutex lock;
  std::condition_variable changed;
  bool done = false;
  std::exception_ptr failure;
  std::thread worker([&] {
    std::exception_ptr caught;
    try {
      work();
    } catch (...) { caught = std::current_exception(); }
    const std::lock_guard guard(lock);
    failure = caught;
    done = true;
    changed.notify_one();
  });
  std::exception_ptr refusal;
  std::unique_lock guard(lock);
  while (!done) {
    if (changed.wait_for(guard, std::chrono::milliseconds(50), [&] { return done; })) break;
    if (refusal) continue;
    guard.unlock();
    try {
      on_progress(monitor.latest());
    } catch (...) {
      refusal = std::current_exception();
      monitor.stop();
    }
    guard.lock();
  }
  guard.unlock();
  worker.join();
  if (refusal) std::rethrow_exception(refusal);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace unkernel
