#include "unkernel/records/vector_steps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "unkernel/base/elementary.hpp"
#include "unkernel/records/column.hpp"

namespace unkernel::records {
namespace {

class Concatenate final : public Step {
 public:
  explicit Concatenate(std::vector<Input> inputs) : Step(shape_of(inputs)), inputs_(std::move(inputs)) {}

  void run(const Record&, std::span<const Block> blocks, Block& out) const override {
    std::int32_t first = 0;
    for (const Input& input : inputs_) {
      const Block& in = blocks[input.step];
      out.values.insert(out.values.end(), in.values.begin(), in.values.end());
      if (!shape().dense) append_ids(input, in, first, out);
      first += input.shape.width;
    }
  }

  std::size_t places() const override {
    std::size_t places = 0;
    for (const Input& input : inputs_) {
      if (input.producer->places() == 0) return 0;
      places += input.producer->places();
    }
    return places;
  }

  bool write_codes(const RowBatch& batch, const CodeOutput& out) const override {
    const std::size_t rows = batch.end - batch.begin;
    std::int32_t first = 0;
    std::size_t place = 0;
    for (const Input& input : inputs_) {
      if (!input.producer->write_codes(batch, {out.first + place, out.stride})) return false;
      const std::size_t end = place + input.producer->places();
      for (std::size_t row = 0; row < rows && first > 0; ++row) {
        for (std::size_t k = place; k < end; ++k) {
          std::int32_t& code = out.first[row * out.stride + k];
          code += code >= 0 ? first : 0;
        }
      }
      place = end;
      first += input.shape.width;
    }
    return true;
  }

 private:
  static Shape shape_of(const std::vector<Input>& inputs) {
    std::int64_t width = 0;
    bool dense = true;
    for (const Input& input : inputs) {
      width += input.shape.width;
      dense = dense && input.shape.dense;
    }
    check_plan(width <= std::numeric_limits<std::int32_t>::max(), "too many features");
    return {static_cast<std::int32_t>(width), dense};
  }

  static void append_ids(const Input& input, const Block& in, std::int32_t first, Block& out) {
    if (input.shape.dense) {
      for (std::int32_t k = 0; k < input.shape.width; ++k) out.ids.push_back(first + k);
    } else {
      for (const std::int32_t id : in.ids) out.ids.push_back(first + id);
    }
  }

  std::vector<Input> inputs_;
};

class Select final : public Step {
 public:
  Select(Input input, std::vector<std::int32_t> places, std::int32_t width)
      : Step({width, input.shape.dense}), input_(input), places_(std::move(places)) {
    check_plan(places_.size() == static_cast<std::size_t>(input.shape.width),
               "places do not fit the columns");
    std::vector<std::int32_t> used_places;
    for (const std::int32_t place : places_) {
      check_plan(place >= -1 && place < width, "a place is out of range");
      if (place >= 0) used_places.push_back(place);
    }
    is_ordered_ = std::is_sorted(used_places.begin(), used_places.end());
    // Sorts, because an array of flags by place could be huge for a damaged plan.
    std::sort(used_places.begin(), used_places.end());
    check_plan(std::adjacent_find(used_places.begin(), used_places.end()) == used_places.end(),
               "two columns have one place");
    check_plan(!input.shape.dense || used_places.size() == static_cast<std::size_t>(width),
               "a place has no column");
  }

  void run(const Record&, std::span<const Block> blocks, Block& out) const override {
    const Block& in = blocks[input_.step];
    if (shape().dense) return run_dense(in, out);
    for (std::size_t k = 0; k < in.ids.size(); ++k) {
      const std::int32_t place = places_[static_cast<std::size_t>(in.ids[k])];
      if (place >= 0) out.add(place, in.values[k]);
    }
    if (!is_ordered_) sort_by_id(out);
  }

 private:
  void run_dense(const Block& in, Block& out) const {
    out.values.resize(static_cast<std::size_t>(shape().width));
    for (std::size_t k = 0; k < places_.size(); ++k) {
      if (places_[k] >= 0) out.values[static_cast<std::size_t>(places_[k])] = in.values[k];
    }
  }

  static void sort_by_id(Block& block) {
    std::vector<std::pair<std::int32_t, double>> entries;
    for (std::size_t k = 0; k < block.ids.size(); ++k) entries.emplace_back(block.ids[k], block.values[k]);
    std::sort(entries.begin(), entries.end());
    block.clear();
    for (const auto& [id, value] : entries) block.add(id, value);
  }

  Input input_;
  std::vector<std::int32_t> places_;
  bool is_ordered_ = true;
};

class Densify final : public Step {
 public:
  explicit Densify(Input input) : Step({input.shape.width, true}), input_(input) {}

  void run(const Record&, std::span<const Block> blocks, Block& out) const override {
    const Block& in = blocks[input_.step];
    if (input_.shape.dense) {
      out.values = in.values;
      return;
    }
    out.values.assign(static_cast<std::size_t>(shape().width), 0.0);
    for (std::size_t k = 0; k < in.ids.size(); ++k)
      out.values[static_cast<std::size_t>(in.ids[k])] = in.values[k];
  }

 private:
  Input input_;
};

class Normalize final : public Step {
 public:
  Normalize(Input input, Norm norm) : Step(input.shape), input_(input), norm_(norm) {}

  void run(const Record&, std::span<const Block> blocks, Block& out) const override {
    const Block& in = blocks[input_.step];
    out.ids = in.ids;
    out.values = in.values;
    const double length = length_of(in.values);
    if (length <= negligible_length()) return;
    for (double& value : out.values) value /= length;
  }

 private:
  // Returns the largest length of rows that are not divided. As in scikit-learn, dense rows are not divided
  // if their length is about as small as rounding errors.
  double negligible_length() const {
    return input_.shape.dense ? std::nextafter(10 * std::numeric_limits<double>::epsilon(), 0.0) : 0.0;
  }

  double length_of(const std::vector<double>& values) const {
    double sum = 0.0;
    switch (norm_) {
      case Norm::l1:
        for (const double value : values) sum += std::abs(value);
        return sum;
      case Norm::l2:
        for (const double value : values) sum += value * value;
        return std::sqrt(sum);
      default:
        for (const double value : values) sum = std::max(sum, std::abs(value));
        return sum;
    }
  }

  Input input_;
  Norm norm_;
};

class Tfidf final : public Step {
 public:
  Tfidf(Input input, bool sublinear, std::vector<double> idf)
      : Step(input.shape), input_(input), sublinear_(sublinear), idf_(std::move(idf)) {
    check_plan(
        !input.shape.dense && (idf_.empty() || idf_.size() == static_cast<std::size_t>(input.shape.width)),
        "idf does not fit the terms");
  }

  void run(const Record&, std::span<const Block> blocks, Block& out) const override {
    const Block& in = blocks[input_.step];
    out.ids = in.ids;
    for (std::size_t k = 0; k < in.values.size(); ++k) {
      double value = sublinear_ ? natural_logarithm(in.values[k]) + 1.0 : in.values[k];
      if (!idf_.empty()) value *= idf_[static_cast<std::size_t>(in.ids[k])];
      out.values.push_back(value);
    }
  }

 private:
  Input input_;
  bool sublinear_;
  std::vector<double> idf_;
};

}  // namespace

std::unique_ptr<Step> concatenate(std::vector<Input> inputs) {
  return std::make_unique<Concatenate>(std::move(inputs));
}
std::unique_ptr<Step> select(Input input, std::vector<std::int32_t> places, std::int32_t width) {
  return std::make_unique<Select>(input, std::move(places), width);
}
std::unique_ptr<Step> densify(Input input) { return std::make_unique<Densify>(input); }
std::unique_ptr<Step> normalize(Input input, Norm norm) { return std::make_unique<Normalize>(input, norm); }
std::unique_ptr<Step> tfidf(Input input, bool sublinear, std::vector<double> idf) {
  return std::make_unique<Tfidf>(input, sublinear, std::move(idf));
}

}  // namespace unkernel::records
