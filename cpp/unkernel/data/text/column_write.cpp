#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "unkernel/data/text/column_text.hpp"
#include "unkernel/data/text/utf8.hpp"

namespace unkernel::data {
namespace {

constexpr std::string_view empty_field = "_";

std::string_view name_of(const TokenNames& names, std::int64_t token) {
  const std::int32_t number = names.numbers[static_cast<std::size_t>(token)];
  return number < 0 ? empty_field : std::string_view(names.names[static_cast<std::size_t>(number)]);
}

void check_names(const ColumnText& text, const TokenNames& names) {
  if (static_cast<std::int64_t>(names.numbers.size()) != text.tokens()) {
    throw std::invalid_argument(std::to_string(names.numbers.size()) + " labels for " +
                                std::to_string(text.tokens()) + " tokens");
  }
  for (const std::int32_t number : names.numbers) {
    if (number < -1 || number >= static_cast<std::int64_t>(names.names.size())) {
      throw std::invalid_argument("label number " + std::to_string(number) + ", of " +
                                  std::to_string(names.names.size()) + " labels");
    }
  }
  const std::string_view forbidden_characters = text.format() == ColumnFormat::chunks ? " \t\n\r" : "\t\n\r";
  for (const std::string& name : names.names) {
    if (name.empty()) throw std::invalid_argument("a label is empty; _ stands for none");
    if (first_bad_byte(name) < name.size())
      throw std::invalid_argument("a label is not text in UTF-8, or has a NUL byte");
    if (name.find_first_of(forbidden_characters) != std::string::npos) {
      throw std::invalid_argument("the label '" + name + "' has a character that would end its column");
    }
  }
}

void check_heads(const ColumnText& text, std::span<const std::int32_t> heads) {
  if (static_cast<std::int64_t>(heads.size()) != text.tokens()) {
    throw std::invalid_argument(std::to_string(heads.size()) + " heads for " + std::to_string(text.tokens()) +
                                " words");
  }
  for (std::int64_t s = 0; s < text.sentences(); ++s) {
    const std::int64_t first = text.first_token(s);
    const std::int64_t words = text.first_token(s + 1) - first;
    for (std::int64_t word = 1; word <= words; ++word) {
      const std::int32_t head = heads[static_cast<std::size_t>(first + word - 1)];
      if (head >= -1 && head <= words && head != word) continue;
      throw std::invalid_argument("sentence " + std::to_string(s) + ", word " + std::to_string(word) +
                                  ": the head " + std::to_string(head) + " is not another of its " +
                                  std::to_string(words) + " words; the root has 0");
    }
  }
}

// Copies the text with some fields replaced, in ascending order.
class FieldReplacer {
 public:
  explicit FieldReplacer(const ColumnText& text) : text_(text.text()) {
    out_.reserve(text_.size() + text_.size() / 8);
  }

  void replace(std::string_view field, std::string_view by) {
    copy_to(static_cast<std::size_t>(field.data() - text_.data()));
    out_.append(by);
    copied_ += field.size();
  }
  void insert_behind(std::string_view field, char separator, std::string_view added) {
    copy_to(static_cast<std::size_t>(field.data() - text_.data()) + field.size());
    out_.append(1, separator).append(added);
  }
  std::string finish() {
    copy_to(text_.size());
    return std::move(out_);
  }

 private:
  void copy_to(std::size_t end) {
    out_.append(text_, copied_, end - copied_);
    copied_ = end;
  }

  const std::string& text_;
  std::string out_;
  std::size_t copied_ = 0;
};

void replace_head(FieldReplacer& replacer, std::string_view field, std::int32_t head) {
  char digits[12];
  const auto end = std::to_chars(digits, digits + sizeof digits, head).ptr;
  replacer.replace(field,
                   head < 0 ? empty_field : std::string_view(digits, static_cast<std::size_t>(end - digits)));
}

// Returns the separator before a new column: the separator before the last column of the token; a space if
// the token has only one column.
char find_separator(const ColumnText& text, std::int64_t token) {
  if (text.columns() == 1) return ' ';
  return *(text.field(token, text.columns() - 1).data() - 1);
}

}  // namespace

std::string write_trees(const ColumnText& text, std::span<const std::int32_t> heads,
                        const TokenNames& relations) {
  if (text.format() == ColumnFormat::chunks) throw std::invalid_argument("chunks have no heads");
  check_heads(text, heads);
  check_names(text, relations);
  FieldReplacer replacer(text);
  for (std::int64_t token = 0; token < text.tokens(); ++token) {
    const auto number = static_cast<std::size_t>(token);
    if (heads[number] != text.heads()[number])
      replace_head(replacer, text.field(token, conll::head), heads[number]);
    replacer.replace(text.field(token, conll::deprel), name_of(relations, token));
  }
  return replacer.finish();
}

std::string write_column(const ColumnText& text, int column, const TokenNames& values) {
  if (text.format() != ColumnFormat::chunks || column != text.columns())
    return write_columns(text, std::array{ColumnValues{column, values}});
  check_names(text, values);
  FieldReplacer replacer(text);
  for (std::int64_t token = 0; token < text.tokens(); ++token)
    replacer.insert_behind(text.field(token, column - 1), find_separator(text, token),
                           name_of(values, token));
  return replacer.finish();
}

std::string write_columns(const ColumnText& text, std::span<const ColumnValues> columns) {
  const bool has_heads = text.format() != ColumnFormat::chunks;
  int before = -1;
  for (const auto& [column, values] : columns) {
    if (column < 0 || column >= text.columns()) {
      throw std::invalid_argument("there is no column " + std::to_string(column) + "; the text has " +
                                  std::to_string(text.columns()));
    }
    if (has_heads && (column == conll::id || column == conll::head))
      throw std::invalid_argument("the numbers of words and heads cannot be replaced like this");
    if (std::exchange(before, column) >= column) throw std::invalid_argument("columns must ascend");
    check_names(text, values);
  }
  FieldReplacer replacer(text);
  for (std::int64_t token = 0; token < text.tokens(); ++token) {
    for (const auto& [column, values] : columns)
      replacer.replace(text.field(token, column), name_of(values, token));
  }
  return replacer.finish();
}

}  // namespace unkernel::data
