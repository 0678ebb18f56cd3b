// Compares the columns of conjunctions with products of the features' values, in several orders of writing.
#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "check.hpp"
#include "engines/brute_force.hpp"
#include "poly/random_examples.hpp"
#include "unkernel/poly/conjunction_columns.hpp"

namespace {

using unkernel::kernels::Basis;
using unkernel::kernels::ConjunctionIndex;
using unkernel::kernels::FeatureMap;
using unkernel::kernels::Key;
using unkernel::poly::ConjunctionSearch;
using unkernel::poly::DistinctRows;
using unkernel::solve::SparseColumns;

using Column = std::map<std::int32_t, double>;

Column product_of(const DistinctRows& examples, const brute_force::Ranks& conjunction) {
  Column column;
  for (std::int64_t i = 0; i < examples.rows(); ++i) {
    double product = 1.0;
    for (const auto rank : conjunction) {
      double value = 0.0;
      for (auto k = static_cast<std::size_t>(examples.offsets[static_cast<std::size_t>(i)]);
           k < static_cast<std::size_t>(examples.offsets[static_cast<std::size_t>(i) + 1]); ++k) {
        if (static_cast<std::uint64_t>(examples.features[k]) == rank)
          value = examples.binary() ? 1.0 : examples.values[k];
      }
      product *= value;
    }
    if (product != 0.0) column[static_cast<std::int32_t>(i)] = product;
  }
  return column;
}

Column column_of(const SparseColumns& columns, std::size_t j) {
  Column column;
  const auto rows = columns.rows(j);
  CHECK(std::ranges::is_sorted(rows));
  for (std::size_t k = 0; k < rows.size(); ++k)
    column[rows[k]] = columns.uniform() ? 1.0 : columns.values(j)[k];
  return column;
}

void test_columns_are_products(const RowKind& kind, int degree, std::int64_t count) {
  const DistinctRows examples = random_rows<std::int32_t>(count, kind, 7).examples();
  const FeatureMap map{degree, FeatureMap::Kind::kernel, 1.0, 1.0};
  const ConjunctionSearch search(examples, map);
  const Basis basis = examples.binary() ? Basis::sets : Basis::monomials;
  const ConjunctionIndex index(degree, basis);
  const auto conjunctions =
      brute_force::all_conjunctions(static_cast<std::uint64_t>(examples.used_features()), degree, basis);
  std::vector<Key> keys(conjunctions.size());
  std::iota(keys.begin(), keys.end(), Key{0});

  std::vector<std::size_t> order = search.writing_order(keys);
  CHECK(order.size() == keys.size());
  ConjunctionSearch::ColumnWriter writer(search);
  for (int round = 0; round < 2; ++round) {  // the order that is fast, and that of the keys
    SparseColumns columns(examples.binary());
    for (const std::size_t k : order) writer.append(keys[k], columns);
    for (std::size_t place = 0; place < order.size(); ++place) {
      CHECK(column_of(columns, place) == product_of(examples, conjunctions[order[place]]));
      CHECK(columns.scale(place) == search.constant_of(keys[order[place]]));
    }
    std::sort(order.begin(), order.end());
  }
}

}  // namespace

int main() {
  for (const bool binary : {true, false}) {
    test_columns_are_products({12, 7, binary}, 2, 60);
    test_columns_are_products({9, 6, binary}, 3, 40);
    test_columns_are_products({60, 5, binary}, 2, 300);  // rows are searched for frequent features
  }
  return 0;
}
