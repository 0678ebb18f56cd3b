// Measures the limits of this machine, and loops that cannot be timed from Python. roofline.py calls it.
//
//   roofline machine               bandwidth, random reads and updates by the size of the memory, arithmetic
//   roofline replay FILE BYTES     reads and updates of entries of BYTES at the places that a file lists: the
//                                  plainest loop that touches the same memory in the same order
//   roofline rows FILE DEGREE      visits of dual coordinate descent and passes over condensed rows
//
// Prints lines `name value`; times are nanoseconds of processor time, the best of several runs. Files have
// the byte order of the machine. Places are 4-byte numbers. Rows are stored as the number of rows, the number
// of features, offsets (8 bytes each) and columns (4 bytes each).
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/kernels/feature_map.hpp"
#include "unkernel/poly/distinct_rows.hpp"
#include "unkernel/poly/stored_rows.hpp"
#include "unkernel/solve/sweep.hpp"

namespace {

using namespace unkernel;

double sink = 0.0;  // receives all results, so that the compiler drops no loop

double nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

// Returns the shortest time of several runs.
template <class Work>
double best(int runs, const Work& work) {
  double least = std::numeric_limits<double>::infinity();
  for (int k = 0; k < runs; ++k) {
    const double begin = nanoseconds();
    work();
    least = std::min(least, nanoseconds() - begin);
  }
  return least;
}

// Returns the shortest time of `rounds` calls.
template <class Work>
double repeated(std::size_t rounds, const Work& work) {
  return best(7, [&] {
    for (std::size_t k = 0; k < rounds; ++k) work();
  });
}

void print(const std::string& name, double value) { std::printf("%s %.6g\n", name.c_str(), value); }

// --- The machine --------------------------------------------------------------------------------------

constexpr std::size_t lanes = 32;
constexpr std::size_t smallest = std::size_t{1} << 14, largest = std::size_t{1} << 28;

double sum_of(std::span<const double> values) {
  std::array<double, lanes> sums{};
  for (std::size_t k = 0; k + lanes <= values.size(); k += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += values[k + lane];
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

template <class Place>
double sum_at(const double* table, std::span<const Place> places) {
  std::array<double, 8> sums{};
  for (std::size_t k = 0; k + 8 <= places.size(); k += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += table[places[k + lane]];
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

template <class Place>
void add_at(double* table, std::span<const Place> places, double step) {
  for (const Place place : places) table[place] += step;
}

void measure_memory() {
  std::vector<double> table(largest / sizeof(double), 1.0);
  Random random(1);
  for (std::size_t bytes = smallest; bytes <= largest; bytes *= 4) {
    const std::size_t entries = bytes / sizeof(double);
    const auto part = std::span<const double>(table).first(entries);
    const std::size_t repeats = std::max<std::size_t>(1, (std::size_t{1} << 25) / bytes);
    const double reading = repeated(repeats, [&] { sink += sum_of(part); });
    // The places fit into the cache beside a small table, and touch all of a large table.
    std::vector<std::uint32_t> places(std::clamp<std::size_t>(entries, 1 << 12, 1 << 21));
    for (auto& place : places) place = random.below(static_cast<std::uint32_t>(entries));
    const auto view = std::span<const std::uint32_t>(places);
    const std::size_t rounds = (std::size_t{1} << 21) / places.size();
    const auto count = static_cast<double>(places.size() * rounds);
    const std::string size = std::to_string(bytes);
    print("stream " + size, static_cast<double>(bytes * repeats) / reading);  // bytes per ns
    print("read " + size, repeated(rounds, [&] { sink += sum_at(table.data(), view); }) / count);
    print("update " + size, repeated(rounds, [&] { add_at(table.data(), view, 1e-9); }) / count);
  }
}

#if defined(__AVX512F__)
constexpr std::size_t vector_bytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t vector_bytes = 32;
#else
constexpr std::size_t vector_bytes = 16;
#endif

// Returns the operations per ns; a fused multiplication and addition counts as two. Twelve independent sums
// hide the latency of each operation.
template <class Number>
double fused_speed() {
  using Vector [[gnu::vector_size(vector_bytes)]] = Number;
  constexpr std::size_t steps = 1 << 20, sums = 12;
  const auto factor = static_cast<Number>(0.999 + sink * 1e-30);
  Number total = 0;
  const double spent = best(7, [&] {
    Vector values[sums] = {};  // std::array would drop the attribute
    for (std::size_t k = 0; k < steps; ++k) {
      for (Vector& value : values) value = value * factor + factor;
    }
    for (const Vector& value : values) total += value[0];
  });
  sink += static_cast<double>(total);
  return 2.0 * static_cast<double>(steps * sums * (vector_bytes / sizeof(Number))) / spent;
}

// Returns the bytes per ns of a loop that reads a text byte by byte: a load, a subtraction and an addition.
double byte_speed() {
  std::vector<unsigned char> text(1 << 16);
  Random random(2);
  for (auto& byte : text) byte = static_cast<unsigned char>('0' + random.below(10));
  std::uint64_t number = 0;
  const double spent = best(7, [&] {
    for (int k = 0; k < 64; ++k) {
      for (std::size_t i = 0; i < text.size(); i += 8) {
        for (std::size_t lane = 0; lane < 8; ++lane) {
          std::uint64_t digit = text[i + lane] - std::uint64_t{'0'};
          asm volatile("" : "+r"(digit));  // keeps the compiler from reading many at once
          number += digit;
        }
      }
    }
  });
  sink += static_cast<double>(number % 7);
  return 64.0 * static_cast<double>(text.size()) / spent;
}

void measure_machine() {
  measure_memory();
  print("double", fused_speed<double>());
  print("single", fused_speed<float>());
  print("bytes", byte_speed());
}

// --- The same places in the plainest loop ---------------------------------------------------------------

// Reads the next `count` numbers.
template <class Number>
std::vector<Number> rest_of(std::ifstream& file, std::size_t count) {
  std::vector<Number> numbers(count);
  file.read(reinterpret_cast<char*>(numbers.data()), static_cast<std::streamsize>(count * sizeof(Number)));
  if (!file) throw std::runtime_error("the file is too short");
  return numbers;
}

std::ifstream open(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  return file;
}

template <class Place>
void replay(std::span<const std::uint32_t> given, std::size_t entry_doubles) {
  std::vector<Place> places(given.begin(), given.end());
  const std::size_t entries = 1 + *std::max_element(given.begin(), given.end());
  std::vector<double> table(entries * entry_doubles, 1.0);
  const auto view = std::span<const Place>(places);
  const auto count = static_cast<double>(places.size());
  print("read", best(7, [&] { sink += sum_at(table.data(), view); }) / count);
  print("update", best(7, [&] { add_at(table.data(), view, 1e-9); }) / count);
}

void measure_replay(const char* path, std::size_t bytes) {
  std::ifstream file = open(path);
  file.seekg(0, std::ios::end);
  const auto count = static_cast<std::size_t>(file.tellg()) / sizeof(std::uint32_t);
  file.seekg(0);
  auto places = rest_of<std::uint32_t>(file, count);
  const std::size_t doubles = std::max<std::size_t>(1, bytes / sizeof(double));
  for (auto& place : places) place *= static_cast<std::uint32_t>(doubles);
  const bool narrow = *std::max_element(places.begin(), places.end()) <= 0xFFFF;
  if (narrow) return replay<std::uint16_t>(places, 1);
  replay<std::uint32_t>(places, 1);
}

// --- Condensed rows -------------------------------------------------------------------------------------

poly::DistinctRows rows_of(const char* path) {
  std::ifstream file = open(path);
  const auto sizes = rest_of<std::int64_t>(file, 2);
  const auto offsets = rest_of<std::int64_t>(file, static_cast<std::size_t>(sizes[0]) + 1);
  const auto narrow = rest_of<std::int32_t>(file, static_cast<std::size_t>(offsets.back()));
  const std::vector<std::int64_t> columns(narrow.begin(), narrow.end());
  const std::vector<double> ones(columns.size(), 1.0);
  std::vector<std::int32_t> classes(static_cast<std::size_t>(sizes[0]));
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int32_t>(i % 2);
  const data::CsrView<std::int64_t, double> view{offsets, columns, ones, sizes[1]};
  return poly::distinct_examples(view, std::span<const std::int32_t>(classes), {}, 1);
}

// Returns all rows in the order of the solver: blocks of 1,024 neighbours, each in a random order.
std::vector<std::int32_t> shuffled(std::int64_t rows) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  Random random(3);
  for (std::size_t begin = 0; begin < order.size(); begin += 1024) {
    random.shuffle(std::span(order).subspan(begin, std::min<std::size_t>(1024, order.size() - begin)));
  }
  return order;
}

void measure_rows(const char* path, int degree) {
  const poly::DistinctRows examples = rows_of(path);
  const kernels::FeatureMap map{degree, kernels::FeatureMap::Kind::kernel, 1.0, 1.0};
  Monitor monitor;
  const auto stored = poly::store_condensed(examples, map, 1, monitor);
  const solve::RowPasses& passes = stored->passes();
  const std::int64_t rows = passes.size();
  std::vector<double> weights(stored->dimension(), 1e-9), scores(static_cast<std::size_t>(rows));
  print("rows", static_cast<double>(rows));
  print("dimension", static_cast<double>(weights.size()));
  print("pass",
        best(7, [&] { passes.dots(0, rows, weights.data(), scores.data()); }) / static_cast<double>(rows));
  sink += scores[0];
  // With a tiny cost, every row makes a single step, to its bound.
  solve::Coordinates fresh(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows; ++i) {
    auto& coordinate = fresh[static_cast<std::size_t>(i)];
    (i % 2 == 0 ? coordinate.costs.positive : coordinate.costs.negative) = 1e-9;
    coordinate.curvature = passes.squared_norm(i);
  }
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 7; ++run) {
    std::fill(weights.begin(), weights.end(), 0.0);
    solve::SweepState state{fresh, weights, monitor, Random(1)};
    state.awake = shuffled(rows);
    const double begin = nanoseconds();
    passes.visit_awake_rows(solve::Loss::hinge, state);
    least = std::min(least, nanoseconds() - begin);
  }
  print("visit", least / static_cast<double>(rows));
}

int run(std::span<char*> words) {
  const std::string mode = words.size() > 1 ? words[1] : "";
  if (mode == "machine" && words.size() == 2) {
    measure_machine();
  } else if (mode == "replay" && words.size() == 4) {
    measure_replay(words[2], static_cast<std::size_t>(std::strtoul(words[3], nullptr, 10)));
  } else if (mode == "rows" && words.size() == 4) {
    measure_rows(words[2], std::atoi(words[3]));
  } else {
    std::fprintf(stderr, "roofline machine | replay FILE BYTES | rows FILE DEGREE\n");
    return 2;
  }
  return sink == 0.123 ? 1 : 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(std::span(words, static_cast<std::size_t>(count)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
