// Scores plain records while they are read from JSON.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "bound_plan.hpp"
#include "unkernel/engines/engine.hpp"
#include "unkernel/records/json_answers.hpp"
#include "unkernel/records/plain_json.hpp"
#include "unkernel/records/plan.hpp"

namespace unkernel::bindings {

using records::JsonShape;

class PlainScoring {
 public:
  PlainScoring(const BoundPlan& plan, const engines::Engine& engine, records::PlainJson reader)
      : plan_(plan),
        engine_(engine),
        reader_(std::move(reader)),
        encoder_(plan.plan()),
        worker_(engine.worker()),
        cells_(plan.cells()),
        scores_(engine.scores()) {}

  // Calls `use` with the scores of each record. Returns false at the first record that is not plain, cannot
  // be encoded or has an infinite score, or after `most` records.
  template <class Use>
  bool score(std::string_view text, JsonShape shape, std::size_t most, Use&& use) {
    reader_.begin(text, shape == JsonShape::lines);
    try {
      switch (shape) {
        case JsonShape::one: return most > 0 && score_one(use) && reader_.at_end();
        case JsonShape::list: return score_list(most, use);
        case JsonShape::lines: return score_lines(most, use);
      }
    } catch (const std::invalid_argument&) {
    }  // the caller reads the text again with a slower reader, which reports the error
    return false;
  }

 private:
  template <class Use>
  bool score_list(std::size_t most, Use& use) {
    if (!reader_.take('[')) return false;
    if (reader_.take(']')) return reader_.at_end();
    std::size_t rows = 0;
    do {
      if (rows++ == most || !score_one(use)) return false;
    } while (reader_.take(','));
    return reader_.take(']') && reader_.at_end();
  }

  template <class Use>
  bool score_lines(std::size_t most, Use& use) {
    while (reader_.take('\n')) {}
    for (std::size_t rows = 0; !reader_.at_end(); ++rows) {
      if (rows == most || !score_one(use) || !reader_.take_line_ends()) return false;
    }
    return true;
  }

  template <class Use>
  bool score_one(Use& use) {
    std::fill(cells_.begin(), cells_.end(), records::Cell());
    if (!reader_.read(cells_) || plan_.lacks_column(cells_)) return false;
    const records::EncodedRow row = encoder_.encode(cells_);
    engine_.score(engines::SparseRow<std::int32_t>{row.ids, row.values.data()}, *worker_, scores_.data());
    if (!std::all_of(scores_.begin(), scores_.end(), [](double score) { return std::isfinite(score); }))
      return false;
    use(scores_);
    return true;
  }

  const BoundPlan& plan_;
  const engines::Engine& engine_;
  records::PlainJson reader_;
  records::PlanWorker encoder_;
  std::unique_ptr<engines::Worker> worker_;
  std::vector<records::Cell> cells_;
  std::vector<double> scores_;
};

}  // namespace unkernel::bindings
