// Errors that cross the border. Python sees std::invalid_argument as ValueError,
// std::out_of_range as IndexError, and FormatError as unkernel.FormatError.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

namespace unkernel {

// A file that is not what it claims to be: says where, and what is wrong there.
// Line and column are 1-based; column 0 means the line as a whole, line 0 the whole file.
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

// More memory needed than there is; Python sees it as MemoryError, with the sizes.
class NotEnoughMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Work given up because the caller asked for it (Ctrl-C, or a progress callback that raised).
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

}  // namespace unkernel
