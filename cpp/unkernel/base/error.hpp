// Exceptions that reach Python: std::invalid_argument becomes ValueError, std::out_of_range becomes
// IndexError, and FormatError becomes unkernel.FormatError.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

namespace unkernel {

// A malformed file: names the file, the line and column, and what is wrong there. Lines and columns count
// from 1; column 0 stands for the whole line, line 0 for the whole file.
class FormatError : public std::runtime_error {
 public:
  FormatError(std::string in_file, std::int64_t at_line, std::int64_t at_column, std::string why)
      : std::runtime_error(message(in_file, at_line, at_column, why)),
        file(std::move(in_file)),
        line(at_line),
        column(at_column),
        reason(std::move(why)) {}

  std::string file;
  std::int64_t line;
  std::int64_t column;
  std::string reason;

 private:
  static std::string message(const std::string& in_file, std::int64_t at_line, std::int64_t at_column,
                             const std::string& why) {
    std::string text = in_file;
    for (const std::int64_t number : {at_line, at_column}) {
      if (number > 0) text.append(1, ':').append(std::to_string(number));
    }
    return text.append(": ").append(why);
  }
};

// The work needs more memory than is available. Becomes MemoryError in Python; the message states the sizes.
class NotEnoughMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The work took longer than its caller allows. Becomes TimeoutError in Python.
class TimeLimitReached : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The caller cancelled the work (Ctrl-C, or an exception in a progress callback).
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

}  // namespace unkernel
