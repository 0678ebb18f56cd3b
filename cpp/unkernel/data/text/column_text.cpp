#include "unkernel/data/text/column_text.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "unkernel/data/byte_order_mark.hpp"
#include "unkernel/data/text/column_reader.hpp"

namespace unkernel::data {
namespace {

bool is_blank_line(std::string_view line) {
  return std::ranges::all_of(line, [](char c) { return is_column_blank(c) || (c >= '\v' && c <= '\r'); });
}

}  // namespace

ColumnText::ColumnText(std::string text, std::string file, const ColumnOptions& options)
    : text_(std::move(text)), file_(std::move(file)), options_(options) {
  if (options.first_line < 1) throw std::invalid_argument("first_line must be at least 1");
  if (options.columns < 0) throw std::invalid_argument("the number of columns must not be negative");
  const bool has_mark = options.first_line == 1 && text_.starts_with(byte_order_mark);
  const LinePlace all{has_mark ? std::ssize(byte_order_mark) : 0, static_cast<std::int64_t>(text_.size()),
                      options.first_line};
  ColumnReader(text_, file_, options_, all, index_).read();
}

ColumnText::ColumnText(std::string text, const ColumnText& original, ColumnIndex index)
    : text_(std::move(text)), file_(original.file_), options_(original.options_), index_(std::move(index)) {
  options_.columns = 0;
  if (!options_.skip_bad_sentences) options_.trees = TreeCheck::none;  // replaced heads need not form trees
}

std::int64_t ColumnText::sentence_of(std::int64_t token) const {
  const auto firsts = first_tokens();
  return std::ranges::upper_bound(firsts, token) - firsts.begin() - 1;
}

std::int64_t ColumnText::line(std::int64_t token) const {
  const LinePlace& sentence = place(sentence_of(token));
  const auto begin = text_.begin() + sentence.begin;
  return sentence.line +
         std::count(begin, text_.begin() + index_.token_begins.span()[static_cast<std::size_t>(token)], '\n');
}

std::string_view ColumnText::sentence_text(std::int64_t sentence) const {
  const LinePlace& lines = place(sentence);
  return std::string_view(text_).substr(static_cast<std::size_t>(lines.begin),
                                        static_cast<std::size_t>(lines.end - lines.begin));
}

FormatError ColumnText::why_skipped(std::size_t number) const {
  ColumnOptions options = options_;
  options.skip_bad_sentences = false;
  options.columns = index_.columns;
  const LinePlace& part = index_.skipped.span()[number];
  try {
    ColumnIndex again;
    ColumnReader(text_, file_, options, part, again).read();
  } catch (const FormatError& error) { return error; }
  return {file_, part.line, 0, "a bad sentence"};
}

void ColumnText::check_trees(TreeCheck check) const {
  if (format() == ColumnFormat::chunks) throw std::invalid_argument("chunks have no heads");
  for (std::int64_t s = 0; s < sentences(); ++s) {
    const auto begin = static_cast<std::size_t>(first_token(s));
    const auto words = static_cast<std::size_t>(first_token(s + 1)) - begin;
    if (const auto found = head_fault(heads().subspan(begin, words), check)) {
      throw fault(first_token(s) + static_cast<std::int64_t>(found->word), conll::head, found->reason);
    }
  }
}

FormatError ColumnText::fault(std::int64_t token, int column, const std::string& reason) const {
  return fault_in_lines(text_, file_, place(sentence_of(token)), field(token, column).data(), reason);
}

std::size_t size_of_whole_sentences(std::string_view text, ColumnFormat format) {
  const std::size_t start = text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  std::size_t cut = 0;  // the end of a blank line, which ends a sentence if a word precedes it
  std::size_t end = text.rfind('\n');
  while (end != std::string_view::npos && end >= start) {
    const std::size_t before = end == 0 ? std::string_view::npos : text.rfind('\n', end - 1);
    const std::size_t begin = before == std::string_view::npos ? start : before + 1;
    const std::string_view line = text.substr(begin, end - begin);
    if (is_blank_line(line)) {
      cut = end + 1;
    } else if (cut > 0 && (format == ColumnFormat::chunks || line.front() != '#')) {
      return cut;
    }
    end = before;
  }
  return 0;
}

}  // namespace unkernel::data
