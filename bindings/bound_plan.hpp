// Plans of records that Python objects own. They turn records into cells, and cells into rows.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "record_cells.hpp"
#include "unkernel/records/arrow.hpp"
#include "unkernel/records/column.hpp"
#include "unkernel/records/plain_json.hpp"
#include "unkernel/records/plan.hpp"

namespace unkernel::bindings {

inline bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

inline std::string python_type(nb::handle object) {
  return nb::cast<std::string>(object.type().attr("__name__"));
}

// Memory that the cells of a record point to, in addition to the record itself.
struct CellBuffers {
  std::vector<records::Cell> cells;
  std::vector<std::vector<std::string_view>> strings;  // by column
  std::vector<std::vector<records::Pair>> pairs;       // by column
  std::vector<nb::object> objects;                     // objects that cells point into
};

// Memory that the cells of a table's columns point to.
struct TableBuffers {
  CellBuffers cell_buffers;  // of a single cell
  std::vector<std::unique_ptr<std::vector<std::string_view>>> strings;
  std::vector<std::unique_ptr<std::vector<records::Pair>>> pairs;
};

using Objects = nb::typed<nb::list, nb::any>;
using Numbers = nb::typed<nb::list, int>;

// The rule by which a column is read.
struct ColumnRule {
  nb::object name;      // as a key of records
  nb::object analyzer;  // a function that lists the n-grams of a text that is not ASCII, or None
  std::size_t place;    // position of the value in a record that is a list
  bool is_used;         // whether a step reads the column
};

class BoundPlan {
 public:
  // `unread` has the numbers of the columns that no step reads. The columns `repeated` are appended once
  // more, for steps that read a column with a different analyzer. `analyzers` has an analyzer or None for
  // each column. If `whole`, the record is the value of the only column. A record with a key in `bound` is an
  // error.
  BoundPlan(const Names& columns, const Numbers& unread, const Numbers& repeated, const Objects& analyzers,
            const Names& bound, bool required, bool whole, bool ignores_unknown_keys)
      : plan_(list_columns(columns, repeated)),
        n_columns_(columns.size()),
        required_(required),
        whole_(whole),
        ignores_unknown_keys_(ignores_unknown_keys) {
    records::check_plan(
        analyzers.size() == columns.size() + repeated.size() && (!whole || columns.size() == 1),
        "the columns do not fit each other");
    for (std::size_t k = 0; k < analyzers.size(); ++k) {
      const std::size_t place = k < n_columns_ ? k : nb::cast<std::size_t>(repeated[k - n_columns_]);
      PyObject* name = nb::object(columns[place]).release().ptr();
      PyUnicode_InternInPlace(&name);
      rules_.push_back({nb::steal(name), nb::object(analyzers[k]), place, true});
    }
    for (const nb::handle number : unread) rules_.at(nb::cast<std::size_t>(number)).is_used = false;
    for (const nb::handle key : bound) bound_.push_back(nb::borrow(key));
  }

  BoundPlan(const BoundPlan&) = delete;
  BoundPlan& operator=(const BoundPlan&) = delete;

  records::Plan& plan() { return plan_; }
  const records::Plan& plan() const { return plan_; }

  // Reads a record: a dict, or a list or tuple by position. The cells are valid as long as the record and the
  // buffers.
  void read(nb::handle record, CellBuffers& buffers) const {
    buffers.cells.assign(rules_.size(), {});
    buffers.strings.resize(rules_.size());
    buffers.pairs.resize(rules_.size());
    buffers.objects.clear();
    if (whole_) {
      for (std::size_t k = 0; k < rules_.size(); ++k) read_cell(record, k, buffers);
    } else if (PyDict_Check(record.ptr()) != 0) {
      read_dict(record, buffers);
    } else {
      read_sequence(record, buffers);
    }
  }

  // Returns a reader of plain records, if records of this plan can be plain.
  std::optional<records::PlainJson> make_plain_reader() const {
    if (whole_ || !bound_.empty()) return std::nullopt;
    std::vector<records::JsonKey> keys(n_columns_);
    for (std::size_t k = 0; k < n_columns_; ++k) keys[k].name = name(k);
    for (std::size_t k = 0; k < rules_.size(); ++k) {
      if (rules_[k].is_used) keys[rules_[k].place].cells.push_back(k);
    }
    return records::PlainJson(std::move(keys), ignores_unknown_keys_);
  }

  // Returns whether a required column of a record is missing.
  bool lacks_column(std::span<const records::Cell> cells) const {
    for (std::size_t k = 0; required_ && k < rules_.size(); ++k) {
      if (rules_[k].is_used && cells[k].kind() == records::CellKind::absent) return true;
    }
    return false;
  }

  // Returns the number of cells of a record.
  std::size_t cells() const { return rules_.size(); }

  // Returns whether a step reads the column.
  bool is_read(std::size_t column) const { return rules_[column].is_used; }

  // Returns the names of the columns that steps read, and null for all other columns.
  std::vector<const std::string*> list_read_names() const {
    std::vector<const std::string*> names;
    for (std::size_t k = 0; k < rules_.size(); ++k)
      names.push_back(rules_[k].is_used ? &plan_.columns()[k] : nullptr);
    return names;
  }

  // Throws an error for a value in a column of texts that is not a text.
  [[noreturn]] void fail_text(std::size_t column, const std::string& type) const {
    fail(column, "expected a text, got a value of type " + type);
  }

  // Returns whether Python analyses the texts of the column that are not ASCII.
  bool has_analyzer(std::size_t column) const { return !rules_[column].analyzer.is_none(); }

  // Throws if an Arrow table lacks a required column, or has an unknown column and unknown columns are
  // errors.
  void check_columns(const records::ArrowSchema& schema) const {
    for (std::size_t k = 0; required_ && k < n_columns_; ++k) {
      if (rules_[k].is_used && !records::has_column(schema, name(k)))
        throw std::invalid_argument("the table has no column '" + name(k) + "'");
    }
    for (std::int64_t k = 0; !ignores_unknown_keys_ && k < schema.n_children; ++k) {
      const std::string_view column_name = schema.children[k]->name;
      const std::span<const std::string> columns = plan_.columns();
      if (std::find(columns.begin(), columns.end(), column_name) == columns.end())
        throw std::invalid_argument("the table has a column '" + std::string(column_name) +
                                    "' that the model does not know");
    }
  }

  // Reads a column of Python objects.
  records::CellColumn read_column(const nb::list& values, std::size_t column, TableBuffers& buffers) const {
    records::CellColumn result;
    result.cells.reserve(values.size());
    buffers.cell_buffers.cells.assign(rules_.size(), {});
    buffers.cell_buffers.strings.resize(rules_.size());
    buffers.cell_buffers.pairs.resize(rules_.size());
    for (const nb::handle value : values) {
      read_cell(value, column, buffers.cell_buffers);
      records::Cell cell = buffers.cell_buffers.cells[column];
      if (cell.kind() == records::CellKind::strings) {
        buffers.strings.push_back(
            std::make_unique<std::vector<std::string_view>>(std::move(buffers.cell_buffers.strings[column])));
        cell = records::Cell::of(std::span<const std::string_view>(*buffers.strings.back()));
      } else if (cell.kind() == records::CellKind::pairs) {
        buffers.pairs.push_back(
            std::make_unique<std::vector<records::Pair>>(std::move(buffers.cell_buffers.pairs[column])));
        cell = records::Cell::of(std::span<const records::Pair>(*buffers.pairs.back()));
      }
      result.cells.push_back(cell);
    }
    return result;
  }

 private:
  static std::vector<std::string> list_columns(const Names& names, const Numbers& repeated) {
    std::vector<std::string> all;
    for (const nb::handle name : names) all.push_back(nb::cast<std::string>(name));
    for (const nb::handle number : repeated) {
      const auto place = nb::cast<std::size_t>(number);
      records::check_plan(place < names.size(), "a repeated column does not exist");
      all.push_back(all[place]);
    }
    return all;
  }

  void read_dict(nb::handle record, CellBuffers& buffers) const {
    std::size_t n_present = 0;
    bool is_copied = false;
    for (std::size_t k = 0; k < rules_.size(); ++k) {
      PyObject* value = PyDict_GetItemWithError(record.ptr(), rules_[k].name.ptr());
      if (value == nullptr) {
        if (PyErr_Occurred() != nullptr) throw nb::python_error();
        if (required_ && rules_[k].is_used)
          throw std::invalid_argument("the record has no column '" + name(k) + "'");
        continue;
      }
      if (k < n_columns_) ++n_present;
      if (!is_copied && !is_plain(value, k)) {
        // Python code will run, which may change the record while cells point into it.
        buffers.objects.push_back(nb::steal(PyDict_Copy(record.ptr())));
        if (!buffers.objects.back().is_valid()) throw nb::python_error();
        record = buffers.objects.back();
        is_copied = true;
      }
      read_cell(value, k, buffers);
    }
    if (n_present < static_cast<std::size_t>(PyDict_Size(record.ptr()))) check_other_keys(record);
  }

  // Returns whether a value is read without running any Python code.
  bool is_plain(PyObject* value, std::size_t column) const {
    if (!rules_[column].is_used) return true;
    if (PyUnicode_CheckExact(value) != 0)
      return rules_[column].analyzer.is_none() || is_ascii(utf8(value, column));
    return PyFloat_CheckExact(value) != 0 || PyLong_CheckExact(value) != 0 || value == Py_None ||
           PyBool_Check(value) != 0;
  }

  void read_sequence(nb::handle record, CellBuffers& buffers) const {
    if (PyList_Check(record.ptr()) == 0 && PyTuple_Check(record.ptr()) == 0)
      throw nb::type_error(
          ("a record is a dict, or a list of one value per column, not a value of type " +
           python_type(record) +
           (nb::hasattr(record, "to_dict") ? "; give row.to_dict() for a row of a frame" : ""))
              .c_str());
    if (nb::len(record) != n_columns_)
      throw std::invalid_argument("the record has " + std::to_string(nb::len(record)) +
                                  " values, and the model " + std::to_string(n_columns_) + " columns");
    for (std::size_t k = 0; k < rules_.size(); ++k) {
      const nb::object value = record[rules_[k].place];
      buffers.objects.push_back(value);
      read_cell(value, k, buffers);
    }
  }

  void check_other_keys(nb::handle record) const {
    for (const nb::object& key : bound_) {
      if (PyDict_Contains(record.ptr(), key.ptr()) == 1)
        throw std::invalid_argument("the column '" + nb::cast<std::string>(key) +
                                    "' is bound already: records must not have it");
    }
    if (!ignores_unknown_keys_) fail_unknown_key(record);
  }

  void fail_unknown_key(nb::handle record) const {
    for (const auto& [key, value] : nb::borrow<nb::dict>(record)) {
      const bool is_known = std::any_of(rules_.begin(), rules_.end(),
                                        [&](const ColumnRule& rule) { return rule.name.equal(key); });
      if (!is_known)
        throw std::invalid_argument("the record has a column " + nb::cast<std::string>(nb::repr(key)) +
                                    " that the model does not know");
    }
  }

  std::string name(std::size_t column) const { return std::string(plan_.columns()[column]); }

  [[noreturn]] void fail(std::size_t column, const std::string& what) const {
    throw std::invalid_argument("column '" + records::escape_nul(name(column)) + "': " + what);
  }

  std::string_view utf8(nb::handle text, std::size_t column) const {
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (bytes != nullptr) return {bytes, static_cast<std::size_t>(size)};
    PyErr_Clear();
    fail(column, "the string has a lone surrogate, which is no character");
  }

  void read_cell(nb::handle value, std::size_t column, CellBuffers& buffers) const {
    PyObject* object = value.ptr();
    records::Cell& cell = buffers.cells[column];
    if (!rules_[column].is_used) return;
    if (PyUnicode_Check(object) != 0) {
      cell = records::Cell::of(utf8(value, column));
      if (!rules_[column].analyzer.is_none() && !is_ascii(cell.text()))
        read_strings(rules_[column].analyzer(value), column, buffers);
    } else if (PyFloat_Check(object) != 0) {
      cell = records::Cell::of(PyFloat_AsDouble(object));
    } else if (value.is_none()) {
      cell = records::Cell::none();
    } else if (PyList_Check(object) != 0 || PyTuple_Check(object) != 0 || PyAnySet_Check(object) != 0) {
      if (!rules_[column].analyzer.is_none()) fail_text(column, python_type(value));
      read_strings(nb::list(nb::borrow(value)), column, buffers);
    } else if (PyDict_Check(object) != 0) {
      read_pairs(value, column, buffers);
    } else if (PyLong_Check(object) != 0) {
      cell = read_number(value, column);
    } else if (nb::object list = array_as_list(value); list.is_valid()) {
      read_cell(list, column, buffers);
    } else if (const auto moment = read_moment(value)) {
      cell = *moment;
    } else {
      cell = read_number(value, column);
    }
  }

  // Reads any object that float() converts, except strings.
  records::Cell read_number(nb::handle value, std::size_t column) const {
    const double number =
        PyLong_Check(value.ptr()) != 0 ? PyLong_AsDouble(value.ptr()) : convert_to_float(value);
    if (number != -1.0 || PyErr_Occurred() == nullptr) return records::Cell::of(number);
    const bool too_large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
    if (!too_large && PyErr_ExceptionMatches(PyExc_TypeError) == 0 &&
        PyErr_ExceptionMatches(PyExc_ValueError) == 0)
      throw nb::python_error();  // for example KeyboardInterrupt
    PyErr_Clear();
    if (too_large) fail(column, "the number is larger than any float");
    if (python_type(value) == "NAType") return records::Cell::none();  // pandas.NA
    fail(column, "expected a number, a string or a date, got a value of type " + python_type(value));
  }
  static double convert_to_float(nb::handle value) {
    if (PyBytes_Check(value.ptr()) != 0 || PyByteArray_Check(value.ptr()) != 0) {
      PyErr_SetString(PyExc_TypeError, "bytes");
      return -1.0;
    }
    const nb::object real = nb::steal(PyNumber_Float(value.ptr()));
    return real.is_valid() ? PyFloat_AsDouble(real.ptr()) : -1.0;
  }

  void read_strings(nb::object list, std::size_t column, CellBuffers& buffers) const {
    std::vector<std::string_view>& strings = buffers.strings[column];
    strings.clear();
    for (const nb::handle item : list) {
      if (PyUnicode_Check(item.ptr()) == 0)
        fail(column, "expected one value, or a list of strings, got a list with a value of type " +
                         python_type(item));
      strings.push_back(utf8(item, column));
    }
    buffers.objects.push_back(std::move(list));
    buffers.cells[column] = records::Cell::of(std::span<const std::string_view>(strings));
  }

  void read_pairs(nb::handle dict, std::size_t column, CellBuffers& buffers) const {
    std::vector<records::Pair>& pairs = buffers.pairs[column];
    pairs.clear();
    const nb::object items = nb::module_::import_("builtins").attr("list")(dict.attr("items")());
    for (const nb::handle item : items) {
      const nb::handle key = nb::object(item[0]);
      const nb::handle value = nb::object(item[1]);
      if (PyUnicode_Check(key.ptr()) == 0) fail(column, "the keys of a dict must be strings");
      add_pair(utf8(key, column), value, column, buffers);
    }
    buffers.objects.push_back(items);
    buffers.cells[column] = records::Cell::of(std::span<const records::Pair>(pairs));
  }

  void add_pair(std::string_view key, nb::handle value, std::size_t column, CellBuffers& buffers) const {
    std::vector<records::Pair>& pairs = buffers.pairs[column];
    if (PyUnicode_Check(value.ptr()) != 0) {
      pairs.push_back({key, records::Cell::of(utf8(value, column))});
    } else if (PyList_Check(value.ptr()) != 0 || PyTuple_Check(value.ptr()) != 0) {
      nb::list items(value);
      for (const nb::handle item : items) {
        if (PyUnicode_Check(item.ptr()) == 0)
          fail(column, "the list of '" + std::string(key) + "' must hold strings");
        pairs.push_back({key, records::Cell::of(utf8(item, column))});
      }
      buffers.objects.push_back(std::move(items));
    } else if (value.is_none()) {
      fail(column, "the value of '" + std::string(key) + "' is None, not a number or a string");
    } else {
      pairs.push_back({key, read_number(value, column)});
    }
  }

  records::Plan plan_;
  std::vector<ColumnRule> rules_;
  std::vector<nb::object> bound_;
  std::size_t n_columns_;  // columns of a record; the plan may repeat some of them
  bool required_;          // a record that lacks a column is an error
  bool whole_;
  bool ignores_unknown_keys_;
};

// The buffers of one call of RecordEncoding::with_row. Reading a record may run Python code that calls
// with_row again, which then needs its own buffers.
struct RecordBuffers {
  explicit RecordBuffers(const records::Plan& plan) : worker(plan) {}
  CellBuffers buffers;
  records::PlanWorker worker;
};

// Encodes single records as rows, with reused buffers.
class RecordEncoding {
 public:
  explicit RecordEncoding(const BoundPlan& plan) : plan_(plan) {}

  std::int32_t width() const { return plan_.plan().width(); }

  // Calls use(row) with the encoded record, and returns its result.
  template <class Use>
  auto with_row(nb::handle record, const Use& use) {
    std::unique_ptr<RecordBuffers> record_buffers =
        spare_buffers_ != nullptr ? std::move(spare_buffers_) : std::make_unique<RecordBuffers>(plan_.plan());
    plan_.read(record, record_buffers->buffers);
    const records::EncodedRow row = record_buffers->worker.encode(record_buffers->buffers.cells);
    auto result = use(row);
    record_buffers->buffers.objects.clear();
    spare_buffers_ = std::move(record_buffers);
    return result;
  }

 private:
  const BoundPlan& plan_;
  std::unique_ptr<RecordBuffers> spare_buffers_;
};

}  // namespace unkernel::bindings
