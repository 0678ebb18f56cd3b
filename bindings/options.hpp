// Options stored as attributes of a Python object and read by name.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "bindings.hpp"

namespace unkernel::bindings {

// Reading a missing attribute raises an AttributeError; reading a value of a wrong type, or outside of its
// range, a TypeError.
class Options {
 public:
  explicit Options(nb::handle object) : object_(nb::borrow(object)) {}

  double real(const char* name) const;
  bool flag(const char* name) const;
  std::string text(const char* name) const;

  // Reads an integer that fits the type; for unsigned 64-bit numbers, below 2^63.
  template <class T>
  T integer(const char* name) const {
    static_assert(std::is_integral_v<T>);
    constexpr std::uint64_t max_value = std::numeric_limits<T>::max();
    constexpr std::uint64_t most_signed = std::numeric_limits<std::int64_t>::max();
    return static_cast<T>(integer_within(name, static_cast<std::int64_t>(std::numeric_limits<T>::min()),
                                         static_cast<std::int64_t>(std::min(max_value, most_signed))));
  }

  // Keeps the array's memory alive until the object gets another array.
  template <class T>
  Array<T> array(const char* name) const {
    Array<T> result;
    if (!nb::try_cast<Array<T>>(attribute(name), result, true))
      fail(name, "a contiguous array of the right type");
    return result;
  }

 private:
  nb::object attribute(const char* name) const;
  std::int64_t integer_within(const char* name, std::int64_t min_value, std::int64_t max_value) const;
  [[noreturn]] static void fail(const char* name, const char* expected);

  nb::object object_;
};

}  // namespace unkernel::bindings
