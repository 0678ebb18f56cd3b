#include "unkernel/records/column.hpp"

namespace unkernel::records {

void read_cells(const Column& column, std::size_t begin, std::size_t end, Cell* cells, std::size_t stride) {
  std::visit(
      [=](const auto& typed_column) {
        for (std::size_t row = begin; row < end; ++row) cells[(row - begin) * stride] = typed_column(row);
      },
      column);
}

}  // namespace unkernel::records
