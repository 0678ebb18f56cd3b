#include "unkernel/parsing/sequences/reader.hpp"

#include <algorithm>

namespace unkernel::parsing {
namespace {

constexpr std::size_t most_remembered = std::size_t{1} << 16;

}  // namespace

SequenceReader::SequenceReader(const SequenceFeatures& features, std::span<const GivenColumn> given)
    : features_(features), attributes_(features.attributes().size()) {
  for (std::size_t a = 0; a < attributes_; ++a) {
    const SequenceAttribute& attribute = features.attributes()[a];
    if (attribute.kind != SequenceAttributeKind::column) continue;
    Column& column = columns_.emplace_back(Column{a, features.sources().column_of(attribute), {}, {}});
    const auto found = std::ranges::find(given, column.column, &GivenColumn::column);
    if (found == given.end()) continue;
    column.values = found->values;
    for (std::size_t k = 0; k < found->names.size(); ++k)
      column.codes.push_back(features.code(a, found->names.name(static_cast<std::int32_t>(k))));
  }
}

void SequenceReader::read(const SequenceText& source, std::int64_t sentence, Sequence& to) {
  const data::ColumnText& text = source.text;
  const std::int64_t first = text.first_token(sentence);
  const std::int64_t last = text.first_token(sentence + 1) - 1;
  to.reset(attributes_, static_cast<std::size_t>(last - first + 1));
  numbers_.clear();
  for (std::size_t i = 0; i < to.words(); ++i) {
    const std::int64_t token =
        source.backward ? last - static_cast<std::int64_t>(i) : first + static_cast<std::int64_t>(i);
    numbers_.push_back(look_up(text.field(token, features_.sources().word_column)));
    std::int32_t* codes = to.codes(i);
    std::copy_n(codes_.data() + static_cast<std::size_t>(numbers_.back()) * attributes_, attributes_, codes);
    for (const Column& column : columns_) {
      codes[column.attribute] =
          column.values.empty()
              ? features_.code(column.attribute, field(text, token, column.column))
              : column.codes[static_cast<std::size_t>(column.values[static_cast<std::size_t>(token)])];
    }
  }
}

std::int32_t SequenceReader::look_up(std::string_view word) {
  const std::size_t known = words_.size();
  const std::int32_t number = words_.add(word);
  if (words_.size() == known) return number;
  for (std::size_t a = 0; a < attributes_; ++a) {
    const SequenceAttribute& attribute = features_.attributes()[a];
    codes_.push_back(attribute.kind == SequenceAttributeKind::column
                         ? unknown
                         : features_.code(a, features_.value(attribute, word, buffer_)));
  }
  return number;
}

bool SequenceReader::forget_words_if_many() {
  if (words_.size() < most_remembered) return false;
  words_ = {};
  codes_.clear();
  return true;
}

}  // namespace unkernel::parsing
