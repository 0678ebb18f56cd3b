#include "options.hpp"

namespace unkernel::bindings {

nb::object Options::attribute(const char* name) const { return nb::getattr(object_, name); }

double Options::real(const char* name) const {
  double value = 0.0;
  if (!nb::try_cast(attribute(name), value, true)) fail(name, "a number");
  return value;
}

bool Options::flag(const char* name) const {
  bool value = false;
  if (!nb::try_cast(attribute(name), value, false)) fail(name, "True or False");
  return value;
}

std::string Options::text(const char* name) const {
  std::string value;
  if (!nb::try_cast(attribute(name), value, false)) fail(name, "a text");
  return value;
}

std::int64_t Options::integer_within(const char* name, std::int64_t min_value, std::int64_t max_value) const {
  std::int64_t value = 0;
  if (!nb::try_cast(attribute(name), value, true) || value < min_value || value > max_value)
    fail(name, "a whole number in the range of its type");
  return value;
}

void Options::fail(const char* name, const char* expected) {
  throw nb::type_error((std::string("option '") + name + "' must be " + expected).c_str());
}

}  // namespace unkernel::bindings
