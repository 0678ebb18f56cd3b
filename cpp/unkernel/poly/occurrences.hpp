// Lists the rows, and the positions in these rows, where each feature occurs; rows ascend.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "unkernel/poly/distinct_rows.hpp"

namespace unkernel::poly {

struct Occurrences {
  struct Place {
    std::int32_t row;
    std::int32_t position;
  };
  std::vector<std::int64_t> offsets;
  std::vector<Place> places;

  explicit Occurrences(const DistinctRows& examples)
      : offsets(static_cast<std::size_t>(examples.used_features()) + 2, 0) {
    for (const std::int32_t f : examples.features) ++offsets[static_cast<std::size_t>(f) + 2];
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
    places.resize(examples.features.size());
    for (std::size_t i = 0; i < examples.hashes.size(); ++i) {
      for (std::int64_t k = examples.offsets[i]; k < examples.offsets[i + 1]; ++k) {
        const auto f = static_cast<std::size_t>(examples.features[static_cast<std::size_t>(k)]);
        places[static_cast<std::size_t>(offsets[f + 1]++)] = {
            static_cast<std::int32_t>(i), static_cast<std::int32_t>(k - examples.offsets[i])};
      }
    }
    offsets.pop_back();
  }

  std::span<const Place> of(std::size_t feature) const {
    const auto first = static_cast<std::size_t>(offsets[feature]);
    return std::span(places).subspan(first, static_cast<std::size_t>(offsets[feature + 1]) - first);
  }
};

}  // namespace unkernel::poly
