// Finds the chunks of sentences: tags the words one by one in reading direction. Each tag becomes a feature
// of the following words.
//
// A beam keeps the best taggings of the words read so far. The probability of a tagging is the product of the
// probabilities of its tags, which are the softmax of the classifier's scores. Previous tags are features, so
// the classifier also learns transitions. Invalid tags have probability 0. Taggings that end with the same
// tags, as far back as features can depend on tags, have the same extensions, so only the most probable one
// is kept. A beam that is wide enough for all such endings finds the most probable tagging (Viterbi). With a
// beam of 1, each word gets the tag with the largest score.
//
// Cost    for each word, one score per tagging in the beam.
// Bytes   8 per word of the longest sentence and 16 per tagging in its beam, for each thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/data/text/column_text.hpp"
#include "unkernel/engines/engine.hpp"
#include "unkernel/parsing/chunks/tags.hpp"
#include "unkernel/parsing/sequences/features.hpp"

namespace unkernel::parsing {

constexpr std::size_t widest_beam = 64;  // limits the time that a model file can cause

// Return the names and sources of the templates. Chunkers add one attribute: the part of speech, from the
// second column.
inline SequenceNames chunk_names() { return {.columns = {"pos"}, .lexicons = {}}; }
inline SequenceSources chunk_sources() { return {.word_column = 0, .columns = {1}, .lexicons = {}}; }

struct ChunkModel {
  const SequenceFeatures& features;
  const engines::Engine& engine;
  std::span<const ChunkTag> classes;  // the tags of the engine's scores
  ChunkScheme scheme;
  bool backward;
  std::size_t beam;  // the number of taggings to keep: 1 to widest_beam
};

// Returns the tags of all words in IOB2; they are always valid. The number of threads does not change the
// result. Throws std::invalid_argument if the model is inconsistent.
std::vector<ChunkTag> chunk_text(const data::ColumnText& text, const ChunkModel& model, Threads threads);

}  // namespace unkernel::parsing
