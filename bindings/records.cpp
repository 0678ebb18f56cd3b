// Encodes records as rows, and scores records with a plan and an engine.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "arrow_stream.hpp"
#include "bindings.hpp"
#include "bound_engine.hpp"
#include "bound_plan.hpp"
#include "plain_scoring.hpp"
#include "record_steps.hpp"
#include "record_summary.hpp"
#include "row_scores.hpp"
#include "unkernel/engines/bound_row.hpp"
#include "unkernel/records/encode_rows.hpp"
#include "unkernel/records/json_answers.hpp"

namespace unkernel::bindings {
namespace {

constexpr std::size_t max_rows_on_this_thread = 4096;  // encoded in some milliseconds
constexpr std::size_t max_bytes_under_lock = 4096;     // scored in some microseconds

using records::Cell;
using records::CellKind;

using Ids = nb::ndarray<nb::numpy, std::int32_t>;
using Offsets = nb::ndarray<nb::numpy, std::int64_t>;
using Values = nb::ndarray<nb::numpy, double>;

nb::typed<nb::tuple, Ids, Values> encode_one(BoundPlan& plan, nb::handle record) {
  RecordEncoding encoding(plan);
  return encoding.with_row(record, [](const records::EncodedRow& row) {
    return nb::typed<nb::tuple, Ids, Values>(
        nb::make_tuple(copy_to_numpy(row.ids), copy_to_numpy(row.values)));
  });
}

// Throws if an Arrow column of texts has lists, because cells of lists stand for the n-grams of texts.
void check_texts(const BoundPlan& plan, const records::Column& column, std::size_t k, std::size_t rows) {
  if (std::holds_alternative<records::CellColumn>(column)) return;  // checked when it was read
  for (std::size_t row = 0; row < rows; ++row) {
    if (records::cell_at(column, row).kind() == CellKind::strings) plan.fail_text(k, "list");
  }
}

// Lets Python analyse the columns with texts that are not ASCII.
void analyse_texts(const BoundPlan& plan, std::vector<records::Column>& columns, std::size_t rows,
                   TableBuffers& buffers) {
  for (std::size_t k = 0; k < columns.size(); ++k) {
    if (!plan.has_analyzer(k)) continue;
    check_texts(plan, columns[k], k, rows);
    nb::list texts;
    bool has_only_ascii = true;
    for (std::size_t row = 0; has_only_ascii && row < rows; ++row) {
      const Cell cell = records::cell_at(columns[k], row);
      has_only_ascii = cell.kind() != CellKind::text || is_ascii(cell.text());
    }
    if (has_only_ascii) continue;
    for (std::size_t row = 0; row < rows; ++row) {
      const Cell cell = records::cell_at(columns[k], row);
      if (cell.kind() == CellKind::text) {
        texts.append(nb::str(cell.text().data(), cell.text().size()));
      } else {
        texts.append(nb::none());
      }
    }
    buffers.cell_buffers.objects.push_back(texts);
    columns[k] = plan.read_column(texts, k, buffers);
  }
}

// Reads a column from a stream of Arrow arrays. Copies the cells if there are several arrays.
records::Column read_stream(nb::handle input, std::size_t rows, std::vector<ArrowBatch>& batches) {
  ArrowStream stream(nb::cast<nb::capsule>(input.attr("__arrow_c_stream__")()));
  std::vector<records::Column> parts;
  std::vector<std::size_t> lengths;
  std::size_t total = 0;
  while (ArrowBatch batch = stream.next()) {
    lengths.push_back(static_cast<std::size_t>(batch->value.length));
    total += lengths.back();
    parts.push_back(records::arrow_column(stream.schema(), batch->value));
    batches.push_back(std::move(batch));
  }
  if (total != rows) throw std::invalid_argument("the columns have different lengths");
  if (parts.size() == 1) return std::move(parts[0]);
  records::CellColumn all;
  all.cells.reserve(rows);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    for (std::size_t row = 0; row < lengths[k]; ++row) all.cells.push_back(records::cell_at(parts[k], row));
  }
  return all;
}

// Encodes columns: arrays of float64, streams of Arrow arrays, summaries of columns of texts, or lists of
// Python objects.
nb::typed<nb::tuple, Offsets, Ids, Values> encode_table(const BoundPlan& plan, const Objects& input,
                                                        std::size_t rows, int threads) {
  std::vector<records::Column> columns;
  TableBuffers buffers;
  std::vector<Array<double>> arrays;
  std::vector<ArrowBatch> batches;
  for (std::size_t k = 0; k < input.size(); ++k) {
    Array<double> numbers;
    const nb::handle column = nb::object(input[k]);
    if (nb::isinstance<Summary>(column)) {
      columns.push_back(nb::cast<const Summary&>(column).text_column(rows).value());
    } else if (nb::hasattr(column, "__arrow_c_stream__")) {
      columns.push_back(plan.is_read(k) ? read_stream(column, rows, batches) : records::EmptyColumn{});
    } else if (nb::try_cast<Array<double>>(column, numbers, false)) {
      if (numbers.size() != rows) throw std::invalid_argument("the columns have different lengths");
      arrays.push_back(numbers);
      columns.emplace_back(records::NumberColumn<double>{numbers.data(), {}});
    } else {
      const auto list = nb::cast<nb::list>(column);
      if (list.size() != rows) throw std::invalid_argument("the columns have different lengths");
      columns.emplace_back(plan.read_column(list, k, buffers));
    }
  }
  analyse_texts(plan, columns, rows, buffers);
  auto encoded = run_interruptibly_if(rows > max_rows_on_this_thread, [&](const Monitor& monitor) {
    return records::encode_rows(plan.plan(), columns, rows, {threads, &monitor});
  });
  return nb::typed<nb::tuple, Offsets, Ids, Values>(nb::make_tuple(to_numpy(std::move(encoded.offsets)),
                                                                   to_numpy(std::move(encoded.columns)),
                                                                   to_numpy(std::move(encoded.values))));
}

// Encodes a table that is a stream of Arrow batches.
nb::typed<nb::tuple, Offsets, Ids, Values> encode_arrow(const BoundPlan& plan, const nb::capsule& capsule,
                                                        int threads) {
  using namespace records;
  ArrowStream stream(capsule);
  plan.check_columns(stream.schema());
  const std::vector<const std::string*> names = plan.list_read_names();
  EncodedRows all;
  all.offsets.push_back(0);
  while (const ArrowBatch batch = stream.next()) {
    const auto rows = static_cast<std::size_t>(batch->value.length);
    std::vector<Column> columns = arrow_columns(stream.schema(), batch->value, names);
    TableBuffers buffers;
    analyse_texts(plan, columns, rows, buffers);
    auto encoded = run_interruptibly_if(rows > max_rows_on_this_thread, [&](const Monitor& monitor) {
      return encode_rows(plan.plan(), columns, rows, {threads, &monitor});
    });
    append(std::move(encoded), all);
  }
  return nb::typed<nb::tuple, Offsets, Ids, Values>(nb::make_tuple(
      to_numpy(std::move(all.offsets)), to_numpy(std::move(all.columns)), to_numpy(std::move(all.values))));
}

// A plan and an engine, which score a record in one call.
class RecordScorer {
 public:
  RecordScorer(nb::object plan, nb::object engine)
      : plan_object_(std::move(plan)),
        engine_object_(std::move(engine)),
        engine_(nb::cast<BoundEngine&>(engine_object_).engine()),
        encoding_(nb::cast<BoundPlan&>(plan_object_)),
        worker_(engine_.worker()),
        scores_(engine_.scores()) {}

  // Binds a row that is shared by all later records. `places` maps the features of the plan to ascending
  // columns.
  void bind(const Array<std::int32_t>& columns, const Array<double>& values,
            const Array<std::int32_t>& places, std::int32_t width, const std::string& sharing) {
    const std::int32_t plan_width = encoding_.width();
    const std::span<const std::int32_t> input(places.data(), places.size());
    if (static_cast<std::int32_t>(input.size()) != plan_width ||
        (plan_width > 0 && (input[0] < 0 || input.back() >= width)) ||
        std::adjacent_find(input.begin(), input.end(), std::greater_equal<>()) != input.end())
      throw std::invalid_argument("the places of features are not ascending columns");
    places_.assign(input.begin(), input.end());
    engines::BoundRow::Shared shared{{columns.data(), columns.data() + columns.size()},
                                     {values.data(), values.data() + values.size()}};
    engines::Sharing shared_terms = engines::Sharing::nothing;
    if (sharing == "linear") shared_terms = engines::Sharing::linear;
    if (sharing == "pairs") shared_terms = engines::Sharing::pairs;
    bound_ = std::make_unique<engines::BoundRow>(engine_, std::move(shared), width, shared_terms);
  }

  // Returns the scores of rows that the plan made, an array [rows, scores].
  nb::ndarray<nb::numpy, double> score_rows(const CsrRows& input) {
    if (bound_ == nullptr) throw std::invalid_argument("no row is bound");
    const auto rows = input.narrow();
    const auto count = static_cast<std::size_t>(rows.rows());
    std::vector<double> out(count * scores_.size());
    for (std::size_t row = 0; row < count; ++row) {
      const auto begin = static_cast<std::size_t>(rows.offsets[row]);
      const auto end = static_cast<std::size_t>(rows.offsets[row + 1]);
      score_bound({rows.columns.subspan(begin, end - begin), rows.values.subspan(begin, end - begin)},
                  out.data() + row * scores_.size());
    }
    return to_numpy(std::move(out), {count, scores_.size()});
  }

  // Returns the scores of plain records in JSON, an array [rows, scores]. Returns None if any record is not
  // plain or cannot be scored, or if there are more than `most` records.
  std::optional<nb::ndarray<nb::numpy, double>> score_json(const nb::bytes& text, JsonShape shape,
                                                           std::size_t most) {
    std::vector<double> out;
    const auto append = [&](const std::vector<double>& scores) {
      out.insert(out.end(), scores.begin(), scores.end());
    };
    if (!score_plain(text, shape, most, append)) return std::nullopt;
    const std::size_t rows = out.size() / scores_.size();
    return to_numpy(std::move(out), {rows, scores_.size()});
  }

  // Returns the answers of a classifier with two classes as JSON of the given shape. Returns None where
  // score_json returns None.
  std::optional<nb::bytes> answer_json(const nb::bytes& text, const records::JsonAnswers& answers,
                                       JsonShape shape, std::size_t most) {
    if (scores_.size() != 1) throw std::invalid_argument("answers need a single score");
    records::JsonAnswerText out(answers, shape);
    out.reserve(text.size());
    if (!score_plain(text, shape, most, [&](const std::vector<double>& scores) { out.add(scores[0]); }))
      return std::nullopt;
    return to_bytes(out.end());
  }

  // Returns the answers for records that are Python objects. Throws for an invalid record.
  nb::bytes answer_records(const Objects& input, const records::JsonAnswers& answers, JsonShape shape) {
    if (scores_.size() != 1 || (shape == JsonShape::one && input.size() != 1))
      throw std::invalid_argument("answers need a single score");
    records::JsonAnswerText out(answers, shape);
    for (const nb::handle record : input) out.add(score_record(record).only());
    return to_bytes(out.end());
  }

  RecordScorer(const RecordScorer&) = delete;
  RecordScorer& operator=(const RecordScorer&) = delete;

  nb::object score(nb::handle record) { return score_record(record).as_python(); }
  nb::object sum_votes(nb::handle record, std::size_t classes) {
    return score_record(record).sum_votes(classes);
  }
  std::size_t choose(nb::handle record, bool zero_is_positive) {
    return score_record(record).choose(zero_is_positive);
  }
  std::size_t choose_by_pairs(nb::handle record, std::size_t classes, bool by_sums) {
    return score_record(record).choose_by_pairs(classes, by_sums);
  }

 private:
  // Scores short texts under Python's lock with reused buffers, and long texts without the lock with new
  // buffers.
  template <class Use>
  bool score_plain(const nb::bytes& text, JsonShape shape, std::size_t most, Use&& use) {
    const std::string_view bytes = view(text);
    if (bytes.size() <= max_bytes_under_lock && plain_ != nullptr)
      return plain_->score(bytes, shape, most, use);
    const auto& plan = nb::cast<const BoundPlan&>(plan_object_);
    std::optional<records::PlainJson> reader = plan.make_plain_reader();
    if (!reader || bound_ != nullptr) return false;
    auto scoring = std::make_unique<PlainScoring>(plan, engine_, std::move(*reader));
    if (bytes.size() <= max_bytes_under_lock) {
      plain_ = std::move(scoring);
      return plain_->score(bytes, shape, most, use);
    }
    const nb::gil_scoped_release released;
    return scoring->score(bytes, shape, most, use);
  }

  const RowScores& score_record(nb::handle record) {
    encoding_.with_row(record, [&](const records::EncodedRow& row) {
      if (bound_ != nullptr) {
        score_bound(row, scores_.data());
      } else {
        engine_.score(engines::SparseRow<std::int32_t>{row.ids, row.values.data()}, *worker_, scores_.data());
      }
      return 0;
    });
    return scores_;
  }

  void score_bound(const records::EncodedRow& row, double* out) {
    columns_.clear();
    for (const std::int32_t id : row.ids) columns_.push_back(places_.at(static_cast<std::size_t>(id)));
    bound_->score({columns_, row.values.data()}, out);
  }

  nb::object plan_object_, engine_object_;
  const engines::Engine& engine_;
  RecordEncoding encoding_;
  std::unique_ptr<engines::Worker> worker_;
  RowScores scores_;
  std::unique_ptr<PlainScoring> plain_;       // null until a short text is scored
  std::unique_ptr<engines::BoundRow> bound_;  // null unless a part of the records is bound
  std::vector<std::int32_t> places_;
  std::vector<std::int32_t> columns_;
};

}  // namespace

void bind_records(nb::module_& module) {
  nb::class_<BoundPlan>(module, "RecordPlan")
      .def(nb::init<const Names&, const Numbers&, const Numbers&, const Objects&, const Names&, bool, bool,
                    bool>(),
           nb::kw_only(), nb::arg("columns"), nb::arg("unread"), nb::arg("repeated"), nb::arg("analyzers"),
           nb::arg("bound"), nb::arg("required"), nb::arg("whole"), nb::arg("ignores_unknown_keys"))
      .def(
          "add",
          [](BoundPlan& plan, const std::string& kind, const Table& table) {
            return plan.plan().add(make_step(plan.plan(), kind, table)).shape.width;
          },
          nb::arg("kind"), nb::arg("table"))
      .def_prop_ro("width", [](const BoundPlan& plan) { return plan.plan().width(); })
      .def("encode_one", &encode_one, nb::arg("record").none())
      .def("encode_table", &encode_table, nb::arg("columns"), nb::arg("rows"), nb::arg("threads"))
      .def("encode_arrow", &encode_arrow, nb::arg("stream"), nb::arg("threads"));
  nb::enum_<JsonShape>(module, "JsonShape")
      .value("ONE", JsonShape::one)
      .value("LIST", JsonShape::list)
      .value("LINES", JsonShape::lines);
  nb::class_<records::JsonAnswers>(module, "JsonAnswers")
      .def(
          "__init__",
          [](records::JsonAnswers* self, std::vector<std::string> first, std::vector<std::string> second,
             std::optional<std::tuple<double, double, bool>> sigmoid, bool zero_is_positive) {
            std::optional<records::JsonSigmoid> curve;
            if (sigmoid) curve = {std::get<0>(*sigmoid), std::get<1>(*sigmoid), std::get<2>(*sigmoid)};
            new (self) records::JsonAnswers({std::move(first), std::move(second)}, curve, zero_is_positive);
          },
          nb::arg("first"), nb::arg("second"), nb::arg("sigmoid").none(), nb::arg("zero_is_positive"))
      .def(
          "write",
          [](const records::JsonAnswers& self, const Array<double>& scores, JsonShape shape) {
            if (shape == JsonShape::one && scores.size() != 1)
              throw std::invalid_argument("one answer has one score");
            records::JsonAnswerText out(self, shape);
            for (const double score : view(scores)) out.add(score);
            return to_bytes(out.end());
          },
          nb::arg("scores"), nb::arg("shape"));
  nb::class_<RecordScorer>(module, "RecordScorer")
      .def(nb::init<nb::object, nb::object>(), nb::arg("plan"), nb::arg("engine"))
      .def("score", &RecordScorer::score, nb::arg("record").none(),
           nb::sig("def score(self, record: object) -> float | list[float]"))
      .def("sum_votes", &RecordScorer::sum_votes, nb::arg("record").none(), nb::arg("classes"))
      .def("choose_by_pairs", &RecordScorer::choose_by_pairs, nb::arg("record").none(), nb::arg("classes"),
           nb::arg("by_sums"))
      .def("bind", &RecordScorer::bind, nb::arg("columns"), nb::arg("values"), nb::arg("places"),
           nb::arg("width"), nb::arg("sharing"))
      .def("score_json", &RecordScorer::score_json, nb::arg("text"), nb::arg("shape"), nb::arg("most"))
      .def("answer_json", &RecordScorer::answer_json, nb::arg("text"), nb::arg("answers"), nb::arg("shape"),
           nb::arg("most"))
      .def("answer_records", &RecordScorer::answer_records, nb::arg("records"), nb::arg("answers"),
           nb::arg("shape"))
      .def("score_rows", &RecordScorer::score_rows, nb::arg("rows"))
      .def("choose", &RecordScorer::choose, nb::arg("record").none(), nb::arg("zero_is_positive"));
}

}  // namespace unkernel::bindings
