// Locks of forests and conversions of texts, for the bindings of trees.
#pragma once

#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>

#include "bindings.hpp"
#include "unkernel/data/trees/brackets.hpp"
#include "unkernel/data/trees/forest.hpp"

namespace unkernel::bindings {

void bind_forest(nb::module_& module);
void bind_tree_kernels(nb::module_& module);
void bind_tree_fragments(nb::module_& module);
void bind_tree_cuts(nb::module_& module);
void bind_tree_learners(nb::module_& module);

// Locks a forest for adding trees: no other thread can read it. Readers do not hold Python's lock.
class AddingLock {
 public:
  explicit AddingLock(const data::Forest& forest) : lock_(forest.gate(), std::defer_lock) {
    const Unlocked unlocked;  // a reader may need Python's lock to finish
    lock_.lock();
  }

 private:
  std::unique_lock<std::shared_mutex> lock_;
};

// Locks a forest for reading.
using ReadingLock = std::shared_lock<std::shared_mutex>;

// A Python string as UTF-8. Bytes that are not UTF-8, which Python stores as surrogates, are restored.
class Utf8 {
 public:
  explicit Utf8(nb::handle text) {
    Py_ssize_t size = 0;
    if (const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size)) {
      view_ = {bytes, static_cast<std::size_t>(size)};
      return;
    }
    PyErr_Clear();
    encoded_ = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
    if (!encoded_.is_valid()) throw nb::python_error();
    view_ = {PyBytes_AsString(encoded_.ptr()), static_cast<std::size_t>(PyBytes_Size(encoded_.ptr()))};
  }
  std::string_view view() const { return view_; }

 private:
  nb::object encoded_;
  std::string_view view_;
};

// Throws FormatError with the line and column of the error, both counted from 1.
[[noreturn]] void throw_format_error(const std::string& name, std::string_view text,
                                     const data::BracketError& error);

// Throws std::out_of_range unless each root is a node of the forest, or -1 for an empty tree.
void check_roots(const data::Forest& forest, std::span<const data::NodeId> roots);

}  // namespace unkernel::bindings
