#include "unkernel/data/text/column_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

#include "unkernel/data/decimal.hpp"
#include "unkernel/data/text/utf8.hpp"

namespace unkernel::data {
namespace {

constexpr std::int32_t most_words = std::numeric_limits<std::int32_t>::max() - 1;

bool is_number(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_digit); }

// Returns at most 40 characters of the text, in quotes.
std::string quote_short(std::string_view text) {
  constexpr std::size_t longest = 40;
  const bool fits = count_characters(text) <= longest;
  return std::string(1, '\'')
      .append(fits ? text : first_characters(text, longest - 3))
      .append(fits ? "'" : "...'");
}

}  // namespace

FormatError fault_in_lines(std::string_view text, const std::string& file, const LinePlace& place,
                           const char* at, std::string reason) {
  const char* begin = text.data() + place.begin;
  const std::string_view before(begin, static_cast<std::size_t>(at - begin));
  const std::int64_t lines = std::ranges::count(before, '\n');
  const std::string_view in_line = lines == 0 ? before : before.substr(before.rfind('\n') + 1);
  return {file, place.line + lines, static_cast<std::int64_t>(count_characters(in_line)) + 1,
          std::move(reason)};
}

ColumnReader::ColumnReader(std::string_view text, const std::string& file, const ColumnOptions& options,
                           const LinePlace& part, ColumnIndex& index)
    : text_(text),
      begin_(text.data()),
      end_(text.data() + part.end),
      file_(file),
      options_(options),
      index_(index),
      next_(text.data() + part.begin),
      next_number_(part.line),
      line_begin_(next_),
      line_end_(next_) {
  index_.columns = options.format == ColumnFormat::chunks ? options.columns : conll::columns;
}

void ColumnReader::read() {
  index_.first_tokens.push_back(0);
  for (skip_blank_lines(); next_ < end_; skip_blank_lines()) {
    begin_sentence();
    const bool all_read = read_sentence();
    if (all_read && end_sentence()) continue;
    if (!options_.skip_bad_sentences) throw fault_in_lines(text_, file_, place_, fault_at_, fault_reason_);
    discard_sentence(!all_read);
  }
}

bool ColumnReader::next_line() {
  if (next_ == end_) return false;
  const auto* newline =
      static_cast<const char*>(std::memchr(next_, '\n', static_cast<std::size_t>(end_ - next_)));
  line_begin_ = next_;
  line_end_ = newline == nullptr ? end_ : newline;
  next_ = newline == nullptr ? end_ : newline + 1;
  if (line_end_ > line_begin_ && line_end_[-1] == '\r') --line_end_;
  ++next_number_;
  return true;
}

bool ColumnReader::line_is_blank() const {
  return std::all_of(line_begin_, line_end_,
                     [](char c) { return is_column_blank(c) || (c >= '\v' && c <= '\r'); });
}

void ColumnReader::skip_blank_lines() {
  while (next_line()) {
    if (line_is_blank()) continue;
    next_ = line_begin_;  // so that the line is read again
    --next_number_;
    return;
  }
}

void ColumnReader::begin_sentence() {
  place_ = {next_ - begin_, next_ - begin_, next_number_};
  words_ = largest_head_ = 0;
  has_other_lines_ = columns_set_here_ = false;
}

// Reads lines up to a blank line. Comments between blank lines belong to the next sentence.
bool ColumnReader::read_sentence() {
  while (next_line()) {
    if (line_is_blank()) {
      if (words_ > 0 || has_other_lines_) break;
      continue;
    }
    if (!read_line()) return false;
    place_.end = next_ - begin_;
  }
  return true;
}

bool ColumnReader::read_line() {
  if (line_end_ - line_begin_ > longest_line)
    return fail(line_begin_, "a line of more than 2147483647 bytes");
  const std::size_t bad = first_bad_byte(line());
  if (bad < line().size()) {
    return fail(line_begin_ + bad, line()[bad] == '\0' ? "a NUL byte; text in UTF-8 is expected"
                                                       : "not UTF-8: convert the text first, from Latin-1 "
                                                         "by `iconv -f latin1 -t utf-8`, or from the "
                                                         "encoding that it has");
  }
  if (options_.format == ColumnFormat::chunks) return split_at_blanks();
  return *line_begin_ == '#' || read_word();
}

// Reads the line of a word. Skips lines of multiword tokens and empty nodes.
bool ColumnReader::read_word() {
  const std::size_t cuts = index_.cuts.size();
  if (!split_at_tabs()) return false;
  const std::uint32_t* cut = index_.cuts.data() + cuts;
  const std::string_view id = line().substr(0, cut[conll::id] - 1);
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (error != std::errc() || end != id.data() + id.size() || number != words_ + 1 || id[0] == '0') {
    if (!is_multiword_or_empty_node(id)) return fail_number(id);
    index_.cuts.truncate(cuts);
    has_other_lines_ = true;
    return true;
  }
  return add_token(line_begin_) &&
         read_head(line().substr(cut[conll::head - 1], cut[conll::head] - 1 - cut[conll::head - 1]));
}

bool ColumnReader::read_head(std::string_view text) {
  std::int32_t head = -1;
  if (text != "_") {
    if (!is_number(text)) {
      return fail(text.data(), "the head " + quote_short(text) +
                                   " is not a number; write 0 for the root, and _ for a missing head");
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), head);
    if (error != std::errc())
      return fail(text.data(), "the head " + quote_short(text) + " is not a word of the sentence");
    if (head == words_) return fail(text.data(), "word " + std::to_string(head) + " is its own head");
  }
  largest_head_ = std::max(largest_head_, head);
  index_.heads.push_back(head);
  return true;
}

bool ColumnReader::split_at_tabs() {
  std::uint32_t* cuts = index_.cuts.extend(conll::columns);
  int column = 0;
  const char* field = line_begin_;
  for (const char* at = line_begin_; at <= line_end_; ++at) {
    if (at < line_end_ && *at != '\t') continue;
    if (column == conll::columns) return fail_columns(column + 1 + std::count(at, line_end_, '\t'), field);
    if (at == field) {
      if (at == line_end_ && column + 1 < conll::columns) return fail_columns(column + 1, at);
      return fail(field, "nothing in column " + std::to_string(column + 1) + "; write _ if it is empty");
    }
    field = at + 1;
    cuts[column++] = static_cast<std::uint32_t>(field - line_begin_);
  }
  return column == conll::columns || fail_columns(column, line_end_);
}

bool ColumnReader::split_at_blanks() {
  const char* begin = std::find_if_not(line_begin_, line_end_, is_column_blank);
  int columns = 0;
  for (const char* field = begin; field < line_end_; ++columns) {
    const char* end = std::find_if(field, line_end_, is_column_blank);
    const char* next = std::find_if_not(end, line_end_, is_column_blank);
    index_.cuts.push_back(static_cast<std::uint32_t>((next == line_end_ ? end + 1 : next) - begin));
    field = next;
  }
  if (index_.columns == 0) {
    index_.columns = columns;
    columns_set_here_ = true;
  }
  if (columns != index_.columns) return fail_columns(columns, line_end_);
  return add_token(begin);
}

bool ColumnReader::add_token(const char* at) {
  if (words_ == most_words) return fail(at, "a sentence of more than 2147483646 words");
  ++words_;
  index_.token_begins.push_back(at - begin_);
  return true;
}

// Returns whether the ID belongs to a multiword token, such as 1-2, or to an empty node, such as 1.1.
bool ColumnReader::is_multiword_or_empty_node(std::string_view id) const {
  if (options_.format != ColumnFormat::conllu) return false;
  const std::size_t middle = id.find_first_of("-.");
  return middle != std::string_view::npos && is_number(id.substr(0, middle)) &&
         is_number(id.substr(middle + 1));
}

bool ColumnReader::end_sentence() {
  if (words_ == 0) {
    // Comments without a word after them do not form a sentence; they are copied unchanged.
    return !has_other_lines_ || fail(begin_ + place_.begin, "a sentence without words");
  }
  if (options_.format != ColumnFormat::chunks && !check_heads()) return false;
  index_.sentences.push_back(place_);
  index_.first_tokens.push_back(static_cast<std::int64_t>(index_.token_begins.size()));
  return true;
}

bool ColumnReader::check_heads() {
  const auto heads = std::as_const(index_.heads).span().last(static_cast<std::size_t>(words_));
  std::size_t word = 0;
  std::string reason;
  if (largest_head_ > words_) {
    while (heads[word] <= words_) ++word;
    reason = "the head " + std::to_string(heads[word]) + " is not a word of the sentence, which has " +
             std::to_string(words_);
  } else if (auto fault = head_fault(heads, options_.trees)) {
    word = fault->word;
    reason = std::move(fault->reason);
  } else {
    return true;
  }
  const std::size_t token = index_.heads.size() - heads.size() + word;
  const std::uint32_t column = index_.cuts.span()[token * conll::columns + conll::head - 1];
  return fail(begin_ + index_.token_begins.span()[token] + column, std::move(reason));
}

// Discards the tokens of a bad sentence, and records its lines as skipped.
void ColumnReader::discard_sentence(bool to_its_end) {
  const auto tokens = static_cast<std::size_t>(index_.first_tokens.span().back());
  if (columns_set_here_) index_.columns = 0;
  index_.token_begins.truncate(tokens);
  index_.cuts.truncate(tokens * static_cast<std::size_t>(index_.columns));
  index_.heads.truncate(index_.heads.empty() ? 0 : tokens);
  if (to_its_end) {
    do { place_.end = next_ - begin_; } while (next_line() && !line_is_blank());
  }
  index_.skipped.push_back(place_);
}

bool ColumnReader::fail(const char* at, std::string reason) {
  fault_at_ = at;
  fault_reason_ = std::move(reason);
  return false;
}

bool ColumnReader::fail_columns(std::int64_t found, const char* at) {
  const std::string columns = found == 1 ? "1 column" : std::to_string(found) + " columns";
  const std::string instead = columns + " instead of " + std::to_string(index_.columns);
  if (options_.format == ColumnFormat::chunks) {
    return fail(at, instead +
                        "; blanks separate columns, every line is one word with as many columns, and an "
                        "empty line ends a sentence");
  }
  if (found == 1) {
    return fail(
        at, instead +
                "; CoNLL-U has one word per line, with its number, form, lemma, tags and so on in columns "
                "that tabs separate; this is plain text");
  }
  return fail(at, instead + "; separate columns by tabs, and write _ in empty ones");
}

bool ColumnReader::fail_number(std::string_view id) {
  const std::string expected = std::to_string(words_ + 1);
  if (is_number(id)) {
    return fail(id.data(), "word " + quote_short(id) + " where " + expected +
                               " is expected; an empty line ends a sentence");
  }
  return fail(id.data(), quote_short(id) + " is not the number of a word; " + expected + " is expected");
}

}  // namespace unkernel::data
