// Linear and ranking SVMs: rows in memory and in files, oracles of losses, and the solvers.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "bindings.hpp"
#include "csr_rows.hpp"
#include "options.hpp"
#include "tables.hpp"
#include "unkernel/base/checksum.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/cutplane/dual.hpp"
#include "unkernel/cutplane/mapped_risk.hpp"
#include "unkernel/cutplane/margin_oracle.hpp"
#include "unkernel/cutplane/measure_oracle.hpp"
#include "unkernel/cutplane/oracle.hpp"
#include "unkernel/cutplane/ordinal_oracle.hpp"
#include "unkernel/cutplane/passes.hpp"
#include "unkernel/cutplane/row_risk.hpp"
#include "unkernel/data/rows/block_file.hpp"
#include "unkernel/data/rows/block_packer.hpp"
#include "unkernel/data/rows/row_store.hpp"
#include "unkernel/solve/one_slack.hpp"

namespace unkernel::bindings {
namespace {

using cutplane::Oracle;
using data::PackedRows;
using data::RowStore;
using solve::Bundle;

constexpr std::int64_t max_entries_on_this_thread = 1 << 22;  // scored in some milliseconds

// --- Rows ------------------------------------------------------------------------------------------------

std::unique_ptr<PackedRows> pack(const CsrRows& rows, int threads) {
  return rows.visit([&](const auto& matrix) {
    const Unlocked unlocked;
    return std::make_unique<PackedRows>(data::pack(matrix, threads));
  });
}

nb::typed<nb::tuple, PackedRows, nb::any> pack_by_frequency(const CsrRows& rows,
                                                            std::optional<Array<std::int64_t>> order,
                                                            int threads) {
  std::unique_ptr<PackedRows> packed;
  data::Numbering numbering;
  const data::RowOrder row_order = order ? data::RowOrder(view(*order)) : std::nullopt;
  rows.visit([&](const auto& matrix) {
    const Unlocked unlocked;
    numbering = data::number_by_frequency(matrix, threads);
    packed = std::make_unique<PackedRows>(data::pack(matrix, row_order, numbering, threads));
  });
  return nb::typed<nb::tuple, PackedRows, nb::any>(
      nb::make_tuple(std::move(packed), to_numpy(std::move(numbering.column_of))));
}

void check_length(std::size_t actual, std::int64_t expected, const char* what) {
  if (actual != static_cast<std::size_t>(expected))
    throw std::invalid_argument(std::string(what) + " have the wrong length");
}

void bind_rows(nb::module_& module) {
  nb::class_<RowStore>(module, "RowStore")
      .def_prop_ro("rows", &RowStore::rows)
      .def_prop_ro("features", &RowStore::features)
      .def_prop_ro("entries", &RowStore::entries)
      .def(
          "scores",
          [](const RowStore& self, Array<double> weights, double intercept, int threads) {
            std::vector<double> result(static_cast<std::size_t>(self.rows()));
            run_interruptibly_if(self.entries() > max_entries_on_this_thread, [&](const Monitor& monitor) {
              const cutplane::Passes passes(self, intercept, {threads, &monitor});
              check_length(weights.size(), static_cast<std::int64_t>(passes.dimension()), "weights");
              passes.scores(view(weights), result);
            });
            return to_numpy(std::move(result));
          },
          nb::arg("weights"), nb::arg("intercept"), nb::arg("threads"))
      .def(
          "transposed",
          [](const RowStore& self, Array<double> coefficients, double intercept, int threads) {
            std::vector<double> result;
            run_interruptibly_if(self.entries() > max_entries_on_this_thread, [&](const Monitor& monitor) {
              cutplane::Passes passes(self, intercept, {threads, &monitor});
              check_length(coefficients.size(), self.rows(), "coefficients");
              result.resize(passes.dimension());
              passes.add_transposed(view(coefficients), result);
            });
            return to_numpy(std::move(result));
          },
          nb::arg("coefficients"), nb::arg("intercept"), nb::arg("threads"));
  nb::class_<PackedRows, RowStore>(module, "PackedRows").def_prop_ro("nbytes", &PackedRows::bytes);
  module.def("pack_rows", &pack, nb::arg("rows"), nb::kw_only(), nb::arg("threads"));
  module.def("pack_rows_by_frequency", &pack_by_frequency, nb::arg("rows"), nb::kw_only(),
             nb::arg("order") = nb::none(), nb::arg("threads"));
}

// --- Rows in files ---------------------------------------------------------------------------------------

constexpr std::size_t numbers_per_index_entry = 5;

std::vector<data::BlockEntry> read_block_index(const Array<std::int64_t>& numbers) {
  if (numbers.size() % numbers_per_index_entry != 0)
    throw std::invalid_argument("a block's entry in the index has five numbers");
  std::vector<data::BlockEntry> index;
  for (std::size_t k = 0; k < numbers.size(); k += numbers_per_index_entry) {
    const std::int64_t* const entry = numbers.data() + k;
    index.push_back({entry[0], entry[1], entry[2], entry[3], static_cast<std::uint64_t>(entry[4])});
  }
  return index;
}

std::vector<std::int64_t> flatten_index(const data::BlockPacker& packer) {
  std::vector<std::int64_t> numbers;
  for (const auto& [position, rows, entries, layout, checksum] : packer.index()) {
    numbers.insert(numbers.end(), {position, rows, entries, layout, static_cast<std::int64_t>(checksum)});
  }
  return numbers;
}

void add_to_blocks(data::BlockPacker& packer, const CsrRows& rows) {
  rows.visit([&](const auto& matrix) {
    const Unlocked unlocked;
    packer.add(matrix);
  });
}

void bind_row_files(nb::module_& module) {
  using data::BlockFile;
  using data::BlockPacker;
  nb::class_<BlockFile, RowStore>(module, "BlockFile", "Rows in a file that is mapped a block at a time.")
      .def(
          "__init__",
          [](BlockFile* self, std::string file, int descriptor, std::int64_t end, std::size_t features,
             Array<std::int64_t> index) {
            new (self) BlockFile({std::move(file), descriptor, end}, features, read_block_index(index));
          },
          nb::arg("file"), nb::kw_only(), nb::arg("descriptor"), nb::arg("end"), nb::arg("features"),
          nb::arg("index"));
  nb::class_<BlockPacker>(module, "BlockPacker", "Packs rows into the blocks of a file.")
      .def(nb::init<>())
      .def("add", &add_to_blocks, nb::arg("rows"))
      .def("finish", &BlockPacker::finish)
      .def(
          "take", [](BlockPacker& self) { return to_numpy(self.take()); }, nb::rv_policy::move)
      .def_prop_ro(
          "index", [](const BlockPacker& self) { return to_numpy(flatten_index(self)); }, nb::rv_policy::move)
      .def_prop_ro("end", &BlockPacker::end)
      .def_prop_ro("entries", &BlockPacker::entries);
  module.def("checksum", [](Array<std::uint8_t> bytes) { return checksum(view(bytes)); }, nb::arg("bytes"));
}

// --- Oracles ---------------------------------------------------------------------------------------------

solve::Loss choose_loss(bool squared) { return squared ? solve::Loss::squared_hinge : solve::Loss::hinge; }

cutplane::Ranking make_ranking(const Array<std::int32_t>& ranks, std::int32_t rank_count,
                               const Array<std::int32_t>& groups, const Array<double>& weights,
                               const Array<double>& pair_weights, const Array<double>& gains,
                               const Array<double>& discounts) {
  return {view(ranks), view(groups), view(weights),  view(pair_weights),
          rank_count,  view(gains),  view(discounts)};
}

void bind_oracles(nb::module_& module) {
  nb::class_<Oracle>(module, "Oracle")
      .def_prop_ro("rows", &Oracle::rows)
      .def(
          "along",
          [](Oracle& self, Array<double> current, Array<double> proposed, double step, int threads) {
            check_length(current.size(), self.rows(), "scores");
            check_length(proposed.size(), self.rows(), "scores");
            solve::LinePoint point;
            {
              const Unlocked unlocked;
              self.face(view(current), view(proposed));
              point = self.along(step, threads);
            }
            return std::pair(point.value, point.slope);
          },
          nb::arg("here"), nb::arg("there"), nb::arg("step"), nb::arg("threads"),
          "The risk at here + step (there - here), and its slope.")
      .def(
          "cut",
          [](Oracle& self, Array<double> current, Array<double> proposed, double step, int threads) {
            check_length(current.size(), self.rows(), "scores");
            check_length(proposed.size(), self.rows(), "scores");
            std::vector<double> coefficients(current.size());
            double offset = 0.0;
            {
              const Unlocked unlocked;
              self.face(view(current), view(proposed));
              offset = self.cut(step, coefficients, threads);
            }
            return nb::typed<nb::tuple, double, nb::any>(
                nb::make_tuple(offset, to_numpy(std::move(coefficients))));
          },
          nb::arg("here"), nb::arg("there"), nb::arg("step"), nb::arg("threads"),
          "The offset and the coefficients c of a cut: risk(s) >= offset - c's for all s.");
  module.def(
      "margin_oracle",
      [](Array<double> signed_costs, bool squared) {
        return cutplane::margin_oracle(choose_loss(squared), to_vector(signed_costs));
      },
      nb::arg("signed_costs"), nb::kw_only(), nb::arg("squared"));
  module.def(
      "ordinal_oracle",
      [](Array<std::int32_t> ranks, std::int32_t rank_count, Array<std::int32_t> groups,
         Array<double> weights, Array<double> pair_weights, Array<double> gains, Array<double> discounts,
         double accuracy) {
        const Unlocked unlocked;
        return cutplane::ordinal_oracle(
            make_ranking(ranks, rank_count, groups, weights, pair_weights, gains, discounts), accuracy);
      },
      nb::arg("ranks"), nb::kw_only(), nb::arg("rank_count"), nb::arg("groups"), nb::arg("weights"),
      nb::arg("pair_weights"), nb::arg("gains"), nb::arg("discounts"), nb::arg("accuracy"));
  module.def(
      "count_pairs",
      [](Array<std::int32_t> ranks, std::int32_t rank_count, Array<std::int32_t> groups,
         Array<double> weights, Array<double> pair_weights, Array<double> gains, Array<double> discounts,
         Array<double> scores) {
        const Unlocked unlocked;
        const auto count = cutplane::count_pairs(
            make_ranking(ranks, rank_count, groups, weights, pair_weights, gains, discounts), view(scores));
        return std::pair(count.pairs, count.ordered);
      },
      nb::arg("ranks"), nb::kw_only(), nb::arg("rank_count"), nb::arg("groups"), nb::arg("weights"),
      nb::arg("pair_weights"), nb::arg("gains"), nb::arg("discounts"), nb::arg("scores"));
  module.def(
      "f1_oracle", [](Array<bool> positive) { return cutplane::f1_oracle(to_vector(positive)); },
      nb::arg("positive"));
  module.def(
      "precision_oracle",
      [](Array<bool> positive, std::int64_t k) { return cutplane::precision_oracle(to_vector(positive), k); },
      nb::arg("positive"), nb::arg("k"));
}

// --- The loop --------------------------------------------------------------------------------------------

// A risk whose rows are on other machines. Python functions compute its values.
class RemoteRisk final : public solve::Risk {
 public:
  RemoteRisk(std::size_t dimension, nb::object functions, std::size_t steps_at_once)
      : dimension_(dimension), functions_(std::move(functions)), steps_at_once_(steps_at_once) {}

  std::size_t dimension() const override { return dimension_; }
  std::size_t steps_at_once() const override { return steps_at_once_; }
  // The Python object may have its own first_steps().
  std::vector<double> first_steps() const override {
    const Locked locked;
    if (!nb::hasattr(functions_, "first_steps")) return Risk::first_steps();
    auto steps =
        stay_if_python_ends([&] { return nb::cast<std::vector<double>>(functions_.attr("first_steps")()); });
    if (steps.empty() || steps.front() != 0.0)
      throw std::invalid_argument("a line search begins at a step of 0");
    return steps;
  }

  double line_accuracy() const override {
    const Locked locked;
    if (!nb::hasattr(functions_, "line_accuracy")) return Risk::line_accuracy();
    return stay_if_python_ends([&] { return nb::cast<double>(functions_.attr("line_accuracy")); });
  }

  void aim(std::span<const double> weights) override {
    const Locked locked;
    stay_if_python_ends([&] { functions_.attr("aim")(copy_to_numpy(weights)); });
  }
  void along(std::span<const double> steps, std::span<solve::LinePoint> points) override {
    const Locked locked;
    const nb::object result =
        stay_if_python_ends([&] { return functions_.attr("along")(copy_to_numpy(steps)); });
    for (std::size_t k = 0; k < points.size(); ++k) {
      const nb::object point = result[k];
      points[k] = {nb::cast<double>(point[0]), nb::cast<double>(point[1])};
    }
  }
  double cut(double step, std::span<double> gradient) override {
    const Locked locked;
    const nb::object result = stay_if_python_ends([&] { return functions_.attr("cut")(step); });
    const auto values = nb::cast<Array<double>>(result[1]);
    check_length(values.size(), static_cast<std::int64_t>(gradient.size()), "gradients");
    std::ranges::copy(view(values), gradient.begin());
    return nb::cast<double>(result[0]);
  }
  void move(double step) override {
    const Locked locked;
    stay_if_python_ends([&] { functions_.attr("move")(step); });
  }

 private:
  std::size_t dimension_;
  nb::object functions_;
  std::size_t steps_at_once_;
};

using Observe = Callback<nb::ndarray<nb::numpy, double>, double, double, std::int64_t>;

struct LoopOptions {
  solve::OneSlackOptions solver;
  Progress progress;
};

Progress read_progress(const Options& options) {
  Progress progress;
  progress.stage = "training";
  progress.problem = options.integer<std::int64_t>("problem");
  progress.problems = options.integer<std::int64_t>("problems");
  return progress;
}

LoopOptions read_loop_options(const Options& options) {
  Progress progress = read_progress(options);
  progress.finished = progress.problem;
  return {{options.real("C"), options.real("tolerance"), options.integer<std::int64_t>("max_rounds"),
           options.integer<int>("threads")},
          progress};
}

solve::OneSlackOutcome minimise(solve::Risk& risk, const LoopOptions& options, Bundle& bundle,
                                std::vector<double>& weights, Monitor& monitor, const Observe& observe) {
  const solve::RoundObserver after_round = [&](const Bundle&, std::span<const double> best,
                                               const solve::OneSlackOutcome& outcome) {
    const Locked locked;
    stay_if_python_ends(
        [&] { observe(copy_to_numpy(best), outcome.objective, outcome.dual_objective, outcome.rounds); });
  };
  return solve::minimise_one_slack(risk, options.solver, bundle, weights, options.progress, monitor,
                                   observe ? after_round : solve::RoundObserver());
}

template <class Outcome>
Table outcome_table(const Outcome& outcome, std::int64_t rounds) {
  Table result;
  result["objective"] = outcome.objective;
  result["bound"] = outcome.dual_objective;
  result["rounds"] = rounds;
  result["converged"] = outcome.converged;
  result["history"] = history_of(outcome.history);
  return result;
}

template <class Work>
Table run_loop(Array<double> start, const OnProgress& on_progress, const Work& work) {
  std::vector<double> weights = to_vector(start);
  auto outcome = run_interruptibly([&](Monitor& monitor) { return work(weights, monitor); }, on_progress);
  Table result = outcome_table(outcome, outcome.rounds);
  result["weights"] = to_numpy(std::move(weights));
  return result;
}

void bind_loop(nb::module_& module) {
  nb::class_<Bundle>(module, "Bundle", "Cuts and their masses in the dual.")
      .def(
          "__init__",
          [](Bundle* self, std::size_t dimension, std::size_t most_cuts, bool of_rows) {
            new (self) Bundle(dimension, most_cuts,
                              of_rows ? solve::Vectors::coefficients_and_scores : solve::Vectors::weights);
          },
          nb::arg("dimension"), nb::arg("most_cuts"), nb::kw_only(), nb::arg("of_rows"))
      .def("__len__", &Bundle::size)
      .def_prop_ro("dimension", &Bundle::dimension)
      .def(
          "add",
          [](Bundle& self, Array<double> gradient, double offset) {
            self.add(LargeVector<double>(gradient.data(), gradient.data() + gradient.size()), offset, 1);
          },
          nb::arg("gradient"), nb::arg("offset"))
      .def(
          "set_masses", [](Bundle& self, Array<double> masses) { self.set_masses(view(masses)); },
          nb::arg("masses"))
      .def(
          "gradient",
          [](const Bundle& self, std::size_t k) {
            if (k >= self.size()) throw std::out_of_range("there is no such cut");
            return copy_to_numpy(self.gradient(k));
          },
          nb::arg("k"))
      .def_prop_ro(
          "offsets",
          [](const Bundle& self) {
            std::vector<double> offsets;
            for (std::size_t k = 0; k < self.size(); ++k) offsets.push_back(self.offset(k));
            return to_numpy(std::move(offsets));
          },
          nb::rv_policy::move)
      .def_prop_ro("numbers",
                   [](const Bundle& self) {
                     std::vector<std::int64_t> numbers;
                     for (std::size_t k = 0; k < self.size(); ++k) numbers.push_back(self.number(k));
                     return numbers;
                   })
      .def_prop_ro(
          "masses", [](const Bundle& self) { return copy_to_numpy(self.masses()); }, nb::rv_policy::move);
  module.def(
      "minimise",
      [](nb::object python_options, const RowStore& rows, Oracle& oracle, double intercept, Bundle& bundle,
         Array<double> start, const OnProgress& on_progress, const Observe& observe) {
        const LoopOptions options = read_loop_options(Options(python_options));
        return run_loop(start, on_progress, [&](std::vector<double>& weights, Monitor& monitor) {
          cutplane::RowRisk risk(rows, intercept, oracle, {options.solver.threads, &monitor});
          return minimise(risk, options, bundle, weights, monitor, observe);
        });
      },
      nb::arg("options"), nb::kw_only(), nb::arg("rows"), nb::arg("oracle"), nb::arg("intercept"),
      nb::arg("bundle"), nb::arg("start"), nb::arg("on_progress").none(), nb::arg("observe").none());
  module.def(
      "minimise_mapped",
      [](nb::object python_options, const solve::RowPasses& rows, std::size_t dimension,
         Array<std::int32_t> places, Oracle& oracle, Bundle& bundle, Array<double> start,
         const OnProgress& on_progress, const Observe& observe) {
        const LoopOptions options = read_loop_options(Options(python_options));
        return run_loop(start, on_progress, [&](std::vector<double>& weights, Monitor& monitor) {
          cutplane::MappedRisk risk({rows, dimension, view(places)}, oracle,
                                    {options.solver.threads, &monitor});
          return minimise(risk, options, bundle, weights, monitor, observe);
        });
      },
      nb::arg("options"), nb::kw_only(), nb::arg("rows"), nb::arg("dimension"), nb::arg("places"),
      nb::arg("oracle"), nb::arg("bundle"), nb::arg("start"), nb::arg("on_progress").none(),
      nb::arg("observe").none());
  module.def(
      "minimise_remote_risk",
      [](nb::object python_options, nb::object risk, std::size_t steps_at_once, Bundle& bundle,
         Array<double> start, const OnProgress& on_progress, const Observe& observe) {
        const LoopOptions options = read_loop_options(Options(python_options));
        RemoteRisk remote(start.size(), std::move(risk), steps_at_once);
        return run_loop(start, on_progress, [&](std::vector<double>& weights, Monitor& monitor) {
          return minimise(remote, options, bundle, weights, monitor, observe);
        });
      },
      nb::arg("options"), nb::kw_only(), nb::arg("risk"), nb::arg("steps_at_once"), nb::arg("bundle"),
      nb::arg("start"), nb::arg("on_progress").none(), nb::arg("observe").none());
}

Table train_dual(nb::object python_options, const PackedRows& rows, double intercept, bool squared,
                 Array<double> signed_costs, Array<double> duals, const OnProgress& on_progress) {
  const Options options(python_options);
  const double tolerance = options.real("tolerance");
  const auto max_epochs = options.integer<std::int64_t>("max_epochs");
  const auto seed = options.integer<std::uint64_t>("seed");
  const int threads = options.integer<int>("threads");
  const Progress progress = read_progress(options);
  std::vector<double> final_duals = to_vector(duals);
  std::vector<double> weights(rows.features() + (intercept != 0.0 ? 1 : 0));
  solve::Outcome outcome;
  run_interruptibly(
      [&](Monitor& monitor) {
        const solve::DescentOptions descent_options{tolerance, max_epochs, seed,
                                                    threads,   0.0,        solve::Finish::sweeps};
        outcome = cutplane::train_dual(rows, intercept, choose_loss(squared), view(signed_costs),
                                       descent_options, final_duals, weights, progress, monitor);
      },
      on_progress);
  Table result = outcome_table(outcome, outcome.epochs);
  result["weights"] = to_numpy(std::move(weights));
  result["duals"] = to_numpy(std::move(final_duals));
  return result;
}

void bind_dual(nb::module_& module) {
  module.def("train_dual", &train_dual, nb::arg("options"), nb::kw_only(), nb::arg("rows"),
             nb::arg("intercept"), nb::arg("squared"), nb::arg("signed_costs"), nb::arg("duals"),
             nb::arg("on_progress").none());
}

}  // namespace

void bind_cutplane(nb::module_& module) {
  bind_rows(module);
  bind_row_files(module);
  bind_oracles(module);
  bind_loop(module);
  bind_dual(module);
}

}  // namespace unkernel::bindings
