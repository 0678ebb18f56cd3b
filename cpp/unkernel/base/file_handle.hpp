// An open file that is read at positions, on POSIX systems and on Windows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace unkernel {

// Identifies the contents of a file: while its version stays the same, the file has not been written to.
struct FileVersion {
  std::int64_t size;
  std::int64_t seconds;
  std::int64_t nanoseconds;
  bool operator==(const FileVersion&) const = default;
};

// Owns a duplicate of a descriptor. Several threads may read at once. Errors are std::system_error with the
// name of the file.
class FileHandle {
 public:
  // The caller keeps the descriptor and may close it.
  FileHandle(int descriptor, std::string file);
  ~FileHandle();
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;

  // Reads bytes from a position and returns their number, which may be smaller than requested but is 0 only
  // at the end of the file.
  std::size_t read(std::int64_t position, std::span<unsigned char> bytes) const;
  FileVersion version() const;

 private:
  std::string file_;
  int descriptor_;
};

}  // namespace unkernel
