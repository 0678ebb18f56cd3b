// Makes the steps of a plan from their tables.
#pragma once

#include <memory>
#include <string>

#include "bindings.hpp"
#include "unkernel/records/plan.hpp"
#include "unkernel/records/text_analyzer.hpp"

namespace unkernel::bindings {

// Makes a step of this kind, which may read the results of earlier steps of the plan. Throws
// std::invalid_argument if the table is damaged.
std::unique_ptr<records::Step> make_step(const records::Plan& plan, const std::string& kind,
                                         const nb::dict& table);

// Reads the options of a step that counts n-grams.
records::TextOptions read_text_options(const nb::dict& table);

}  // namespace unkernel::bindings
