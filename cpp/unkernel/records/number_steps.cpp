#include "unkernel/records/number_steps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "unkernel/base/cpu.hpp"
#include "unkernel/records/category_steps.hpp"
#include "unkernel/records/column.hpp"

namespace unkernel::records {
namespace {

std::int32_t width_of(const auto& columns) { return static_cast<std::int32_t>(columns.size()); }

bool is_missing_value(double value, double missing) {
  return std::isnan(missing) ? std::isnan(value) : value == missing;
}

constexpr std::ptrdiff_t max_compared_edges = 64;  // more edges are searched by bisection

// Returns whether a list is empty or has one number per column.
bool fits_columns(const std::vector<double>& values, const Input& input) {
  return values.empty() || width_of(values) == input.shape.width;
}

class Numbers final : public Step {
 public:
  explicit Numbers(std::vector<std::int32_t> columns)
      : Step({width_of(columns), true}), columns_(std::move(columns)) {}

  void run(const Record& record, std::span<const Block>, Block& out) const override {
    for (const std::int32_t column : columns_) {
      const auto place = static_cast<std::size_t>(column);
      const Cell& cell = record.cells[place];
      switch (cell.kind()) {
        case CellKind::number:
          if (std::isinf(cell.number())) record.fail(place, "the number is infinite");
          out.values.push_back(cell.number());
          break;
        case CellKind::none:
        case CellKind::absent: out.values.push_back(nan); break;
        case CellKind::text: record.fail(place, "expected a number, got the string " + quote(cell.text()));
        case CellKind::moment: record.fail(place, "expected a number, got a date");
        default: record.fail(place, "expected a number, got a list or a dict");
      }
    }
  }

  bool has_column_values() const override { return true; }

  bool compute_column_values(const RowBatch& batch, std::size_t k, std::span<double> out) const override {
    return use_batch(batch, columns_[k], [&](const Cell& cell, std::size_t row) {
      const bool is_missing = cell.kind() == CellKind::none || cell.kind() == CellKind::absent;
      out[row] = is_missing ? nan : cell.number();
      return is_missing || (cell.kind() == CellKind::number && !std::isinf(cell.number()));
    });
  }

 private:
  std::vector<std::int32_t> columns_;
};

class Scale final : public Step {
 public:
  Scale(Input input, Scaling scaling) : Step(input.shape), input_(input), scaling_(std::move(scaling)) {
    const bool shifts = !scaling_.subtract.empty() || !scaling_.add.empty() ||
                        scaling_.least.value_or(0.0) > 0.0 || scaling_.most.value_or(0.0) < 0.0;
    check_plan(input.shape.dense || !shifts, "a sparse block cannot be shifted");
    check_plan(fits_columns(scaling_.subtract, input) && fits_columns(scaling_.divide, input) &&
                   fits_columns(scaling_.multiply, input) && fits_columns(scaling_.add, input),
               "scales do not fit the columns");
  }

  void run(const Record&, std::span<const Block> blocks, Block& out) const override {
    const Block& in = blocks[input_.step];
    out.ids = in.ids;
    out.values = in.values;
    // One loop per operation: in a single loop, a product and a sum may be fused, and be rounded differently
    // than in scikit-learn.
    apply(scaling_.subtract, out, [](double& value, double operand) { value -= operand; });
    apply(scaling_.divide, out, [](double& value, double operand) { value /= operand; });
    apply(scaling_.multiply, out, [](double& value, double operand) { value *= operand; });
    apply(scaling_.add, out, [](double& value, double operand) { value += operand; });
    for (double& value : out.values) {
      if (scaling_.least && value < *scaling_.least) value = *scaling_.least;
      if (scaling_.most && value > *scaling_.most) value = *scaling_.most;
    }
  }

 private:
  template <class Operation>
  void apply(const std::vector<double>& operands, Block& out, const Operation& operation) const {
    if (operands.empty()) return;
    for (std::size_t k = 0; k < out.values.size(); ++k)
      operation(out.values[k], operands[shape().dense ? k : static_cast<std::size_t>(out.ids[k])]);
  }

  Input input_;
  Scaling scaling_;
};

class Impute final : public Step {
 public:
  Impute(Input input, double missing, std::vector<double> fill)
      : Step(input.shape), input_(input), missing_(missing), fill_(std::move(fill)) {
    check_plan(input.shape.dense && width_of(fill_) == input.shape.width, "values do not fit the columns");
  }

  void run(const Record&, std::span<const Block> blocks, Block& out) const override {
    out.values = blocks[input_.step].values;
    for (std::size_t k = 0; k < fill_.size(); ++k) {
      if (is_missing_value(out.values[k], missing_)) out.values[k] = fill_[k];
    }
  }

 private:
  Input input_;
  double missing_;
  std::vector<double> fill_;
};

class Indicate final : public Step {
 public:
  Indicate(Input input, double missing, std::vector<std::int32_t> columns)
      : Step({width_of(columns), false}), input_(input), missing_(missing), columns_(std::move(columns)) {
    const auto is_outside = [&](std::int32_t column) { return column < 0 || column >= input.shape.width; };
    check_plan(input.shape.dense && std::none_of(columns_.begin(), columns_.end(), is_outside),
               "an indicated column does not exist");
  }

  void run(const Record&, std::span<const Block> blocks, Block& out) const override {
    const std::vector<double>& values = blocks[input_.step].values;
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      if (is_missing_value(values[static_cast<std::size_t>(columns_[k])], missing_))
        out.add(static_cast<std::int32_t>(k), 1.0);
    }
  }

 private:
  Input input_;
  double missing_;
  std::vector<std::int32_t> columns_;
};

// Counts the edges that are not larger than each value. Comparisons with NaN are false.
UNKERNEL_CLONES void compare_edges(const double* edges, std::size_t count, const double* values,
                                   std::size_t rows, std::int64_t* places) {
  for (std::size_t row = 0; row < rows; ++row) places[row] = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const double edge = edges[k];
    for (std::size_t row = 0; row < rows; ++row) places[row] += edge <= values[row] ? 1 : 0;
  }
}

void count_edges(std::span<const double> edges, std::span<const double> values, std::int64_t* places) {
  constexpr std::size_t values_at_once = 256;  // these stay in the cache while all edges are compared
  for (std::size_t first = 0; first < values.size(); first += values_at_once) {
    const auto block = values.subspan(first, std::min(values_at_once, values.size() - first));
    if (std::ssize(edges) <= max_compared_edges) {
      compare_edges(edges.data(), edges.size(), block.data(), block.size(), places + first);
      continue;
    }
    for (std::size_t row = 0; row < block.size(); ++row)
      places[first + row] = std::upper_bound(edges.begin(), edges.end(), block[row]) - edges.begin();
  }
}

class BinStep final : public Step {
 public:
  BinStep(Input input, Bins bins) : Step(shape_of(input, bins)), input_(input), bins_(std::move(bins)) {
    std::int32_t first = 0;
    for (std::size_t k = 0; k < bins_.missing.size(); ++k) {
      first_features_.push_back(first);
      first += count_features(bins_, k);
    }
  }

  void run(const Record&, std::span<const Block> blocks, Block& out) const override {
    const std::vector<double>& values = blocks[input_.step].values;
    for (std::size_t k = 0; k < values.size(); ++k) {
      const std::int32_t place = std::isnan(values[k]) ? missing_place(k) : find_interval(values[k], k);
      if (!bins_.one_hot) {
        out.values.push_back(place);
      } else if (place >= 0) {
        out.add(first_features_[k] + place, 1.0);
      }
    }
  }

  std::size_t places() const override {
    return bins_.one_hot && input_.producer->has_column_values() ? first_features_.size() : 0;
  }

  bool write_codes(const RowBatch& batch, const CodeOutput& out) const override {
    std::vector<double> values(batch.end - batch.begin);
    std::vector<std::int64_t> places(values.size());
    for (std::size_t k = 0; k < first_features_.size(); ++k) {
      if (!input_.producer->compute_column_values(batch, k, values)) return false;
      count_edges({bins_.edges.data() + bins_.begins[k], bins_.edges.data() + bins_.begins[k + 1]}, values,
                  places.data());
      for (std::size_t row = 0; row < values.size(); ++row) {
        const bool is_missing = std::isnan(values[row]);
        if (is_missing && bins_.missing[k] == forbidden) return false;
        const std::int32_t place = is_missing ? bins_.missing[k] : static_cast<std::int32_t>(places[row]);
        out.first[row * out.stride + k] = place >= 0 ? first_features_[k] + place : ignored;
      }
    }
    return true;
  }

 private:
  static std::int32_t count_intervals(const Bins& bins, std::size_t k) {
    return bins.begins[k + 1] - bins.begins[k] + 1;
  }
  // Returns the number of features of a column: one per interval and, possibly, a last feature for missing
  // values.
  static std::int32_t count_features(const Bins& bins, std::size_t k) {
    return std::max(count_intervals(bins, k), bins.missing[k] + 1);
  }

  static Shape shape_of(const Input& input, const Bins& bins) {
    const auto columns = static_cast<std::size_t>(input.shape.width);
    check_plan(input.shape.dense && bins.begins.size() == columns + 1 && bins.missing.size() == columns &&
                   bins.names.size() == columns && bins.begins.front() == 0 &&
                   bins.begins.back() == width_of(bins.edges) &&
                   std::is_sorted(bins.begins.begin(), bins.begins.end()),
               "edges do not fit the columns");
    std::int64_t width = 0;
    for (std::size_t k = 0; k < columns; ++k) {
      const double* first = bins.edges.data() + bins.begins[k];
      check_plan(std::is_sorted(first, bins.edges.data() + bins.begins[k + 1]), "edges do not ascend");
      check_plan(bins.missing[k] >= forbidden && bins.missing[k] <= count_intervals(bins, k),
                 "the feature of missing values is out of range");
      width += count_features(bins, k);
    }
    check_plan(width <= std::numeric_limits<std::int32_t>::max(), "too many intervals");
    return {bins.one_hot ? static_cast<std::int32_t>(width) : input.shape.width, !bins.one_hot};
  }

  std::int32_t missing_place(std::size_t k) const {
    if (bins_.missing[k] != forbidden) return bins_.missing[k];
    throw std::invalid_argument("column '" + bins_.names[k] + "': the value is missing, and has no interval");
  }

  // Returns the number of edges that are not larger than the value. If there are few edges, compares all
  // edges, because the branches of a bisection cannot be predicted.
  std::int32_t find_interval(double value, std::size_t k) const {
    const double* first = bins_.edges.data() + bins_.begins[k];
    const double* last = bins_.edges.data() + bins_.begins[k + 1];
    if (last - first > max_compared_edges)
      return static_cast<std::int32_t>(std::upper_bound(first, last, value) - first);
    std::int32_t count = 0;
    for (const double* edge = first; edge != last; ++edge) count += *edge <= value ? 1 : 0;
    return count;
  }

  Input input_;
  Bins bins_;
  std::vector<std::int32_t> first_features_;  // the first feature of each column
};

class Binarize final : public Step {
 public:
  Binarize(Input input, double threshold) : Step(input.shape), input_(input), threshold_(threshold) {
    check_plan(input.shape.dense || threshold >= 0.0, "a sparse block has zeros that would become ones");
  }

  void run(const Record&, std::span<const Block> blocks, Block& out) const override {
    const Block& in = blocks[input_.step];
    out.ids = in.ids;
    for (const double value : in.values) {
      if (!std::isfinite(value))
        throw std::invalid_argument("a value that is compared with a threshold is missing or infinite");
      out.values.push_back(value > threshold_ ? 1.0 : 0.0);
    }
  }

 private:
  Input input_;
  double threshold_;
};

// Adjacent outputs with the same first factor form a run, which is skipped if the factor is 0.
class Products final : public Step {
 public:
  Products(Input input, Factors factors)
      : Step({count_outputs(input, factors), factors.dense}), input_(input), factors_(std::move(factors)) {
    for (std::int32_t k = 0; k < shape().width; ++k) {
      const std::int32_t first = size(k) == 0 ? -1 : factors_.columns[begin(k)];
      if (runs_.empty() || runs_.back().first != first) runs_.push_back({first, k});
    }
    runs_.push_back({-1, shape().width});
  }

  void run(const Record&, std::span<const Block> blocks, Block& out) const override {
    const std::vector<double>& x = blocks[input_.step].values;
    for (const double value : x) {
      if (!std::isfinite(value))
        throw std::invalid_argument("a value that is multiplied by others is missing");
    }
    if (shape().dense) out.values.assign(static_cast<std::size_t>(shape().width), 0.0);
    for (std::size_t run = 0; run + 1 < runs_.size(); ++run) {
      const std::int32_t first = runs_[run].first;
      if (first >= 0 && x[static_cast<std::size_t>(first)] == 0.0) continue;
      for (std::int32_t k = runs_[run].begin; k < runs_[run + 1].begin; ++k) add(k, product(x, k), out);
    }
  }

 private:
  struct Run {
    std::int32_t first;  // factor; -1 for an output without factors
    std::int32_t begin;  // output
  };

  std::size_t begin(std::int32_t k) const {
    return static_cast<std::size_t>(factors_.begins[static_cast<std::size_t>(k)]);
  }
  std::size_t size(std::int32_t k) const { return begin(k + 1) - begin(k); }

  double product(const std::vector<double>& x, std::int32_t k) const {
    double product = 1.0;
    for (std::size_t i = begin(k); i < begin(k + 1); ++i)
      product *= x[static_cast<std::size_t>(factors_.columns[i])];
    return product;
  }

  void add(std::int32_t k, double value, Block& out) const {
    if (shape().dense) {
      out.values[static_cast<std::size_t>(k)] = value;
    } else if (value != 0.0) {
      out.add(k, value);
    }
  }

  static std::int32_t count_outputs(const Input& input, const Factors& factors) {
    const std::vector<std::int32_t>& begins = factors.begins;
    check_plan(input.shape.dense && !begins.empty() && begins.front() == 0 &&
                   std::is_sorted(begins.begin(), begins.end()) && begins.back() == width_of(factors.columns),
               "factors do not fit the columns");
    for (const std::int32_t column : factors.columns)
      check_plan(column >= 0 && column < input.shape.width, "a factor is not among the columns");
    return width_of(begins) - 1;
  }

  Input input_;
  Factors factors_;
  std::vector<Run> runs_;
};

// Returns the factors of products given by powers: output k is the product of x[j]^powers[k * width + j].
Factors factors_of(const Input& input, const std::vector<std::int32_t>& powers) {
  const auto width = static_cast<std::size_t>(input.shape.width);
  check_plan(width > 0 && powers.size() % width == 0, "powers do not fit the columns");
  Factors factors{{0}, {}, true};
  constexpr std::int32_t largest_power = 64;
  for (std::size_t i = 0; i < powers.size(); ++i) {
    check_plan(powers[i] >= 0 && powers[i] <= largest_power, "a power is out of range");
    factors.columns.insert(factors.columns.end(), static_cast<std::size_t>(powers[i]),
                           static_cast<std::int32_t>(i % width));
    if ((i + 1) % width == 0) factors.begins.push_back(width_of(factors.columns));
  }
  return factors;
}

}  // namespace

std::unique_ptr<Step> numbers(std::vector<std::int32_t> columns) {
  return std::make_unique<Numbers>(std::move(columns));
}
std::unique_ptr<Step> scale(Input input, Scaling scaling) {
  return std::make_unique<Scale>(input, std::move(scaling));
}
std::unique_ptr<Step> impute(Input input, double missing, std::vector<double> fill) {
  return std::make_unique<Impute>(input, missing, std::move(fill));
}
std::unique_ptr<Step> indicate(Input input, double missing, std::vector<std::int32_t> columns) {
  return std::make_unique<Indicate>(input, missing, std::move(columns));
}
std::unique_ptr<Step> bins(Input input, Bins bins) {
  return std::make_unique<BinStep>(input, std::move(bins));
}
std::unique_ptr<Step> binarize(Input input, double threshold) {
  return std::make_unique<Binarize>(input, threshold);
}
std::unique_ptr<Step> products(Input input, Factors factors) {
  return std::make_unique<Products>(input, std::move(factors));
}
std::unique_ptr<Step> products(Input input, const std::vector<std::int32_t>& powers) {
  return std::make_unique<Products>(input, factors_of(input, powers));
}

}  // namespace unkernel::records
