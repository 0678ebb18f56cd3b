#include "unkernel/base/history.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "check.hpp"

namespace {

using unkernel::History;

History make_history(std::int64_t count) {
  History history;
  for (std::int64_t pass = 0; pass < count; ++pass)
    history.note({pass, 1.0 / static_cast<double>(pass + 1), 0.0});
  return history;
}

void test_a_short_history_keeps_every_pass() {
  const History history = make_history(100);
  CHECK(history.passes().size() == 100);
  CHECK(history.passes()[41].number == 41 && history.passes()[41].objective == 1.0 / 42.0);
}

void test_a_long_history_is_thinned_out_but_keeps_the_last_pass() {
  for (const std::int64_t count : {257, 1000, 1001, 100'000}) {
    const History history = make_history(count);
    const auto& passes = history.passes();
    CHECK(passes.size() <= History::max_passes && passes.size() >= History::max_passes / 2);
    CHECK(passes.front().number == 0 && passes.back().number == count - 1);
    const std::int64_t distance = passes[1].number;
    for (std::size_t k = 0; k + 1 < passes.size(); ++k)
      CHECK(passes[k].number == static_cast<std::int64_t>(k) * distance);
  }
}

void test_noting_a_pass_again_replaces_it() {
  History history = make_history(3);
  history.note({2, 0.25, 0.125});
  CHECK(history.passes().size() == 3);
  CHECK(history.passes().back().objective == 0.25 && history.passes().back().bound == 0.125);
}

}  // namespace

int main() {
  test_a_short_history_keeps_every_pass();
  test_a_long_history_is_thinned_out_but_keeps_the_last_pass();
  test_noting_a_pass_again_replaces_it();
  return 0;
}
