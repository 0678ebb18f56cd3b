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

// Returns whether the bytes of the object may stand for ints. (An array of bytes is more likely a mistake.)
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

// Returns false unless the buffer is contiguous and holds doubles, like a numpy array of float64.
bool copy_doubles(PyObject* object, std::vector<double>& to) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(object, &buffer, PyBUF_FORMAT | PyBUF_ND) != 0) {
    PyErr_Clear();
    return false;
  }
  const bool plain = buffer.ndim == 1 && buffer.itemsize == sizeof(double) && buffer.format != nullptr &&
                     std::strcmp(buffer.format, "d") == 0;
  if (plain) {
    to.resize(static_cast<std::size_t>(buffer.len) / sizeof(double));
    if (!to.empty()) std::memcpy(to.data(), buffer.buf, to.size() * sizeof(double));
  }
  PyBuffer_Release(&buffer);
  return plain;
}

}  // namespace

FeatureIds::FeatureIds(nb::handle ids, std::vector<std::int64_t>& buffer) {
  PyObject* object = ids.ptr();
  if (PyList_CheckExact(object)) {
    from_list(object, buffer);
  } else if (!PyObject_CheckBuffer(object) || !from_buffer(object)) {
    if (PyUnicode_Check(object) || !PySequence_Check(object)) throw nb::type_error(expected_row);
    const nb::object list = nb::steal(PySequence_List(object));
    if (!list.is_valid()) throw nb::python_error();
    from_sequence(list.ptr());
  }
}

FeatureIds::~FeatureIds() {
  if (held_) PyBuffer_Release(&buffer_);
}

void FeatureIds::from_list(PyObject* list, std::vector<std::int64_t>& buffer) {
  const Py_ssize_t count = PyList_Size(list);
  buffer.resize(static_cast<std::size_t>(count));
  for (Py_ssize_t k = 0; k < count; ++k) {
    PyObject* item = PyList_GetItem(list, k);
    if (!PyLong_CheckExact(item)) return from_sequence(list);  // reading the item may run any Python code
    buffer[static_cast<std::size_t>(k)] = read_id(item);
  }
  wide_ids_ = buffer;
}

// Works on a copy, because an item's __index__ may change the list.
void FeatureIds::from_sequence(PyObject* list) {
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

// Returns false if the object must be read item by item.
bool FeatureIds::from_buffer(PyObject* object) {
  if (PyObject_GetBuffer(object, &buffer_, PyBUF_FORMAT | PyBUF_STRIDES) != 0) throw nb::python_error();
  held_ = true;
  const bool raw = is_bytes(object) && buffer_.itemsize == 1;
  const bool in_place = PyBuffer_IsContiguous(&buffer_, 'C') != 0;
  try {
    if (buffer_.ndim != 1) throw std::invalid_argument("a row has one dimension");
    if (!raw && !is_signed_integer(buffer_.format)) throw nb::type_error(expected_row);
    if (in_place) from_contiguous(raw);
  } catch (...) {
    PyBuffer_Release(&buffer_);
    throw;
  }
  if (!in_place) {
    held_ = false;
    PyBuffer_Release(&buffer_);
  }
  return in_place;
}

void FeatureIds::from_contiguous(bool raw) {
  const auto bytes = static_cast<std::size_t>(buffer_.len);
  if (!raw && buffer_.itemsize == 8) {
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
  wide_ = false;
  narrow_ids_ = {static_cast<const std::int32_t*>(buffer_.buf), bytes / 4};
  check_not_negative(narrow_ids_);
}

std::vector<double> read_values(nb::handle values, std::size_t count) {
  if (values.is_none()) return {};
  std::vector<double> copied;
  if (PyObject_CheckBuffer(values.ptr()) && copy_doubles(values.ptr(), copied)) {
    check_count(copied.size(), count);
    for (const double value : copied) check_finite(value);
    return copied;
  }
  const nb::object copy = nb::steal(PySequence_Tuple(values.ptr()));
  if (!copy.is_valid()) throw nb::python_error();
  check_count(static_cast<std::size_t>(PyTuple_Size(copy.ptr())), count);
  std::vector<double> read(count);
  for (std::size_t k = 0; k < count; ++k) {
    read[k] = PyFloat_AsDouble(PyTuple_GetItem(copy.ptr(), static_cast<Py_ssize_t>(k)));
    if (read[k] == -1.0 && PyErr_Occurred() != nullptr) throw nb::python_error();
    check_finite(read[k]);
  }
  return read;
}

}  // namespace unkernel::bindings
