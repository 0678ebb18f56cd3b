// For any bytes, the reader throws a FormatError or returns a valid matrix, and gives the same result on one
// thread, on three threads, and when the file arrives in blocks.
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "fuzz.hpp"
#include "fuzz_input.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/data/rows/svmlight.hpp"

namespace {

using unkernel::FormatError;
using unkernel::Random;
using unkernel::data::IndexRange;
using unkernel::data::SvmlightArrays;
using unkernel::data::SvmlightParser;
using unkernel::data::ThreadPlan;

struct Outcome {
  std::string error;  // empty if the file was read
  std::vector<double> labels;
  std::vector<std::int64_t> queries;
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> columns;
  std::vector<double> values;

  bool operator==(const Outcome&) const = default;
};

template <class To, class From>
std::vector<To> copied(const unkernel::data::GrowingArray<From>& from) {
  return {from.span().begin(), from.span().end()};
}

Outcome outcome_of(SvmlightArrays&& arrays) {
  Outcome outcome;
  outcome.labels = copied<double>(arrays.labels);
  outcome.queries = copied<std::int64_t>(arrays.queries);
  outcome.values = copied<double>(arrays.values);
  std::visit(
      [&](const auto& rows) {
        outcome.offsets = copied<std::int64_t>(rows.offsets);
        outcome.columns = copied<std::int64_t>(rows.columns);
      },
      arrays.rows);
  return outcome;
}

Outcome read(std::span<const std::string_view> blocks, ThreadPlan plan, IndexRange allowed) {
  try {
    SvmlightParser parser("fuzz", plan, allowed);
    for (const std::string_view block : blocks) parser.feed(block);
    parser.finish();
    return outcome_of(parser.take(parser.counts().has_zero_index ? 0 : 1));
  } catch (const FormatError& error) {
    Outcome outcome;
    outcome.error = error.what();
    return outcome;
  }
}

// The number of rows must be the same for any split of the file into parts.
void check_parts(std::span<const std::string_view> blocks, IndexRange allowed, std::size_t rows) {
  SvmlightParser parser("fuzz", {1, 20}, allowed);
  std::size_t taken = 0;
  for (const std::string_view block : blocks) {
    parser.feed(block);
    taken += parser.take_part().labels.span().size();
  }
  parser.finish();
  taken += parser.take_part().labels.span().size();
  CHECK(taken == rows);
}

std::vector<std::string_view> cut_at_random(std::string_view text, Random& random) {
  std::vector<std::string_view> blocks;
  while (!text.empty()) {
    const std::size_t size = random.below(static_cast<std::uint32_t>(text.size() + 1));
    blocks.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return blocks;
}

void check_invariants(const Outcome& outcome) {
  CHECK(outcome.offsets.size() == outcome.labels.size() + 1);
  CHECK(outcome.queries.empty() || outcome.queries.size() == outcome.labels.size());
  CHECK(outcome.offsets.front() == 0);
  CHECK(outcome.offsets.back() == static_cast<std::int64_t>(outcome.values.size()));
  CHECK(outcome.columns.size() == outcome.values.size());
  for (const double label : outcome.labels) CHECK(std::isfinite(label));
  for (const double value : outcome.values) CHECK(std::isfinite(value) && value != 0);
  for (std::size_t row = 0; row < outcome.labels.size(); ++row) {
    CHECK(outcome.offsets[row] <= outcome.offsets[row + 1]);
    std::int64_t previous = -1;
    for (auto i = outcome.offsets[row]; i < outcome.offsets[row + 1]; ++i) {
      const std::int64_t column = outcome.columns[static_cast<std::size_t>(i)];
      CHECK(column > previous);
      previous = column;
    }
  }
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {
      "1 1:1 2:0.5 7:-3e-2\n-1 3:1\n+1\n",
      "# head\n0.5 qid:3 1:1 # doc\n1 qid:-4 2:2\n\n",
      "\xef\xbb\xbf"
      "1\t1:1\r\n2 9:1 4:2\r\n",
      "1 0:1 5:0 2147483646:1 2147483647:2 1099511627776:3 9223372036854775806:4",
      "3 cost:2.5 sid:4 1:123456789012345678901234567890 2:0.1e-5\n",
      "1,2 3:1\n",
      "1 3:1 3:2\n",
      "1 3:nan\n",
      "1 3\n",
      "a 1:1\n",
      "1 -3:1\n",
      "1 3:\n",
      "1 1:179769313486231580793e289 2:4.9e-324 3:2.2250738585072011e-308\n",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const FuzzInput input(data, size);
  const std::string_view text = input.text();
  Random random(input.hash());

  const IndexRange all{0, (std::int64_t{1} << 62)};
  const IndexRange few{1, 100};
  const IndexRange allowed = random.below(4) == 0 ? few : all;
  const std::string_view whole[] = {text};
  const Outcome outcome = read(whole, {1, 1 << 17}, allowed);
  if (outcome.error.empty()) check_invariants(outcome);
  if (fuzz_also(random.next(), 8)) {
    CHECK(read(whole, {1, random.below(50)}, allowed) == outcome);
    CHECK(read(cut_at_random(text, random), {1, 20}, allowed) == outcome);
    if (outcome.error.empty()) check_parts(cut_at_random(text, random), allowed, outcome.labels.size());
  }
  if (fuzz_also(random.next(), 512)) {
    CHECK(read(whole, {3, random.below(50)}, allowed) == outcome);
    CHECK(read(cut_at_random(text, random), {2, 20}, allowed) == outcome);
  }
  return 0;
}
