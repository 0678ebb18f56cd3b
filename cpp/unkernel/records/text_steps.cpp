#include "unkernel/records/text_steps.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#include "unkernel/records/category_steps.hpp"

namespace unkernel::records {
namespace {

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
// What Python's str.split and \s take for white space, of ASCII.
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f'); }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

// Sorts a block by feature and adds up what stands for one feature.
void merge(Block& block, bool binary) {
  std::vector<std::int32_t>& ids = block.ids;
  std::vector<double>& values = block.values;
  // Blocks are short: insertion is fast, and stable.
  for (std::size_t k = 1; k < ids.size() && ids.size() <= 64; ++k) {
    const std::int32_t id = ids[k];
    const double value = values[k];
    std::size_t at = k;
    for (; at > 0 && ids[at - 1] > id; --at) {
      ids[at] = ids[at - 1];
      values[at] = values[at - 1];
    }
    ids[at] = id;
    values[at] = value;
  }
  if (ids.size() > 64) {
    std::vector<std::pair<std::int32_t, double>> entries(ids.size());
    for (std::size_t k = 0; k < ids.size(); ++k) entries[k] = {ids[k], values[k]};
    std::stable_sort(entries.begin(), entries.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t k = 0; k < ids.size(); ++k) std::tie(ids[k], values[k]) = entries[k];
  }
  std::size_t kept = 0;
  for (std::size_t k = 0; k < ids.size(); ++k) {
    if (kept > 0 && ids[kept - 1] == ids[k]) {
      values[kept - 1] += values[k];
    } else {
      ids[kept] = ids[k];
      values[kept++] = values[k];
    }
  }
  ids.resize(kept);
  values.resize(kept);
  if (binary) std::fill(values.begin(), values.end(), 1.0);
}

bool is_missing(const Cell& cell) {
  return cell.kind() == CellKind::none || cell.kind() == CellKind::absent ||
         (cell.kind() == CellKind::number && std::isnan(cell.number()));
}

std::int32_t checked_missing(std::int32_t missing, const Shape& shape) {
  check_plan(missing >= forbidden && missing < std::max(shape.width, 0),
             "the feature of missing values is out of range");
  return missing;
}

void add_missing(std::int32_t missing, Block& out) {
  if (missing >= 0) out.add(missing, 1.0);
}

class Text final : public Step {
 public:
  Text(std::int32_t column, TextOptions options, Vocabulary vocabulary, std::int32_t missing)
      : Step({vocabulary.width(), false}),
        column_(static_cast<std::size_t>(column)),
        options_(std::move(options)),
        vocabulary_(std::move(vocabulary)),
        missing_(checked_missing(missing, shape())) {
    check_plan(options_.shortest >= 1 && options_.shortest <= options_.longest && options_.longest <= 1000,
               "lengths of n-grams are out of range");
  }

  void run(const Record& record, std::span<const Block>, Block& out) const override {
    const Cell& cell = record.cells[column_];
    if (missing_ != forbidden && is_missing(cell)) return add_missing(missing_, out);
    switch (cell.kind()) {
      case CellKind::text: count_text(cell.text(), out); break;
      case CellKind::strings:
        for (const std::string_view gram : cell.strings()) vocabulary_.add(gram, 1.0, out);
        break;
      case CellKind::absent: record.fail(column_, "the record does not have it");
      default: record.fail(column_, "expected a text, got another type");
    }
    merge(out, options_.binary);
  }

 private:
  void count_text(std::string_view text, Block& out) const {
    // The tokens of a text beside each other, one character apart: so an n-gram is a part of it.
    thread_local std::string buffer;
    thread_local std::vector<std::size_t> begins;
    buffer.clear();
    begins.clear();
    switch (options_.analyzer) {
      case Analyzer::word:
        list_words(text, buffer, begins);
        count_words(buffer, begins, out);
        break;
      case Analyzer::character:
        collapse_space(text, buffer);
        count_characters(buffer, out);
        break;
      default: count_in_words(text, buffer, out);
    }
  }

  void append(std::string_view part, std::string& buffer) const {
    if (options_.lowercase) {
      for (const char c : part) buffer.push_back(lower(c));
    } else {
      buffer.append(part);
    }
  }

  void list_words(std::string_view text, std::string& buffer, std::vector<std::size_t>& begins) const {
    for (std::size_t at = 0; at < text.size();) {
      if (!is_word_character(text[at])) {
        ++at;
        continue;
      }
      const std::size_t begin = at;
      while (at < text.size() && is_word_character(text[at])) ++at;
      if (at - begin < options_.shortest_token) continue;
      const std::size_t place = buffer.size();
      append(text.substr(begin, at - begin), buffer);
      if (options_.stop_words.size() > 0 &&
          options_.stop_words.find(std::string_view(buffer).substr(place)) >= 0) {
        buffer.resize(place);
        continue;
      }
      begins.push_back(place);
      buffer.push_back(' ');
    }
    begins.push_back(buffer.size());
  }

  void count_words(std::string_view buffer, const std::vector<std::size_t>& begins, Block& out) const {
    const std::size_t words = begins.size() - 1;
    for (std::size_t length = options_.shortest; length <= std::min(options_.longest, words); ++length) {
      for (std::size_t first = 0; first + length <= words; ++first)
        vocabulary_.add(buffer.substr(begins[first], begins[first + length] - 1 - begins[first]), 1.0, out);
    }
  }

  // Two or more spaces become one blank; a single one stays what it is.
  void collapse_space(std::string_view text, std::string& buffer) const {
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at;
      while (end < text.size() && is_space(text[end])) ++end;
      if (end - at >= 2) {
        buffer.push_back(' ');
        at = end;
      } else {
        append(text.substr(at, 1), buffer);
        ++at;
      }
    }
  }

  void count_characters(std::string_view text, Block& out) const {
    for (std::size_t length = options_.shortest; length <= std::min(options_.longest, text.size());
         ++length) {
      for (std::size_t first = 0; first + length <= text.size(); ++first)
        vocabulary_.add(text.substr(first, length), 1.0, out);
    }
  }

  // Words with a blank on either side; n-grams do not go beyond them. One that is shorter than an n-gram
  // counts once, as a whole.
  void count_in_words(std::string_view text, std::string& buffer, Block& out) const {
    for (std::size_t at = 0; at < text.size();) {
      if (is_space(text[at])) {
        ++at;
        continue;
      }
      const std::size_t begin = at;
      while (at < text.size() && !is_space(text[at])) ++at;
      buffer.assign(1, ' ');
      append(text.substr(begin, at - begin), buffer);
      buffer.push_back(' ');
      const std::string_view word = buffer;
      for (std::size_t length = options_.shortest; length <= options_.longest; ++length) {
        vocabulary_.add(word.substr(0, length), 1.0, out);
        for (std::size_t first = 1; first + length <= word.size(); ++first)
          vocabulary_.add(word.substr(first, length), 1.0, out);
        if (length >= word.size()) break;
      }
    }
  }

  std::size_t column_;
  TextOptions options_;
  Vocabulary vocabulary_;
  std::int32_t missing_;
};

class Strings final : public Step {
 public:
  Strings(std::int32_t column, bool binary, Vocabulary vocabulary, std::int32_t missing)
      : Step({vocabulary.width(), false}),
        column_(static_cast<std::size_t>(column)),
        binary_(binary),
        vocabulary_(std::move(vocabulary)),
        missing_(checked_missing(missing, shape())) {}

  void run(const Record& record, std::span<const Block>, Block& out) const override {
    const Cell& cell = record.cells[column_];
    if (missing_ != forbidden && is_missing(cell)) return add_missing(missing_, out);
    if (cell.kind() != CellKind::strings) record.fail(column_, "expected a list of strings");
    for (const std::string_view item : cell.strings()) vocabulary_.add(item, 1.0, out);
    merge(out, binary_);
  }

 private:
  std::size_t column_;
  bool binary_;
  Vocabulary vocabulary_;
  std::int32_t missing_;
};

class Pairs final : public Step {
 public:
  Pairs(std::int32_t column, std::string separator, Vocabulary vocabulary)
      : Step({vocabulary.width(), false}),
        column_(static_cast<std::size_t>(column)),
        separator_(std::move(separator)),
        vocabulary_(std::move(vocabulary)) {}

  void run(const Record& record, std::span<const Block>, Block& out) const override {
    const Cell& cell = record.cells[column_];
    if (cell.kind() != CellKind::pairs) record.fail(column_, "expected a dict");
    for (const Pair& pair : cell.pairs()) {
      switch (pair.value.kind()) {
        case CellKind::number: vocabulary_.add(pair.key, pair.value.number(), out); break;
        case CellKind::text: add_text(pair.key, pair.value.text(), out); break;
        case CellKind::strings:
          for (const std::string_view text : pair.value.strings()) add_text(pair.key, text, out);
          break;
        default:
          record.fail(column_, "the value of '" + std::string(pair.key) + "' is not a number or a string");
      }
    }
    merge(out, false);
  }

 private:
  void add_text(std::string_view key, std::string_view text, Block& out) const {
    thread_local std::string name;
    name.assign(key).append(separator_).append(text);
    vocabulary_.add(name, 1.0, out);
  }

  std::size_t column_;
  std::string separator_;
  Vocabulary vocabulary_;
};

std::uint32_t rotate(std::uint32_t x, int by) { return (x << by) | (x >> (32 - by)); }

std::uint32_t scrambled(std::uint32_t word) { return rotate(word * 0xcc9e2d51u, 15) * 0x1b873593u; }

}  // namespace

// MurmurHash3_x86_32 (Appleby, public domain).
std::uint32_t murmur3(std::string_view bytes, std::uint32_t seed) {
  std::uint32_t hash = seed;
  std::size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    std::uint32_t word;
    std::memcpy(&word, bytes.data() + at, 4);
    hash = rotate(hash ^ scrambled(word), 13) * 5 + 0xe6546b64u;
  }
  std::uint32_t rest = 0;
  for (std::size_t k = bytes.size(); k-- > at;) rest = (rest << 8) | static_cast<unsigned char>(bytes[k]);
  if (at < bytes.size()) hash ^= scrambled(rest);
  hash ^= static_cast<std::uint32_t>(bytes.size());
  hash = (hash ^ (hash >> 16)) * 0x85ebca6bu;
  hash = (hash ^ (hash >> 13)) * 0xc2b2ae35u;
  return hash ^ (hash >> 16);
}

Vocabulary::Vocabulary(data::NameTable names, std::vector<std::int32_t> ids, std::int32_t width)
    : names_(std::move(names)), ids_(std::move(ids)), width_(width) {
  check_plan(ids_.size() == names_.size(), "a word of the vocabulary has no feature");
  const auto out_of_range = [&](std::int32_t id) { return id < -1 || id >= width; };
  check_plan(std::none_of(ids_.begin(), ids_.end(), out_of_range), "a word's feature is out of range");
}

Vocabulary Vocabulary::hashed(std::int32_t width, bool alternate_sign) {
  check_plan(width > 0, "hashing needs features");
  Vocabulary vocabulary;
  vocabulary.width_ = width;
  vocabulary.hashed_ = true;
  vocabulary.alternate_sign_ = alternate_sign;
  return vocabulary;
}

void Vocabulary::add_hashed(std::string_view name, double value, Block& out) const {
  const auto hash = static_cast<std::int32_t>(murmur3(name, 0));
  // |-2^31| has no 32 bits; scikit-learn takes 2^31 - 1 modulo the width, less that modulus less one.
  const std::uint32_t size =
      hash == std::numeric_limits<std::int32_t>::min()
          ? (2147483647u - (static_cast<std::uint32_t>(width_) - 1)) % static_cast<std::uint32_t>(width_)
          : static_cast<std::uint32_t>(hash < 0 ? -hash : hash) % static_cast<std::uint32_t>(width_);
  out.add(static_cast<std::int32_t>(size), alternate_sign_ && hash < 0 ? -value : value);
}

std::unique_ptr<Step> text(std::int32_t column, TextOptions options, Vocabulary vocabulary,
                           std::int32_t missing) {
  return std::make_unique<Text>(column, std::move(options), std::move(vocabulary), missing);
}
std::unique_ptr<Step> strings(std::int32_t column, bool binary, Vocabulary vocabulary, std::int32_t missing) {
  return std::make_unique<Strings>(column, binary, std::move(vocabulary), missing);
}
std::unique_ptr<Step> pairs(std::int32_t column, std::string separator, Vocabulary vocabulary) {
  return std::make_unique<Pairs>(column, std::move(separator), std::move(vocabulary));
}

}  // namespace unkernel::records
