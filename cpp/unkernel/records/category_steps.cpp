#include "unkernel/records/category_steps.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace unkernel::records {
namespace {

std::string shown(const Cell& cell) {
  if (cell.kind() == CellKind::text) return quoted(cell.text());
  if (cell.kind() == CellKind::none) return "None";
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), cell.number());
  return {digits.data(), end.ptr};
}

class OneHot final : public Step {
 public:
  OneHot(std::vector<std::int32_t> columns, std::vector<Categories> categories, std::int32_t width)
      : Step({width, false}), columns_(std::move(columns)), categories_(std::move(categories)) {
    check_plan(columns_.size() == categories_.size(), "columns and categories do not fit each other");
    for (const Categories& of_column : categories_)
      check_plan(of_column.largest_code() < width, "a category has a feature that there is not");
  }

  void run(const Record& record, std::span<const Block>, Block& out) const override {
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      const std::int32_t code = categories_[k].code(record, static_cast<std::size_t>(columns_[k]));
      if (code >= 0) out.add(code, 1.0);
    }
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

std::int32_t Categories::number_code(double number) const {
  if (std::isnan(number)) return codes_.nan;
  const auto found = std::lower_bound(numbers_.begin(), numbers_.end(), number);
  if (found == numbers_.end() || *found != number) return codes_.unknown;
  return codes_.numbers[static_cast<std::size_t>(found - numbers_.begin())];
}

std::int32_t Categories::code(const Record& record, std::size_t column) const {
  const Cell& cell = record.cells[column];
  std::int32_t code = codes_.unknown;
  switch (cell.kind()) {
    case CellKind::text: {
      const std::int32_t number = strings_.find(cell.text());
      if (number >= 0) code = codes_.strings[static_cast<std::size_t>(number)];
      break;
    }
    case CellKind::number: code = number_code(cell.number()); break;
    case CellKind::none: code = codes_.none; break;
    case CellKind::absent: code = codes_.absent; break;
    default: record.fail(column, "expected one category, got a list or a dict");
  }
  if (code != forbidden) return code;
  if (cell.kind() == CellKind::absent) record.fail(column, "the record does not have it");
  record.fail(column, shown(cell) + " is not one of the " + std::to_string(size()) + " known categories");
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
