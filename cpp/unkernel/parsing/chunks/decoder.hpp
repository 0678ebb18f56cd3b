// Greedy chunking: word by word in reading direction, where each tag becomes a feature of the following
// words.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/data/text/column_text.hpp"
#include "unkernel/engines/engine.hpp"
#include "unkernel/parsing/chunks/features.hpp"
#include "unkernel/parsing/chunks/tags.hpp"

namespace unkernel::parsing {

struct ChunkModel {
  const ChunkFeatures& features;
  const engines::Engine& engine;
  std::span<const ChunkTag> classes;  // the tags of the engine's scores
  ChunkScheme scheme;
  bool backward;
};

// The tags of all words in IOB2. Chooses the best tag that may follow the previous one, so that the result is
// always valid. Does not depend on the number of threads.
std::vector<ChunkTag> chunk_text(const data::ColumnText& text, const ChunkModel& model, Threads threads);

}  // namespace unkernel::parsing
