#include "unkernel/records/plan.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace unkernel::records {
namespace {

void check_finite(std::int32_t id, double value) {
  if (std::isfinite(value)) return;
  throw std::invalid_argument("feature " + std::to_string(id) + " of the encoded record is " +
                              (std::isnan(value) ? "NaN: a value is missing" : "infinite"));
}

// Returns whether a block is sparse, and all values are finite and not 0.
bool is_row(const Block& block) {
  if (block.ids.size() != block.values.size()) return false;
  return std::all_of(block.values.begin(), block.values.end(),
                     [](double value) { return value != 0.0 && std::isfinite(value); });
}

}  // namespace

void check_plan(bool is_valid, const char* what) {
  if (!is_valid) throw std::invalid_argument(std::string("not a sound plan: ") + what);
}

Input Plan::add(std::unique_ptr<Step> step) {
  steps_.push_back(std::move(step));
  return input(steps_.size() - 1);
}

Input Plan::input(std::size_t step) const {
  check_plan(step < steps_.size(), "a step takes the result of a step that is not before it");
  return {step, steps_[step]->shape(), steps_[step].get()};
}

std::int32_t Plan::width() const { return steps_.empty() ? 0 : steps_.back()->shape().width; }

EncodedRow PlanWorker::encode(std::span<const Cell> cells) {
  check_plan(cells.size() == plan_.columns().size(), "the record has another number of cells");
  const Record record{cells, plan_.columns()};
  for (std::size_t k = 0; k < plan_.steps(); ++k) {
    blocks_[k].clear();
    plan_.step(k).run(record, std::span<const Block>(blocks_).first(k), blocks_[k]);
  }
  if (blocks_.empty()) return {};
  const Block& last = blocks_.back();
  if (is_row(last)) return {last.ids, last.values};
  const bool is_dense = plan_.step(plan_.steps() - 1).shape().dense;
  row_.clear();
  for (std::size_t k = 0; k < last.values.size(); ++k) {
    const std::int32_t id = is_dense ? static_cast<std::int32_t>(k) : last.ids[k];
    check_finite(id, last.values[k]);
    if (last.values[k] != 0.0) row_.add(id, last.values[k]);
  }
  return {row_.ids, row_.values};
}

}  // namespace unkernel::records
