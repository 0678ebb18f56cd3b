#include "unkernel/poly/on_the_fly_rows.hpp"

#include <memory>
#include <stdexcept>

#include "unkernel/poly/stored_rows.hpp"

namespace unkernel::poly {
namespace {

template <int Degree>
std::unique_ptr<StoredRows> on_the_fly_of_degree(const DistinctRows& examples,
                                                 const kernels::FeatureMap& map) {
  if (examples.binary()) return std::make_unique<StoredIn<OnTheFlyRows<Degree, true>>>(examples, map);
  return std::make_unique<StoredIn<OnTheFlyRows<Degree, false>>>(examples, map);
}

}  // namespace

std::unique_ptr<StoredRows> store_on_the_fly(const DistinctRows& examples, const kernels::FeatureMap& map) {
  switch (map.degree) {
    case 1: return on_the_fly_of_degree<1>(examples, map);
    case 2: return on_the_fly_of_degree<2>(examples, map);
    case 3: return on_the_fly_of_degree<3>(examples, map);
    default: throw std::invalid_argument("degree must be 1, 2 or 3");
  }
}

}  // namespace unkernel::poly
