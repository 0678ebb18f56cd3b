#include "unkernel/base/monitor.hpp"

#include <chrono>
#include <thread>

namespace unkernel {
namespace {

constexpr std::chrono::milliseconds poll_interval{50};

}  // namespace

void Monitor::report(const Progress& progress) {
  const std::lock_guard guard(lock_);
  const std::int64_t finished = progress_.finished;
  progress_ = progress;
  progress_.finished = finished;
  if (++reports_ == 1) changed_.notify_one();
}

void Monitor::finish_one() {
  const std::lock_guard guard(lock_);
  ++progress_.finished;
  if (reports_ > 0) ++reports_;  // before the first report, there is no progress to report again
}

Progress Monitor::latest() const {
  const std::lock_guard guard(lock_);
  return progress_;
}

bool Monitor::wait() {
  std::unique_lock guard(lock_);
  const auto first_report = [&] { return reports_ > 0 && shown_ == 0 && !stopped(); };
  changed_.wait_for(guard, poll_interval, [&] { return ended_ || first_report(); });
  return ended_;
}

void Monitor::end() {
  const std::lock_guard guard(lock_);
  ended_ = true;
  changed_.notify_one();
}

Progress Monitor::take_latest() {
  const std::lock_guard guard(lock_);
  shown_ = reports_;
  return progress_;
}

bool Monitor::has_news() const {
  const std::lock_guard guard(lock_);
  return shown_ != reports_;
}

// The first poll does not read the clock: most work ends before the second one.
void Monitor::call_back() const {
  if (std::this_thread::get_id() != own_thread_ || ++polls_ == 1) return;
  const Clock::time_point now = Clock::now();
  if (polls_ == 2) next_callback_ = now + poll_interval;
  if (now < next_callback_) return;
  next_callback_ = now + poll_interval;
  try {
    (*callback_)();
  } catch (...) {
    stopped_.store(true, std::memory_order_relaxed);  // for other threads of the work
    throw;
  }
}

void supervise(Monitor& monitor, FunctionRef<void()> work, FunctionRef<void(const Progress&)> on_progress) {
  std::exception_ptr work_failure;
  std::thread worker([&] {
    try {
      work();
    } catch (...) { work_failure = std::current_exception(); }
    monitor.end();
  });
  std::exception_ptr callback_failure;
  const auto show = [&] {
    try {
      on_progress(monitor.take_latest());
    } catch (...) {
      callback_failure = std::current_exception();
      monitor.stop();
    }
  };
  while (!monitor.wait())
    if (!callback_failure) show();
  worker.join();
  if (!work_failure && !callback_failure && monitor.has_news()) show();
  if (callback_failure) std::rethrow_exception(callback_failure);
  if (work_failure) std::rethrow_exception(work_failure);
}

}  // namespace unkernel
