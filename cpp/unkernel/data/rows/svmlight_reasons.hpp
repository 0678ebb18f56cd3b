// What is wrong with a line of an svmlight file, in words: the offending text, why it was
// refused, and what would be right. Called once a file at most, so nothing here is fast.
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
