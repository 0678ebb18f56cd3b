// One row from Python, without copies that cost more than scoring it.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <vector>

namespace unkernel::bindings {

// The feature ids in a list, tuple or other sequence of ints, or in a buffer of 32- or 64-bit signed ints (a
// numpy array, an array.array, or bytes that hold such of 32 bits). Keeps the buffer alive. Negative ids are
// a ValueError. `room` is used only where no Python code can run, because that code could call this function
// again.
class FeatureIds {
 public:
  FeatureIds(nanobind::handle ids, std::vector<std::int64_t>& room);
  ~FeatureIds();
  FeatureIds(const FeatureIds&) = delete;
  FeatureIds& operator=(const FeatureIds&) = delete;

  bool is_wide() const { return wide_; }
  std::size_t size() const { return wide_ ? wide_ids_.size() : narrow_ids_.size(); }
  std::span<const std::int64_t> wide_ids() const { return wide_ids_; }
  std::span<const std::int32_t> narrow_ids() const { return narrow_ids_; }

 private:
  void from_list(PyObject* list, std::vector<std::int64_t>& room);
  void from_any_list(PyObject* list);
  bool from_buffer(PyObject* object);
  void from_contiguous(bool raw);

  bool wide_ = true;
  bool held_ = false;
  Py_buffer buffer_;
  std::span<const std::int64_t> wide_ids_;
  std::span<const std::int32_t> narrow_ids_;
  std::vector<std::int64_t> own_;
};

// Returns as many doubles as there are ids, from a sequence; none from None.
std::vector<double> read_values(nanobind::handle values, std::size_t count);

}  // namespace unkernel::bindings
