#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "unkernel/base/function_ref.hpp"
#include "unkernel/base/monitor.hpp"

namespace {

using unkernel::Interrupted;
using unkernel::Monitor;
using unkernel::Progress;
using unkernel::supervise;

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

void test_work_runs_on_a_separate_thread() {
  Monitor monitor;
  std::thread::id worker;
  supervise(monitor, [&] { worker = std::this_thread::get_id(); }, [](const Progress&) {});
  CHECK(worker != std::thread::id{} && worker != std::this_thread::get_id());
  CHECK(!monitor.stopped());
}

void test_exceptions_of_the_work_are_rethrown() {
  Monitor monitor;
  std::string message;
  try {
    supervise(monitor, [] { throw std::invalid_argument("bad work"); }, [](const Progress&) {});
  } catch (const std::invalid_argument& error) { message = error.what(); }
  CHECK(message == "bad work");
}

void test_a_callback_that_throws_stops_the_work() {
  Monitor monitor;
  std::atomic<bool> work_was_interrupted{false};
  const auto work = [&] {
    try {
      for (;;) {
        monitor.throw_if_stopped();
        pause();
      }
    } catch (const Interrupted&) {
      work_was_interrupted = true;
      throw;
    }
  };
  int calls = 0;
  std::string message;
  try {
    supervise(monitor, work, [&](const Progress&) {
      if (++calls == 2) throw std::runtime_error("enough");
    });
  } catch (const std::runtime_error& error) {  // the callback's own exception, not Interrupted
    message = error.what();
  }
  CHECK(message == "enough" && calls == 2 && work_was_interrupted && monitor.stopped());
}

// If a worker notices the stop late, supervise() waits for it and does not call the callback again.
void test_supervise_waits_for_work_that_stops_late() {
  Monitor monitor;
  std::atomic<bool> done{false};
  int calls = 0;
  const auto work = [&] {
    while (!monitor.stopped()) pause();
    for (int i = 0; i < 150; ++i) pause();
    done = true;
  };
  CHECK_THROWS(supervise(monitor, work,
                         [&](const Progress&) {
                           ++calls;
                           throw Interrupted();
                         }),
               Interrupted);
  CHECK(done && calls == 1);
}

void test_the_callback_receives_the_latest_report() {
  Monitor monitor;
  std::atomic<bool> received{false};
  const auto work = [&] {
    Progress progress;
    progress.stage = "testing";
    for (progress.epoch = 1; !received; ++progress.epoch) {
      monitor.report(progress);
      pause();
    }
  };
  std::int64_t epoch = 0;
  supervise(monitor, work, [&](const Progress& progress) {
    CHECK(progress.stage == "testing" &&
          progress.epoch >= epoch);  // not >, because the same report may be received twice
    epoch = progress.epoch;
    received = epoch > 30;
  });
  CHECK(received);
}

// Even if the work ends immediately, the callback receives its last report.
void test_the_callback_receives_the_last_report() {
  for (int round = 0; round < 200; ++round) {
    Monitor monitor;
    std::vector<std::int64_t> epochs;
    std::int64_t finished = 0;
    const auto work = [&] {
      Progress progress;
      for (progress.epoch = 1; progress.epoch <= 3; ++progress.epoch) monitor.report(progress);
      monitor.finish_one();
    };
    supervise(monitor, work, [&](const Progress& progress) {
      epochs.push_back(progress.epoch);
      finished = progress.finished;
    });
    CHECK(!epochs.empty() && epochs.back() == 3 && finished == 1);
  }
}

void test_the_callback_receives_the_first_report_during_the_work() {
  Monitor monitor;
  std::atomic<bool> received{false};
  const auto work = [&] {
    monitor.report(Progress{});
    while (!received) pause();
  };
  supervise(monitor, work, [&](const Progress&) { received = true; });
  CHECK(received);
}

void test_exceptions_of_the_last_callback_are_rethrown() {
  Monitor monitor;
  const auto work = [&] { monitor.report(Progress{}); };
  CHECK_THROWS(supervise(monitor, work, [](const Progress&) { throw std::runtime_error("enough"); }),
               std::runtime_error);
  CHECK(monitor.stopped());
}

void test_reports_keep_the_number_of_finished_tasks() {
  Monitor monitor;
  monitor.finish_one();
  monitor.finish_one();
  Progress progress;
  progress.epoch = 9;
  progress.finished = 0;
  monitor.report(progress);
  CHECK(monitor.latest().finished == 2 && monitor.latest().epoch == 9);
  monitor.throw_if_stopped();
  monitor.stop();
  CHECK_THROWS(monitor.throw_if_stopped(), Interrupted);
}

// A callback that throws ends work on the caller's thread, and the other threads of this work.
void test_a_callback_on_the_callers_thread_stops_all_threads() {
  int calls = 0;
  const auto callback = [&] {
    if (++calls == 2) throw std::runtime_error("enough");
  };
  const Monitor monitor{unkernel::FunctionRef<void()>(callback)};
  bool helper_was_interrupted = false;
  std::thread helper([&] {
    try {
      for (;;) {
        monitor.throw_if_stopped();
        pause();
      }
    } catch (const Interrupted&) { helper_was_interrupted = true; }
  });
  std::string message;
  try {
    for (;;) {
      monitor.throw_if_stopped();
      pause();
    }
  } catch (const std::runtime_error& error) { message = error.what(); }
  helper.join();
  CHECK(message == "enough" && calls == 2 && helper_was_interrupted && monitor.stopped());
}

}  // namespace

int main() {
  test_a_callback_on_the_callers_thread_stops_all_threads();
  test_work_runs_on_a_separate_thread();
  test_exceptions_of_the_work_are_rethrown();
  test_a_callback_that_throws_stops_the_work();
  test_supervise_waits_for_work_that_stops_late();
  test_the_callback_receives_the_latest_report();
  test_the_callback_receives_the_last_report();
  test_the_callback_receives_the_first_report_during_the_work();
  test_exceptions_of_the_last_callback_are_rethrown();
  test_reports_keep_the_number_of_finished_tasks();
  return 0;
}
