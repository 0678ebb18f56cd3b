#include "unkernel/records/category_steps.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "unkernel/records/column.hpp"
#include "unkernel/records/text_memo.hpp"

namespace unkernel::records {
namespace {

std::string format_cell(const Cell& cell) {
  if (cell.kind() == CellKind::text) return quote(cell.text());
  if (cell.kind() == CellKind::none) return "None";
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), cell.number());
  return {digits.data(), end.ptr};
}

bool write_cells(const Column& column, const Categories& categories, const RowBatch& batch,
                 const CodeOutput& out) {
  TextMemo memo;
  const auto find = [&](std::string_view text) { return categories.find(Cell::of(text)); };
  return use_cells(column, batch.begin, batch.end, [&](const Cell& cell, std::size_t row) {
    const std::int32_t code = cell.kind() == CellKind::text ? memo(cell.text(), find) : categories.find(cell);
    out.first[(row - batch.begin) * out.stride] = code;
    return code != forbidden;
  });
}

// Writes the codes of a column with a dictionary. Looks up each entry of the dictionary at most once if the
// dictionary is smaller than the batch; else looks up each row.
template <class Code>
bool look_up_codes(const CodeColumn<Code>& column, const Categories& categories, const RowBatch& batch,
                   const CodeOutput& out) {
  constexpr std::int32_t not_looked_up = forbidden - 1;
  const bool is_small = column.dictionary.size() <= batch.end - batch.begin;
  std::vector<std::int32_t> codes_by_entry(is_small ? column.dictionary.size() : 0, not_looked_up);
  for (std::size_t row = batch.begin; row < batch.end; ++row) {
    std::int32_t code = not_looked_up;
    if (!is_small || !column.is_valid(row)) {
      code = categories.find(column(row));
    } else {
      std::int32_t& entry = codes_by_entry[static_cast<std::size_t>(column.codes[row])];
      if (entry == not_looked_up) entry = categories.find(column(row));
      code = entry;
    }
    if (code == forbidden) return false;
    out.first[(row - batch.begin) * out.stride] = code;
  }
  return true;
}

bool write_column(const Column& column, const Categories& categories, const RowBatch& batch,
                  const CodeOutput& out) {
  return std::visit(
      [&]<class Any>(const Any& any) {
        if constexpr (requires { any.codes; }) {
          return look_up_codes(any, categories, batch, out);
        } else {
          return write_cells(column, categories, batch, out);
        }
      },
      column);
}

class OneHot final : public Step {
 public:
  OneHot(std::vector<std::int32_t> columns, std::vector<Categories> categories, std::int32_t width)
      : Step({width, false}), columns_(std::move(columns)), categories_(std::move(categories)) {
    check_plan(columns_.size() == categories_.size(), "columns and categories do not fit each other");
    std::int32_t last_feature = -1;  // of earlier columns; features of a row must ascend
    for (const Categories& column_categories : categories_) {
      check_plan(column_categories.smallest_feature() > last_feature,
                 "two columns have the same feature, or not in order");
      last_feature = std::max(last_feature, column_categories.largest_code());
      check_plan(last_feature < width, "a category has a feature that does not exist");
    }
  }

  void run(const Record& record, std::span<const Block>, Block& out) const override {
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      const std::int32_t code = categories_[k].code(record, static_cast<std::size_t>(columns_[k]));
      if (code >= 0) out.add(code, 1.0);
    }
  }

  std::size_t places() const override { return columns_.size(); }

  bool write_codes(const RowBatch& batch, const CodeOutput& out) const override {
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      const Column& column = batch.columns[static_cast<std::size_t>(columns_[k])];
      if (!write_column(column, categories_[k], batch, {out.first + k, out.stride})) return false;
    }
    return true;
  }

 private:
  std::vector<std::int32_t> columns_;
  std::vector<Categories> categories_;
};

class Ordinal final : public Step {
 public:
  Ordinal(std::vector<std::int32_t> columns, std::vector<Categories> categories,
          std::vector<std::vector<double>> values)
      : Step({static_cast<std::int32_t>(columns.size()), true}),
        columns_(std::move(columns)),
        categories_(std::move(categories)),
        values_(std::move(values)) {
    check_plan(columns_.size() == categories_.size() && columns_.size() == values_.size(),
               "columns and categories do not fit each other");
    for (std::size_t k = 0; k < values_.size(); ++k)
      check_plan(categories_[k].largest_code() < static_cast<std::int32_t>(values_[k].size()),
                 "a category has no value");
  }

  void run(const Record& record, std::span<const Block>, Block& out) const override {
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      const std::int32_t code = categories_[k].code(record, static_cast<std::size_t>(columns_[k]));
      out.values.push_back(code >= 0 ? values_[k][static_cast<std::size_t>(code)] : 0.0);
    }
  }

 private:
  std::vector<std::int32_t> columns_;
  std::vector<Categories> categories_;
  std::vector<std::vector<double>> values_;
};

}  // namespace

Categories::Categories(data::NameTable strings, std::vector<double> numbers, Codes codes)
    : strings_(std::move(strings)), numbers_(std::move(numbers)), codes_(std::move(codes)) {
  check_plan(codes_.strings.size() == strings_.size() && codes_.numbers.size() == numbers_.size(),
             "a category has no code");
  const auto descends = [](double a, double b) { return !(a < b); };
  check_plan(std::adjacent_find(numbers_.begin(), numbers_.end(), descends) == numbers_.end(),
             "numbers of categories do not ascend");
  std::int32_t least = std::min({codes_.none, codes_.nan, codes_.absent, codes_.unknown});
  for (const std::int32_t code : codes_.strings) least = std::min(least, code);
  for (const std::int32_t code : codes_.numbers) least = std::min(least, code);
  check_plan(least >= forbidden, "a code is out of range");
}

std::int32_t Categories::largest_code() const {
  std::int32_t largest = std::max({codes_.none, codes_.nan, codes_.absent, codes_.unknown});
  for (const std::int32_t code : codes_.strings) largest = std::max(largest, code);
  for (const std::int32_t code : codes_.numbers) largest = std::max(largest, code);
  return largest;
}

std::int32_t Categories::smallest_feature() const {
  std::int32_t smallest = std::numeric_limits<std::int32_t>::max();
  const auto include = [&](std::int32_t code) {
    if (code >= 0) smallest = std::min(smallest, code);
  };
  for (const std::int32_t code : {codes_.none, codes_.nan, codes_.absent, codes_.unknown}) include(code);
  for (const std::int32_t code : codes_.strings) include(code);
  for (const std::int32_t code : codes_.numbers) include(code);
  return smallest;
}

std::int32_t Categories::find_number(double number) const {
  if (std::isnan(number)) return codes_.nan;
  const auto place = std::lower_bound(numbers_.begin(), numbers_.end(), number);
  if (place == numbers_.end() || *place != number) return codes_.unknown;
  return codes_.numbers[static_cast<std::size_t>(place - numbers_.begin())];
}

std::int32_t Categories::find(const Cell& cell) const {
  switch (cell.kind()) {
    case CellKind::text: {
      const std::int32_t number = strings_.find(cell.text());
      return number >= 0 ? codes_.strings[static_cast<std::size_t>(number)] : codes_.unknown;
    }
    case CellKind::number: return find_number(cell.number());
    case CellKind::none: return codes_.none;
    case CellKind::absent: return codes_.absent;
    default: return forbidden;
  }
}

std::int32_t Categories::code(const Record& record, std::size_t column) const {
  const Cell& cell = record.cells[column];
  const std::int32_t code = find(cell);
  if (code != forbidden) return code;
  if (cell.kind() == CellKind::absent) record.fail(column, "the record does not have this column");
  if (cell.kind() == CellKind::strings || cell.kind() == CellKind::pairs)
    record.fail(column, "expected one category, got a list or a dict");
  if (cell.kind() == CellKind::moment) record.fail(column, "expected a category, got a date");
  record.fail(column,
              format_cell(cell) + " is not one of the " + std::to_string(size()) + " known categories");
}

std::unique_ptr<Step> one_hot(std::vector<std::int32_t> columns, std::vector<Categories> categories,
                              std::int32_t width) {
  return std::make_unique<OneHot>(std::move(columns), std::move(categories), width);
}
std::unique_ptr<Step> ordinal(std::vector<std::int32_t> columns, std::vector<Categories> categories,
                              std::vector<std::vector<double>> values) {
  return std::make_unique<Ordinal>(std::move(columns), std::move(categories), std::move(values));
}

}  // namespace unkernel::records
