#include "unkernel/records/text_steps.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#include "unkernel/records/category_steps.hpp"

namespace unkernel::records {
namespace {

constexpr std::size_t max_insertion_sort = 64;  // features

// Sorts a block by feature and adds the values of equal features.
void merge(Block& block, bool binary) {
  std::vector<std::int32_t>& ids = block.ids;
  std::vector<double>& values = block.values;
  // Most blocks are short, and insertion sort is fast and stable.
  for (std::size_t k = 1; k < ids.size() && ids.size() <= max_insertion_sort; ++k) {
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
  if (ids.size() > max_insertion_sort) {
    std::vector<std::pair<std::int32_t, double>> entries(ids.size());
    for (std::size_t k = 0; k < ids.size(); ++k) entries[k] = {ids[k], values[k]};
    std::stable_sort(entries.begin(), entries.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t k = 0; k < ids.size(); ++k) std::tie(ids[k], values[k]) = entries[k];
  }
  std::size_t merged = 0;
  for (std::size_t k = 0; k < ids.size(); ++k) {
    if (merged > 0 && ids[merged - 1] == ids[k]) {
      values[merged - 1] += values[k];
    } else {
      ids[merged] = ids[k];
      values[merged++] = values[k];
    }
  }
  ids.resize(merged);
  values.resize(merged);
  if (binary) std::fill(values.begin(), values.end(), 1.0);
}

bool is_missing(const Cell& cell) {
  return cell.kind() == CellKind::none || cell.kind() == CellKind::absent ||
         (cell.kind() == CellKind::number && std::isnan(cell.number()));
}

std::int32_t check_missing(std::int32_t missing, const Shape& shape) {
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
        analyzer_(std::move(options)),
        vocabulary_(std::move(vocabulary)),
        missing_(check_missing(missing, shape())) {}

  void run(const Record& record, std::span<const Block>, Block& out) const override {
    const Cell& cell = record.cells[column_];
    if (missing_ != forbidden && is_missing(cell)) return add_missing(missing_, out);
    switch (cell.kind()) {
      case CellKind::text: count_text(cell.text(), out); break;
      case CellKind::strings:
        for (const std::string_view gram : cell.strings()) vocabulary_.add(gram, 1.0, out);
        break;
      case CellKind::absent: record.fail(column_, "the record does not have this column");
      default: record.fail(column_, "expected a text, got another type");
    }
    merge(out, analyzer_.options().binary);
  }

 private:
  void count_text(std::string_view text, Block& out) const {
    analyzer_.for_each_gram(text, [&](std::string_view gram) { vocabulary_.add(gram, 1.0, out); });
  }

  std::size_t column_;
  TextAnalyzer analyzer_;
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
        missing_(check_missing(missing, shape())) {}

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

std::uint32_t scramble(std::uint32_t word) { return rotate(word * 0xcc9e2d51u, 15) * 0x1b873593u; }

}  // namespace

// MurmurHash3_x86_32 (Appleby, public domain).
std::uint32_t murmur3(std::string_view bytes, std::uint32_t seed) {
  static_assert(std::endian::native == std::endian::little,
                "words are read in the byte order of the machine");
  std::uint32_t hash = seed;
  std::size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    std::uint32_t word;
    std::memcpy(&word, bytes.data() + at, 4);
    hash = rotate(hash ^ scramble(word), 13) * 5 + 0xe6546b64u;
  }
  std::uint32_t last_word = 0;
  for (std::size_t k = bytes.size(); k-- > at;)
    last_word = (last_word << 8) | static_cast<unsigned char>(bytes[k]);
  if (at < bytes.size()) hash ^= scramble(last_word);
  hash ^= static_cast<std::uint32_t>(bytes.size());
  hash = (hash ^ (hash >> 16)) * 0x85ebca6bu;
  hash = (hash ^ (hash >> 13)) * 0xc2b2ae35u;
  return hash ^ (hash >> 16);
}

Vocabulary::Vocabulary(data::NameTable names, std::vector<std::int32_t> ids, std::int32_t width)
    : names_(std::move(names)), ids_(std::move(ids)), width_(width) {
  check_plan(ids_.size() == names_.size(), "a word of the vocabulary has no feature");
  const auto is_out_of_range = [&](std::int32_t id) { return id < -1 || id >= width; };
  check_plan(std::none_of(ids_.begin(), ids_.end(), is_out_of_range), "a word's feature is out of range");
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
  // |-2^31| does not fit into 32 bits; scikit-learn computes (2^31 - 1 - (width - 1)) mod width.
  const std::uint32_t id =
      hash == std::numeric_limits<std::int32_t>::min()
          ? (2147483647u - (static_cast<std::uint32_t>(width_) - 1)) % static_cast<std::uint32_t>(width_)
          : static_cast<std::uint32_t>(hash < 0 ? -hash : hash) % static_cast<std::uint32_t>(width_);
  out.add(static_cast<std::int32_t>(id), alternate_sign_ && hash < 0 ? -value : value);
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
