// Values of enumerations by the names that Python uses.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace unkernel::bindings {

template <class Value>
struct Named {
  const char* name;
  Value value;
};

// Throws std::invalid_argument with all names, after `requirement`: "the loss must be 'a', 'b' or 'c', not
// 'd'".
template <class Value, std::size_t count>
Value find_value(const Named<Value> (&all)[count], const std::string& name, const char* requirement) {
  std::string message = requirement;
  for (std::size_t k = 0; k < count; ++k) {
    if (name == all[k].name) return all[k].value;
    const char* separator = k + 1 < count ? ", '" : " or '";
    message += std::string(k == 0 ? " '" : separator) + all[k].name + "'";
  }
  throw std::invalid_argument(message + ", not '" + name + "'");
}

template <class Value, std::size_t count>
const char* find_name(const Named<Value> (&all)[count], Value value) {
  for (const Named<Value>& named : all) {
    if (named.value == value) return named.name;
  }
  return "";
}

}  // namespace unkernel::bindings
