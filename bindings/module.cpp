// The one extension module. Each room has a bindings file of its own; this one only calls them.
#include "bindings.hpp"

#include <algorithm>
#include <chrono>
#include <new>

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
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError,
                    "the system did not give as much memory as this needs: free some, raise the limit of the "
                    "process, or give less at a time");
  }
}

}  // namespace

void watched(FunctionRef<void(Monitor&)> work, const OnProgress& on_progress) {
  Monitor monitor;
  const Unlocked unlocked;
  supervise(
      monitor, [&] { work(monitor); },
      [&](const Progress& progress) {
        const Locked locked;
        stay_if_python_ends([&] {
          if (PyErr_CheckSignals() != 0) throw nb::python_error();
          if (on_progress) on_progress(progress);
        });
      });
}

void watched_if(bool maybe_long, FunctionRef<void(const Monitor&)> work) {
  if (maybe_long) return watched([&](const Monitor& monitor) { work(monitor); });
  const Monitor monitor;
  const Unlocked unlocked;
  work(monitor);
}

void watched_pieces(std::int64_t total, FunctionRef<void(std::int64_t, std::int64_t, const Monitor&)> work) {
  using Clock = std::chrono::steady_clock;
  constexpr double short_time = 0.02;  // seconds
  constexpr std::int64_t few = 64;
  constexpr std::int64_t growth = 8;
  if (total <= few) {  // where even a look at the clock would count
    const Monitor monitor;
    const Unlocked unlocked;
    return work(0, total, monitor);
  }
  std::int64_t begin = 0;
  {
    const Monitor monitor;
    const Unlocked unlocked;
    for (std::int64_t size = few; begin < total;) {
      const std::int64_t end = std::min(total, begin + size);
      const auto started = Clock::now();
      work(begin, end, monitor);
      const std::chrono::duration<double> taken = Clock::now() - started;
      const double pace = taken.count() / static_cast<double>(end - begin);
      begin = end;
      size = pace * static_cast<double>(total - begin) < short_time ? total - begin : growth * size;
      if (pace * static_cast<double>(size) >= short_time) break;
    }
  }
  if (begin < total) watched([&](const Monitor& monitor) { work(begin, total, monitor); });
}

NB_MODULE(_core, module) {
  // A thread that waits for input when the process ends holds objects: nothing that a user should read about.
  nb::set_leak_warnings(false);
  module.doc() = "The native core of unkernel. Its names are private: use the package.";
  nb::register_exception_translator(translate_errors, nullptr);
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
