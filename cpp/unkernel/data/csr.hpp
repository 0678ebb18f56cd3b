// A non-owning view of a matrix in compressed sparse row (CSR) format.
#pragma once

#include <cstdint>
#include <span>

namespace unkernel::data {

template <class Index, class Value>
struct CsrView {
  std::span<const Index> offsets;  // rows + 1 entries
  std::span<const Index> columns;
  std::span<const Value> values;
  std::int64_t features = 0;

  std::int64_t rows() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

}  // namespace unkernel::data
