// Summaries of the columns of records, from which encodings are chosen.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "record_cells.hpp"
#include "record_steps.hpp"
#include "unkernel/records/summary.hpp"

namespace unkernel::bindings {

using Types = nb::typed<nb::list, nb::type_object>;

// The set of types of values. There are few types, and most values have the type of the previous value.
class TypeSet {
 public:
  void add(PyObject* value) { add_type(reinterpret_cast<PyObject*>(Py_TYPE(value))); }
  void add_type(PyObject* type) {
    if (type == last_) return;
    last_ = type;
    const auto is_type = [&](const nb::object& other) { return other.ptr() == type; };
    if (std::none_of(types_.begin(), types_.end(), is_type)) types_.push_back(nb::borrow(type));
  }
  Types list() const {
    Types types;
    for (const nb::object& type : types_) types.append(type);
    return types;
  }

 private:
  PyObject* last_ = nullptr;
  std::vector<nb::object> types_;
};

// A cache of the numbers of strings by the address of the string: equal strings are usually the same object.
class NumberByAddress {
 public:
  // Returns the number of the object: the stored number, or else the result of find().
  template <class Find>
  std::size_t find_number(PyObject* object, const Find& find) {
    Entry& entry = entries_[(reinterpret_cast<std::uintptr_t>(object) >> 4) % entries_.size()];
    if (entry.object != object) entry = {object, find()};
    return entry.number;
  }

 private:
  struct Entry {
    PyObject* object = nullptr;
    std::size_t number = 0;
  };
  std::array<Entry, 512> entries_;
};

class Summary {
 public:
  explicit Summary(std::string name) : name_(std::move(name)) {}

  // Adds numbers; NaN is a missing value.
  void add_numbers(std::span<const double> numbers) {
    column_.numbers.reserve(column_.numbers.size() + numbers.size());
    for (const double number : numbers) {
      if (number == number) column_.numbers.push_back(number);
    }
    is_array_ = true;
    if (column_.has_numbers()) types_.add_type(float_type());
  }

  // Adds Python objects. With `as_numbers`, float() converts objects of unknown types.
  void add_objects(const nb::list& values, bool as_numbers) {
    NumberByAddress text_numbers;
    column_.codes.reserve(values.size());
    for (std::size_t k = 0; k < values.size(); ++k) {
      const nb::object value = nb::object(values[k]);
      PyObject* object = value.ptr();
      if (PyUnicode_Check(object) != 0) {
        column_.add_text(
            text_numbers.find_number(object, [&] { return column_.texts.add(utf8(object), 0); }));
        types_.add(object);
        not_numbers_.add(object);
      } else {
        column_.codes.push_back(0);
        if (!value.is_none()) add_object(value, as_numbers);
      }
    }
  }

  void add_cells(const records::Column& column, std::size_t rows, PyObject* type) {
    const std::size_t old_numbers = column_.numbers.size();
    const auto count_others = [&] {
      return column_.n_texts + column_.n_lists + static_cast<std::int64_t>(column_.moments.size());
    };
    const std::int64_t others = count_others();
    column_.add(column, rows);
    const bool has_others = count_others() > others;
    if (column_.numbers.size() == old_numbers && !has_others) return;
    arrow_type_ = nb::borrow(type);
    arrow_not_number_ = arrow_not_number_ || has_others;
  }

  // Returns the summarized column if it has only texts and missing values, and this number of rows.
  std::optional<records::Column> text_column(std::size_t rows) const {
    if (has_unknown_types_ || column_.has_numbers() || column_.has_moments() || column_.n_lists > 0 ||
        column_.codes.size() != rows)
      return std::nullopt;
    return column_.text_column();
  }

  // Returns the types of values. If there are only arrays in which all numbers are missing, returns float.
  Types types() const {
    Types types = known_types();
    if (types.size() == 0 && is_array_) types.append(nb::borrow(float_type()));
    return types;
  }
  Types not_numbers() const { return add_arrow_type(not_numbers_, arrow_not_number_); }
  std::string item_problem() const { return item_problem_; }

  nb::typed<nb::tuple, std::int64_t, std::int64_t, std::int64_t> text_counts() const {
    return nb::typed<nb::tuple, std::int64_t, std::int64_t, std::int64_t>(
        nb::make_tuple(column_.n_texts, column_.texts.size(), column_.texts.words()));
  }
  Names frequent_texts(std::int64_t min_count) const { return list_names(column_.texts.frequent(min_count)); }
  Names frequent_items(std::int64_t min_count) const {
    return list_names(column_.items.counts().frequent(min_count));
  }

  // Returns the words that a step of texts would find in the texts. Python analyses texts that are not ASCII.
  Names frequent_words(const nb::dict& table, const nb::callable& analyzer, std::int64_t min_count) const {
    const records::TextAnalyzer analyze(read_text_options(table));
    records::RecordCounts words;
    for (std::size_t k = 0; k < column_.texts.size(); ++k) {
      const std::string_view text = column_.texts.text(k);
      const auto add = [&](std::string_view word) { words.add(word, column_.texts.count(k)); };
      words.begin_record();
      if (std::all_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x80; })) {
        analyze.for_each_gram(text, add);
      } else {
        const nb::object grams = analyzer(nb::str(text.data(), text.size()));
        for (const nb::handle gram : grams) add(utf8(gram.ptr()));
      }
    }
    return list_names(words.counts().frequent(min_count));
  }

  // Describes a value that is not a date: a text in quotes, or the name of a type. Returns "" if all values
  // are dates.
  std::string not_a_date() const {
    const std::size_t text = column_.find_first_non_date();
    if (text < column_.texts.size()) return records::quote(column_.texts.text(text));
    if (!column_.has_numbers() && column_.n_lists == 0 && !has_unknown_types_) return "";
    std::string name;
    for (const nb::handle type : types()) {
      name = nb::cast<std::string>(type.attr("__name__"));
      const bool can_be_date = nb::hasattr(type, "isoformat") || name == "datetime64" || name == "str";
      if (!can_be_date) break;
    }
    return name;
  }
  // Return whether a part of the dates varies, and the edges of its intervals.
  bool date_part_differs(std::int32_t part) const { return count_date_parts(part).ranges.size() > 1; }
  nb::ndarray<nb::numpy, double> date_edges(std::int32_t part, std::int64_t n_bins) const {
    return to_numpy(records::quantile_edges(count_date_parts(part), n_bins));
  }

  bool has_infinity() const {
    const std::vector<records::CountedNumbers::Range>& ranges = column_.joined_numbers.ranges;
    return (!ranges.empty() && (std::isinf(ranges.front().low) || std::isinf(ranges.back().high))) ||
           std::any_of(column_.numbers.begin(), column_.numbers.end(),
                       [](double x) { return std::isinf(x); });
  }
  bool is_whole() const { return column_.is_whole(); }
  nb::tuple counted_numbers() const { return store_counts(column_.all_numbers()); }
  nb::ndarray<nb::numpy, double> frequent_numbers(std::int64_t min_count) const {
    const records::CountedNumbers all = column_.all_numbers();
    if (all.dropped_bits > 0)
      throw std::invalid_argument("column '" + name_ +
                                  "' has too many different numbers to be a category; bin it");
    std::vector<double> frequent;
    for (const records::CountedNumbers::Range& number : all.ranges) {
      if (number.count >= min_count) frequent.push_back(number.low);
    }
    return to_numpy(std::move(frequent));
  }
  nb::ndarray<nb::numpy, double> edges(std::int64_t n_bins) const {
    return to_numpy(records::quantile_edges(column_.all_numbers(), n_bins));
  }

  // Returns the contents of the summary, for sending and joining, with at most `most` ranges of numbers.
  nb::dict state(std::size_t most) const {
    nb::dict state;
    state["texts"] = store_strings(column_.texts);
    state["items"] = store_strings(column_.items.counts());
    state["lists"] = column_.n_lists;
    state["numbers"] = store_counts(column_.all_numbers(most));
    state["hours"] = store_counts(column_.all_hours(false));
    state["whole"] = column_.is_whole();
    state["types"] = known_types();
    state["array"] = is_array_;
    state["not_numbers"] = not_numbers();
    state["others"] = has_unknown_types_;
    state["item_problem"] = item_problem_;
    return state;
  }

  void join(const nb::dict& state, std::size_t most) {
    const auto add_texts = [&](std::string_view text, std::int64_t count) {
      column_.texts.add(text, count);
      column_.n_texts += count;
    };
    const auto add_items = [&](std::string_view item, std::int64_t count) {
      column_.items.begin_record();
      column_.items.add(item, count);
    };
    for_each_string(state["texts"], add_texts);
    for_each_string(state["items"], add_items);
    column_.n_lists += nb::cast<std::int64_t>(state["lists"]);
    column_.joined_numbers =
        records::join_counts(column_.joined_numbers, restore_counts(state["numbers"]), most);
    column_.joined_hours =
        records::join_counts(column_.joined_hours, restore_counts(state["hours"]), SIZE_MAX);
    column_.is_joined_whole = column_.is_joined_whole && nb::cast<bool>(state["whole"]);
    for (const nb::handle type : state["types"]) types_.add_type(type.ptr());
    for (const nb::handle type : state["not_numbers"]) not_numbers_.add_type(type.ptr());
    is_array_ = is_array_ || nb::cast<bool>(state["array"]);
    has_unknown_types_ = has_unknown_types_ || nb::cast<bool>(state["others"]);
    if (item_problem_.empty()) item_problem_ = nb::cast<std::string>(state["item_problem"]);
  }

 private:
  records::CountedNumbers count_date_parts(std::int32_t part) const {
    std::map<double, std::int64_t> counts;
    for (const records::CountedNumbers::Range& hour : column_.all_hours(true).ranges) {
      const double value = records::part_of(hour.low, static_cast<records::DatePart>(part));
      if (value != value)
        throw std::invalid_argument("column '" + name_ + "' holds a date outside the years 1 to 9999");
      counts[value] += hour.count;
    }
    records::CountedNumbers parts;
    for (const auto& [value, count] : counts) parts.ranges.push_back({value, value, count});
    return parts;
  }

  // Returns ranges of numbers as arrays: the lows, the highs and the counts; and the dropped bits.
  static nb::tuple store_counts(const records::CountedNumbers& numbers) {
    std::vector<double> lows, highs;
    std::vector<std::int64_t> counts;
    for (const auto& [low, high, count] : numbers.ranges) {
      lows.push_back(low);
      highs.push_back(high);
      counts.push_back(count);
    }
    return nb::make_tuple(to_numpy(std::move(lows)), to_numpy(std::move(highs)), to_numpy(std::move(counts)),
                          numbers.dropped_bits);
  }
  static records::CountedNumbers restore_counts(nb::handle state) {
    const auto lows = nb::cast<Array<double>>(state[0]), highs = nb::cast<Array<double>>(state[1]);
    const auto counts = nb::cast<Array<std::int64_t>>(state[2]);
    records::CountedNumbers numbers;
    numbers.dropped_bits = nb::cast<int>(state[3]);
    const auto low = view(lows), high = view(highs);
    const auto count = view(counts);
    for (std::size_t k = 0; k < low.size(); ++k) numbers.ranges.push_back({low[k], high[k], count[k]});
    return numbers;
  }

  static nb::tuple store_strings(const records::StringCounts& strings) {
    nb::list texts;
    std::vector<std::int64_t> counts;
    for (std::size_t k = 0; k < strings.size(); ++k) {
      const std::string_view text = strings.text(k);
      texts.append(nb::str(text.data(), text.size()));
      counts.push_back(strings.count(k));
    }
    return nb::make_tuple(texts, to_numpy(std::move(counts)));
  }
  template <class Use>
  void for_each_string(nb::handle state, const Use& use) const {
    const auto counts = nb::cast<Array<std::int64_t>>(state[1]);
    const auto count = view(counts);
    std::size_t k = 0;
    for (const nb::handle text : state[0]) use(utf8(text.ptr()), count[k++]);
  }

  static Names list_names(const std::vector<std::string_view>& texts) {
    Names list;
    for (const std::string_view text : texts) list.append(nb::str(text.data(), text.size()));
    return list;
  }

  static PyObject* float_type() { return reinterpret_cast<PyObject*>(&PyFloat_Type); }
  Types known_types() const { return add_arrow_type(types_, true); }
  Types add_arrow_type(const TypeSet& types, bool has_arrow_type) const {
    Types list = types.list();
    if (has_arrow_type && arrow_type_.is_valid()) list.append(arrow_type_);
    return list;
  }

  std::string_view utf8(PyObject* text) const {
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(text, &size);
    if (bytes != nullptr) return {bytes, static_cast<std::size_t>(size)};
    PyErr_Clear();
    throw std::invalid_argument("column '" + name_ +
                                "': a string has a lone surrogate, which is no character");
  }

  void add_object(nb::handle value, bool as_numbers) {
    PyObject* object = value.ptr();
    if (PyFloat_Check(object) != 0 || PyLong_Check(object) != 0) return add_number(value, true);
    if (PyList_Check(object) != 0 || PyTuple_Check(object) != 0 || PyAnySet_Check(object) != 0) {
      add_list(value);
      types_.add(object);
      not_numbers_.add(object);
      return;
    }
    if (const nb::object list = array_as_list(value); list.is_valid()) return add_object(list, as_numbers);
    const auto type = nb::cast<std::string>(value.type().attr("__name__"));
    if (type == "NAType" || type == "NaTType") return;  // missing values of pandas
    if (const std::optional<records::Cell> moment = read_moment(value)) {
      if (moment->kind() == records::CellKind::none) return;
      column_.moments.push_back(moment->number());
      types_.add(object);
      not_numbers_.add(object);
      return;
    }
    const bool is_bytes = PyBytes_Check(object) != 0 || PyByteArray_Check(object) != 0;
    if (is_numpy(value) || (as_numbers && !is_bytes)) return add_number(value, is_numpy(value));
    add_other(object);
  }

  void add_other(PyObject* object) {
    has_unknown_types_ = true;
    types_.add(object);
    not_numbers_.add(object);
  }

  // Returns whether the value is a number or a truth value of numpy.
  bool is_numpy(nb::handle value) {
    if (!numpy_.is_valid()) {
      const nb::object numpy = nb::module_::import_("numpy");
      numpy_ = nb::make_tuple(numpy.attr("number"), numpy.attr("bool_"));
    }
    return PyObject_IsInstance(value.ptr(), numpy_.ptr()) == 1 && PyComplex_Check(value.ptr()) == 0;
  }

  void add_number(nb::handle value, bool is_number_type) {
    PyObject* object = value.ptr();
    double number = 0.0;
    if (PyFloat_Check(object) != 0 || PyLong_Check(object) != 0) {
      number = PyFloat_Check(object) != 0 ? PyFloat_AsDouble(object) : PyLong_AsDouble(object);
    } else {
      const nb::object real = nb::steal(PyNumber_Float(object));
      number = real.is_valid() ? PyFloat_AsDouble(real.ptr()) : -1.0;
    }
    if (number == -1.0 && PyErr_Occurred() != nullptr) return fail_number(value, is_number_type);
    if (number != number) return;
    column_.numbers.push_back(number);
    types_.add(object);
  }

  void fail_number(nb::handle value, bool is_number_type) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError) != 0) {
      PyErr_Clear();
      throw std::invalid_argument("column '" + name_ + "' holds a number that is larger than any float");
    }
    if (is_number_type ||
        (PyErr_ExceptionMatches(PyExc_TypeError) == 0 && PyErr_ExceptionMatches(PyExc_ValueError) == 0))
      throw nb::python_error();
    PyErr_Clear();
    add_other(value.ptr());
  }

  void add_list(nb::handle value) {
    column_.items.begin_record();
    ++column_.n_lists;
    const nb::list items(nb::borrow(value));
    for (const nb::handle item : items) {
      if (PyUnicode_Check(item.ptr()) == 0) {
        item_problem_ = nb::cast<std::string>(item.type().attr("__name__"));
        return;
      }
      column_.items.add(utf8(item.ptr()));
    }
  }

  std::string name_;
  records::ColumnSummary column_;
  TypeSet types_, not_numbers_;
  nb::object arrow_type_;  // of an Arrow column, if it has a value
  bool arrow_not_number_ = false;
  bool is_array_ = false;           // there was an array of numbers
  bool has_unknown_types_ = false;  // there are values of unknown types
  std::string item_problem_;        // the type of a list's item that is not a string; empty if there is none
  nb::object numpy_;
};

}  // namespace unkernel::bindings
