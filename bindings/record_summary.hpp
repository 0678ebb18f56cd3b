// What a column of records holds, for those who choose how it becomes features.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
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

// The types of values, each once. There are few, and most values have the type of the one before.
class TypeSet {
 public:
  void add(PyObject* value) {
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(value));
    if (type == last_) return;
    last_ = type;
    const auto same = [&](const nb::object& known) { return known.ptr() == type; };
    if (std::none_of(types_.begin(), types_.end(), same)) types_.push_back(nb::borrow(type));
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

// Strings that come again are most often the same objects: what was found for them is looked up by address.
class SeenObjects {
 public:
  // The number that find() gave for the object, or gives now.
  template <class Find>
  std::size_t number(PyObject* object, const Find& find) {
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

  // Numbers; NaN is a missing one.
  void add_numbers(std::span<const double> numbers) {
    found_.numbers.reserve(found_.numbers.size() + numbers.size());
    for (const double number : numbers) {
      if (number == number) found_.numbers.push_back(number);
    }
  }

  // Python objects. With `as_numbers`, those of unknown types count as the numbers that float() makes of
  // them.
  void add_objects(const nb::list& values, bool as_numbers) {
    SeenObjects seen;
    found_.codes.reserve(values.size());
    for (std::size_t k = 0; k < values.size(); ++k) {
      const nb::object value = nb::object(values[k]);
      PyObject* object = value.ptr();
      if (PyUnicode_Check(object) != 0) {
        found_.add_text(seen.number(object, [&] { return found_.texts.add(utf8(object), 0); }));
        types_.add(object);
        not_numbers_.add(object);
      } else {
        found_.codes.push_back(0);
        if (!value.is_none()) add_object(value, as_numbers);
      }
    }
  }

  void add_cells(const records::Column& column, std::size_t rows, PyObject* type) {
    const std::size_t before = found_.numbers.size();
    const auto count_others = [&] {
      return found_.n_texts + found_.n_lists + static_cast<std::int64_t>(found_.moments.size());
    };
    const std::int64_t others = count_others();
    found_.add(column, rows);
    const bool more_others = count_others() > others;
    if (found_.numbers.size() == before && !more_others) return;
    arrow_type_ = nb::borrow(type);
    arrow_not_number_ = arrow_not_number_ || more_others;
  }

  // The column of these rows, if it holds nothing but texts and missing values.
  std::optional<records::Column> text_column(std::size_t rows) const {
    if (others_ || !found_.numbers.empty() || !found_.moments.empty() || found_.n_lists > 0 ||
        found_.codes.size() != rows)
      return std::nullopt;
    return found_.text_column();
  }

  Types types() const { return with_arrow(types_, true); }
  Types not_numbers() const { return with_arrow(not_numbers_, arrow_not_number_); }
  std::string item_problem() const { return item_problem_; }

  nb::typed<nb::tuple, std::int64_t, std::int64_t, std::int64_t> text_counts() const {
    return nb::typed<nb::tuple, std::int64_t, std::int64_t, std::int64_t>(
        nb::make_tuple(found_.n_texts, found_.texts.size(), found_.texts.words()));
  }
  Names frequent_texts(std::int64_t min_count) const { return names(found_.texts.frequent(min_count)); }
  Names frequent_items(std::int64_t min_count) const {
    return names(found_.items.counts().frequent(min_count));
  }

  // Words of the texts, as a step of texts finds them; texts that are not ASCII are analysed by Python.
  Names frequent_words(const nb::dict& table, const nb::callable& analyzer, std::int64_t min_count) const {
    const records::TextAnalyzer analyze(text_options(table));
    records::RecordCounts words;
    for (std::size_t k = 0; k < found_.texts.size(); ++k) {
      const std::string_view text = found_.texts.text(k);
      const auto add = [&](std::string_view word) { words.add(word, found_.texts.count(k)); };
      words.begin_record();
      if (std::all_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x80; })) {
        analyze.each_gram(text, add);
      } else {
        const nb::object grams = analyzer(nb::str(text.data(), text.size()));
        for (const nb::handle gram : grams) add(utf8(gram.ptr()));
      }
    }
    return names(words.counts().frequent(min_count));
  }

  // What is no date among the values: a text, in quotes, or the name of a type; empty if all are dates.
  std::string not_a_date() const {
    const std::size_t text = found_.first_not_a_date();
    if (text < found_.texts.size()) return records::quoted(found_.texts.text(text));
    if (found_.numbers.empty() && found_.n_lists == 0 && !others_) return "";
    std::string name;
    for (const nb::handle type : types()) {
      name = nb::cast<std::string>(type.attr("__name__"));
      const bool date = nb::hasattr(type, "isoformat") || name == "datetime64" || name == "str";
      if (!date) break;
    }
    return name;
  }
  // A part of each date.
  nb::ndarray<nb::numpy, double> date_part(std::int32_t part) const {
    std::vector<double> parts = found_.all_moments();
    for (double& value : parts) {
      value = records::part_of(value, static_cast<records::DatePart>(part));
      if (value != value)
        throw std::invalid_argument("column '" + name_ + "' holds a date outside the years 1 to 9999");
    }
    return to_numpy(std::move(parts));
  }

  bool has_infinity() const {
    return std::any_of(found_.numbers.begin(), found_.numbers.end(), [](double x) { return std::isinf(x); });
  }
  nb::ndarray<nb::numpy, double> numbers() const { return to_numpy(std::vector(found_.numbers)); }
  nb::ndarray<nb::numpy, double> frequent_numbers(std::int64_t min_count) const {
    const records::DistinctNumbers all = records::distinct(found_.numbers);
    std::vector<double> frequent;
    for (std::size_t k = 0; k < all.values.size(); ++k) {
      if (all.counts[k] >= min_count) frequent.push_back(all.values[k]);
    }
    return to_numpy(std::move(frequent));
  }
  nb::ndarray<nb::numpy, double> edges(std::int64_t n_bins) const {
    return to_numpy(records::quantile_edges(records::distinct(found_.numbers), n_bins));
  }

 private:
  static Names names(const std::vector<std::string_view>& texts) {
    Names list;
    for (const std::string_view text : texts) list.append(nb::str(text.data(), text.size()));
    return list;
  }

  Types with_arrow(const TypeSet& types, bool arrow) const {
    Types list = types.list();
    if (arrow && arrow_type_.is_valid()) list.append(arrow_type_);
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
    if (type == "NAType" || type == "NaTType") return;  // pandas has them for missing values
    if (const std::optional<records::Cell> moment = moment_of(value)) {
      if (moment->kind() == records::CellKind::none) return;
      found_.moments.push_back(moment->number());
      types_.add(object);
      not_numbers_.add(object);
      return;
    }
    const bool is_bytes = PyBytes_Check(object) != 0 || PyByteArray_Check(object) != 0;
    if (is_numpy(value) || (as_numbers && !is_bytes)) return add_number(value, is_numpy(value));
    add_other(object);
  }

  void add_other(PyObject* object) {
    others_ = true;
    types_.add(object);
    not_numbers_.add(object);
  }

  // Numbers and truth values of numpy.
  bool is_numpy(nb::handle value) {
    if (!numpy_.is_valid()) {
      const nb::object numpy = nb::module_::import_("numpy");
      numpy_ = nb::make_tuple(numpy.attr("number"), numpy.attr("bool_"));
    }
    return PyObject_IsInstance(value.ptr(), numpy_.ptr()) == 1 && PyComplex_Check(value.ptr()) == 0;
  }

  void add_number(nb::handle value, bool sure) {
    PyObject* object = value.ptr();
    double number = 0.0;
    if (PyFloat_Check(object) != 0 || PyLong_Check(object) != 0) {
      number = PyFloat_Check(object) != 0 ? PyFloat_AsDouble(object) : PyLong_AsDouble(object);
    } else {
      const nb::object real = nb::steal(PyNumber_Float(object));
      number = real.is_valid() ? PyFloat_AsDouble(real.ptr()) : -1.0;
    }
    if (number == -1.0 && PyErr_Occurred() != nullptr) return fail_number(value, sure);
    if (number != number) return;
    found_.numbers.push_back(number);
    types_.add(object);
  }

  void fail_number(nb::handle value, bool sure) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError) != 0) {
      PyErr_Clear();
      throw std::invalid_argument("column '" + name_ + "' holds a number that is larger than any float");
    }
    if (sure ||
        (PyErr_ExceptionMatches(PyExc_TypeError) == 0 && PyErr_ExceptionMatches(PyExc_ValueError) == 0))
      throw nb::python_error();
    PyErr_Clear();
    add_other(value.ptr());
  }

  void add_list(nb::handle value) {
    found_.items.begin_record();
    ++found_.n_lists;
    const nb::list items(nb::borrow(value));
    for (const nb::handle item : items) {
      if (PyUnicode_Check(item.ptr()) == 0) {
        item_problem_ = nb::cast<std::string>(item.type().attr("__name__"));
        return;
      }
      found_.items.add(utf8(item.ptr()));
    }
  }

  std::string name_;
  records::ColumnSummary found_;
  TypeSet types_, not_numbers_;
  nb::object arrow_type_;  // of a column of Arrow's, if it has a value
  bool arrow_not_number_ = false;
  bool others_ = false;       // whether there are values of unknown types
  std::string item_problem_;  // the type of something in a list that is not a string
  nb::object numpy_;
};

}  // namespace unkernel::bindings
