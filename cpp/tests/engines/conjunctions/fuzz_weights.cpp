// A model of conjunctions with any columns, keys and weights is refused, or its tables can be built by any
// plan and used for scoring. If the weights are small integers, the engine with 16-bit weights gives the same
// scores.
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "engines/fuzz_use.hpp"
#include "fuzz.hpp"
#include "fuzz_bytes.hpp"
#include "unkernel/engines/conjunctions/conjunction_engine.hpp"
#include "unkernel/engines/conjunctions/int16_pair_engine.hpp"
#include "unkernel/engines/conjunctions/layout.hpp"

namespace {

using namespace unkernel;
using namespace unkernel::engines;

constexpr std::int64_t features = 14;

struct Model {
  Basis basis;
  FeatureMap map;
  std::vector<std::int64_t> columns;
  std::vector<std::uint64_t> keys;
  std::vector<double> weights;
  std::vector<double> intercept;
  bool has_small_integers;  // as weights and intercept

  explicit Model(FuzzBytes& bytes)
      : basis(bytes.flag() ? Basis::monomials : Basis::sets),
        map{1 + static_cast<int>(bytes.below(4)), FeatureMap::Kind::kernel, 0.5, 1.0} {
    if (bytes.byte() > 240) map.degree = static_cast<int>(bytes.byte()) - 128;
    if (bytes.flag()) map.kind = FeatureMap::Kind::plain;
    has_small_integers = bytes.flag();
    const std::size_t scores = bytes.below(4);
    const std::size_t used = bytes.below(9);
    for (std::size_t rank = 0; rank < used; ++rank)
      columns.push_back(static_cast<std::int64_t>((5 * rank + bytes.below(3)) % 16) -
                        (bytes.byte() > 250 ? 1 : 0));
    std::uint64_t key = 0;
    for (std::size_t left = bytes.below(10); left > 0; --left) {
      key += bytes.below(24);
      keys.push_back(bytes.byte() > 250 ? bytes.number(key) : key);
    }
    for (std::size_t k = 0; k < scores * keys.size(); ++k) weights.push_back(weight(bytes));
    for (std::size_t k = 0; k < scores; ++k) intercept.push_back(weight(bytes));
    if (bytes.byte() > 240) bytes.damage_one(columns, keys, weights, intercept);
  }

  double weight(FuzzBytes& bytes) const { return has_small_integers ? bytes.byte() - 128.0 : bytes.real(); }
  ConjunctionWeights view() const { return {basis, map, features, columns, keys, weights, intercept}; }
};

void compare(const Engine& a, const Engine& b, FuzzBytes& bytes) {
  CHECK(a.scores() == b.scores());
  std::vector<std::int32_t> row;
  for (std::int32_t column = -1; column <= features; ++column)
    if (bytes.flag()) row.push_back(column);
  std::vector<double> of_a(a.scores()), of_b(b.scores());
  a.score(SparseRow<std::int32_t>{row, nullptr}, *a.worker(), of_a.data());
  b.score(SparseRow<std::int32_t>{row, nullptr}, *b.worker(), of_b.data());
  CHECK(of_a == of_b);
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (char degree = 0; degree < 4; ++degree) {
    for (char basis = 0; basis < 2; ++basis) {
      seeds.push_back({basis, degree, 0, 0, 1, 2, 6, 0, 0, 1, 0, 2, 0, 0, 0, 1, 0, 2, 0, 6, 1, 0, 2,
                       0,     5,      0, 7, 0, 3, 0, 9, 0, 9, 8, 7, 6, 5, 4, 3, 2, 1, 9, 8, 7, 6, 0,
                       3,     1,      0, 4, 1, 3, 5, 7, 1, 1, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8});
    }
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzBytes bytes(data, size);
  const Model model(bytes);
  try {
    check(model.view());
    const HeadPlan head{static_cast<std::uint32_t>(bytes.below(4)), bytes.below(10), bytes.flag()};
    const GroupPlan groups{static_cast<std::uint32_t>(bytes.below(3) == 2 ? 6 : 0), 200.0};
    Rows<std::int32_t> sample;
    sample.features = features;
    if (groups.features > 0)
      for (int row = 0; row < 3; ++row) fuzz_row(bytes, features, sample);
    const ConjunctionArrays arrays = arrange(model.view(), head, groups, sample.view(), 1);
    const auto engine = make_conjunction_engine(borrow(arrays));
    const auto pairs = make_int16_pair_engine(model.view(), bytes.below(32));
    if (pairs != nullptr && model.has_small_integers) compare(*engine, *pairs, bytes);
    use_engine(*engine, bytes, features);
    if (pairs != nullptr) use_engine(*pairs, bytes, features);
  } catch (const std::invalid_argument&) {}
  return 0;
}
