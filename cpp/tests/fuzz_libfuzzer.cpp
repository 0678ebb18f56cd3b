// An addition to libFuzzer's main(): writes the seeds of a fuzz target.
//
//   fuzz_<reader> --write-seeds FOLDER       writes the seeds to files in FOLDER
//   fuzz_<reader> [libFuzzer's options] [folder of inputs ...]
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::span<char*> arguments(*argv, static_cast<std::size_t>(*argc));
  if (arguments.size() != 3 || std::string_view(arguments[1]) != "--write-seeds") return 0;
  std::size_t number = 0;
  for (const std::string& seed : fuzz_seeds()) {
    const std::string path = std::string(arguments[2]) + "/seed-" + std::to_string(number++);
    if (!(std::ofstream(path, std::ios::binary) << seed)) {
      std::fprintf(stderr, "cannot write %s\n", path.c_str());
      std::exit(2);
    }
  }
  std::exit(0);
}
