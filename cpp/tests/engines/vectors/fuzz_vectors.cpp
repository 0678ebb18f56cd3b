// Tables of support vectors from a damaged or hostile file: the input changes some arrays of valid tables of
// each engine and kernel. The tables are refused, or scoring stays inside the arrays.
#include <stdexcept>
#include <string>
#include <vector>

#include "engines/fuzz_use.hpp"
#include "engines/random_machine.hpp"
#include "engines/vectors/vector_tables.hpp"
#include "fuzz.hpp"
#include "fuzz_bytes.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/engines/vectors/pair_engine.hpp"
#include "unkernel/engines/vectors/pair_scores.hpp"

namespace {

using namespace unkernel;
using namespace unkernel::engines;

constexpr std::int64_t features = 12;

struct PairArrays {
  std::vector<std::int64_t> columns{3, 0, 7, 5};
  std::vector<double> intercept{0.5, -0.5, 1.0};
  std::vector<double> dense{1, 2, 3, 4, 5, 6};
  std::vector<std::uint32_t> block_begins{0, 2, 3};
  std::vector<std::uint32_t> block_classes{0, 2, 1};
  std::vector<double> blocks{1, 2, 3, 4, 5, 6};
  std::size_t classes = 3;

  PairTables view() const {
    return {columns, intercept, dense, block_begins, block_classes, blocks, classes};
  }
};

struct ValidTables {
  std::vector<InvertedArrays> inverted;
  std::vector<BitslicedArrays> bitsliced;
  PairArrays pairs;
};

const ValidTables& valid_tables() {
  static const ValidTables all = [] {
    ValidTables tables;
    Random random(3);
    for (int type = 0; type < 4; ++type) {
      const KernelFunction kernel{static_cast<KernelFunction::Type>(type), 3, 0.5, 1.0};
      const std::size_t scores = type % 2 == 0 ? 1 : 3;
      const RandomMachine ones(7, {features, 6, true}, scores, random);
      const RandomMachine reals(7, {features, 9, false}, scores, random);
      tables.inverted.emplace_back(ones, kernel, true);
      tables.inverted.emplace_back(reals, kernel, false);
      tables.bitsliced.emplace_back(ones, kernel, 3);
      if (scores == 3) {
        tables.inverted.back().sum.keep_pairs({0, 2, 2, 7});
        tables.bitsliced.back().sum.keep_pairs({0, 3, 5, 7});
      }
    }
    return tables;
  }();
  return all;
}

void damage_sum(FuzzBytes& bytes, VectorSumArrays& sum) {
  if (bytes.below(8) == 0) sum.kernel.type = static_cast<KernelFunction::Type>(bytes.below(4));
  bytes.damage_one(sum.kernel.degree, sum.kernel.gamma, sum.kernel.coef0, sum.coefficients, sum.intercept,
                   sum.norms, sum.class_begins);
}

void try_inverted(FuzzBytes& bytes) {
  InvertedArrays a = valid_tables().inverted[bytes.below(8)];
  for (std::size_t remaining = bytes.below(4); remaining > 0; --remaining) {
    if (bytes.below(3) == 0) {
      damage_sum(bytes, a.sum);
    } else {
      bytes.damage_one(a.columns, a.dense, a.list_begins, a.lists, a.list_values);
    }
  }
  use_engine(*make_inverted_engine(a.view()), bytes, features);
}

void try_bitsliced(FuzzBytes& bytes) {
  BitslicedArrays a = valid_tables().bitsliced[bytes.below(4)];
  for (std::size_t remaining = bytes.below(4); remaining > 0; --remaining) {
    if (bytes.below(3) == 0) {
      damage_sum(bytes, a.sum);
    } else {
      bytes.damage_one(a.columns, a.frequent, a.bits, a.list_begins, a.lists);
    }
  }
  use_engine(*make_bitsliced_engine(a.view()), bytes, features);
}

void try_pairs(FuzzBytes& bytes) {
  PairArrays a = valid_tables().pairs;
  for (std::size_t remaining = bytes.below(4); remaining > 0; --remaining)
    bytes.damage_one(a.columns, a.intercept, a.dense, a.block_begins, a.block_classes, a.blocks, a.classes);
  const auto engine = make_pair_engine(a.view());
  use_engine(*engine, bytes, features);
  std::vector<double> scores;
  for (std::size_t k = 0; k < engine->scores(); ++k) scores.push_back(bytes.real());
  CHECK(choose_by_votes(scores, a.classes) < a.classes &&
        choose_by_votes_and_sums(scores, a.classes) < a.classes);
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (char engine = 0; engine < 3; ++engine) {
    for (char table = 0; table < 8; ++table) {
      seeds.push_back({engine, table, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 70, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3});
      seeds.push_back(
          {engine, table, 1, table, table, 4, 2, 4, 8, 1, 2, 3, 4, 5, 6, 7, 8, 70, 1, 2, 3, 4, 5});
    }
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzBytes bytes(data, size);
  try {
    switch (bytes.below(3)) {
      case 0: try_inverted(bytes); break;
      case 1: try_bitsliced(bytes); break;
      default: try_pairs(bytes);
    }
  } catch (const std::invalid_argument&) {}
  return 0;
}
