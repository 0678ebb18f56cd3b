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
      throw std::invalid_argument("label number " + std::to_string(number) + " is out of range; there are " +
                                  std::to_string(names.names.size()) + " labels");
    }
  }
  const std::string_view forbidden_characters = text.format() == ColumnFormat::chunks ? " \t\n\r" : "\t\n\r";
  for (const std::string& name : names.names) {
    if (name.empty()) throw std::invalid_argument("a label is empty; write _ for a missing label");
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
                                  std::to_string(words) + " words; write 0 for the root");
    }
  }
}

// Copies a text with some fields replaced, and shifts the positions of its index.
class TextRewriter {
 public:
  TextRewriter(const ColumnText& text, int columns) : text_(text), source_(text.text()) {
    out_.reserve(source_.size() + source_.size() / 8);
    index_.columns = columns;
  }

  // Calls replace_fields(token) for each token, which must replace its fields in ascending order.
  template <class ReplaceFields>
  ColumnText rewrite(std::span<const std::int32_t> heads, const ReplaceFields& replace_fields) {
    index_.first_tokens.push_back(0);
    for (std::int64_t s = 0; s < text_.sentences(); ++s) {
      LinePlace place = text_.place(s);
      move_skipped(place.begin);
      place.begin += shift();
      for (std::int64_t token = text_.first_token(s); token < text_.first_token(s + 1); ++token) {
        begin_token(token);
        replace_fields(token);
        move_cuts(text_.columns());
      }
      place.end += shift();
      index_.sentences.push_back(place);
      index_.first_tokens.push_back(text_.first_token(s + 1));
    }
    move_skipped(std::ssize(source_) + 1);
    copy_to(source_.size());
    std::ranges::copy(heads, index_.heads.extend(heads.size()));
    return {std::move(out_), text_, std::move(index_)};
  }

  void replace(int column, std::string_view by) {
    move_cuts(column);
    const std::string_view field = text_.field(token_, column);
    copy_to(static_cast<std::size_t>(field.data() - source_.data()));
    out_.append(by);
    copied_ += field.size();
  }
  // Appends a column after the last.
  void append(char separator, std::string_view value) {
    const std::string_view last = text_.field(token_, text_.columns() - 1);
    move_cuts(text_.columns() - 1);
    copy_to(static_cast<std::size_t>(last.data() - source_.data()) + last.size());
    out_.append(1, separator);
    push_cut(std::ssize(out_) - token_begin_);
    out_.append(value);
  }

 private:
  // Returns how many bytes longer the copy is than the part of the source copied so far.
  std::int64_t shift() const { return std::ssize(out_) - static_cast<std::int64_t>(copied_); }

  void copy_to(std::size_t end) {
    out_.append(source_, copied_, end - copied_);
    copied_ = end;
  }

  void begin_token(std::int64_t token) {
    token_ = token;
    const std::int64_t begin = text_.index().token_begins.span()[static_cast<std::size_t>(token)];
    copy_to(static_cast<std::size_t>(begin));
    token_begin_ = std::ssize(out_);
    token_shift_ = shift();
    index_.token_begins.push_back(token_begin_);
    next_cut_ = 0;
  }
  // Shifts the cuts of this token, after the columns before `end`, that have not been shifted yet.
  void move_cuts(int end) {
    const std::size_t first_cut =
        static_cast<std::size_t>(token_) * static_cast<std::size_t>(text_.columns());
    for (; next_cut_ < end; ++next_cut_) {
      const std::uint32_t cut = text_.index().cuts.span()[first_cut + static_cast<std::size_t>(next_cut_)];
      push_cut(cut + shift() - token_shift_);
    }
  }
  void push_cut(std::int64_t cut) {
    if (cut > longest_line) throw std::invalid_argument("the labels make a line longer than 2^31 - 1 bytes");
    index_.cuts.push_back(static_cast<std::uint32_t>(cut));
  }
  // Shifts the skipped sentences that begin before `end` in the source.
  void move_skipped(std::int64_t end) {
    for (; next_skipped_ < text_.skipped().size() && text_.skipped()[next_skipped_].begin < end;
         ++next_skipped_) {
      const LinePlace& place = text_.skipped()[next_skipped_];
      index_.skipped.push_back({place.begin + shift(), place.end + shift(), place.line});
    }
  }

  const ColumnText& text_;
  const std::string& source_;
  std::string out_;
  ColumnIndex index_;
  std::size_t copied_ = 0;
  std::size_t next_skipped_ = 0;
  std::int64_t token_ = 0;
  std::int64_t token_begin_ = 0;  // in the copy
  std::int64_t token_shift_ = 0;  // at the beginning of the token
  int next_cut_ = 0;
};

void replace_head(TextRewriter& rewriter, std::int32_t head) {
  char digits[12];
  const auto end = std::to_chars(digits, digits + sizeof digits, head).ptr;
  rewriter.replace(conll::head,
                   head < 0 ? empty_field : std::string_view(digits, static_cast<std::size_t>(end - digits)));
}

// Returns the separator before a new column: the one before the token's last column, or a space if the token
// has only one column.
char find_separator(const ColumnText& text, std::int64_t token) {
  if (text.columns() == 1) return ' ';
  return *(text.field(token, text.columns() - 1).data() - 1);
}

void check_columns(const ColumnText& text, std::span<const ColumnValues> columns) {
  const bool has_heads = text.format() != ColumnFormat::chunks;
  int before = -1;
  for (const auto& [column, values] : columns) {
    if (column < 0 || column >= text.columns()) {
      throw std::invalid_argument("there is no column " + std::to_string(column) + "; the text has " +
                                  std::to_string(text.columns()));
    }
    if (has_heads && (column == conll::id || column == conll::head))
      throw std::invalid_argument("this function cannot replace the numbers of words and heads");
    if (std::exchange(before, column) >= column) throw std::invalid_argument("columns must ascend");
    check_names(text, values);
  }
}

}  // namespace

ColumnText replace_trees(const ColumnText& text, std::span<const std::int32_t> heads,
                         const TokenNames& relations) {
  if (text.format() == ColumnFormat::chunks) throw std::invalid_argument("chunks have no heads");
  check_heads(text, heads);
  check_names(text, relations);
  TextRewriter rewriter(text, text.columns());
  return rewriter.rewrite(heads, [&](std::int64_t token) {
    const auto number = static_cast<std::size_t>(token);
    if (heads[number] != text.heads()[number]) replace_head(rewriter, heads[number]);
    rewriter.replace(conll::deprel, name_of(relations, token));
  });
}

ColumnText replace_columns(const ColumnText& text, std::span<const ColumnValues> columns) {
  check_columns(text, columns);
  TextRewriter rewriter(text, text.columns());
  return rewriter.rewrite(text.heads(), [&](std::int64_t token) {
    for (const auto& [column, values] : columns) rewriter.replace(column, name_of(values, token));
  });
}

ColumnText replace_column(const ColumnText& text, int column, const TokenNames& values) {
  if (text.format() != ColumnFormat::chunks || column != text.columns())
    return replace_columns(text, std::array{ColumnValues{column, values}});
  check_names(text, values);
  TextRewriter rewriter(text, column + 1);
  return rewriter.rewrite(
      {}, [&](std::int64_t token) { rewriter.append(find_separator(text, token), name_of(values, token)); });
}

}  // namespace unkernel::data
