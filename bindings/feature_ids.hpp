// One row from Python, read without copies that would cost more than scoring the row.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <vector>

namespace unkernel::bindings {

// The feature ids in a list, tuple or other sequence of ints, or in a buffer of 32- or 64-bit signed ints (a
// numpy array, an array.array, or bytes, which are read as 32-bit ints). Keeps the buffer alive. Negative ids
// raise a ValueError. `buffer` is written only while no Python code can run, because Python code could score
// another row with the same buffer.
class FeatureIds {
 public:
  FeatureIds(nanobind::handle ids, std::vector<std::int64_t>& buffer);
  ~FeatureIds();
  FeatureIds(const FeatureIds&) = delete;
  FeatureIds& operator=(const FeatureIds&) = delete;

  bool is_wide() const { return is_wide_; }  // whether ids have 64 bits instead of 32
  std::size_t size() const { return is_wide_ ? wide_ids_.size() : narrow_ids_.size(); }
  std::span<const std::int64_t> wide_ids() const { return wide_ids_; }
  std::span<const std::int32_t> narrow_ids() const { return narrow_ids_; }

 private:
  void read_list(PyObject* list, std::vector<std::int64_t>& buffer);
  void read_sequence(PyObject* list);
  bool read_buffer(PyObject* object);
  void read_contiguous(bool is_raw);

  bool is_wide_ = true;
  bool has_buffer_ = false;
  Py_buffer buffer_;
  std::span<const std::int64_t> wide_ids_;
  std::span<const std::int32_t> narrow_ids_;
  std::vector<std::int64_t> converted_ids_;
};

// Returns the values of `count` ids from a sequence of numbers. Returns no values for None.
std::vector<double> read_values(nanobind::handle values, std::size_t count);

}  // namespace unkernel::bindings
