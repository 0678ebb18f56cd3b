// The interface of a fuzz target: libFuzzer's entry point, which aborts if a property does not hold, and seed
// inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// Small valid and nearly valid inputs. libFuzzer itself does not call this.
std::vector<std::string> fuzz_seeds();

// Returns whether to make an expensive check of the input with this hash, such as starting threads. Always
// true, except under libFuzzer, which runs a thousand times as many inputs: there, it is true for one input
// in `share`.
inline bool fuzz_also([[maybe_unused]] std::uint64_t hash, [[maybe_unused]] std::uint64_t share) {
#ifdef UNKERNEL_LIBFUZZER
  return (hash >> 32) % share == 0;
#else
  return true;
#endif
}
