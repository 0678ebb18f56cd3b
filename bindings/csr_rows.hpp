// Sparse rows from Python: an object with the attributes indptr, indices, data and shape of a CSR matrix.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "bindings.hpp"

namespace unkernel::bindings {

// Keeps the arrays alive. The index arrays are read as 32-bit integers if both have this type, else as 64-bit
// integers.
class CsrRows {
 public:
  // Returns whether the object is a CSR matrix of numbers. With `convert`, copies arrays of other types or
  // layouts.
  bool read(nb::handle rows, bool convert) noexcept;

  // Calls `use` with a view of the rows, after checking that all indices are within the arrays.
  template <class Use>
  decltype(auto) visit(const Use& use) const {
    return is_wide_ ? use(csr_view(wide_offsets_, wide_columns_, values_, features_)) : use(narrow());
  }
  // Calls `use` without this check, for functions that check the rows themselves.
  template <class Use>
  decltype(auto) visit_unchecked(const Use& use) const {
    using data::CsrView;
    return is_wide_
               ? use(CsrView<std::int64_t, double>{view(wide_offsets_), view(wide_columns_), view(values_),
                                                   features_})
               : use(CsrView<std::int32_t, double>{view(offsets_), view(columns_), view(values_), features_});
  }
  // Returns a view with 32-bit indices, for functions that require such indices.
  data::CsrView<std::int32_t, double> narrow() const {
    if (is_wide_) throw std::invalid_argument("these rows must have indices of 32 bits");
    return csr_view(offsets_, columns_, values_, features_);
  }

 private:
  bool read_indices(nb::handle offsets, nb::handle columns, bool convert) noexcept;

  bool is_wide_ = false;
  Array<std::int32_t> offsets_, columns_;
  Array<std::int64_t> wide_offsets_, wide_columns_;
  Array<double> values_;
  std::int64_t features_ = 0;
};

}  // namespace unkernel::bindings

namespace nanobind::detail {

template <>
struct type_caster<unkernel::bindings::CsrRows> {
  NB_TYPE_CASTER(unkernel::bindings::CsrRows, const_name("unkernel.data.rows.csr.CsrRows"))

  bool from_python(handle rows, std::uint32_t flags, cleanup_list*) noexcept {
    return value.read(rows, (flags & cast_flags::convert) != 0);
  }
};

}  // namespace nanobind::detail
