// Rows in a file give the same results as rows in memory, and no file causes reads outside of it.
#include "unkernel/data/rows/block_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "check.hpp"
#include "random_rows.hpp"
#include "temporary_file.hpp"
#include "unkernel/base/checksum.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/cutplane/passes.hpp"
#include "unkernel/data/rows/block_packer.hpp"

namespace {

using namespace unkernel;
using namespace unkernel::data;
using unkernel::cutplane::Passes;
using Examples = Rows<std::int32_t>;

struct Blocks {
  std::vector<unsigned char> bytes;  // from the beginning of the file
  std::vector<BlockEntry> index;
  std::int64_t end = 0;
  std::size_t features = 0;
};

Examples part_of(const Examples& rows, std::size_t begin, std::size_t end) {
  Examples part;
  part.features = rows.features;
  for (std::size_t i = begin; i < end; ++i) {
    const std::size_t first = rows.begin(i), size = rows.end(i) - first;
    part.add(std::span(rows.columns).subspan(first, size), std::span(rows.values).subspan(first, size));
  }
  return part;
}

Blocks pack_blocks(const Examples& rows, std::size_t rows_per_part) {
  BlockPacker packer;
  Blocks blocks;
  blocks.bytes.resize(static_cast<std::size_t>(block_alignment));
  const auto count = static_cast<std::size_t>(rows.size());
  for (std::size_t begin = 0; begin <= count; begin += rows_per_part) {
    packer.add(part_of(rows, begin, std::min(count, begin + rows_per_part)).view());
    if (begin + rows_per_part > count) packer.finish();
    const auto bytes = packer.take();
    blocks.bytes.insert(blocks.bytes.end(), bytes.begin(), bytes.end());
  }
  blocks.index = packer.index();
  blocks.end = packer.end();
  blocks.features = static_cast<std::size_t>(rows.features);
  return blocks;
}

std::unique_ptr<BlockFile> open_file(const TemporaryFile& file, const Blocks& blocks) {
  return std::make_unique<BlockFile>(BlockRegion{"rows.file", file.descriptor(), blocks.end}, blocks.features,
                                     blocks.index);
}

Examples random_rows(std::size_t count, const RowKind& kind, Random& random) {
  Examples rows;
  rows.features = kind.features;
  for (std::size_t i = 0; i < count; ++i) {
    auto [columns, values] = random_row<std::int32_t>(kind, random);
    for (double& value : values) value *= kind.binary ? 1.0 : 1.1;  // not representable in single precision
    rows.add(columns, values);
  }
  return rows;
}

std::vector<double> random_numbers(std::size_t count, Random& random) {
  std::vector<double> numbers(count);
  for (double& number : numbers) number = uniform(random) * 1.7;
  return numbers;
}

void check_equal_passes(const RowStore& expected_store, const RowStore& other_store, Random& random) {
  const Monitor monitor;
  const auto weights = random_numbers(expected_store.features() + 1, random);
  const auto coefficients = random_numbers(static_cast<std::size_t>(expected_store.rows()), random);
  const auto compute_passes = [&](const RowStore& store, int threads) {
    Passes passes(store, 1.5, {threads, &monitor});
    std::vector<double> scores(coefficients.size()), sums(weights.size());
    passes.scores(weights, scores);
    passes.add_transposed(coefficients, sums);
    scores.insert(scores.end(), sums.begin(), sums.end());
    return scores;
  };
  const auto expected = compute_passes(expected_store, 1);
  for (const int threads : {1, 2, 3}) CHECK(compute_passes(other_store, threads) == expected);
}

void test_rows_in_a_file_equal_rows_in_memory() {
  Random random(3);
  for (const RowKind& kind : {RowKind{50, 12, true}, RowKind{50, 12, false}, RowKind{70'000, 40, true},
                              RowKind{70'000, 9, false}}) {
    const Examples rows = random_rows(5000, kind, random);
    const Blocks blocks = pack_blocks(rows, 700);
    const TemporaryFile file;
    file.write(blocks.bytes);
    const auto stored = open_file(file, blocks);
    const PackedRows memory = pack(rows.view(), 1);
    CHECK(stored->blocks() == memory.blocks() && stored->entries() == memory.entries());
    check_equal_passes(memory, *stored, random);
  }
}

void test_blocks_do_not_depend_on_the_parts_that_were_added() {
  Random random(4);
  const Examples rows = random_rows(5000, {300, 20, false}, random);
  const Blocks expected = pack_blocks(rows, 5000);
  CHECK(static_cast<std::int64_t>(expected.bytes.size()) == expected.end);
  for (const std::size_t rows_per_part : {1u, 17u, 2048u, 4999u})
    CHECK(pack_blocks(rows, rows_per_part).bytes == expected.bytes);
}

void test_blocks_are_small_except_for_long_rows() {
  Random random(5);
  Examples rows;
  rows.features = 600'000;
  for (const std::size_t size : {100'000u, 200'000u, 300'000u, 600'000u, 0u, 1u}) {
    std::vector<std::int32_t> columns(size);
    for (std::size_t k = 0; k < size; ++k) columns[k] = static_cast<std::int32_t>(k);
    rows.add(columns, random_numbers(size, random));
  }
  const Blocks blocks = pack_blocks(rows, 2);
  std::vector<std::int64_t> counts;
  for (const BlockEntry& entry : blocks.index) counts.push_back(entry.rows);
  CHECK((counts == std::vector<std::int64_t>{2, 1, 1, 2}));
  const TemporaryFile file;
  file.write(blocks.bytes);
  const auto stored = open_file(file, blocks);
  const Monitor monitor;
  const PackedRows memory = pack(rows.view(), 1);
  const auto weights = random_numbers(blocks.features, random);
  std::vector<double> memory_scores(6), file_scores(6);
  Passes(memory, 0.0, {1, &monitor}).scores(weights, memory_scores);
  Passes(*stored, 0.0, {2, &monitor}).scores(weights, file_scores);
  CHECK(memory_scores == file_scores);
}

void test_the_packer_refuses_invalid_columns_and_values() {
  const std::vector<std::int64_t> offsets = {0, 1}, inside = {0}, outside = {7}, negative = {-1};
  const std::vector<double> one = {1.0}, infinite = {std::numeric_limits<double>::infinity()};
  BlockPacker packer;
  CHECK_THROWS(packer.add(data::CsrView<std::int64_t, double>{offsets, outside, one, 7}),
               std::invalid_argument);
  CHECK_THROWS(packer.add(data::CsrView<std::int64_t, double>{offsets, negative, one, 7}),
               std::invalid_argument);
  CHECK_THROWS(packer.add(data::CsrView<std::int64_t, double>{offsets, inside, one, std::int64_t{1} << 32}),
               std::invalid_argument);
  BlockPacker other;
  other.add(data::CsrView<std::int64_t, double>{offsets, inside, infinite, 7});
  CHECK_THROWS(other.finish(), std::invalid_argument);
}

// --- Hostile files ---------------------------------------------------------------------------------------

Blocks small_blocks() {
  Random random(6);
  return pack_blocks(random_rows(4500, {60, 6, false}, random), 4500);
}

void lease_all(const BlockFile& file) {
  for (std::int64_t k = 0; k < file.blocks(); ++k) (void)file.block(k);
}

// Recomputes the checksums after damage, as an attacker would.
void update_checksums(Blocks& blocks) {
  for (BlockEntry& entry : blocks.index) {
    const Layout layout{static_cast<ColumnKind>(entry.layout % 2), static_cast<ValueKind>(entry.layout / 2)};
    const std::size_t size = block_bytes(entry.rows, entry.entries, layout);
    entry.checksum =
        checksum(std::span(blocks.bytes).subspan(static_cast<std::size_t>(entry.position), size));
  }
}

template <class Number>
void overwrite(Blocks& blocks, std::size_t offset, Number number) {
  std::memcpy(blocks.bytes.data() + offset, &number, sizeof(number));
}

void check_refused(const Blocks& blocks) {
  const TemporaryFile file;
  file.write(blocks.bytes);
  CHECK_THROWS(lease_all(*open_file(file, blocks)), FormatError);
}

void test_damaged_indices_are_refused() {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t number :
       {std::int64_t{-1}, std::int64_t{0}, std::int64_t{6}, std::int64_t{1} << 40, largest, -largest}) {
    for (const auto member :
         {&BlockEntry::position, &BlockEntry::rows, &BlockEntry::entries, &BlockEntry::layout}) {
      Blocks blocks = small_blocks();
      blocks.index[1].*member = number;
      check_refused(blocks);
    }
  }
  Blocks without_last_entry = small_blocks();
  without_last_entry.index.pop_back();
  check_refused(without_last_entry);
  Blocks region_too_long = small_blocks();
  region_too_long.end += 64;
  check_refused(region_too_long);
}

void test_damaged_blocks_are_refused() {
  const Blocks valid = small_blocks();
  const auto first = static_cast<std::size_t>(valid.index[0].position);
  const std::size_t values = first + 8 * static_cast<std::size_t>(valid.index[0].rows + 1);
  const std::size_t columns = values + 8 * static_cast<std::size_t>(valid.index[0].entries);
  const auto check_number_is_refused = [&](std::size_t place, auto number) {
    Blocks blocks = valid;
    overwrite(blocks, place, number);
    check_refused(blocks);
    update_checksums(blocks);
    check_refused(blocks);
  };
  check_number_is_refused(first, std::int64_t{1});
  check_number_is_refused(first + 8, std::int64_t{-5});
  check_number_is_refused(first + 80, std::int64_t{1} << 50);
  check_number_is_refused(values - 8, std::int64_t{0});
  check_number_is_refused(values, std::numeric_limits<double>::quiet_NaN());
  check_number_is_refused(values + 8, -std::numeric_limits<double>::infinity());
  check_number_is_refused(columns, std::uint16_t{60});
  check_number_is_refused(columns + 2, std::uint16_t{65535});
}

void test_shortened_files_are_refused() {
  const Blocks blocks = small_blocks();
  const TemporaryFile file;
  file.write(blocks.bytes);
  const auto stored = open_file(file, blocks);
  lease_all(*stored);
  file.shorten(blocks.end / 2);
  CHECK_THROWS(lease_all(*stored), FormatError);
  CHECK_THROWS(open_file(file, blocks), FormatError);
}

void test_random_damage_is_refused_or_harmless() {
  const Blocks valid = small_blocks();
  Random random(8);
  for (int trial = 0; trial < 3000; ++trial) {
    Blocks blocks = valid;
    blocks.bytes[random.below(static_cast<std::uint32_t>(blocks.bytes.size()))] ^=
        static_cast<unsigned char>(1u << random.below(8));
    if (trial % 2 == 0) update_checksums(blocks);
    const TemporaryFile file;
    file.write(blocks.bytes);
    try {
      const auto stored = open_file(file, blocks);
      const Monitor monitor;
      Passes passes(*stored, 0.0, {1, &monitor});
      std::vector<double> scores(static_cast<std::size_t>(stored->rows()), 1.0),
          weights(stored->features(), 1.0);
      passes.add_transposed(scores, weights);
      passes.scores(weights, scores);
    } catch (const FormatError& error) {
      CHECK(error.file == "rows.file" && error.reason.find("delete the file") != std::string::npos);
    }
  }
}

}  // namespace

int main() {
  test_rows_in_a_file_equal_rows_in_memory();
  test_blocks_do_not_depend_on_the_parts_that_were_added();
  test_blocks_are_small_except_for_long_rows();
  test_the_packer_refuses_invalid_columns_and_values();
  test_damaged_indices_are_refused();
  test_damaged_blocks_are_refused();
  test_shortened_files_are_refused();
  test_random_damage_is_refused_or_harmless();
  return 0;
}
