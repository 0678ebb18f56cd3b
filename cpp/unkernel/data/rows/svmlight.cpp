#include "unkernel/data/rows/svmlight.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "unkernel/base/error.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/data/byte_order_mark.hpp"
#include "unkernel/data/rows/svmlight_reasons.hpp"

namespace unkernel::data {
namespace {

// One below the 32-bit maximum, so that the number of features also fits into 32 bits.
constexpr std::int64_t largest_narrow = std::numeric_limits<std::int32_t>::max() - 1;

// Removes lines from the front of the text, up to the end of the line that contains byte `size`, and returns
// these lines. The text must end in a newline.
std::string_view cut_lines(std::string_view& text, std::size_t size) {
  const std::size_t newline = size < text.size() ? text.find('\n', size) : text.size() - 1;
  const std::string_view lines = text.substr(0, newline + 1);
  text.remove_prefix(newline + 1);
  return lines;
}

template <class To, class From>
void copy_as(std::span<const From> from, To* to) {
  std::ranges::transform(from, to, [](From item) { return static_cast<To>(item); });
}

template <class To, class From>
GrowingArray<To> convert(GrowingArray<From>&& from) {
  GrowingArray<To> to;
  copy_as(std::as_const(from).span(), to.extend(from.size()));
  return to;
}

template <class Index>
CsrArrays<Index> renumber_from(std::int64_t first_index, GrowingArray<Index>&& indices,
                               GrowingArray<std::int64_t>&& offsets) {
  if (first_index != 0) {
    for (Index& index : indices.span()) index = static_cast<Index>(index - first_index);
  }
  indices.shrink_to_fit();
  return {convert<Index>(std::move(offsets)), std::move(indices)};
}

}  // namespace

SvmlightParser::SvmlightParser(std::string file, ThreadPlan plan, IndexRange allowed)
    : file_(std::move(file)), plan_(plan), allowed_(allowed) {
  if (plan.threads < 1) throw std::invalid_argument("there must be at least one thread");
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max() - 1;
  if (allowed.smallest < 0 || allowed.largest < allowed.smallest || allowed.largest > largest) {
    throw std::invalid_argument("the allowed indices must lie between 0 and 2^63 - 2");
  }
  pieces_.resize(static_cast<std::size_t>(plan.threads));
  offsets_.push_back(0);
}

void SvmlightParser::feed(std::string_view block) {
  if (has_finished_) throw std::invalid_argument("the parser has finished; create a new one");
  if (!unfinished_line_.empty()) {
    const std::size_t newline = block.find('\n');
    const std::size_t size = newline == std::string_view::npos ? block.size() : newline + 1;
    unfinished_line_.append(block.substr(0, size));
    if (newline == std::string_view::npos) return;
    parse(unfinished_line_);
    block.remove_prefix(size);
  }
  const std::size_t size = block.rfind('\n') + 1;  // npos + 1 is 0
  if (size > 0) parse(block.substr(0, size));
  unfinished_line_.assign(block.substr(size));
}

void SvmlightParser::finish() {
  if (!unfinished_line_.empty()) feed("\n");
  has_finished_ = true;
}

void SvmlightParser::parse(std::string_view lines) {
  if (!std::exchange(has_started_, true) && lines.starts_with(byte_order_mark)) {
    lines.remove_prefix(byte_order_mark.size());
  }
  std::vector<std::string_view> texts;
  while (!lines.empty()) {
    texts.clear();
    while (!lines.empty() && texts.size() < pieces_.size()) {
      texts.push_back(cut_lines(lines, plan_.piece_bytes));
    }
    parse_wave(texts);
  }
}

void SvmlightParser::parse_wave(std::span<const std::string_view> texts) {
  parallel_for(plan_.threads, static_cast<std::int64_t>(texts.size()), [&](std::int64_t i) {
    const auto slot = static_cast<std::size_t>(i);
    parse_piece(texts[slot], allowed_, pieces_[slot]);
  });
  const std::span<const SvmlightPiece> pieces(pieces_.data(), texts.size());
  for (const SvmlightPiece& piece : pieces) {
    check(piece);
    add_counts(piece);
  }
  append(pieces);
}

void SvmlightParser::check(const SvmlightPiece& piece) const {
  // parse_piece checks that all rows of a piece have query numbers, or none of them. Here, compare the
  // pieces.
  if (!piece.labels.empty() && counts_.rows > 0 && piece.has_queries != has_queries_) {
    throw FormatError(file_, counts_.lines + piece.first_row_line, 0,
                      reasons::uneven_queries(piece.has_queries));
  }
  if (!piece.error) return;
  throw FormatError(file_, counts_.lines + piece.error->line, piece.error->column, piece.error->reason);
}

void SvmlightParser::add_counts(const SvmlightPiece& piece) {
  if (!piece.labels.empty()) has_queries_ = piece.has_queries;
  if (piece.largest_index > counts_.largest_index) {
    counts_.largest_index = piece.largest_index;
    counts_.largest_index_line = counts_.lines + piece.largest_index_line;
  }
  counts_.has_zero_index |= piece.has_zero_index;
  counts_.lines += piece.lines;
  counts_.rows += static_cast<std::int64_t>(piece.labels.size());
  counts_.comments += piece.comments;
  counts_.ignored_fields += piece.ignored_fields;
}

void SvmlightParser::append(std::span<const SvmlightPiece> pieces) {
  if (counts_.largest_index > largest_narrow) {
    if (auto* narrow = std::get_if<GrowingArray<std::int32_t>>(&indices_)) {
      indices_ = convert<std::int64_t>(std::move(*narrow));
    }
  }
  std::vector<std::size_t> first_row(pieces.size());
  std::vector<std::size_t> first_entry(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    first_row[i] = labels_.size();
    first_entry[i] = values_.size();
    labels_.extend(pieces[i].labels.size());
    offsets_.extend(pieces[i].labels.size());
    if (has_queries_) queries_.extend(pieces[i].labels.size());
    values_.extend(pieces[i].values.size());
    std::visit([&](auto& indices) { indices.extend(pieces[i].values.size()); }, indices_);
  }
  parallel_for(plan_.threads, static_cast<std::int64_t>(pieces.size()), [&](std::int64_t i) {
    const auto slot = static_cast<std::size_t>(i);
    const SvmlightPiece& piece = pieces[slot];
    std::ranges::copy(piece.labels.span(), labels_.data() + first_row[slot]);
    if (has_queries_) std::ranges::copy(piece.queries.span(), queries_.data() + first_row[slot]);
    std::ranges::transform(
        piece.row_ends.span(), offsets_.data() + first_row[slot] + 1,
        [&](std::int64_t end) { return end + static_cast<std::int64_t>(first_entry[slot]); });
    std::ranges::copy(piece.values.span(), values_.data() + first_entry[slot]);
    std::visit([&](auto& indices) { copy_as(piece.indices.span(), indices.data() + first_entry[slot]); },
               indices_);
  });
}

SvmlightArrays SvmlightParser::take(std::int64_t first_index) {
  if (!has_finished_) throw std::invalid_argument("the file has not been read to its end");
  if (counts_.has_zero_index && first_index != 0) {
    throw std::invalid_argument("the file has an index 0, so its first index must be 0");
  }
  return take_arrays(first_index);
}

SvmlightArrays SvmlightParser::take_part() {
  SvmlightArrays part = take_arrays(0);
  offsets_.clear();
  offsets_.push_back(0);
  indices_ = GrowingArray<std::int32_t>();
  return part;
}

SvmlightArrays SvmlightParser::take_arrays(std::int64_t first_index) {
  const auto entries = static_cast<std::int64_t>(values_.size());
  if (auto* narrow = std::get_if<GrowingArray<std::int32_t>>(&indices_);
      narrow != nullptr && entries > largest_narrow) {
    indices_ = convert<std::int64_t>(std::move(*narrow));
  }
  labels_.shrink_to_fit();
  queries_.shrink_to_fit();
  values_.shrink_to_fit();
  SvmlightArrays result;
  std::visit(
      [&](auto& indices) {
        result.rows = renumber_from(first_index, std::move(indices), std::move(offsets_));
      },
      indices_);
  result.labels = std::move(labels_);
  result.queries = std::move(queries_);
  result.values = std::move(values_);
  return result;
}

}  // namespace unkernel::data
