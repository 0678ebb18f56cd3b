// Shared parts of the bindings: entry points of the rooms, long-running work, and arrays from and to numpy
// without copies.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "python_lock.hpp"
#include "unkernel/base/function_ref.hpp"
#include "unkernel/base/history.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/data/csr.hpp"
#include "unkernel/kernels/feature_map.hpp"
#include "unkernel/kernels/kernel_function.hpp"

namespace unkernel::bindings {

namespace nb = nanobind;

void bind_data(nb::module_& module);
void bind_columns(nb::module_& module);
void bind_engines(nb::module_& module);
void bind_bound_engines(nb::module_& module);
void bind_records(nb::module_& module);
void bind_record_summaries(nb::module_& module);
void bind_poly(nb::module_& module);
void bind_sparse_part(nb::module_& module);
void bind_cutplane(nb::module_& module);
void bind_score_grid(nb::module_& module);
void bind_tree(nb::module_& module);
void bind_chunks(nb::module_& module);
void bind_tokenizer(nb::module_& module);
void bind_sequences(nb::module_& module);
void bind_arc_eager(nb::module_& module);
void bind_bunsetsu(nb::module_& module);
void bind_clusters(nb::module_& module);

// Makes a map from its name: "kernel" or "plain".
kernels::FeatureMap make_feature_map(int degree, const std::string& kind, double gamma, double coef0);

// Makes a kernel from its name: "linear", "polynomial", "rbf" or "sigmoid".
kernels::KernelFunction make_kernel(const std::string& name, int degree, double gamma, double coef0);

// A Python function, or nothing. Must be called with Python's lock held: unlike nanobind's std::function, a
// callback does not acquire the lock, because a thread that outlives Python must not release it
// (python_lock.hpp).
template <class... Arguments>
struct Callback {
  nb::object function;

  explicit operator bool() const { return function.is_valid(); }
  void operator()(const Arguments&... arguments) const { function(arguments...); }
};

using OnProgress = Callback<Progress>;

// Calls work() without Python's lock, and returns its result.
template <class Work>
auto without_lock(const Work& work) {
  const Unlocked unlocked;
  return work();
}

// Returns the result of work(monitor). `run` receives a function of a monitor that does the work, and calls
// this function on any thread.
template <class MonitorReference, class Run, class Work>
auto run_for_result(const Run& run, const Work& work) {
  using Result = std::invoke_result_t<const Work&, MonitorReference>;
  if constexpr (std::is_void_v<Result>) {
    run(work);
  } else {
    Result result{};
    run([&](MonitorReference monitor) { result = work(monitor); });
    return result;
  }
}

// Runs work(monitor) on a new thread, while this thread lets Python handle signals and calls `on_progress`.
// Returns the result of the work.
void run_on_thread(FunctionRef<void(Monitor&)> work, const OnProgress& on_progress);
template <class Work>
auto run_interruptibly(const Work& work, const OnProgress& on_progress = {}) {
  return run_for_result<Monitor&>([&](const auto& call) { run_on_thread(call, on_progress); }, work);
}

// Runs work(monitor) on a new thread if `may_be_long`, else on this thread, because starting a thread takes
// some 30 microseconds. Returns the result of the work.
void run_on_thread_if(bool may_be_long, FunctionRef<void(const Monitor&)> work);
template <class Work>
auto run_interruptibly_if(bool may_be_long, const Work& work) {
  return run_for_result<const Monitor&>([&](const auto& call) { run_on_thread_if(may_be_long, call); }, work);
}

// Calls work(begin, end, monitor) on pieces of [0, total). The first pieces run on this thread. If all
// remaining work is expected to take more than some hundredths of a second, it runs on another thread.
void run_pieces_interruptibly(std::int64_t total,
                              FunctionRef<void(std::int64_t, std::int64_t, const Monitor&)> work);

// An array with aligned numbers. Unaligned arrays, such as views into a message, are copied.
template <class Base>
class Aligned : public Base {
 public:
  Aligned() = default;
  explicit Aligned(Base&& array) : Base(std::move(array)) {}
  bool is_aligned() const {
    return reinterpret_cast<std::uintptr_t>(this->data()) % alignof(typename Base::Scalar) == 0;
  }
};

template <class T>
using Array = Aligned<nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>>;

template <class T>
std::span<const T> view(const Array<T>& array) {
  return {array.data(), array.size()};
}

// Returns a view of a CSR matrix, after checking that its rows are within the arrays. Functions that use
// columns as indices check the columns themselves.
template <class Index>
data::CsrView<Index, double> csr_view(const Array<Index>& offsets, const Array<Index>& columns,
                                      const Array<double>& values, std::int64_t features) {
  const data::CsrView<Index, double> rows{view(offsets), view(columns), view(values), features};
  bool is_valid = !rows.offsets.empty() && rows.offsets.front() == 0 &&
                  rows.columns.size() == rows.values.size() &&
                  static_cast<std::size_t>(rows.offsets.back()) == rows.columns.size();
  for (std::size_t i = 0; is_valid && i + 1 < rows.offsets.size(); ++i)
    is_valid = rows.offsets[i] <= rows.offsets[i + 1];
  if (!is_valid) throw std::invalid_argument("the sparse matrix's index pointer does not fit its entries");
  return rows;
}

template <class T>
std::vector<T> to_vector(const Array<T>& array) {
  return std::vector<T>(array.data(), array.data() + array.size());
}

// Moves a vector's memory to numpy without copying it.
template <class Vector, class T = std::remove_pointer_t<decltype(std::declval<Vector&>().data())>>
nb::ndarray<nb::numpy, T> to_numpy(Vector&& values, std::initializer_list<std::size_t> shape) {
  static_assert(std::is_rvalue_reference_v<Vector&&>);
  auto* owner = new Vector(std::move(values));
  const nb::capsule deleter(owner, [](void* p) noexcept { delete static_cast<Vector*>(p); });
  return nb::ndarray<nb::numpy, T>(owner->data(), shape, deleter);
}

template <class Vector>
auto to_numpy(Vector&& values) {
  const std::size_t size = values.size();
  return to_numpy(std::move(values), {size});
}

template <class Range>
auto copy_to_numpy(const Range& values) {
  return to_numpy(std::vector(values.begin(), values.end()));
}

inline std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }
inline nb::bytes to_bytes(std::string_view text) { return nb::bytes(text.data(), text.size()); }

// Decodes any bytes to a str that encodes to the same bytes.
inline nb::object decode_text(std::string_view text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

// Returns an array [passes, 3]: number, objective and bound of each pass.
inline nb::ndarray<nb::numpy, double> history_of(const History& history) {
  std::vector<double> numbers;
  for (const History::Pass& pass : history.passes())
    numbers.insert(numbers.end(), {static_cast<double>(pass.number), pass.objective, pass.bound});
  return to_numpy(std::move(numbers), {history.passes().size(), 3});
}

using Names = nb::typed<nb::list, nb::str>;

template <class NumberedNames>
Names names_of(const NumberedNames& table) {
  Names names;
  for (std::size_t k = 0; k < table.size(); ++k) {
    const std::string_view name = table.name(static_cast<std::int32_t>(k));
    names.append(nb::str(name.data(), name.size()));
  }
  return names;
}

}  // namespace unkernel::bindings

namespace nanobind::detail {

template <class... Arguments>
struct type_caster<unkernel::bindings::Callback<Arguments...>> {
  NB_TYPE_CASTER(unkernel::bindings::Callback<Arguments...>, const_name("collections.abc.Callable[[") +
                                                                 concat(make_caster<Arguments>::Name...) +
                                                                 const_name("], None]"))

  bool from_python(handle source, std::uint32_t, cleanup_list*) noexcept {
    if (source.is_none()) return true;
    if (PyCallable_Check(source.ptr()) == 0) return false;
    value.function = borrow(source);
    return true;
  }
};

template <class Base>
struct type_caster<unkernel::bindings::Aligned<Base>> {
  NB_TYPE_CASTER(unkernel::bindings::Aligned<Base>, make_caster<Base>::Name)

  bool from_python(handle array, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    if (!take(array, flags, cleanup)) return false;
    if (!value.is_valid() || value.is_aligned()) return true;
    try {
      return take(module_::import_("numpy").attr("array")(array), flags, cleanup);
    } catch (const python_error&) {  // not enough memory for the copy
      return false;
    }
  }

 private:
  bool take(handle array, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    make_caster<Base> caster;
    if (!caster.from_python(array, flags, cleanup)) return false;
    value = unkernel::bindings::Aligned<Base>(std::move(caster.value));
    return true;
  }
};

}  // namespace nanobind::detail
