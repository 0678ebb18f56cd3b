// A file that is removed when the test ends, however it ends.
#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>

#include "check.hpp"

#ifdef _WIN32
#include <io.h>
#else
#include <unistd.h>
#endif

namespace unkernel {

class TemporaryFile {
 public:
  TemporaryFile() : file_(std::tmpfile()) { CHECK(file_ != nullptr); }
  ~TemporaryFile() { std::fclose(file_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

#ifdef _WIN32
  int descriptor() const { return _fileno(file_); }
  void shorten(std::int64_t size) const { CHECK(_chsize_s(descriptor(), size) == 0); }
#else
  int descriptor() const { return fileno(file_); }
  void shorten(std::int64_t size) const { CHECK(ftruncate(descriptor(), size) == 0); }
#endif

  // Replaces the contents of the file by these bytes.
  void write(const std::vector<unsigned char>& bytes) const {
    std::rewind(file_);
    shorten(0);
    // An empty vector may have no address, which fwrite does not allow.
    if (!bytes.empty()) CHECK(std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size());
    CHECK(std::fflush(file_) == 0);
  }

 private:
  std::FILE* file_;
};

}  // namespace unkernel
