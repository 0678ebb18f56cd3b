#include "feature_ids.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

namespace unkernel::bindings {
namespace {

namespace nb = nanobind;

constexpr const char* expected_row = "a row is a list of feature ids, or a buffer of 32- or 64-bit ints";

[[noreturn]] void fail_negative(long long id) {
  throw std::invalid_argument("feature ids are column numbers and not negative, got " + std::to_string(id));
}

// Converts a Python integer to an id.
std::int64_t read_id(PyObject* integer) {
  const long long id = PyLong_AsLongLong(integer);
  if (id >= 0) return id;
  if (PyErr_Occurred() == nullptr) fail_negative(id);
  if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) throw nb::python_error();
  PyErr_Clear();
  throw std::invalid_argument("feature ids are column numbers from 0 to 2^63 - 1, got one of more digits");
}

template <class Id>
void check_not_negative(std::span<const Id> ids) {
  Id signs = 0;
  for (const Id id : ids) signs |= id;
  if (signs >= 0) return;
  for (const Id id : ids) {
    if (id < 0) fail_negative(id);
  }
}

bool is_signed_integer(const char* format) {
  if (format == nullptr) return false;
  const char* type = *format == '<' || *format == '=' || *format == '@' ? format + 1 : format;
  return std::strlen(type) == 1 && std::strchr("ilq", *type) != nullptr;
}

// Returns whether the bytes of the object may be read as 32-bit ints. (An array of bytes is more likely a
// mistake.)
bool is_bytes(PyObject* object) {
  return PyBytes_Check(object) || PyByteArray_Check(object) || PyMemoryView_Check(object);
}

bool is_aligned(const void* memory, std::size_t size) {
  return reinterpret_cast<std::uintptr_t>(memory) % size == 0;
}

void check_count(std::size_t values, std::size_t ids) {
  if (values != ids)
    throw std::invalid_argument("there are " + std::to_string(values) + " values for " + std::to_string(ids) +
                                " feature ids");
}

void check_finite(double value) {
  if (!(value - value == 0.0)) throw std::invalid_argument("values must be finite numbers");
}

// Copies the numbers of a contiguous buffer of doubles, such as a numpy array of float64. Returns whether the
// object is such a buffer.
bool copy_doubles(PyObject* object, std::vector<double>& to) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(object, &buffer, PyBUF_FORMAT | PyBUF_ND) != 0) {
    PyErr_Clear();
    return false;
  }
  const bool has_doubles = buffer.ndim == 1 && buffer.itemsize == sizeof(double) &&
                           buffer.format != nullptr && std::strcmp(buffer.format, "d") == 0;
  if (has_doubles) {
    to.resize(static_cast<std::size_t>(buffer.len) / sizeof(double));
    if (!to.empty()) std::memcpy(to.data(), buffer.buf, to.size() * sizeof(double));
  }
  PyBuffer_Release(&buffer);
  return has_doubles;
}

}  // namespace

FeatureIds::FeatureIds(nb::handle ids, std::vector<std::int64_t>& buffer) {
  PyObject* object = ids.ptr();
  if (PyList_CheckExact(object)) {
    read_list(object, buffer);
  } else if (!PyObject_CheckBuffer(object) || !read_buffer(object)) {
    if (PyUnicode_Check(object) || !PySequence_Check(object)) throw nb::type_error(expected_row);
    const nb::object list = nb::steal(PySequence_List(object));
    if (!list.is_valid()) throw nb::python_error();
    read_sequence(list.ptr());
  }
}

FeatureIds::~FeatureIds() {
  if (has_buffer_) PyBuffer_Release(&buffer_);
}

void FeatureIds::read_list(PyObject* list, std::vector<std::int64_t>& buffer) {
  const Py_ssize_t count = PyList_Size(list);
  buffer.resize(static_cast<std::size_t>(count));
  for (Py_ssize_t k = 0; k < count; ++k) {
    PyObject* item = PyList_GetItem(list, k);
    if (!PyLong_CheckExact(item)) return read_sequence(list);  // reading the item may run any Python code
    buffer[static_cast<std::size_t>(k)] = read_id(item);
  }
  wide_ids_ = buffer;
}

// Works on a copy, because an item's __index__ may change the list.
void FeatureIds::read_sequence(PyObject* list) {
  const nb::object copy = nb::steal(PySequence_Tuple(list));
  if (!copy.is_valid()) throw nb::python_error();
  const Py_ssize_t count = PyTuple_Size(copy.ptr());
  converted_ids_.clear();
  for (Py_ssize_t k = 0; k < count; ++k) {
    const nb::object id = nb::steal(PyNumber_Index(PyTuple_GetItem(copy.ptr(), k)));
    if (!id.is_valid()) throw nb::python_error();
    converted_ids_.push_back(read_id(id.ptr()));
  }
  wide_ids_ = converted_ids_;
}

// Reads a buffer in place. Returns false if the object must be read item by item.
bool FeatureIds::read_buffer(PyObject* object) {
  if (PyObject_GetBuffer(object, &buffer_, PyBUF_FORMAT | PyBUF_STRIDES) != 0) throw nb::python_error();
  has_buffer_ = true;
  const bool is_raw = is_bytes(object) && buffer_.itemsize == 1;
  const bool is_contiguous = PyBuffer_IsContiguous(&buffer_, 'C') != 0;
  try {
    if (buffer_.ndim != 1) throw std::invalid_argument("a row has one dimension");
    if (!is_raw && !is_signed_integer(buffer_.format)) throw nb::type_error(expected_row);
    if (is_contiguous) read_contiguous(is_raw);
  } catch (...) {
    PyBuffer_Release(&buffer_);
    throw;
  }
  if (!is_contiguous) {
    has_buffer_ = false;
    PyBuffer_Release(&buffer_);
  }
  return is_contiguous;
}

void FeatureIds::read_contiguous(bool is_raw) {
  const auto bytes = static_cast<std::size_t>(buffer_.len);
  if (!is_raw && buffer_.itemsize == 8) {
    if (is_aligned(buffer_.buf, 8)) {
      wide_ids_ = {static_cast<const std::int64_t*>(buffer_.buf), bytes / 8};
    } else {
      converted_ids_.resize(bytes / 8);
      std::memcpy(converted_ids_.data(), buffer_.buf, bytes);
      wide_ids_ = converted_ids_;
    }
    check_not_negative(wide_ids_);
    return;
  }
  if (bytes % 4 != 0 || !is_aligned(buffer_.buf, 4)) {
    throw std::invalid_argument(
        "bytes are taken for 32-bit ints, and these are not a whole number of them, or not aligned");
  }
  is_wide_ = false;
  narrow_ids_ = {static_cast<const std::int32_t*>(buffer_.buf), bytes / 4};
  check_not_negative(narrow_ids_);
}

std::vector<double> read_values(nb::handle values, std::size_t count) {
  if (values.is_none()) return {};
  std::vector<double> numbers;
  if (PyObject_CheckBuffer(values.ptr()) && copy_doubles(values.ptr(), numbers)) {
    check_count(numbers.size(), count);
    for (const double value : numbers) check_finite(value);
    return numbers;
  }
  const nb::object copy = nb::steal(PySequence_Tuple(values.ptr()));
  if (!copy.is_valid()) throw nb::python_error();
  check_count(static_cast<std::size_t>(PyTuple_Size(copy.ptr())), count);
  std::vector<double> result(count);
  for (std::size_t k = 0; k < count; ++k) {
    result[k] = PyFloat_AsDouble(PyTuple_GetItem(copy.ptr(), static_cast<Py_ssize_t>(k)));
    if (result[k] == -1.0 && PyErr_Occurred() != nullptr) throw nb::python_error();
    check_finite(result[k]);
  }
  return result;
}

}  // namespace unkernel::bindings
