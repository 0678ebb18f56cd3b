#include "csr_rows.hpp"

namespace unkernel::bindings {
namespace {

nb::object attribute(nb::handle object, const char* name) noexcept {
  PyObject* const value = PyObject_GetAttrString(object.ptr(), name);
  if (value == nullptr) PyErr_Clear();
  return nb::steal(value);
}

template <class T>
bool read_array(nb::handle object, Array<T>& array, bool convert) noexcept {
  return object.is_valid() && nb::try_cast<Array<T>>(object, array, convert);
}

// Returns 32 or 64 for an array of signed integers, else 0, because converting other types would lose digits.
int bits_of(nb::handle object) noexcept {
  nb::ndarray<nb::ro, nb::ndim<1>> array;
  if (!nb::try_cast(object, array, false)) return 0;
  if (array.dtype() == nb::dtype<std::int32_t>()) return 32;
  return array.dtype() == nb::dtype<std::int64_t>() ? 64 : 0;
}

// Returns the number of columns, or -1 if the object has no valid shape.
std::int64_t read_width(nb::handle rows) noexcept {
  const nb::object shape = attribute(rows, "shape");
  if (!shape.is_valid() || !PyTuple_Check(shape.ptr()) || PyTuple_Size(shape.ptr()) != 2) return -1;
  std::int64_t width = -1;
  return nb::try_cast(nb::handle(PyTuple_GetItem(shape.ptr(), 1)), width, true) ? width : -1;
}

}  // namespace

bool CsrRows::read_indices(nb::handle offsets, nb::handle columns, bool convert) noexcept {
  if (!offsets.is_valid() || !columns.is_valid()) return false;
  const auto read_narrow = [&](bool copy) {
    return read_array(offsets, offsets_, copy) && read_array(columns, columns_, copy);
  };
  const auto read_wide = [&](bool copy) {
    return read_array(offsets, wide_offsets_, copy) && read_array(columns, wide_columns_, copy);
  };
  is_wide_ = false;
  if (read_narrow(false)) return true;
  is_wide_ = true;
  if (read_wide(false)) return true;
  const int offset_bits = bits_of(offsets);
  const int column_bits = bits_of(columns);
  if (!convert || offset_bits == 0 || column_bits == 0) return false;
  is_wide_ = offset_bits == 64 || column_bits == 64;
  return is_wide_ ? read_wide(true) : read_narrow(true);
}

bool CsrRows::read(nb::handle rows, bool convert) noexcept {
  const nb::object values = attribute(rows, "data");
  features_ = read_width(rows);
  return features_ >= 0 && read_array(values, values_, convert) &&
         read_indices(attribute(rows, "indptr"), attribute(rows, "indices"), convert);
}

}  // namespace unkernel::bindings
