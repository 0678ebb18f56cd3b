// Scores moves and labels with the compiled classifiers of an arc-eager parser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/parsing/arc_eager/parser.hpp"
#include "unkernel/parsing/features/part_scorer.hpp"

namespace unkernel::parsing {

class EngineScorer {
 public:
  // The spec and the engines must outlive the scorer.
  EngineScorer(const ArcEagerSpec& spec, const ParserEngines& engines) {
    for (std::size_t part = 0; part < spec.moves().size(); ++part)
      moves_.emplace_back(engines.moves[part], spec.moves().classes(part).size());
    for (std::size_t part = 0; part < spec.arcs().size(); ++part)
      arcs_.emplace_back(engines.arcs[part], spec.arcs().classes(part).size());
  }

  std::span<const double> move_scores(std::size_t part, std::span<const std::int32_t> columns) {
    return moves_[part].score(columns);
  }
  std::span<const double> label_scores(std::size_t part, std::span<const std::int32_t> columns) {
    return arcs_[part].score(columns);
  }
  std::span<const double> decided_moves(std::size_t part, std::span<const std::int32_t> columns) {
    return moves_[part].decide(columns);
  }
  std::span<const double> decided_arcs(std::size_t part, std::span<const std::int32_t> columns) {
    return arcs_[part].decide(columns);
  }

 private:
  std::vector<PartScorer> moves_;
  std::vector<PartScorer> arcs_;
};

}  // namespace unkernel::parsing
