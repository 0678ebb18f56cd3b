// A plan is a short list of steps that turn a record into a row. The last step writes the row.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "unkernel/records/step.hpp"

namespace unkernel::records {

class Plan {
 public:
  explicit Plan(std::vector<std::string> columns) : columns_(std::move(columns)) {}

  // Adds a step, and returns a reference to it for later steps.
  Input add(std::unique_ptr<Step> step);
  // Returns a reference to the step with this number. Throws std::invalid_argument if there is no such step.
  Input input(std::size_t step) const;

  std::span<const std::string> columns() const { return columns_; }
  std::size_t steps() const { return steps_.size(); }
  std::int32_t width() const;
  const Step& step(std::size_t number) const { return *steps_[number]; }

 private:
  std::vector<std::string> columns_;
  std::vector<std::unique_ptr<Step>> steps_;
};

// A row: ascending columns and their values, none of them 0.
struct EncodedRow {
  std::span<const std::int32_t> ids;
  std::span<const double> values;
};

// Encodes records one by one. Each thread needs its own worker, because a worker has buffers. The plan must
// outlive the worker.
class PlanWorker {
 public:
  explicit PlanWorker(const Plan& plan) : plan_(plan), blocks_(plan.steps()) {}

  // Encodes a record with one cell per column of the plan. The result is valid until the next call. Throws
  // std::invalid_argument.
  EncodedRow encode(std::span<const Cell> cells);

 private:
  const Plan& plan_;
  std::vector<Block> blocks_;
  Block row_;
};

}  // namespace unkernel::records
