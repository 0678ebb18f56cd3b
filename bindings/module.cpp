// The extension module. Each room has its own bindings files; this file calls their functions.
#include "bindings.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <new>
#include <optional>
#include <utility>

#include "unkernel/base/error.hpp"

namespace unkernel::bindings {
namespace {

// unkernel.errors.FormatError keeps file, line, column and reason as attributes.
void translate_errors(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const FormatError& error) {
    const nb::object type = nb::module_::import_("unkernel.errors").attr("FormatError");
    const nb::object value = type(error.file, error.line, error.column, error.reason);
    PyErr_SetObject(type.ptr(), value.ptr());
  } catch (const NotEnoughMemory& error) {
    PyErr_SetString(PyExc_MemoryError, error.what());
  } catch (const TimeLimitReached& error) {
    PyErr_SetString(PyExc_TimeoutError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError,
                    "the system did not give as much memory as this needs: free some, raise the limit of the "
                    "process, or give less at a time");
  }
}

using Clock = std::chrono::steady_clock;

// A context manager of Python that limits how long the core may work for the thread that enters it. Running
// work checks the time every 50 milliseconds; work that begins after the limit fails immediately.
class TimeLimit {
 public:
  explicit TimeLimit(double seconds) : seconds_(seconds) {
    if (!(seconds > 0.0)) throw std::invalid_argument("a time limit must be positive");
  }

  // If one limit is entered within another, the one that ends first applies.
  void enter() {
    constexpr double longest_seconds = 1e9;
    const std::chrono::duration<double> span(std::min(seconds_, longest_seconds));
    const End end{Clock::now() + std::chrono::duration_cast<Clock::duration>(span), seconds_};
    outer_ = current_;
    if (!outer_ || end.time < outer_->time) current_ = end;
  }
  void exit() { current_ = outer_; }

  static void check() {
    if (!current_ || Clock::now() < current_->time) return;
    std::array<char, 32> seconds{};
    std::snprintf(seconds.data(), seconds.size(), "%g", current_->seconds);
    throw TimeLimitReached(std::string("the work took longer than the ") + seconds.data() +
                           " seconds that it may take");
  }

 private:
  struct End {
    Clock::time_point time;
    double seconds;
  };
  static thread_local std::optional<End> current_;

  double seconds_;
  std::optional<End> outer_;
};

thread_local std::optional<TimeLimit::End> TimeLimit::current_;

// Lets Python handle signals, which it does only in its main thread. Python's lock must be held.
void check_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// Calls work(monitor) on this thread, without Python's lock. If the work takes long, checks signals and the
// time limit from time to time.
template <class Work>
void run_here(const Work& work) {
  TimeLimit::check();
  const auto check = [] {
    TimeLimit::check();
    const Locked locked;
    stay_if_python_ends(check_signals);
  };
  const Monitor monitor{FunctionRef<void()>(check)};
  const Unlocked unlocked;
  work(monitor);
}

}  // namespace

void run_on_thread(FunctionRef<void(Monitor&)> work, const OnProgress& on_progress) {
  TimeLimit::check();
  Monitor monitor;
  const Unlocked unlocked;
  supervise(
      monitor, [&] { work(monitor); },
      [&](const Progress& progress) {
        TimeLimit::check();
        const Locked locked;
        stay_if_python_ends([&] {
          check_signals();
          if (on_progress) on_progress(progress);
        });
      });
}

void run_on_thread_if(bool may_be_long, FunctionRef<void(const Monitor&)> work) {
  if (may_be_long) return run_on_thread([&](const Monitor& monitor) { work(monitor); }, {});
  run_here(work);
}

void run_pieces_interruptibly(std::int64_t total,
                              FunctionRef<void(std::int64_t, std::int64_t, const Monitor&)> work) {
  constexpr double short_seconds = 0.02;
  constexpr std::int64_t first_size = 64;
  constexpr std::int64_t growth = 8;
  if (total <= first_size)  // the work is so short that reading the clock would take noticeable time
    return run_here([&](const Monitor& monitor) { work(0, total, monitor); });
  std::int64_t begin = 0;
  run_here([&](const Monitor& monitor) {
    for (std::int64_t size = first_size; begin < total;) {
      const std::int64_t end = std::min(total, begin + size);
      const auto start = Clock::now();
      work(begin, end, monitor);
      const std::chrono::duration<double> duration = Clock::now() - start;
      const double seconds_per_item = duration.count() / static_cast<double>(end - begin);
      begin = end;
      size = seconds_per_item * static_cast<double>(total - begin) < short_seconds ? total - begin
                                                                                   : growth * size;
      if (seconds_per_item * static_cast<double>(size) >= short_seconds) break;
    }
  });
  if (begin < total) run_on_thread([&](const Monitor& monitor) { work(begin, total, monitor); }, {});
}

NB_MODULE(_core, module) {
  // A thread that waits for input when the process ends still owns objects, which is not a leak.
  nb::set_leak_warnings(false);
  module.doc() = "The native core of unkernel. Its names are private: use the package.";
  nb::register_exception_translator(translate_errors, nullptr);
  nb::class_<TimeLimit>(module, "TimeLimit")
      .def(nb::init<double>(), nb::arg("seconds"))
      .def("__enter__", &TimeLimit::enter)
      .def(
          "__exit__", [](TimeLimit& self, const nb::args&) { self.exit(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
  bind_data(module);
  bind_columns(module);
  bind_engines(module);
  bind_records(module);
  bind_record_summaries(module);
  bind_poly(module);
  bind_sparse_part(module);
  bind_cutplane(module);
  bind_score_grid(module);
  bind_tree(module);
  bind_sequences(module);
  bind_chunks(module);
  bind_tokenizer(module);
  bind_arc_eager(module);
  bind_bunsetsu(module);
  bind_clusters(module);
}

}  // namespace unkernel::bindings
