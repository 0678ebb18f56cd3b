// Reads Python objects into cells.
#pragma once

#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "bindings.hpp"
#include "unkernel/records/cell.hpp"
#include "unkernel/records/dates.hpp"

namespace unkernel::bindings {

// Returns a numpy array as a list, because pandas reads lists in Parquet files as arrays. Returns no object
// for all other values.
inline nb::object array_as_list(nb::handle value) {
  if (nb::cast<std::string>(value.type().attr("__name__")) != "ndarray") return {};
  return value.attr("tolist")();
}

// Reads a date or a time of datetime, pandas or numpy; NaT is a missing value. Returns nothing for other
// objects. Converts dates to text and parses the text, because datetime is not part of the stable ABI.
inline std::optional<records::Cell> read_moment(nb::handle value) {
  const bool is_numpy = nb::cast<std::string>(value.type().attr("__name__")) == "datetime64";
  if (!is_numpy && !nb::hasattr(value, "isoformat")) return std::nullopt;
  const nb::object iso_text = is_numpy ? value.attr("astype")("datetime64[s]") : value.attr("isoformat")();
  const auto text = nb::cast<std::string>(nb::str(iso_text));
  if (text == "NaT") return records::Cell::none();
  const std::optional<double> moment = records::parse_moment(text);
  return moment ? std::optional(records::Cell::moment(*moment)) : std::nullopt;
}

}  // namespace unkernel::bindings
