// Arrays by name, to and from Python.
#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "bindings.hpp"

namespace unkernel::bindings {

using Table = nb::typed<nb::dict, nb::str, nb::any>;

inline nb::object item(const nb::dict& table, const char* name) {
  if (!table.contains(name))
    throw std::invalid_argument(std::string("the compiled model has no array '") + name + "'");
  return table[name];
}

template <class T>
std::span<const T> array(const nb::dict& table, const char* name) {
  Array<T> result;
  if (!nb::try_cast<Array<T>>(item(table, name), result, false)) {
    throw std::invalid_argument(std::string("the compiled model has no proper array '") + name + "'");
  }
  return view(result);
}

// Returns an array, or an empty span if it is missing: tables of the first version lack some arrays.
template <class T>
std::span<const T> optional_array(const nb::dict& table, const char* name) {
  return table.contains(name) ? array<T>(table, name) : std::span<const T>{};
}

template <class... Vectors>
Table table_of(std::pair<const char*, Vectors>... arrays) {
  Table table;
  ((table[arrays.first] = to_numpy(std::move(arrays.second))), ...);
  return table;
}

// Returns the averages of a training run.
template <class Run>
Table table_of_run(Run&& run) {
  return table_of(std::pair{"keys", std::move(run.keys)}, std::pair{"weights", std::move(run.weights)});
}

}  // namespace unkernel::bindings
