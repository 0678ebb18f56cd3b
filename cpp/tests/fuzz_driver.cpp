// Runs any fuzz target on reproducible mutations of its seeds, without libFuzzer.
//
//   fuzz_<reader> [iterations = 20000] [seed = 1] [file or folder ...]
//
// Files, including those in folders, are run unchanged and then mutated, so that 0 iterations replay a
// failure or a corpus. An input that takes more than a second of processor time, or more memory than a small
// file may take, is a failure, too. If the target fails, the input is written to fuzz-failure.bin.
#include "fuzz.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/resource.h>
#include <sys/time.h>
#define UNKERNEL_LIMITS 1
#endif

#include "unkernel/base/random.hpp"

// Defined only in builds with sanitizers, which do not run atexit handlers after an error.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

constexpr std::size_t max_input_size = 4096;
constexpr std::size_t pool_size = 256;
constexpr int max_seconds = 1;
// The memory that unkernel.data.file_memory_limit grants for a file of the size of the longest input.
constexpr std::size_t max_extra_bytes = (std::size_t{64} << 20) + 128 * max_input_size;

std::string current_input;  // for signal handlers, which take no arguments
bool running = false;

void keep_failure() {
  if (!running) return;
  running = false;
  std::ofstream("fuzz-failure.bin", std::ios::binary) << current_input;
  std::fputs("the input is in fuzz-failure.bin\n", stderr);
}

void keep_failure_on_signal(int signal) {
  keep_failure();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

#ifdef UNKERNEL_LIMITS
void stop_slow_input(int) {
  std::fputs("an input took more than a second of the processor's time\n", stderr);
  std::abort();
}

void limit_time(int seconds) {
  const itimerval timer{{0, 0}, {seconds, 0}};
  (void)setitimer(ITIMER_PROF, &timer, nullptr);
}

// Returns the peak memory of the process. Returns 0 if memory cannot be limited: sanitizers keep freed
// memory, and an emulator's memory would be counted, too (UNKERNEL_MEMORY_LIMIT=0 is set then).
std::size_t peak_bytes() {
  static const char* const limit = std::getenv("UNKERNEL_MEMORY_LIMIT");
  const bool is_limited = limit == nullptr || std::string_view(limit) != "0";
  rusage usage{};
  if (__sanitizer_set_death_callback != nullptr || !is_limited || getrusage(RUSAGE_SELF, &usage) != 0)
    return 0;
#ifdef __APPLE__
  return static_cast<std::size_t>(usage.ru_maxrss);
#else
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
#endif
}
#else
void limit_time(int) {}
std::size_t peak_bytes() { return 0; }
#endif

void try_input(const std::string& input) {
  static const std::size_t bytes_at_start = peak_bytes();
  current_input = input;
  running = true;
  limit_time(max_seconds);
  (void)LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  limit_time(0);
  if (peak_bytes() > bytes_at_start + max_extra_bytes) {
    std::fputs("an input took more memory than a small file may take\n", stderr);
    std::abort();
  }
  running = false;
}

// Pieces of text that are difficult for readers of text formats.
constexpr std::array<std::string_view, 24> tokens = {"0",
                                                     "1",
                                                     "-1",
                                                     "+",
                                                     ".",
                                                     "e",
                                                     "1e308",
                                                     "1e-400",
                                                     "nan",
                                                     "inf",
                                                     ":",
                                                     ",",
                                                     "#",
                                                     " ",
                                                     "\t",
                                                     "\r\n",
                                                     "\n",
                                                     "2147483647",
                                                     "4294967296",
                                                     "9223372036854775807",
                                                     "18446744073709551616",
                                                     "(",
                                                     ")",
                                                     "\xff"};

class Mutator {
 public:
  Mutator(unkernel::Random& random, std::span<const std::string> pool) : random_(random), pool_(pool) {}

  std::string mutate(std::string input) {
    const std::size_t changes = 1 + below(4);
    for (std::size_t i = 0; i < changes; ++i) change(input);
    input.resize(std::min(input.size(), max_input_size));
    return input;
  }

 private:
  std::size_t below(std::size_t bound) { return random_.below(static_cast<std::uint32_t>(bound)); }
  std::size_t random_position(const std::string& input) { return below(input.size() + 1); }
  char any_byte() { return static_cast<char>(below(256)); }

  void change(std::string& input) {
    switch (below(7)) {
      case 0: return overwrite(input, any_byte());
      case 1: return overwrite(input, "0123456789:#. -+e\n"[below(18)]);
      case 2: input.insert(random_position(input), 1, any_byte()); return;
      case 3: input.insert(random_position(input), tokens[below(tokens.size())]); return;
      case 4: input.erase(random_position(input), 1 + below(16)); return;
      case 5: return repeat_part(input);
      default: return splice(input);
    }
  }

  void overwrite(std::string& input, char byte) {
    if (!input.empty()) input[below(input.size())] = byte;
  }

  void repeat_part(std::string& input) {
    const std::string part = input.substr(random_position(input), 1 + below(64));
    input.insert(random_position(input), part);
  }

  void splice(std::string& input) {
    const std::string& other = pool_[below(pool_.size())];
    input = input.substr(0, random_position(input)) + other.substr(random_position(other));
  }

  unkernel::Random& random_;
  std::span<const std::string> pool_;
};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns a file itself, or the files of a folder ordered by name, which is the same order everywhere.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

void install_handlers() {
  std::atexit(keep_failure);
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE}) std::signal(signal, keep_failure_on_signal);
#ifdef UNKERNEL_LIMITS
  std::signal(SIGPROF, stop_slow_input);
#endif
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(keep_failure);
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  const long iterations = argc > 1 ? std::atol(arguments[1]) : 20'000;
  unkernel::Random random(argc > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1);
  install_handlers();

  std::vector<std::string> pool = fuzz_seeds();
  for (std::size_t i = 3; i < arguments.size(); ++i)
    for (const auto& file : files_of(arguments[i])) pool.push_back(read_file(file));
  for (const std::string& input : pool) try_input(input);
  const std::size_t seeds = pool.size();

  for (long i = 0; i < iterations; ++i) {
    const std::size_t chosen = random.below(static_cast<std::uint32_t>(pool.size()));
    const std::string input = Mutator(random, pool).mutate(pool[chosen]);
    try_input(input);
    // Mutations join the pool and are mutated again. Seeds are never replaced.
    if (pool.size() < seeds + pool_size) {
      pool.push_back(input);
    } else {
      pool[seeds + random.below(pool_size)] = input;
    }
  }
  std::printf("%ld inputs, no failure\n", iterations);
  return 0;
}
