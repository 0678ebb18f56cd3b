#include "record_steps.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tables.hpp"
#include "unkernel/records/category_steps.hpp"
#include "unkernel/records/dates.hpp"
#include "unkernel/records/number_steps.hpp"
#include "unkernel/records/text_steps.hpp"
#include "unkernel/records/vector_steps.hpp"

namespace unkernel::bindings {
namespace {

template <class T>
std::vector<T> values(const nb::dict& table, const char* name) {
  const std::span<const T> found = array<T>(table, name);
  return {found.begin(), found.end()};
}

template <class T>
T option(const nb::dict& table, const char* name) {
  return nb::cast<T>(item(table, name));
}

data::NameTable names(const nb::dict& table, const char* bytes, const char* ends) {
  const std::span<const std::uint8_t> text = array<std::uint8_t>(table, bytes);
  return data::NameTable::of({reinterpret_cast<const char*>(text.data()), text.size()},
                             array<std::int64_t>(table, ends));
}

std::vector<std::int32_t> columns_of(const records::Plan& plan, const nb::dict& table) {
  std::vector<std::int32_t> columns = values<std::int32_t>(table, "columns");
  const auto most = static_cast<std::int32_t>(plan.columns().size());
  for (const std::int32_t column : columns)
    records::check_plan(column >= 0 && column < most, "a step reads a column that there is not");
  return columns;
}

records::Categories categories_of(const nb::dict& table) {
  records::Categories::Codes codes{
      values<std::int32_t>(table, "string_codes"), values<std::int32_t>(table, "number_codes"),
      option<std::int32_t>(table, "none"),         option<std::int32_t>(table, "nan"),
      option<std::int32_t>(table, "absent"),       option<std::int32_t>(table, "unknown")};
  return {names(table, "strings", "string_ends"), values<double>(table, "numbers"), std::move(codes)};
}

std::vector<records::Categories> all_categories(const nb::dict& table) {
  std::vector<records::Categories> all;
  for (const nb::handle one : option<nb::list>(table, "categories"))
    all.push_back(categories_of(nb::cast<nb::dict>(one)));
  return all;
}

records::Vocabulary vocabulary_of(const nb::dict& table) {
  const auto width = option<std::int32_t>(table, "width");
  if (option<bool>(table, "hashed"))
    return records::Vocabulary::hashed(width, option<bool>(table, "alternate_sign"));
  return {names(table, "words", "word_ends"), values<std::int32_t>(table, "ids"), width};
}

}  // namespace

records::TextOptions text_options(const nb::dict& table) {
  const auto analyzer = option<std::string>(table, "analyzer");
  records::check_plan(analyzer == "word" || analyzer == "char" || analyzer == "char_wb",
                      "there is no such analyzer");
  return {analyzer == "word"   ? records::Analyzer::word
          : analyzer == "char" ? records::Analyzer::character
                               : records::Analyzer::character_in_words,
          option<bool>(table, "lowercase"),
          option<std::size_t>(table, "shortest_token"),
          option<std::size_t>(table, "shortest"),
          option<std::size_t>(table, "longest"),
          option<bool>(table, "binary"),
          names(table, "stop_words", "stop_word_ends")};
}

std::unique_ptr<records::Step> make_step(const records::Plan& plan, const std::string& kind,
                                         const nb::dict& table) {
  using namespace records;
  const auto input = [&] { return plan.input(option<std::size_t>(table, "input")); };
  if (kind == "numbers") return numbers(columns_of(plan, table));
  if (kind == "one_hot")
    return one_hot(columns_of(plan, table), all_categories(table), option<std::int32_t>(table, "width"));
  if (kind == "ordinal") {
    std::vector<std::vector<double>> all;
    for (const nb::handle one : option<nb::list>(table, "categories"))
      all.push_back(values<double>(nb::cast<nb::dict>(one), "values"));
    return ordinal(columns_of(plan, table), all_categories(table), std::move(all));
  }
  if (kind == "text")
    return text(columns_of(plan, table).at(0), text_options(table), vocabulary_of(table),
                option<std::int32_t>(table, "missing"));
  if (kind == "strings")
    return strings(columns_of(plan, table).at(0), option<bool>(table, "binary"), vocabulary_of(table),
                   table.contains("missing") ? option<std::int32_t>(table, "missing") : records::ignored);
  if (kind == "pairs")
    return pairs(columns_of(plan, table).at(0), option<std::string>(table, "separator"),
                 vocabulary_of(table));
  if (kind == "scale") {
    return scale(input(), {values<double>(table, "subtract"), values<double>(table, "divide"),
                           values<double>(table, "multiply"), values<double>(table, "add"),
                           option<std::optional<double>>(table, "least"),
                           option<std::optional<double>>(table, "most")});
  }
  if (kind == "dates") return dates(columns_of(plan, table), values<std::int32_t>(table, "parts"));
  if (kind == "impute")
    return impute(input(), option<double>(table, "missing"), values<double>(table, "fill"));
  if (kind == "indicate")
    return indicate(input(), option<double>(table, "missing"), values<std::int32_t>(table, "indicated"));
  if (kind == "bins") {
    return bins(input(), {values<double>(table, "edges"), values<std::int32_t>(table, "begins"),
                          values<std::int32_t>(table, "missing"), option<bool>(table, "one_hot"),
                          option<std::vector<std::string>>(table, "names")});
  }
  if (kind == "binarize") return binarize(input(), option<double>(table, "threshold"));
  if (kind == "products") {
    if (table.contains("powers")) return products(input(), values<std::int32_t>(table, "powers"));
    return products(input(),
                    {values<std::int32_t>(table, "begins"), values<std::int32_t>(table, "factors"), false});
  }
  if (kind == "concatenate") {
    std::vector<Input> inputs;
    for (const std::int32_t step : values<std::int32_t>(table, "inputs"))
      inputs.push_back(plan.input(static_cast<std::size_t>(step)));
    return concatenate(std::move(inputs));
  }
  if (kind == "densify") return densify(input());
  if (kind == "select")
    return select(input(), values<std::int32_t>(table, "places"), option<std::int32_t>(table, "width"));
  if (kind == "normalize") {
    const auto norm = option<std::string>(table, "norm");
    check_plan(norm == "l1" || norm == "l2" || norm == "max", "there is no such norm");
    return normalize(input(), norm == "l1" ? Norm::l1 : norm == "l2" ? Norm::l2 : Norm::max);
  }
  if (kind == "tfidf") return tfidf(input(), option<bool>(table, "sublinear"), values<double>(table, "idf"));
  throw std::invalid_argument("not a sound plan: there is no step '" + kind + "'");
}

}  // namespace unkernel::bindings
