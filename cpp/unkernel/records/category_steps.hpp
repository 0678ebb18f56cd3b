// Steps from categories to features.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "unkernel/data/text/name_table.hpp"
#include "unkernel/records/step.hpp"

namespace unkernel::records {

// Codes that stand for no category.
enum Unknown : std::int32_t {
  ignored = -1,    // adds no feature
  forbidden = -2,  // the record is refused
};

// The categories of a column. Strings, numbers, None and NaN are categories of their own; True is 1.
class Categories {
 public:
  struct Codes {
    std::vector<std::int32_t> strings;  // by number in the table
    std::vector<std::int32_t> numbers;
    std::int32_t none, nan, absent, unknown;
  };

  // Numbers must ascend, and codes must be at least `forbidden`.
  Categories(data::NameTable strings, std::vector<double> numbers, Codes codes);

  // Returns the code of a cell. Throws std::invalid_argument if the cell is forbidden.
  std::int32_t code(const Record& record, std::size_t column) const;
  // Returns the code of a cell, which may be `forbidden`.
  std::int32_t find(const Cell& cell) const;
  std::size_t size() const { return strings_.size() + numbers_.size(); }
  std::int32_t largest_code() const;
  // Returns the smallest code that is not negative, or the largest int32 if all codes are negative.
  std::int32_t smallest_feature() const;

 private:
  std::int32_t find_number(double number) const;

  data::NameTable strings_;
  std::vector<double> numbers_;
  Codes codes_;
};

// Sets the features that are the codes of the columns to 1. Each column must have larger codes than the
// columns before it.
std::unique_ptr<Step> one_hot(std::vector<std::int32_t> columns, std::vector<Categories> categories,
                              std::int32_t width);

// Replaces each column by values[k][code], as a dense block.
std::unique_ptr<Step> ordinal(std::vector<std::int32_t> columns, std::vector<Categories> categories,
                              std::vector<std::vector<double>> values);

}  // namespace unkernel::records
