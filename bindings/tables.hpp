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
  Array<T> found;
  if (!nb::try_cast<Array<T>>(item(table, name), found, false)) {
    throw std::invalid_argument(std::string("the compiled model has no proper array '") + name + "'");
  }
  return view(found);
}

// Of an array that tables of the first version did not have.
template <class T>
std::span<const T> newer(const nb::dict& table, const char* name) {
  return table.contains(name) ? array<T>(table, name) : std::span<const T>{};
}

template <class Vector>
nb::object give(Vector&& values) {
  using T = typename std::decay_t<Vector>::value_type;
  auto* owner = new std::decay_t<Vector>(std::move(values));
  const nb::capsule deleter(owner, [](void* p) noexcept { delete static_cast<std::decay_t<Vector>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(owner->data(), {owner->size()}, deleter));
}

template <class... Vectors>
Table table_of(std::pair<const char*, Vectors>... arrays) {
  Table table;
  ((table[arrays.first] = give(std::move(arrays.second))), ...);
  return table;
}

}  // namespace unkernel::bindings
