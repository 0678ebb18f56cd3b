#include "unkernel/data/trees/tree_lines.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "unkernel/base/error.hpp"
#include "unkernel/data/decimal.hpp"

namespace unkernel::data {
namespace {

constexpr std::int64_t largest_index = (std::int64_t{1} << 31) - 2;

std::string_view token_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && !is_blank(text[end])) ++end;
  return text.substr(at, end - at);
}

// A mark such as `|BT|`, `|BT:name|` or `|ET|`: a bar, B or E, capital letters, an optional name, a bar.
struct Mark {
  bool begins = false;
  std::string_view kind;
  std::string_view name;
  bool named = false;
  std::size_t size = 0;  // 0 if there is no mark
};

Mark mark_at(std::string_view text, std::size_t at) {
  Mark mark;
  std::size_t end = at + 1;
  if (at >= text.size() || text[at] != '|' || end >= text.size() || (text[end] != 'B' && text[end] != 'E'))
    return mark;
  const std::size_t kind = ++end;
  while (end < text.size() && text[end] >= 'A' && text[end] <= 'Z') ++end;
  mark.kind = text.substr(kind, end - kind);
  if (end < text.size() && text[end] == ':') {
    const std::size_t name = end + 1;
    end = std::min(text.find('|', name), text.size());
    mark.name = text.substr(name, end - name);
    mark.named = true;
  }
  if (mark.kind.empty() || end >= text.size() || text[end] != '|') return {};
  mark.begins = text[kind - 1] == 'B';
  mark.size = end + 1 - at;
  return mark;
}

bool read_whole_number(std::string_view text, std::int64_t& value) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

TreeLines::TreeLines(std::string file, std::shared_ptr<Forest> forest)
    : file_(std::move(file)),
      forest_(std::move(forest)),
      words_joined_(*forest_, WordStyle::joined),
      words_apart_(*forest_, WordStyle::apart) {}

void TreeLines::feed(std::string_view block) {
  while (!block.empty()) {
    const std::size_t end = block.find('\n');
    if (end == std::string_view::npos) {
      unfinished_line_.append(block);
      return;
    }
    if (unfinished_line_.empty()) {
      read_line(block.substr(0, end));
    } else {
      unfinished_line_.append(block.substr(0, end));
      read_line(unfinished_line_);
      unfinished_line_.clear();
    }
    block.remove_prefix(end + 1);
  }
}

void TreeLines::finish() {
  if (!unfinished_line_.empty()) read_line(unfinished_line_);
  unfinished_line_.clear();
}

void TreeLines::fail(std::size_t at, const std::string& why) const {
  throw FormatError(file_, line_number_, static_cast<std::int64_t>(at) + 1, why);
}

void TreeLines::read_line(std::string_view text) {
  ++line_number_;
  std::size_t at = skip_blanks(text, 0);
  if (at == text.size() || text[at] == '#') return;
  trees_in_line_ = vectors_in_line_ = 0;
  at = read_head(text);
  while (at < text.size()) at = skip_blanks(text, read_section(text, at));
  examples_.tree_ends.push_back(static_cast<std::int64_t>(examples_.roots.size()));
  examples_.vector_ends.push_back(static_cast<std::int64_t>(examples_.vector_channel.size()));
}

// Reads the label and the optional qid, and returns where the sections begin.
std::size_t TreeLines::read_head(std::string_view text) {
  std::size_t at = skip_blanks(text, 0);
  const std::string_view label = token_at(text, at);
  if (mark_at(text, at).size > 0) fail(at, "a line begins with a label");
  if (label.front() == '(')
    fail(at, "a line begins with a label, not with a tree: read it as a file of brackets");
  examples_.labels.push_back(examples_.label_names.add(label));
  return read_query(text, skip_blanks(text, at + label.size()));
}

std::size_t TreeLines::read_query(std::string_view text, std::size_t at) {
  constexpr std::string_view prefix = "qid:";
  const bool has_query = text.substr(at).starts_with(prefix);
  if (examples_.labels.size() > 1 && has_query != examples_.has_queries) {
    fail(at, has_query ? "this line has a qid, those before have none"
                       : "this line has no qid, those before have one");
  }
  examples_.has_queries = has_query;
  if (!has_query) return at;
  const std::string_view token = token_at(text, at);
  std::int64_t query = 0;
  if (!read_whole_number(token.substr(prefix.size()), query)) fail(at, "a whole number must follow qid:");
  examples_.queries.push_back(query);
  return skip_blanks(text, at + token.size());
}

std::size_t TreeLines::read_section(std::string_view text, std::size_t at) {
  if (text[at] == '#') return text.size();
  const Mark mark = mark_at(text, at);
  if (mark.size == 0) {
    if (text[at] == '(')
      fail(at, "a tree must be between |BT| and |ET|, as in: 1 |BT| (S (NP dogs) (VP bark)) |ET|");
    return read_vectors(text, at);
  }
  if (!mark.begins) {
    if (mark.kind == "V" && vectors_in_line_ == 0) return read_vectors(text, at);  // one empty vector
    fail(at, "this mark ends a part of the line that has not begun");
  }
  if (mark.kind == "T") return read_trees(text, at + mark.size, mark.named ? mark.name : std::string_view());
  if (mark.kind == "V")
    return mark.named ? read_named_vector(text, at + mark.size, mark.name) : read_vectors(text, at);
  if (mark.kind != "S")
    fail(at, "trees (|BT|), vectors (|BV|) and strings (|BS|) can be read, and no others");
  const std::size_t end = text.find("|ES|", at);
  if (end == std::string_view::npos) fail(at, "|BS| without |ES|");
  return end + 4;
}

// Reads trees up to |ET|. Another |BT| begins the next tree.
std::size_t TreeLines::read_trees(std::string_view text, std::size_t at, std::string_view name) {
  const bool named = !name.empty();
  while (true) {
    at = skip_blanks(text, at);
    NodeId root = -1;
    if (at < text.size() && text[at] == '(') {
      try {
        root = (named ? words_apart_ : words_joined_).read(text, at);
      } catch (const BracketError& error) { fail(error.offset, error.what()); }
      at = skip_blanks(text, at);
    }
    const std::string channel = named ? std::string(name) : std::to_string(trees_in_line_);
    examples_.tree_channel.push_back(examples_.tree_channels.add(channel));
    examples_.roots.push_back(root);
    check_not_repeated(at, examples_.tree_channel, examples_.tree_ends);
    ++trees_in_line_;
    const Mark mark = mark_at(text, at);
    if (mark.size == 0 || mark.kind != "T") {
      fail(at,
           root < 0 ? "a tree begins with '('" : "a tree ends with |ET|, or the next one begins with |BT|");
    }
    if (mark.begins && mark.named != named) fail(at, "some trees of this line have names, others have none");
    at += mark.size;
    if (!mark.begins) return at;
    name = mark.name;
  }
}

// Reads vectors of numbered features. |BV| separates vectors; |EV| or the end of the line ends the last one.
std::size_t TreeLines::read_vectors(std::string_view text, std::size_t at) {
  vector_begin_ = examples_.indices.size();
  while (true) {
    at = skip_blanks(text, at);
    const Mark mark = mark_at(text, at);
    if (at == text.size() || text[at] == '#' || mark.size > 0) {
      end_vector(at, false);
      if (mark.size == 0) return text.size();
      if (mark.kind != "V") fail(at, "vectors come after the trees, and end with |EV|");
      at += mark.size;
      if (!mark.begins) return at;
    } else {
      at = read_entry(text, at, false);
    }
  }
}

std::size_t TreeLines::read_named_vector(std::string_view text, std::size_t at, std::string_view name) {
  vector_begin_ = examples_.indices.size();
  while (true) {
    at = skip_blanks(text, at);
    if (at == text.size()) fail(at, "|BV:" + std::string(name) + "| without |EV|");
    const Mark mark = mark_at(text, at);
    if (mark.size > 0 && mark.kind == "V" && !mark.begins) {
      end_vector(at, true);
      examples_.vector_channel.back() = examples_.vector_channels.add(name);
      check_not_repeated(at, examples_.vector_channel, examples_.vector_ends);
      return at + mark.size;
    }
    at = read_entry(text, at, true);
  }
}

std::size_t TreeLines::read_entry(std::string_view text, std::size_t at, bool named) {
  const std::string_view token = token_at(text, at);
  const std::size_t colon = token.rfind(':');
  double value = 0.0;
  if (colon == std::string_view::npos || colon == 0) fail(at, "expected a feature in the form index:value");
  if (!read_decimal(token.substr(colon + 1), value)) {
    fail(at + colon + 1, "the value of a feature must be a finite number");
  }
  std::int64_t index = 0;
  if (named) {
    index = examples_.features.add(token.substr(0, colon));
  } else if (!read_whole_number(token.substr(0, colon), index) || index < 1 || index > largest_index) {
    fail(at, "the index of a feature must be a whole number from 1 to 2147483646");
  } else if (examples_.indices.size() > vector_begin_ && index <= examples_.indices.back()) {
    fail(at, "the indices of a vector must ascend");
  }
  examples_.indices.push_back(index);
  examples_.values.push_back(value);
  return at + token.size();
}

// Throws if the last tree or vector of the line has the same channel as an earlier one. `ends` has the ends
// of previous examples in `channels`.
void TreeLines::check_not_repeated(std::size_t at, std::span<const std::int32_t> channels,
                                   std::span<const std::int64_t> ends) const {
  const auto line_channels = channels.subspan(ends.empty() ? 0 : static_cast<std::size_t>(ends.back()));
  if (std::ranges::count(line_channels, line_channels.back()) > 1)
    fail(at, "this line has two trees or two vectors of the same name");
}

// Ends a vector. Named features may come in any order, and the values of repeated ones are added.
void TreeLines::end_vector(std::size_t at, bool named) {
  (named ? has_named_ : has_numbered_) = true;
  if (has_named_ && has_numbered_)
    fail(at, "some vectors of this file have features with names, others with numbers");
  if (named) {
    std::vector<std::pair<std::int64_t, double>> entries;
    for (std::size_t i = vector_begin_; i < examples_.indices.size(); ++i) {
      entries.emplace_back(examples_.indices[i], examples_.values[i]);
    }
    std::ranges::stable_sort(entries, {}, &std::pair<std::int64_t, double>::first);
    examples_.indices.resize(vector_begin_);
    examples_.values.resize(vector_begin_);
    for (const auto& [index, value] : entries) {
      if (examples_.indices.size() > vector_begin_ && examples_.indices.back() == index) {
        examples_.values.back() += value;
        if (!std::isfinite(examples_.values.back()))
          fail(at, "the values of a repeated feature add up to infinity");
      } else {
        examples_.indices.push_back(index);
        examples_.values.push_back(value);
      }
    }
  }
  examples_.entry_ends.push_back(static_cast<std::int64_t>(examples_.indices.size()));
  examples_.vector_channel.push_back(named ? 0
                                           : examples_.vector_channels.add(std::to_string(vectors_in_line_)));
  ++vectors_in_line_;
  vector_begin_ = examples_.indices.size();
}

}  // namespace unkernel::data
