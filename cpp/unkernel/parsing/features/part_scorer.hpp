// Scores the classes of one part: a classifier that makes some of a parser's decisions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/engines/engine.hpp"

namespace unkernel::parsing {

// Scores with an engine. Without an engine, because the part has a single class, scores are 0. For two
// classes, an engine has one score, which is positive for the second class.
class PartScorer {
 public:
  PartScorer(const engines::Engine* engine, std::size_t classes)
      : engine_(engine), scores_(std::max<std::size_t>(classes, 2), 0.0) {
    if (engine_ != nullptr) worker_ = engine_->worker();
  }

  std::span<const double> score(std::span<const std::int32_t> columns) {
    if (engine_ != nullptr) engine_->score(engines::SparseRow<std::int32_t>{columns}, *worker_, out());
    return scores_;
  }
  // Returns scores like score(), but guarantees only which one is largest.
  std::span<const double> decide(std::span<const std::int32_t> columns) {
    if (engine_ != nullptr)
      engine_->score_until_decided(engines::SparseRow<std::int32_t>{columns}, *worker_, out());
    return scores_;
  }

 private:
  double* out() { return scores_.data() + (engine_->scores() == 1 ? 1 : 0); }

  const engines::Engine* engine_;
  std::unique_ptr<engines::Worker> worker_;
  std::vector<double> scores_;
};

}  // namespace unkernel::parsing
