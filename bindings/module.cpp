// The one extension module. Each room has a bindings file of its own; this one only calls them.
#include "bindings.hpp"

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
  } catch (const NotEnoughMemory& error) { PyErr_SetString(PyExc_MemoryError, error.what()); }
}

}  // namespace

void watched(FunctionRef<void(Monitor&)> work, const OnProgress& on_progress) {
  Monitor monitor;
  const nb::gil_scoped_release unlocked;
  supervise(
      monitor, [&] { work(monitor); },
      [&](const Progress& progress) {
        const nb::gil_scoped_acquire locked;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (on_progress) on_progress(progress);
      });
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
  bind_cutplane(module);
  bind_tree(module);
  bind_chunks(module);
  bind_arc_eager(module);
  bind_bunsetsu(module);
}

}  // namespace unkernel::bindings
