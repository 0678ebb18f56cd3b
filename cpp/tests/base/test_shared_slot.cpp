#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "check.hpp"
#include "posix.hpp"
#include "unkernel/base/shared_slot.hpp"

namespace {

using unkernel::SharedSlot;

// Two numbers that are negatives of each other until the pair is destroyed, and a count of the living pairs.
struct Pair {
  Pair(int number, std::atomic<int>& count) : first(number), second(-number), alive(count) { ++alive; }
  ~Pair() {
    first = second = 1;
    --alive;
  }
  int first, second;
  std::atomic<int>& alive;
};

void test_get_returns_the_object_that_was_set() {
  std::atomic<int> alive = 0;
  {
    SharedSlot<const Pair> slot;
    CHECK(slot.get() == nullptr);
    std::shared_ptr<const Pair> cached;
    slot.refresh(cached);
    CHECK(cached == nullptr);
    slot.set(std::make_shared<const Pair>(1, alive));
    slot.refresh(cached);
    CHECK(cached->first == 1 && slot.get() == cached);
    slot.set(std::make_shared<const Pair>(2, alive));
    CHECK(cached->first == 1 && slot.get()->first == 2 && alive == 2);
    slot.refresh(cached);
    CHECK(cached->first == 2 && alive == 1);
    slot.set(nullptr);
    slot.refresh(cached);
    CHECK(cached == nullptr && alive == 0);
    slot.set(std::make_shared<const Pair>(3, alive));
  }
  CHECK(alive == 0);
}

// Runs some work while threads read the slot and one thread replaces its content.
template <class Work>
void run_while_threads_use(SharedSlot<const Pair>& slot, std::atomic<int>& alive, const Work& work) {
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int reader = 0; reader < 4; ++reader)
    threads.emplace_back([&] {
      std::shared_ptr<const Pair> cached;
      while (!done) {
        slot.refresh(cached);
        CHECK(cached->first == -cached->second);
      }
    });
  threads.emplace_back([&] {
    for (int number = 0; !done; ++number) slot.set(std::make_shared<const Pair>(number % 1000, alive));
  });
  work();
  done = true;
  for (std::thread& thread : threads) thread.join();
}

void test_threads_see_no_partly_replaced_objects() {
  std::atomic<int> alive = 0;
  SharedSlot<const Pair> slot;
  slot.set(std::make_shared<const Pair>(0, alive));
  run_while_threads_use(slot, alive, [&] {
    for (int round = 0; round < 20000; ++round) {
      const auto pair = slot.get();
      CHECK(pair->first == -pair->second);
    }
  });
  CHECK(alive == 1);
}

void test_a_forked_child_can_read_and_set() {
#ifndef _WIN32
  std::atomic<int> alive = 0;
  SharedSlot<const Pair> slot;
  slot.set(std::make_shared<const Pair>(0, alive));
  run_while_threads_use(slot, alive, [&] {
    for (int round = 0; round < 100; ++round) {
      const pid_t child = fork();
      if (child == 0) {
        slot.release_after_fork();
        const auto pair = slot.get();
        const bool consistent = pair->first == -pair->second;
        slot.set(nullptr);
        _exit(consistent && slot.get() == nullptr ? 0 : 1);
      }
      int status = 0;
      CHECK(waitpid(child, &status, 0) == child);
      CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
  });
#endif
}

}  // namespace

int main() {
  test_get_returns_the_object_that_was_set();
  test_threads_see_no_partly_replaced_objects();
  test_a_forked_child_can_read_and_set();
  return 0;
}
