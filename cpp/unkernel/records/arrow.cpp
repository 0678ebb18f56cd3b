#include "unkernel/records/arrow.hpp"

#include <stdexcept>
#include <string_view>
#include <utility>

namespace unkernel::records {
namespace {

// A column, and the index of the batch's first row.
struct Source {
  const ArrowSchema& schema;
  const ArrowArray& array;
  std::size_t first;

  Validity is_valid() const {
    return array.null_count == 0 ? Validity{}
                                 : Validity{static_cast<const std::uint8_t*>(array.buffers[0]), first};
  }
  template <class T>
  const T* buffer(std::size_t number) const {
    return static_cast<const T*>(array.buffers[number]);
  }
  template <class Number>
  Column moments(double per_second, double seconds) const {
    return MomentColumn<Number>{buffer<Number>(1) + first, per_second, seconds, is_valid()};
  }
  template <class Number>
  Column numbers() const {
    return NumberColumn<Number>{buffer<Number>(1) + first, is_valid()};
  }
};

[[noreturn]] void fail_type(const ArrowSchema& schema) {
  throw std::invalid_argument("column '" + std::string(schema.name == nullptr ? "" : schema.name) +
                              "': Arrow's type '" + schema.format + "' is no number, string or date");
}

Column plain_column(const Source& source);

// Reads a column of lists of strings: copies the begins of the lists, and views of the strings.
Column list_column(const Source& source) {
  const ArrowArray& items = *source.array.children[0];
  const ArrowSchema& schema = *source.schema.children[0];
  const Column strings = plain_column({schema, items, static_cast<std::size_t>(items.offset)});
  const bool has_wide_offsets = std::string_view(source.schema.format) == "+L";
  const auto begin_of = [&](std::size_t row) {
    return has_wide_offsets ? static_cast<std::size_t>(source.buffer<std::int64_t>(1)[source.first + row])
                            : static_cast<std::size_t>(source.buffer<std::int32_t>(1)[source.first + row]);
  };
  ListColumn lists{{}, {}, source.is_valid()};
  const auto rows = static_cast<std::size_t>(source.array.length) -
                    (source.first - static_cast<std::size_t>(source.array.offset));
  for (std::size_t row = 0; row < rows; ++row) {
    lists.begins.push_back(lists.strings.size());
    for (std::size_t k = begin_of(row); lists.is_valid(row) && k < begin_of(row + 1); ++k) {
      const Cell cell = cell_at(strings, k);
      if (cell.kind() != CellKind::text)
        throw std::invalid_argument(
            "column '" + std::string(source.schema.name) +
            "': expected one value, or a list of strings, got a list of other values");
      lists.strings.push_back(cell.text());
    }
  }
  lists.begins.push_back(lists.strings.size());
  return lists;
}

Column plain_column(const Source& source) {
  const std::string_view format = source.schema.format;
  if (format == "n") return EmptyColumn{};
  if (format == "b") return BitColumn{{source.buffer<std::uint8_t>(1), source.first}, source.is_valid()};
  if (format == "c") return source.numbers<std::int8_t>();
  if (format == "C") return source.numbers<std::uint8_t>();
  if (format == "s") return source.numbers<std::int16_t>();
  if (format == "S") return source.numbers<std::uint16_t>();
  if (format == "i") return source.numbers<std::int32_t>();
  if (format == "I") return source.numbers<std::uint32_t>();
  if (format == "l") return source.numbers<std::int64_t>();
  if (format == "L") return source.numbers<std::uint64_t>();
  if (format == "f") return source.numbers<float>();
  if (format == "g") return source.numbers<double>();
  if (format == "u")
    return StringColumn<std::int32_t>{source.buffer<std::int32_t>(1) + source.first, source.buffer<char>(2),
                                      source.is_valid()};
  if (format == "U")
    return StringColumn<std::int64_t>{source.buffer<std::int64_t>(1) + source.first, source.buffer<char>(2),
                                      source.is_valid()};
  if (format == "vu")
    return StringViewColumn{source.buffer<StringViewColumn::View>(1) + source.first, source.array.buffers + 2,
                            source.is_valid()};
  if (format == "+l" || format == "+L") return list_column(source);
  if (format == "tdD") return source.moments<std::int32_t>(1.0, 86400.0);
  if (format == "tdm" || format.starts_with("tsm:")) return source.moments<std::int64_t>(1e3, 1.0);
  if (format.starts_with("tss:")) return source.moments<std::int64_t>(1.0, 1.0);
  if (format.starts_with("tsu:")) return source.moments<std::int64_t>(1e6, 1.0);
  if (format.starts_with("tsn:")) return source.moments<std::int64_t>(1e9, 1.0);
  fail_type(source.schema);
}

template <class Code>
Column codes(const Source& source, std::vector<Cell> dictionary) {
  return CodeColumn<Code>{source.buffer<Code>(1) + source.first, std::move(dictionary), source.is_valid()};
}

Column dictionary_column(const Source& source) {
  const ArrowArray& values = *source.array.dictionary;
  const Column words =
      plain_column({*source.schema.dictionary, values, static_cast<std::size_t>(values.offset)});
  std::vector<Cell> cells;
  for (std::size_t k = 0; k < static_cast<std::size_t>(values.length); ++k)
    cells.push_back(cell_at(words, k));
  const std::string_view format = source.schema.format;
  if (format == "c") return codes<std::int8_t>(source, std::move(cells));
  if (format == "C") return codes<std::uint8_t>(source, std::move(cells));
  if (format == "s") return codes<std::int16_t>(source, std::move(cells));
  if (format == "S") return codes<std::uint16_t>(source, std::move(cells));
  if (format == "i") return codes<std::int32_t>(source, std::move(cells));
  if (format == "I") return codes<std::uint32_t>(source, std::move(cells));
  throw std::invalid_argument("column '" + std::string(source.schema.name) + "': its codes have 64 bits");
}

}  // namespace

Column arrow_column(const ArrowSchema& schema, const ArrowArray& array) {
  const Source source{schema, array, static_cast<std::size_t>(array.offset)};
  return schema.dictionary == nullptr ? plain_column(source) : dictionary_column(source);
}

ArrowType arrow_type(const ArrowSchema& schema) {
  if (schema.dictionary != nullptr) return arrow_type(*schema.dictionary);
  const std::string_view format = schema.format;
  if (format == "b") return ArrowType::truth;
  if (format == "f" || format == "g") return ArrowType::real;
  if (format == "u" || format == "U" || format == "vu" || format == "n") return ArrowType::text;
  if (format == "+l" || format == "+L") return ArrowType::list;
  if (format == "tdD" || format == "tdm" || format.starts_with("ts")) return ArrowType::moment;
  if (format.size() == 1 && std::string_view("cCsSiIlL").find(format) != std::string_view::npos)
    return ArrowType::integer;
  fail_type(schema);
}

bool has_column(const ArrowSchema& schema, const std::string& name) {
  for (std::int64_t k = 0; k < schema.n_children; ++k) {
    if (name == schema.children[k]->name) return true;
  }
  return false;
}

std::vector<Column> arrow_columns(const ArrowSchema& schema, const ArrowArray& batch,
                                  std::span<const std::string* const> names) {
  std::vector<Column> columns(names.size(), EmptyColumn{});
  for (std::int64_t k = 0; k < schema.n_children; ++k) {
    for (std::size_t place = 0; place < names.size(); ++place) {
      if (names[place] == nullptr || *names[place] != schema.children[k]->name) continue;
      const ArrowArray& child = *batch.children[k];
      const Source source{*schema.children[k], child, static_cast<std::size_t>(child.offset + batch.offset)};
      columns[place] = source.schema.dictionary == nullptr ? plain_column(source) : dictionary_column(source);
    }
  }
  return columns;
}

}  // namespace unkernel::records
