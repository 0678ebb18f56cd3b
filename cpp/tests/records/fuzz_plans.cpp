// Plans of records from a file, and records of any cells: steps are refused with std::invalid_argument, or
// the row has ascending columns inside the plan's width. Encoding many records at once gives the same rows as
// one by one.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "fuzz.hpp"
#include "fuzz_bytes.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/records/category_steps.hpp"
#include "unkernel/records/dates.hpp"
#include "unkernel/records/encode_rows.hpp"
#include "unkernel/records/function_steps.hpp"
#include "unkernel/records/number_steps.hpp"
#include "unkernel/records/plan.hpp"
#include "unkernel/records/text_steps.hpp"
#include "unkernel/records/vector_steps.hpp"

namespace {

using namespace unkernel::records;
using unkernel::data::NameTable;

constexpr std::int32_t column_count = 3;

std::vector<double> reals(FuzzBytes& bytes, std::size_t max_size) {
  std::vector<double> values;
  for (std::size_t remaining = bytes.below(max_size + 1); remaining > 0; --remaining)
    values.push_back(bytes.real());
  return values;
}

std::vector<std::int32_t> integers(FuzzBytes& bytes, std::size_t max_size) {
  std::vector<std::int32_t> values;
  for (std::size_t remaining = bytes.below(max_size + 1); remaining > 0; --remaining) {
    const std::uint8_t number = bytes.byte();
    values.push_back(number > 240 ? bytes.number(std::int32_t{0}) : number % 16 - 2);
  }
  return values;
}

// Returns valid columns, because the reader of files checks columns.
std::vector<std::int32_t> columns(FuzzBytes& bytes, std::size_t min_size) {
  std::vector<std::int32_t> values;
  for (std::size_t remaining = min_size + bytes.below(3); remaining > 0; --remaining)
    values.push_back(static_cast<std::int32_t>(bytes.below(column_count)));
  return values;
}

NameTable names(FuzzBytes& bytes) {
  std::string text;
  std::vector<std::int64_t> ends;
  for (std::size_t remaining = bytes.below(4); remaining > 0; --remaining) {
    text += bytes.text(3);
    ends.push_back(static_cast<std::int64_t>(text.size()));
  }
  if (bytes.byte() > 240) bytes.damage(ends);
  return NameTable::of(text, ends);
}

std::int32_t code(FuzzBytes& bytes) { return static_cast<std::int32_t>(bytes.below(12)) - 3; }

Categories categories(FuzzBytes& bytes) {
  NameTable strings = names(bytes);
  std::vector<double> numbers = reals(bytes, 3);
  return {std::move(strings),
          std::move(numbers),
          {integers(bytes, 3), integers(bytes, 3), code(bytes), code(bytes), code(bytes), code(bytes)}};
}

std::vector<Categories> all_categories(FuzzBytes& bytes, std::size_t count) {
  std::vector<Categories> all;
  for (std::size_t k = 0; k < count; ++k) all.push_back(categories(bytes));
  return all;
}

std::int32_t width(FuzzBytes& bytes) {
  const std::uint8_t number = bytes.byte();
  return number > 240 ? bytes.number(std::int32_t{4}) : number % 24;
}

Vocabulary vocabulary(FuzzBytes& bytes) {
  if (bytes.flag()) return Vocabulary::hashed(width(bytes), bytes.flag());
  NameTable vocabulary_names = names(bytes);
  std::vector<std::int32_t> ids = integers(bytes, 4);
  return {std::move(vocabulary_names), std::move(ids), width(bytes)};
}

TextOptions text_options(FuzzBytes& bytes) {
  const auto analyzer = static_cast<Analyzer>(bytes.below(3));
  const bool lowercase = bytes.flag();
  const std::size_t shortest = bytes.below(4);
  return {analyzer,     lowercase,   1 + bytes.below(2), shortest, shortest + bytes.below(3),
          bytes.flag(), names(bytes)};
}

std::optional<double> optional_real(FuzzBytes& bytes) {
  return bytes.flag() ? std::optional(bytes.real()) : std::nullopt;
}

// The arrays of the following steps mostly fit their input: otherwise almost all plans would be refused.

std::size_t columns_of(FuzzBytes& bytes, const Input& input) {
  const auto width = static_cast<std::size_t>(std::min(input.shape.width, 8));
  return bytes.byte() > 245 ? width + 1 : width;
}

// Returns ascending numbers for each column, one column after the other.
std::vector<double> ascending(FuzzBytes& bytes, std::size_t n_columns, std::size_t count) {
  std::vector<double> values;
  for (std::size_t k = 0; k < n_columns; ++k) {
    double value = bytes.real();
    for (std::size_t number = 0; number < count; ++number) {
      values.push_back(value);
      value += bytes.byte() > 250 ? bytes.real() : bytes.byte() / 64;
    }
  }
  return values;
}

Input dense_input(const Input& input, Plan& plan) {
  return input.shape.dense ? input : plan.add(densify(input));
}

std::unique_ptr<Step> snap_of(FuzzBytes& bytes, const Input& input) {
  const std::size_t n_columns = columns_of(bytes, input), count = bytes.below(4);
  std::vector<std::int32_t> begins{0};
  for (std::size_t k = 0; k < n_columns; ++k)
    begins.push_back(begins.back() + static_cast<std::int32_t>(count));
  if (bytes.byte() > 245) bytes.damage(begins);
  std::vector<double> points = ascending(bytes, n_columns, count);
  std::vector<double> tolerances(points.size(), bytes.real());
  return snap(input, {std::move(points), std::move(begins), std::move(tolerances)});
}

std::unique_ptr<Step> power_of(FuzzBytes& bytes, const Input& input) {
  const std::size_t n_columns = columns_of(bytes, input);
  return power(input,
               {bytes.flag(), ascending(bytes, n_columns, 1), std::vector<std::string>(n_columns, "x")});
}

std::unique_ptr<Step> quantiles_of(FuzzBytes& bytes, const Input& input) {
  const std::size_t count = bytes.below(5);
  std::vector<double> numbers = ascending(bytes, columns_of(bytes, input), count);
  return quantiles(input, {std::move(numbers), ascending(bytes, 1, count), bytes.flag()});
}

std::unique_ptr<Step> splines_of(FuzzBytes& bytes, const Input& input) {
  const std::size_t n_columns = columns_of(bytes, input);
  Splines splines{};
  const std::size_t degree = bytes.below(5), knots = 2 * degree + 1 + bytes.below(6);
  splines.degree = bytes.byte() > 250 ? code(bytes) : static_cast<std::int32_t>(degree);
  splines.knots = ascending(bytes, n_columns, knots);
  splines.low = ascending(bytes, n_columns, 1);
  splines.high = ascending(bytes, n_columns, 1);
  splines.names.assign(n_columns, "x");
  splines.are_periodic = bytes.flag();
  splines.drops_last = bytes.flag();
  splines.allows_missing = bytes.flag();
  const std::size_t lines = n_columns * (knots - degree - 1);
  if (!splines.are_periodic || bytes.byte() > 250) {
    splines.below = static_cast<Splines::Outside>(bytes.below(3));
    splines.above = static_cast<Splines::Outside>(bytes.below(3));
    const bool misfits = bytes.byte() > 245;
    if ((splines.below == Splines::Outside::lines) != misfits) {
      splines.low_values.assign(lines, 0.5);
      splines.low_slopes.assign(lines, bytes.real());
    }
    if ((splines.above == Splines::Outside::lines) != misfits) {
      splines.high_values.assign(lines, 0.5);
      splines.high_slopes.assign(lines, bytes.real());
    }
  } else {
    splines.below = splines.above = Splines::Outside::polynomials;
  }
  return unkernel::records::splines(input, std::move(splines));
}

std::string function_name(FuzzBytes& bytes) {
  constexpr std::array names{"log1p", "exp",  "sign",   "cbrt", "sin",
                             "cos",   "tanh", "arctan", "log2", "reciprocal"};
  return bytes.byte() > 245 ? bytes.text(3) : names[bytes.below(names.size())];
}

std::unique_ptr<Step> step_of_cells(FuzzBytes& bytes) {
  switch (bytes.below(7)) {
    case 0: return numbers(columns(bytes, 0));
    case 1: {
      std::vector<std::int32_t> input_columns = columns(bytes, 1);
      std::vector<Categories> vocabulary_names =
          all_categories(bytes, input_columns.size() + (bytes.byte() > 250 ? 1 : 0));
      return one_hot(std::move(input_columns), std::move(vocabulary_names), width(bytes));
    }
    case 2: {
      std::vector<std::int32_t> input_columns = columns(bytes, 1);
      std::vector<Categories> vocabulary_names = all_categories(bytes, input_columns.size());
      std::vector<std::vector<double>> values;
      for (std::size_t k = 0; k < input_columns.size(); ++k) values.push_back(reals(bytes, 4));
      return ordinal(std::move(input_columns), std::move(vocabulary_names), std::move(values));
    }
    case 3: {
      TextOptions options = text_options(bytes);
      return text(columns(bytes, 1)[0], std::move(options), vocabulary(bytes), code(bytes));
    }
    case 4: return strings(columns(bytes, 1)[0], bytes.flag(), vocabulary(bytes), code(bytes));
    case 5: return pairs(columns(bytes, 1)[0], bytes.text(2), vocabulary(bytes));
    default: return dates(columns(bytes, 0), integers(bytes, 3));
  }
}

std::unique_ptr<Step> step_of_block(FuzzBytes& bytes, Plan& plan) {
  const auto input = [&] { return plan.input(bytes.below(plan.steps() + (bytes.byte() > 250 ? 1 : 0))); };
  switch (bytes.below(17)) {
    case 0:
      return scale(input(), {reals(bytes, 3), reals(bytes, 3), reals(bytes, 3), reals(bytes, 3),
                             optional_real(bytes), optional_real(bytes)});
    case 1: return impute(input(), bytes.real(), reals(bytes, 3));
    case 2: return indicate(input(), bytes.real(), integers(bytes, 3));
    case 3:
      return bins(input(),
                  {reals(bytes, 5), integers(bytes, 4), integers(bytes, 3), bytes.flag(), {"x", "y", "z"}});
    case 4: return binarize(input(), bytes.real());
    case 5: return products(input(), {integers(bytes, 4), integers(bytes, 5), bytes.flag()});
    case 6: return concatenate({input(), input()});
    case 7: return densify(input());
    case 8: return select(input(), integers(bytes, 6), width(bytes));
    case 9: return normalize(input(), static_cast<Norm>(bytes.below(3)));
    case 10: return function(input(), function_name(bytes));
    case 11: return finite(input(), bytes.flag());
    case 12: return snap_of(bytes, dense_input(input(), plan));
    case 13: return power_of(bytes, dense_input(input(), plan));
    case 14: return quantiles_of(bytes, dense_input(input(), plan));
    case 15: return splines_of(bytes, dense_input(input(), plan));
    default: return tfidf(input(), bytes.flag(), reals(bytes, 4));
  }
}

// The cells of two records, and the memory that they refer to.
class Cells {
 public:
  explicit Cells(FuzzBytes& bytes) {
    for (auto& text : texts_) text = bytes.text(12);
    for (std::size_t k = 0; k < views_.size(); ++k) views_[k] = texts_[k];
    pairs_ = {{views_[0], Cell::of(bytes.real())},
              {views_[1], Cell::of(views_[2])},
              {views_[2], Cell::of(std::span<const std::string_view>(views_))}};
    for (auto& column : cells_) column.push_back(cell(bytes)), column.push_back(cell(bytes));
  }
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;

  std::vector<Cell> record(std::size_t row) const {
    std::vector<Cell> cells;
    for (const auto& column : cells_) cells.push_back(column[row]);
    return cells;
  }
  std::vector<Column> columns() const {
    std::vector<Column> all;
    for (const auto& column : cells_) all.emplace_back(CellColumn{column});
    return all;
  }

 private:
  Cell cell(FuzzBytes& bytes) {
    switch (bytes.below(7)) {
      case 0: return {};
      case 1: return Cell::none();
      case 2: return Cell::of(bytes.real());
      case 3: return Cell::moment(bytes.real() * 1e9);
      case 4: return Cell::of(views_[bytes.below(views_.size())]);
      case 5: return Cell::of(std::span<const std::string_view>(views_));
      default: return Cell::of(std::span<const Pair>(pairs_));
    }
  }

  std::array<std::string, 3> texts_;
  std::array<std::string_view, 3> views_;
  std::vector<Pair> pairs_;
  std::array<std::vector<Cell>, column_count> cells_;
};

// Returns false if a record cannot be encoded.
bool encode(const Plan& plan, PlanWorker& worker, const Cells& cells, std::size_t row, EncodedRows& all) {
  try {
    const std::vector<Cell> record = cells.record(row);
    const EncodedRow encoded = worker.encode(record);
    CHECK(encoded.ids.size() == encoded.values.size());
    for (std::size_t k = 0; k < encoded.ids.size(); ++k) {
      CHECK(encoded.ids[k] >= 0 && encoded.ids[k] < plan.width() && encoded.values[k] != 0.0);
      CHECK(k == 0 || encoded.ids[k - 1] < encoded.ids[k]);
    }
    all.columns.insert(all.columns.end(), encoded.ids.begin(), encoded.ids.end());
    all.values.insert(all.values.end(), encoded.values.begin(), encoded.values.end());
    all.offsets.push_back(static_cast<std::int64_t>(all.columns.size()));
    return true;
  } catch (const std::invalid_argument&) { return false; }
}

void check_encoding(const Plan& plan, const Cells& cells) {
  PlanWorker worker(plan);
  EncodedRows expected;
  expected.offsets.push_back(0);
  const bool valid = encode(plan, worker, cells, 0, expected) && encode(plan, worker, cells, 1, expected);
  try {
    const std::vector<Column> columns = cells.columns();
    const unkernel::Monitor monitor;
    const EncodedRows batch = encode_rows(plan, columns, 2, {1, &monitor});
    if (!valid) return;  // unused steps do not run
    CHECK(batch.offsets == expected.offsets && batch.columns == expected.columns);
    for (std::size_t k = 0; k < batch.values.size(); ++k)
      CHECK(batch.values[k] == expected.values[k] || std::isnan(batch.values[k]));
  } catch (const std::invalid_argument&) { CHECK(!valid); }
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (char first = 0; first < 7; ++first) {
    for (char second = 0; second < 17; second = static_cast<char>(second + 2)) {
      std::string seed{1, first, 1, 1, 2, 1, 2, 'a', 'b', 0, 1,  2, 40, 2,
                       3, 4,     1, 0, 3, 2, 1, 2,   0,   5, 20, 0, 0,  second};
      for (char k = 0; k < 60; ++k) seed.push_back(static_cast<char>((k * 7 + second + first) % 30));
      seeds.push_back(seed);
    }
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzBytes bytes(data, size);
  Plan plan({"x", "y", "z"});
  try {
    const std::size_t steps = 1 + bytes.below(4);
    for (std::size_t k = 0; k < steps; ++k)
      plan.add(k == 0 || bytes.below(3) == 0 ? step_of_cells(bytes) : step_of_block(bytes, plan));
  } catch (const std::invalid_argument&) { return 0; }
  for (std::size_t k = 0; k < plan.steps(); ++k)
    if (plan.step(k).shape().width > 1000) return 0;  // a plan may be wide, and so may its dense blocks
  const Cells cells(bytes);
  check_encoding(plan, cells);
  return 0;
}
