// Error messages for bad lines of svmlight files: the offending text, what is wrong, and what would be valid.
// At most one is made per file, so speed does not matter here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace unkernel::data::reasons {

std::string bad_label(std::string_view text);
std::string bad_index_field(std::string_view text);
std::string bad_named_field(std::string_view text);
std::string bad_value(std::string_view text);
std::string bad_query(std::string_view text);
std::string second_query();
std::string uneven_queries(bool present);
std::string index_too_large(std::string_view digits);
std::string index_too_small(std::uint64_t index, std::int64_t smallest);
std::string index_beyond(std::uint64_t index, std::int64_t largest);
std::string repeated_index(std::int64_t index);

}  // namespace unkernel::data::reasons
