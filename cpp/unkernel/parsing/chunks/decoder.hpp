// Greedy chunking: word by word in the direction of reading, each answer a feature of those that follow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/data/text/column_text.hpp"
#include "unkernel/engines/engine.hpp"
#include "unkernel/parsing/chunks/features.hpp"
#include "unkernel/parsing/chunks/tags.hpp"

namespace unkernel::parsing {

struct ChunkModel {
  const ChunkFeatures& features;
  const engines::Engine& engine;
  std::span<const ChunkTag> classes;  // the tags that the engine's scores belong to
  ChunkScheme scheme;
  bool backward;
};

// The tags of all words in IOB2. Of the answers that may stand beside the one before, the best is taken, so
// that tags are always valid. Any number of threads gives the same.
std::vector<ChunkTag> chunk_text(const data::ColumnText& text, const ChunkModel& model, int threads);

}  // namespace unkernel::parsing
