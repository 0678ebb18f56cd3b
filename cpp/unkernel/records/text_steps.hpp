// Steps that count features of strings. All blocks are sparse.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/data/text/name_table.hpp"
#include "unkernel/records/step.hpp"
#include "unkernel/records/text_analyzer.hpp"

namespace unkernel::records {

// Maps strings to features: by a vocabulary, or by MurmurHash3 with 32 bits, as scikit-learn does.
class Vocabulary {
 public:
  // ids[k] is the feature of name k; -1 for no feature.
  Vocabulary(data::NameTable names, std::vector<std::int32_t> ids, std::int32_t width);
  static Vocabulary hashed(std::int32_t width, bool alternate_sign);

  std::int32_t width() const { return width_; }
  // Adds `value`, possibly with the sign of the hash, to the feature of a string, if the string has a
  // feature.
  void add(std::string_view name, double value, Block& out) const {
    if (hashed_) return add_hashed(name, value, out);
    const std::int32_t number = names_.find(name);
    if (number < 0) return;
    const std::int32_t id = ids_[static_cast<std::size_t>(number)];
    if (id >= 0) out.add(id, value);
  }

 private:
  Vocabulary() = default;
  void add_hashed(std::string_view name, double value, Block& out) const;

  data::NameTable names_;
  std::vector<std::int32_t> ids_;
  std::int32_t width_ = 0;
  bool hashed_ = false;
  bool alternate_sign_ = false;
};

std::uint32_t murmur3(std::string_view bytes, std::uint32_t seed);

// Counts the n-grams of a text. The cells of texts that are not ASCII must have n-grams as `strings`.
// `missing` is the feature of a missing value (None, NaN, no such column), or `ignored` or `forbidden`.
std::unique_ptr<Step> text(std::int32_t column, TextOptions options, Vocabulary vocabulary,
                           std::int32_t missing);

// Counts the strings of a list.
std::unique_ptr<Step> strings(std::int32_t column, bool binary, Vocabulary vocabulary, std::int32_t missing);

// Adds the entries of a dict: "key" with its number, and "key<separator>text" with 1 for each text.
std::unique_ptr<Step> pairs(std::int32_t column, std::string separator, Vocabulary vocabulary);

}  // namespace unkernel::records
