// The bit-sliced index for binary support vectors. Each frequent feature has a bit set, with one bit per
// vector. Carry-save adders sum the sets of a row: a few logical operations count the overlaps of hundreds of
// vectors. Rare features have lists of vectors, which are added to the counts. Exact for every kernel that is
// a function of the overlap and of the sizes of row and vector.
//
// Bytes   for m scores: 1/8 per vector and frequent feature, 4 per entry of a rare feature; 8 m per vector.
// Query   about 5 logical operations per 8 bytes of the row's bit sets, then one lookup per vector.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "unkernel/engines/engine.hpp"
#include "unkernel/engines/vectors/vector_sum.hpp"

namespace unkernel::engines {

struct BitslicedTables {
  VectorSumTables sum;
  std::span<const std::int64_t> columns;       // rank -> column
  std::uint32_t frequent;                      // number of ranks with bit sets
  std::span<const std::uint64_t> bits;         // frequent x count_words(vectors)
  std::span<const std::uint32_t> list_begins;  // used - frequent + 1
  std::span<const std::uint32_t> lists;        // vectors, by rank
};

// Returns the number of words of a bit set, in whole blocks of 512 vectors.
constexpr std::size_t count_words(std::size_t vectors) { return (vectors + 511) / 512 * 8; }

// Checks the tables, which must outlive the engine; throws std::invalid_argument.
std::unique_ptr<Engine> make_bitsliced_engine(const BitslicedTables& tables);

}  // namespace unkernel::engines
