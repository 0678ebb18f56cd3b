// Learners for examples that consist of trees and vectors.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "named_values.hpp"
#include "options.hpp"
#include "python_lock.hpp"
#include "tables.hpp"
#include "trees.hpp"
#include "unkernel/tree/exact.hpp"
#include "unkernel/tree/sampled.hpp"

namespace unkernel::bindings {
namespace {

using kernels::ExampleKernel;
using kernels::ExampleSet;

// Labels the examples of class `positive` with 1 and all other examples with -1.
tree::Labelling label_examples(std::span<const std::int32_t> codes, std::span<const double> costs,
                               std::int32_t positive, double imbalance) {
  tree::Labelling result;
  result.labels.reserve(codes.size());
  result.costs.reserve(codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const bool is_positive = codes[i] == positive;
    result.labels.push_back(is_positive ? 1 : -1);
    result.costs.push_back(costs[i] * (is_positive ? imbalance : 1.0));
  }
  return result;
}

void check_size(const ExampleSet& set, const Array<std::int32_t>& codes) {
  if (codes.size() != set.size)
    throw std::invalid_argument("there are not as many labels and costs as examples");
}

void check_targets(const Array<std::int32_t>& codes, const Array<double>& costs) {
  if (codes.size() != costs.size()) throw std::invalid_argument("there are not as many costs as labels");
  double total = 0.0;
  for (const double cost : view(costs)) {
    if (!(cost >= 0.0) || !std::isfinite(cost))
      throw std::invalid_argument(
          "the weights of classes and examples, times C, must be finite and not negative");
    total += cost;
  }
  if (!(total > 0.0) || !std::isfinite(total))
    throw std::invalid_argument("the weights of all examples together must be above 0, and finite");
}

Table to_table(tree::Trained&& trained) {
  Table table;
  table["coefficients"] = to_numpy(std::move(trained.coefficients));
  table["intercept"] = trained.intercept;
  table["objective"] = trained.objective;
  table["dual_objective"] = trained.dual_objective;
  table["rounds"] = trained.rounds;
  table["converged"] = trained.converged;
  table["history"] = history_of(trained.history);
  return table;
}

// The base of RemoteExamples and RemoteCuts, whose examples are on the workers of a cluster. Calls the
// methods of a Python object, which must outlive this object, to compute values of the examples.
class RemoteObject {
 public:
  explicit RemoteObject(nb::handle source) : source_(source) {}

 protected:
  template <class... Arguments>
  nb::object call(const char* name, const Arguments&... arguments) const {
    return stay_if_python_ends([&] { return nb::object(source_.attr(name)(arguments...)); });
  }
  static void copy(const nb::object& answer, std::span<double> values) {
    const auto array = nb::cast<Array<double>>(answer);
    if (array.size() != values.size())
      throw std::invalid_argument("there are not as many answers as were asked for");
    std::ranges::copy(view(array), values.begin());
  }

 private:
  nb::handle source_;
};

// --- The exact learner -----------------------------------------------------------------------------------

// Examples on other machines. Fetches the examples whose kernels are needed.
class RemoteExamples final : public tree::TrainingExamples, private RemoteObject {
 public:
  RemoteExamples(nb::handle source, const ExampleKernel& kernel, std::size_t size, int threads,
                 const Monitor& monitor)
      : RemoteObject(source), kernel_(kernel), size_(size), threads_(threads), monitor_(monitor) {}

  std::size_t size() const override { return size_; }

  std::vector<double> self_kernels() const override {
    std::vector<double> values(size_);
    const Locked locked;
    copy(call("self_kernels"), values);
    return values;
  }

  void compute_kernels(std::span<const std::int32_t> rows, std::span<const std::int32_t> columns,
                       bool lower_only, kernels::GramSink& sink) const override {
    const std::shared_ptr<ExampleSet> left = fetch(rows);
    const std::shared_ptr<ExampleSet> right = lower_only ? left : fetch(columns);
    const ReadingLock reading_left(left->forest->gate());
    const ReadingLock reading_right =
        left->forest == right->forest ? ReadingLock() : ReadingLock(right->forest->gate());
    const std::vector<std::int32_t> all_left = kernels::all_of(*left), all_right = kernels::all_of(*right);
    kernels::compute_kernels(kernel_, {*left, all_left, *right, all_right, lower_only}, threads_, monitor_,
                             sink);
  }

  std::vector<double> scores(tree::Support support, std::span<const std::int32_t> examples) const override {
    const std::size_t count = support.examples.size();
    std::vector<double> values(examples.size() * support.problems);
    const Locked locked;
    const nb::object coefficients =
        nb::cast(to_numpy(std::move(support.coefficients), {count, support.problems}));
    copy(call("scores", copy_to_numpy(support.examples), coefficients, copy_to_numpy(examples)), values);
    return values;
  }

 private:
  std::shared_ptr<ExampleSet> fetch(std::span<const std::int32_t> examples) const {
    const Locked locked;
    auto set = nb::cast<std::shared_ptr<ExampleSet>>(call("here", copy_to_numpy(examples)));
    if (set->size != examples.size())
      throw std::invalid_argument("there are not as many examples as were asked for");
    return set;
  }

  ExampleKernel kernel_;
  std::size_t size_;
  int threads_;
  const Monitor& monitor_;
};

// All problems and their options.
struct Solving {
  std::vector<tree::Labelling> labellings;
  tree::ExactOptions options;
};

Solving read_solving(const Options& options, const Array<std::int32_t>& codes, const Array<double>& costs,
                     const std::vector<std::int32_t>& positives) {
  check_targets(codes, costs);
  Solving solving{
      {},
      {options.real("tolerance"), options.integer<std::int64_t>("max_rounds"), options.flag("fit_intercept"),
       options.integer<std::size_t>("memory"), options.integer<int>("threads")}};
  for (const std::int32_t positive : positives)
    solving.labellings.push_back(
        label_examples(view(codes), view(costs), positive, options.real("imbalance")));
  return solving;
}

nb::typed<nb::list, Table> to_tables(std::vector<tree::Trained>&& trained) {
  nb::typed<nb::list, Table> tables;
  for (tree::Trained& problem : trained) tables.append(to_table(std::move(problem)));
  return tables;
}

nb::typed<nb::list, Table> train_exact(nb::object python_options, const ExampleKernel& kernel,
                                       std::shared_ptr<ExampleSet> set, const Array<std::int32_t>& codes,
                                       const Array<double>& costs, const std::vector<std::int32_t>& positives,
                                       const OnProgress& on_progress) {
  check_size(*set, codes);
  const Solving solving = read_solving(Options(python_options), codes, costs, positives);
  std::vector<tree::Trained> trained;
  run_interruptibly(
      [&](Monitor& monitor) {
        const ReadingLock reading(set->forest->gate());
        const tree::LocalExamples examples(kernel, set, solving.options.threads, monitor);
        trained = tree::train_exact(examples, solving.labellings, solving.options, monitor);
      },
      on_progress);
  return to_tables(std::move(trained));
}

nb::typed<nb::list, Table> train_exact_remote(nb::object python_options, const ExampleKernel& kernel,
                                              nb::object examples, const Array<std::int32_t>& codes,
                                              const Array<double>& costs,
                                              const std::vector<std::int32_t>& positives,
                                              const OnProgress& on_progress) {
  const Solving solving = read_solving(Options(python_options), codes, costs, positives);
  std::vector<tree::Trained> trained;
  run_interruptibly(
      [&](Monitor& monitor) {
        const RemoteExamples remote(examples, kernel, codes.size(), solving.options.threads, monitor);
        trained = tree::train_exact(remote, solving.labellings, solving.options, monitor);
      },
      on_progress);
  return to_tables(std::move(trained));
}

// --- Sampled cuts ----------------------------------------------------------------------------------------

constexpr Named<tree::CutMethod> cut_methods[] = {{"forest", tree::CutMethod::forest},
                                                  {"usvm", tree::CutMethod::pairs},
                                                  {"sdag", tree::CutMethod::dag_each},
                                                  {"sdag+", tree::CutMethod::dag_together},
                                                  {"kernels", tree::CutMethod::kernels}};

// Cuts whose examples are on other machines.
class RemoteCuts final : public tree::Cuts, private RemoteObject {
 public:
  using RemoteObject::RemoteObject;

  void score(std::span<const double> alphas, const tree::Sample& sample, std::span<double> scores) override {
    const Locked locked;
    copy(call("score", copy_to_numpy(alphas), copy_to_numpy(sample.examples), copy_to_numpy(sample.labels),
              sample.intercept),
         scores);
  }

 private:
  std::vector<double> products_of_newest() override {
    const tree::Cut& cut = cuts_.back();
    std::vector<double> products(cuts_.size());
    const Locked locked;
    copy(call("add", copy_to_numpy(cut.examples), copy_to_numpy(cut.coefficients)), products);
    return products;
  }
};

// One problem and its options.
struct Sampling {
  tree::Labelling labelling;
  tree::SampledOptions options;
  Progress progress;
};

Sampling read_sampling(const Options& options, const Array<std::int32_t>& codes, const Array<double>& costs,
                       std::int32_t positive) {
  check_targets(codes, costs);
  Sampling sampling{label_examples(view(codes), view(costs), positive, options.real("imbalance")),
                    {options.real("C"), options.real("epsilon"), options.integer<std::int64_t>("max_rounds"),
                     options.integer<std::int64_t>("sample_size"), options.flag("fit_intercept"),
                     options.integer<std::uint64_t>("seed")},
                    {}};
  sampling.progress.problem = options.integer<std::int64_t>("problem");
  sampling.progress.problems = options.integer<std::int64_t>("problems");
  return sampling;
}

tree::Trained train_with(tree::Cuts& cuts, const Sampling& sampling, Monitor& monitor) {
  return tree::train_sampled(cuts, sampling.labelling, sampling.options, sampling.progress, monitor);
}

Table train_sampled(nb::object python_options, const ExampleKernel& kernel, std::shared_ptr<ExampleSet> set,
                    const Array<std::int32_t>& codes, const Array<double>& costs, std::int32_t positive,
                    const OnProgress& on_progress) {
  check_size(*set, codes);
  const Options options(python_options);
  const Sampling sampling = read_sampling(options, codes, costs, positive);
  const tree::CutMethod method = find_value(cut_methods, options.text("method"), "cuts are computed by");
  const int threads = options.integer<int>("threads");
  tree::Trained trained;
  run_interruptibly(
      [&](Monitor& monitor) {
        const ReadingLock reading(set->forest->gate());
        trained = train_with(*tree::make_cuts(method, kernel, set, threads, monitor), sampling, monitor);
      },
      on_progress);
  return to_table(std::move(trained));
}

Table train_sampled_remote(nb::object python_options, nb::object cuts, const Array<std::int32_t>& codes,
                           const Array<double>& costs, std::int32_t positive, const OnProgress& on_progress) {
  const Sampling sampling = read_sampling(Options(python_options), codes, costs, positive);
  RemoteCuts remote(cuts);
  auto trained =
      run_interruptibly([&](Monitor& monitor) { return train_with(remote, sampling, monitor); }, on_progress);
  return to_table(std::move(trained));
}

}  // namespace

void bind_tree_learners(nb::module_& module) {
  module.def("train_exact_trees", &train_exact, nb::arg("options"), nb::kw_only(), nb::arg("kernel"),
             nb::arg("set"), nb::arg("codes"), nb::arg("costs"), nb::arg("positives"),
             nb::arg("on_progress").none());
  module.def("train_exact_remote_trees", &train_exact_remote, nb::arg("options"), nb::kw_only(),
             nb::arg("kernel"), nb::arg("examples"), nb::arg("codes"), nb::arg("costs"), nb::arg("positives"),
             nb::arg("on_progress").none());
  module.def("train_sampled_remote_trees", &train_sampled_remote, nb::arg("options"), nb::kw_only(),
             nb::arg("cuts"), nb::arg("codes"), nb::arg("costs"), nb::arg("positive"),
             nb::arg("on_progress").none());
  module.def("train_sampled_trees", &train_sampled, nb::arg("options"), nb::kw_only(), nb::arg("kernel"),
             nb::arg("set"), nb::arg("codes"), nb::arg("costs"), nb::arg("positive"),
             nb::arg("on_progress").none());
}

void bind_tree(nb::module_& module) {
  bind_forest(module);
  bind_tree_kernels(module);
  bind_tree_fragments(module);
  bind_tree_cuts(module);
  bind_tree_learners(module);
}

}  // namespace unkernel::bindings
