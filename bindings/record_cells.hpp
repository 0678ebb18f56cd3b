// Cells of Python objects.
#pragma once

#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "bindings.hpp"
#include "unkernel/records/cell.hpp"
#include "unkernel/records/dates.hpp"

namespace unkernel::bindings {

// An array of numpy as a list, as frames of pandas have lists of Parquet's; nothing for any other object.
inline nb::object array_as_list(nb::handle value) {
  if (nb::cast<std::string>(value.type().attr("__name__")) != "ndarray") return {};
  return value.attr("tolist")();
}

// A date or a time of the datetime module, of pandas or of numpy, of which NaT is none; nothing for any other
// object. They are read as they write themselves, since datetime is not part of the stable ABI.
inline std::optional<records::Cell> moment_of(nb::handle value) {
  const bool numpy = nb::cast<std::string>(value.type().attr("__name__")) == "datetime64";
  if (!numpy && !nb::hasattr(value, "isoformat")) return std::nullopt;
  const nb::object written = numpy ? value.attr("astype")("datetime64[s]") : value.attr("isoformat")();
  const auto text = nb::cast<std::string>(nb::str(written));
  if (text == "NaT") return records::Cell::none();
  const std::optional<double> moment = records::parse_moment(text);
  return moment ? std::optional(records::Cell::moment(*moment)) : std::nullopt;
}

}  // namespace unkernel::bindings
