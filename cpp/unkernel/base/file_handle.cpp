#include "unkernel/base/file_handle.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#ifdef _WIN32
#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <io.h>
#include <windows.h>
#else
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace unkernel {
namespace {

constexpr std::size_t most_bytes_per_read = std::size_t{1} << 30;  // some systems refuse to read more

#ifdef _WIN32

[[noreturn]] void fail(const std::string& file) {
  throw std::system_error(static_cast<int>(GetLastError()), std::system_category(), file);
}

HANDLE handle_of(int descriptor) { return reinterpret_cast<HANDLE>(_get_osfhandle(descriptor)); }

int duplicate(int descriptor) { return _dup(descriptor); }

void close_descriptor(int descriptor) { _close(descriptor); }

std::int64_t read_some(int descriptor, std::int64_t position, std::span<unsigned char> bytes) {
  const auto place = static_cast<std::uint64_t>(position);
  OVERLAPPED at{};
  at.Offset = static_cast<DWORD>(place);
  at.OffsetHigh = static_cast<DWORD>(place >> 32);
  DWORD count = 0;
  if (ReadFile(handle_of(descriptor), bytes.data(), static_cast<DWORD>(bytes.size()), &count, &at))
    return count;
  return GetLastError() == ERROR_HANDLE_EOF ? 0 : -1;
}

std::int64_t join_words(DWORD high, DWORD low) {
  return static_cast<std::int64_t>((std::uint64_t{high} << 32) | low);
}

bool find_version(int descriptor, FileVersion& version) {
  constexpr std::int64_t ticks_per_second = 10'000'000;  // of 100 ns each
  BY_HANDLE_FILE_INFORMATION found;
  if (!GetFileInformationByHandle(handle_of(descriptor), &found)) return false;
  const std::int64_t modified =
      join_words(found.ftLastWriteTime.dwHighDateTime, found.ftLastWriteTime.dwLowDateTime);
  version = {join_words(found.nFileSizeHigh, found.nFileSizeLow), modified / ticks_per_second,
             modified % ticks_per_second * 100};
  return true;
}

#else

[[noreturn]] void fail(const std::string& file) {
  throw std::system_error(errno, std::generic_category(), file);
}

int duplicate(int descriptor) { return fcntl(descriptor, F_DUPFD_CLOEXEC, 0); }

void close_descriptor(int descriptor) { close(descriptor); }

std::int64_t read_some(int descriptor, std::int64_t position, std::span<unsigned char> bytes) {
  for (;;) {
    const auto count = pread(descriptor, bytes.data(), bytes.size(), position);
    if (count >= 0 || errno != EINTR) return count;
  }
}

bool find_version(int descriptor, FileVersion& version) {
  struct stat found{};
  if (fstat(descriptor, &found) != 0) return false;
#ifdef __APPLE__
  const timespec& modified = found.st_mtimespec;
#else
  const timespec& modified = found.st_mtim;
#endif
  version = {found.st_size, modified.tv_sec, modified.tv_nsec};
  return true;
}

#endif

}  // namespace

FileHandle::FileHandle(int descriptor, std::string file)
    : file_(std::move(file)), descriptor_(duplicate(descriptor)) {
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), file_);
}

FileHandle::~FileHandle() { close_descriptor(descriptor_); }

std::size_t FileHandle::read(std::int64_t position, std::span<unsigned char> bytes) const {
  const std::int64_t count =
      read_some(descriptor_, position, bytes.first(std::min(bytes.size(), most_bytes_per_read)));
  if (count < 0) fail(file_);
  return static_cast<std::size_t>(count);
}

FileVersion FileHandle::version() const {
  FileVersion version{};
  if (!find_version(descriptor_, version)) fail(file_);
  return version;
}

}  // namespace unkernel
