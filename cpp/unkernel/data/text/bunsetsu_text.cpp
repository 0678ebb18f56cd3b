#include "unkernel/data/text/bunsetsu_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <stdexcept>
#include <utility>

#include "unkernel/base/error.hpp"
#include "unkernel/data/byte_order_mark.hpp"
#include "unkernel/data/decimal.hpp"

namespace unkernel::data {
namespace {

constexpr std::string_view end_of_sentence = "EOS";
constexpr const char* no_bunsetsu =
    "a sentence begins with a bunsetsu, such as '* 0 1D'; plain text must be split into tagged morphemes and "
    "bunsetsu first, as JUMAN with KNP or CaboCha do";

// Positions of the fields: in a line with seven fields, and in a line of JUMAN, where a number follows each
// of POS, subPOS, ctype and cform.
constexpr std::array<std::size_t, morpheme_fields> plain_fields{0, 1, 2, 3, 4, 5, 6};
constexpr std::array<std::size_t, morpheme_fields> juman_fields{0, 1, 2, 3, 5, 7, 9};
constexpr std::size_t fewest_juman_fields = 11;

bool is_type(char c) { return c >= 'A' && c <= 'Z'; }

// Reads an integer. Accepts only the canonical form (no plus sign, no leading zeros), so that equal numbers
// have equal bytes.
bool read_integer(std::string_view token, std::int32_t& value) {
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  const std::string_view digits = token.starts_with('-') ? token.substr(1) : token;
  return error == std::errc() && end == token.data() + token.size() &&
         (digits == "0" ? digits.size() == token.size() : digits[0] != '0');
}

std::string_view token_at(std::string_view line, std::size_t at) {
  return line.substr(at, line.find(' ', at) - at);
}

// The three fields of `* 0 12D` or `+ 0 12D`. Ignores further fields of the line.
struct Header {
  std::string_view number;
  std::string_view head;  // without the type
  char type;
};

bool read_header(std::string_view line, char first, Header& header) {
  if (line.size() < 2 || line[0] != first || line[1] != ' ') return false;
  header.number = token_at(line, 2);
  const std::size_t at = 2 + header.number.size() + 1;
  if (header.number.empty() || !std::ranges::all_of(header.number, is_digit) || at >= line.size())
    return false;
  const std::string_view token = token_at(line, at);
  if (token.size() < 2 || !is_type(token.back())) return false;
  header.head = token.substr(0, token.size() - 1);
  header.type = token.back();
  return std::ranges::all_of(header.head.starts_with('-') ? header.head.substr(1) : header.head, is_digit);
}

bool is_basic_phrase(std::string_view line) {
  Header header;
  return read_header(line, '+', header);
}

}  // namespace

BunsetsuText::BunsetsuText(std::string text, std::string file, std::int64_t first_line, BadSentence bad)
    : text_(std::move(text)), file_(std::move(file)), first_line_(first_line), first_morphemes_{0} {
  std::vector<Line> lines;
  std::size_t at = first_line == 1 && text_.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  for (Line line; next_line(at, line);) {
    if (lines.empty() && line.text.empty()) continue;
    lines.push_back(line);
    if (line.text != end_of_sentence) continue;
    keep_or_skip(lines, at, bad);
    lines.clear();
  }
  const auto is_comment = [](const Line& line) { return line.text.empty() || line.text[0] == '#'; };
  const auto first = std::ranges::find_if_not(lines, is_comment);
  if (first == lines.end()) return;
  // If the first line is a bunsetsu, the end of the last sentence is missing; otherwise, the text has another
  // format.
  Header header;
  const bool is_cut_off = read_header(first->text, '*', header);
  const std::string reason = is_cut_off ? "the last sentence does not end with EOS" : no_bunsetsu;
  const Line& bad_line = is_cut_off ? lines.back() : *first;
  const std::size_t column = is_cut_off ? 0 : 1;
  if (bad == BadSentence::fail) fail(bad_line, column, reason);
  skipped_.push_back({bad_line.number, static_cast<std::int64_t>(column), reason});
}

// Reads the next line. Returns false at the end of the text.
bool BunsetsuText::next_line(std::size_t& at, Line& line) {
  if (at >= text_.size()) return false;
  const std::size_t newline = std::min(text_.find('\n', at), text_.size());
  line = {std::string_view(text_).substr(at, newline - at), at, first_line_ + lines_};
  if (line.text.ends_with('\r')) line.text.remove_suffix(1);
  at = newline + 1;
  ++lines_;
  return true;
}

void BunsetsuText::keep_or_skip(std::span<const Line> lines, std::size_t end, BadSentence bad) {
  const std::size_t old_bunsetsu = bunsetsu();
  const std::size_t old_symbols = symbols_.size();
  try {
    read_sentence(lines);
    sentences_.push_back({old_bunsetsu, lines[0].begin, std::min(end, text_.size()), lines[0].number});
  } catch (const FormatError& error) {
    if (bad == BadSentence::fail) throw;
    heads_.resize(old_bunsetsu);
    types_.resize(old_bunsetsu);
    head_begins_.resize(old_bunsetsu);
    first_morphemes_.resize(old_bunsetsu + 1);
    symbols_.resize(old_symbols);
    skipped_.push_back({error.line, error.column, error.reason});
  }
}

// Reads the lines of a sentence. The last entry of first_morphemes_ is where the next bunsetsu begins.
void BunsetsuText::read_sentence(std::span<const Line> lines) {
  std::int32_t count = 0;
  for (const Line& line : lines.first(lines.size() - 1)) {
    if (count == 0 && (line.text.empty() || line.text[0] == '#')) continue;
    if (read_bunsetsu(line, count)) {
      ++count;
    } else if (!is_basic_phrase(line.text)) {
      if (count == 0) fail(line, 1, no_bunsetsu);
      read_morpheme(line);
    }
  }
  if (count > 0 && first_morphemes_.back() == first_morphemes_[first_morphemes_.size() - 2]) {
    fail(lines.back(), 0, "the previous bunsetsu has no morphemes");
  }
}

bool BunsetsuText::read_bunsetsu(const Line& line, std::int32_t number) {
  Header header;
  if (!read_header(line.text, '*', header)) return false;
  if (number > 0 && first_morphemes_.back() == first_morphemes_[first_morphemes_.size() - 2]) {
    fail(line, 0, "the previous bunsetsu has no morphemes");
  }
  std::int32_t read = 0;
  if (!read_integer(header.number, read) || read != number) {
    fail(line, 3, "bunsetsu are numbered one by one, and this is number " + std::to_string(number));
  }
  const auto column = static_cast<std::size_t>(header.head.data() - line.text.data());
  if (!read_integer(header.head, read) || read < no_head)
    fail(line, column + 1, "a head is the number of a bunsetsu, or -1");
  heads_.push_back(read);
  types_.push_back(header.type);
  head_begins_.push_back(line.begin + column);
  first_morphemes_.push_back(morphemes());
  return true;
}

void BunsetsuText::read_morpheme(const Line& line) {
  std::array<std::string_view, juman_fields.back() + 1> fields;
  std::size_t count = 0;
  for (std::size_t at = 0; at <= line.text.size(); ++count) {
    const std::string_view token = token_at(line.text, at);
    if (token.empty()) fail(line, at + 1, "a field is empty: fields are separated by one space each");
    if (count < fields.size()) fields[count] = token;
    at += token.size() + 1;
  }
  if (count != morpheme_fields && count < fewest_juman_fields) {
    const std::string n_fields = std::to_string(count) + (count == 1 ? " field" : " fields");
    if (line.text.starts_with("* "))
      fail(line, 1, "neither a bunsetsu, such as '* 0 1D', nor a morpheme: " + n_fields);
    fail(line, 1,
         "a morpheme has 7 fields (surface reading lemma POS subPOS ctype cform) or JUMAN's 11, this line "
         "has " +
             n_fields);
  }
  const auto& places = count == morpheme_fields ? plain_fields : juman_fields;
  for (const std::size_t place : places) symbols_.push_back(names_.add(fields[place]));
  first_morphemes_.back() = morphemes();
}

void BunsetsuText::fail(const Line& line, std::size_t column, const std::string& why) const {
  throw FormatError(file_, line.number, static_cast<std::int64_t>(column), why);
}

std::string_view BunsetsuText::sentence_text(std::size_t sentence) const {
  const Sentence& lines = sentences_[sentence];
  return std::string_view(text_).substr(lines.begin, lines.end - lines.begin);
}

void BunsetsuText::check_counts(std::span<const std::int32_t> heads, std::string_view types) const {
  if (heads.size() != bunsetsu() || types.size() != bunsetsu()) {
    throw std::invalid_argument("there are " + std::to_string(bunsetsu()) + " bunsetsu, but " +
                                std::to_string(heads.size()) + " heads and " + std::to_string(types.size()) +
                                " types");
  }
}

void BunsetsuText::check_heads(std::span<const std::int32_t> heads, std::string_view types) const {
  check_counts(heads, types);
  for (std::size_t s = 0; s < sentences(); ++s) {
    const std::size_t first = first_bunsetsu(s);
    const auto count = static_cast<std::int32_t>(first_bunsetsu(s + 1) - first);
    for (std::int32_t b = 0; b < count; ++b) {
      const std::size_t index = first + static_cast<std::size_t>(b);
      const bool is_head = (heads[index] >= no_head && heads[index] < count) || heads[index] == heads_[index];
      if (is_head && is_type(types[index])) continue;
      throw std::invalid_argument("bunsetsu " + std::to_string(b) + " of sentence " + std::to_string(s) +
                                  ": its head must be one of the " + std::to_string(count) +
                                  " bunsetsu or -1, and its type a letter from A to Z");
    }
  }
}

std::string BunsetsuText::with_heads(std::span<const std::int32_t> heads, std::string_view types) const {
  check_heads(heads, types);
  return rewrite(0, text_.size(), 0, bunsetsu(), heads, types);
}

std::string BunsetsuText::sentence_with_heads(std::size_t sentence, std::span<const std::int32_t> heads,
                                              std::string_view types) const {
  check_counts(heads, types);
  const Sentence& lines = sentences_[sentence];
  return rewrite(lines.begin, lines.end, lines.first_bunsetsu, first_bunsetsu(sentence + 1), heads, types);
}

std::string BunsetsuText::rewrite(std::size_t begin, std::size_t end, std::size_t first, std::size_t last,
                                  std::span<const std::int32_t> heads, std::string_view types) const {
  std::string result;
  result.reserve(end - begin + (last - first));
  std::size_t copied = begin;  // the end of the text copied so far
  for (std::size_t b = first; b < last; ++b) {
    result.append(text_, copied, head_begins_[b] - copied)
        .append(std::to_string(heads[b]))
        .push_back(types[b]);
    copied = text_.find(types_[b], head_begins_[b]) + 1;
  }
  return result.append(text_, copied, end - copied);
}

std::size_t size_of_whole_sentences(std::string_view text, std::size_t from) {
  from -= std::min<std::size_t>(from, end_of_sentence.size() + 1);  // EOS may have arrived before its newline
  const std::string_view tail = text.substr(from);
  for (std::size_t at = tail.rfind(end_of_sentence); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : tail.rfind(end_of_sentence, at - 1)) {
    const std::size_t begin = from + at;
    const std::string_view remaining = text.substr(begin + end_of_sentence.size());
    if (begin > 0 && text[begin - 1] != '\n') continue;
    if (remaining.starts_with("\n") || remaining.starts_with("\r\n"))
      return text.size() - remaining.size() + (remaining[0] == '\r' ? 2 : 1);
  }
  return 0;
}

}  // namespace unkernel::data
