// What a fuzz target provides: libFuzzer's entry point, which aborts if a property does not hold, and seed
// inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// Small valid and nearly valid inputs. libFuzzer itself does not call this.
std::vector<std::string> fuzz_seeds();
