// The columns of a table, read cell by cell. Columns own their vectors, but not the memory behind pointers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "unkernel/records/cell.hpp"

namespace unkernel::records {

// Bit k is 1 if row k has a value, as in Arrow. Without bits, all rows have values.
struct Validity {
  const std::uint8_t* bits = nullptr;
  std::size_t offset = 0;

  bool operator()(std::size_t row) const {
    return bits == nullptr || (bits[(row + offset) / 8] >> ((row + offset) % 8) & 1) != 0;
  }
};

template <class Number>
struct NumberColumn {
  const Number* values;
  Validity is_valid;

  Cell operator()(std::size_t row) const {
    return is_valid(row) ? Cell::of(static_cast<double>(values[row])) : Cell::none();
  }
};

// Dates and times of Arrow, which are numbers of units since the beginning of 1970.
template <class Number>
struct MomentColumn {
  const Number* values;
  double per_second, seconds;  // units per second, and seconds per unit: one of them is 1
  Validity is_valid;

  Cell operator()(std::size_t row) const {
    return is_valid(row) ? Cell::moment(static_cast<double>(values[row]) / per_second * seconds)
                         : Cell::none();
  }
};

struct BitColumn {
  Validity values;
  Validity is_valid;

  Cell operator()(std::size_t row) const {
    return is_valid(row) ? Cell::of(values(row) ? 1.0 : 0.0) : Cell::none();
  }
};

// Concatenated strings; string k ends where string k + 1 begins.
template <class Offset>
struct StringColumn {
  const Offset* offsets;
  const char* bytes;
  Validity is_valid;

  Cell operator()(std::size_t row) const {
    if (!is_valid(row)) return Cell::none();
    const auto begin = static_cast<std::size_t>(offsets[row]);
    return Cell::of(std::string_view(bytes + begin, static_cast<std::size_t>(offsets[row + 1]) - begin));
  }
};

// Strings as views of 16 bytes each: the length, and either the string or its position.
struct StringViewColumn {
  struct View {
    std::int32_t length;
    char first[4];
    std::int32_t buffer, offset;
  };
  static_assert(sizeof(View) == 16);
  const View* views;
  const void* const* buffers;
  Validity is_valid;

  Cell operator()(std::size_t row) const {
    if (!is_valid(row)) return Cell::none();
    const View& view = views[row];
    const auto length = static_cast<std::size_t>(view.length);
    constexpr std::size_t longest_inline = 12;  // bytes
    if (length <= longest_inline) return Cell::of(std::string_view(view.first, length));
    return Cell::of(std::string_view(static_cast<const char*>(buffers[view.buffer]) + view.offset, length));
  }
};

// Cells that refer to Python objects.
struct CellColumn {
  std::vector<Cell> cells;

  Cell operator()(std::size_t row) const { return cells[row]; }
};

// Codes of rows, which are indices into a dictionary of cells.
template <class Code>
struct CodeColumn {
  const Code* codes;
  std::vector<Cell> dictionary;
  Validity is_valid;

  Cell operator()(std::size_t row) const {
    return is_valid(row) ? dictionary[static_cast<std::size_t>(codes[row])] : Cell::none();
  }
};

// Concatenated lists of strings; list k ends where list k + 1 begins.
struct ListColumn {
  std::vector<std::string_view> strings;
  std::vector<std::size_t> begins;
  Validity is_valid;

  Cell operator()(std::size_t row) const {
    if (!is_valid(row)) return Cell::none();
    return Cell::of(std::span(strings).subspan(begins[row], begins[row + 1] - begins[row]));
  }
};

struct EmptyColumn {
  Cell operator()(std::size_t) const { return Cell::none(); }
};

using Column =
    std::variant<NumberColumn<double>, NumberColumn<float>, NumberColumn<std::int8_t>,
                 NumberColumn<std::int16_t>, NumberColumn<std::int32_t>, NumberColumn<std::int64_t>,
                 NumberColumn<std::uint8_t>, NumberColumn<std::uint16_t>, NumberColumn<std::uint32_t>,
                 NumberColumn<std::uint64_t>, MomentColumn<std::int32_t>, MomentColumn<std::int64_t>,
                 BitColumn, StringColumn<std::int32_t>, StringColumn<std::int64_t>, StringViewColumn,
                 CodeColumn<std::int8_t>, CodeColumn<std::int16_t>, CodeColumn<std::int32_t>,
                 CodeColumn<std::uint8_t>, CodeColumn<std::uint16_t>, CodeColumn<std::uint32_t>, CellColumn,
                 ListColumn, EmptyColumn>;

// Reads the rows [begin, end) of a column: row `begin` into cells[0], the next row into cells[stride], and so
// on.
void read_cells(const Column& column, std::size_t begin, std::size_t end, Cell* cells, std::size_t stride);

inline Cell cell_at(const Column& column, std::size_t row) {
  Cell cell;
  read_cells(column, row, row + 1, &cell, 1);
  return cell;
}

// The rows [begin, end) of a table.
struct RowBatch {
  std::span<const Column> columns;
  std::size_t begin, end;
};

// Calls use(cell, row) for the rows [begin, end) of a column until `use` returns false. Returns whether all
// rows were used. Rows are read into a small buffer first, because compiling `use` for each type of column
// would take long.
template <class Use>
bool use_cells(const Column& column, std::size_t begin, std::size_t end, const Use& use) {
  constexpr std::size_t buffer_rows = 64;
  std::array<Cell, buffer_rows> cells;
  for (std::size_t first = begin; first < end; first += buffer_rows) {
    const std::size_t count = std::min(buffer_rows, end - first);
    read_cells(column, first, first + count, cells.data(), 1);
    for (std::size_t k = 0; k < count; ++k) {
      if (!use(cells[k], first + k)) return false;
    }
  }
  return true;
}

// Does the same for a column of a batch; rows count from the begin of the batch.
template <class Use>
bool use_batch(const RowBatch& batch, std::int32_t column, const Use& use) {
  const Column& cells = batch.columns[static_cast<std::size_t>(column)];
  const auto use_row = [&](const Cell& cell, std::size_t row) { return use(cell, row - batch.begin); };
  const auto* numbers = std::get_if<NumberColumn<double>>(&cells);
  if (numbers == nullptr) return use_cells(cells, batch.begin, batch.end, use_row);
  for (std::size_t row = batch.begin; row < batch.end; ++row) {
    if (!use_row((*numbers)(row), row)) return false;
  }
  return true;
}

}  // namespace unkernel::records
