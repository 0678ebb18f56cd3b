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
#include "unkernel/records/function_steps.hpp"
#include "unkernel/records/number_steps.hpp"
#include "unkernel/records/text_steps.hpp"
#include "unkernel/records/vector_steps.hpp"

namespace unkernel::bindings {
namespace {

template <class T>
std::vector<T> read_values(const nb::dict& table, const char* name) {
  const std::span<const T> result = array<T>(table, name);
  return {result.begin(), result.end()};
}

template <class T>
T read_option(const nb::dict& table, const char* name) {
  return nb::cast<T>(item(table, name));
}

data::NameTable read_names(const nb::dict& table, const char* bytes, const char* ends) {
  const std::span<const std::uint8_t> text = array<std::uint8_t>(table, bytes);
  return data::NameTable::of({reinterpret_cast<const char*>(text.data()), text.size()},
                             array<std::int64_t>(table, ends));
}

std::vector<std::int32_t> read_columns(const records::Plan& plan, const nb::dict& table) {
  std::vector<std::int32_t> columns = read_values<std::int32_t>(table, "columns");
  const auto n_columns = static_cast<std::int32_t>(plan.columns().size());
  for (const std::int32_t column : columns)
    records::check_plan(column >= 0 && column < n_columns, "a step reads a column that does not exist");
  return columns;
}

records::Categories read_categories(const nb::dict& table) {
  records::Categories::Codes codes{
      read_values<std::int32_t>(table, "string_codes"), read_values<std::int32_t>(table, "number_codes"),
      read_option<std::int32_t>(table, "none"),         read_option<std::int32_t>(table, "nan"),
      read_option<std::int32_t>(table, "absent"),       read_option<std::int32_t>(table, "unknown")};
  return {read_names(table, "strings", "string_ends"), read_values<double>(table, "numbers"),
          std::move(codes)};
}

std::vector<records::Categories> read_all_categories(const nb::dict& table) {
  std::vector<records::Categories> all;
  for (const nb::handle categories : read_option<nb::list>(table, "categories"))
    all.push_back(read_categories(nb::cast<nb::dict>(categories)));
  return all;
}

records::Vocabulary read_vocabulary(const nb::dict& table) {
  const auto width = read_option<std::int32_t>(table, "width");
  if (read_option<bool>(table, "hashed"))
    return records::Vocabulary::hashed(width, read_option<bool>(table, "alternate_sign"));
  return {read_names(table, "words", "word_ends"), read_values<std::int32_t>(table, "ids"), width};
}

records::Powers read_powers(const nb::dict& table) {
  const auto method = read_option<std::string>(table, "method");
  records::check_plan(method == "box-cox" || method == "yeo-johnson", "there is no such power transform");
  return {method == "box-cox", read_values<double>(table, "lambdas"),
          read_option<std::vector<std::string>>(table, "names")};
}

records::Splines::Outside read_outside(const nb::dict& table, const char* name) {
  using Outside = records::Splines::Outside;
  const auto outside = read_option<std::string>(table, name);
  records::check_plan(outside == "error" || outside == "polynomials" || outside == "lines",
                      "there is no such extrapolation");
  if (outside == "error") return Outside::error;
  return outside == "lines" ? Outside::lines : Outside::polynomials;
}

records::Splines read_splines(const nb::dict& table) {
  return {read_option<std::int32_t>(table, "degree"),
          read_values<double>(table, "knots"),
          read_option<bool>(table, "periodic"),
          read_option<bool>(table, "drops_last"),
          read_option<bool>(table, "allows_missing"),
          read_outside(table, "below"),
          read_outside(table, "above"),
          read_values<double>(table, "low"),
          read_values<double>(table, "high"),
          read_values<double>(table, "low_values"),
          read_values<double>(table, "low_slopes"),
          read_values<double>(table, "high_values"),
          read_values<double>(table, "high_slopes"),
          read_option<std::vector<std::string>>(table, "names")};
}

}  // namespace

records::TextOptions read_text_options(const nb::dict& table) {
  const auto analyzer = read_option<std::string>(table, "analyzer");
  records::check_plan(analyzer == "word" || analyzer == "char" || analyzer == "char_wb",
                      "there is no such analyzer");
  records::Analyzer kind = records::Analyzer::character_in_words;
  if (analyzer == "word") kind = records::Analyzer::word;
  if (analyzer == "char") kind = records::Analyzer::character;
  return {kind,
          read_option<bool>(table, "lowercase"),
          read_option<std::size_t>(table, "shortest_token"),
          read_option<std::size_t>(table, "shortest"),
          read_option<std::size_t>(table, "longest"),
          read_option<bool>(table, "binary"),
          read_names(table, "stop_words", "stop_word_ends")};
}

std::unique_ptr<records::Step> make_step(const records::Plan& plan, const std::string& kind,
                                         const nb::dict& table) {
  using namespace records;
  const auto input = [&] { return plan.input(read_option<std::size_t>(table, "input")); };
  if (kind == "numbers") return numbers(read_columns(plan, table));
  if (kind == "one_hot")
    return one_hot(read_columns(plan, table), read_all_categories(table),
                   read_option<std::int32_t>(table, "width"));
  if (kind == "ordinal") {
    std::vector<std::vector<double>> all;
    for (const nb::handle categories : read_option<nb::list>(table, "categories"))
      all.push_back(read_values<double>(nb::cast<nb::dict>(categories), "values"));
    return ordinal(read_columns(plan, table), read_all_categories(table), std::move(all));
  }
  if (kind == "text")
    return text(read_columns(plan, table).at(0), read_text_options(table), read_vocabulary(table),
                read_option<std::int32_t>(table, "missing"));
  if (kind == "strings")
    return strings(
        read_columns(plan, table).at(0), read_option<bool>(table, "binary"), read_vocabulary(table),
        table.contains("missing") ? read_option<std::int32_t>(table, "missing") : records::ignored);
  if (kind == "pairs")
    return pairs(read_columns(plan, table).at(0), read_option<std::string>(table, "separator"),
                 read_vocabulary(table));
  if (kind == "scale") {
    return scale(input(), {read_values<double>(table, "subtract"), read_values<double>(table, "divide"),
                           read_values<double>(table, "multiply"), read_values<double>(table, "add"),
                           read_option<std::optional<double>>(table, "least"),
                           read_option<std::optional<double>>(table, "most")});
  }
  if (kind == "dates") return dates(read_columns(plan, table), read_values<std::int32_t>(table, "parts"));
  if (kind == "impute")
    return impute(input(), read_option<double>(table, "missing"), read_values<double>(table, "fill"));
  if (kind == "indicate")
    return indicate(input(), read_option<double>(table, "missing"),
                    read_values<std::int32_t>(table, "indicated"));
  if (kind == "bins") {
    return bins(input(), {read_values<double>(table, "edges"), read_values<std::int32_t>(table, "begins"),
                          read_values<std::int32_t>(table, "missing"), read_option<bool>(table, "one_hot"),
                          read_option<std::vector<std::string>>(table, "names")});
  }
  if (kind == "binarize") return binarize(input(), read_option<double>(table, "threshold"));
  if (kind == "products") {
    if (table.contains("powers")) return products(input(), read_values<std::int32_t>(table, "powers"));
    return products(input(), {read_values<std::int32_t>(table, "begins"),
                              read_values<std::int32_t>(table, "factors"), false});
  }
  if (kind == "concatenate") {
    std::vector<Input> inputs;
    for (const std::int32_t step : read_values<std::int32_t>(table, "inputs"))
      inputs.push_back(plan.input(static_cast<std::size_t>(step)));
    return concatenate(std::move(inputs));
  }
  if (kind == "densify") return densify(input());
  if (kind == "select")
    return select(input(), read_values<std::int32_t>(table, "places"),
                  read_option<std::int32_t>(table, "width"));
  if (kind == "normalize") {
    const auto norm = read_option<std::string>(table, "norm");
    check_plan(norm == "l1" || norm == "l2" || norm == "max", "there is no such norm");
    if (norm == "l1") return normalize(input(), Norm::l1);
    return normalize(input(), norm == "l2" ? Norm::l2 : Norm::max);
  }
  if (kind == "tfidf")
    return tfidf(input(), read_option<bool>(table, "sublinear"), read_values<double>(table, "idf"));
  if (kind == "function") return function(input(), read_option<std::string>(table, "function"));
  if (kind == "finite") return finite(input(), read_option<bool>(table, "allows_missing"));
  if (kind == "snap")
    return snap(input(), {read_values<double>(table, "points"), read_values<std::int32_t>(table, "begins"),
                          read_values<double>(table, "tolerances")});
  if (kind == "power") return power(input(), read_powers(table));
  if (kind == "quantiles")
    return quantiles(input(), {read_values<double>(table, "quantiles"), read_values<double>(table, "ranks"),
                               read_option<bool>(table, "normal")});
  if (kind == "splines") return splines(input(), read_splines(table));
  throw std::invalid_argument("not a sound plan: there is no step '" + kind + "'");
}

}  // namespace unkernel::bindings
