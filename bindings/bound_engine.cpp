// Scores rows for Python: this file is compiled for speed.
#include "bound_engine.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "feature_ids.hpp"
#include "row_scores.hpp"
#include "unkernel/engines/cached_engine.hpp"
#include "unkernel/engines/conjunctions/conjunction_engine.hpp"

namespace unkernel::bindings {

// An engine's worker and its buffers for one row. Not thread-safe.
class RowScorer {
 public:
  explicit RowScorer(const engines::Engine& engine)
      : engine_(engine), worker_(engine.worker()), scores_(engine.scores()) {}

  nb::object score(nb::handle ids, nb::handle values) { return score_row(ids, values).as_python(); }
  nb::object sum_votes(nb::handle ids, nb::handle values, std::size_t classes) {
    return score_row(ids, values).sum_votes(classes);
  }
  std::size_t choose(nb::handle ids, nb::handle values, bool zero_is_positive) {
    return score_row(ids, values).choose(zero_is_positive);
  }
  std::size_t choose_by_pairs(nb::handle ids, nb::handle values, std::size_t classes, bool by_sums) {
    return score_row(ids, values).choose_by_pairs(classes, by_sums);
  }

 private:
  const RowScores& score_row(nb::handle ids, nb::handle values_object) {
    // Reads the values first: this may run Python code, whereas reading a list of plain ints does not.
    const std::vector<double> values = read_row_values(ids, values_object);
    const FeatureIds features(ids, ids_);
    if (!values_object.is_none() && values.size() != features.size())
      throw std::invalid_argument("the row changed while it was read");
    const double* x = values_object.is_none() ? nullptr : values.data();
    if (features.is_wide()) {
      engine_.score(engines::SparseRow<std::int64_t>{features.wide_ids(), x}, *worker_, scores_.data());
    } else {
      engine_.score(engines::SparseRow<std::int32_t>{features.narrow_ids(), x}, *worker_, scores_.data());
    }
    return scores_;
  }

  static std::vector<double> read_row_values(nb::handle ids, nb::handle values) {
    if (values.is_none()) return {};
    std::vector<std::int64_t> buffer;
    return read_values(values, FeatureIds(ids, buffer).size());
  }

  const engines::Engine& engine_;
  std::unique_ptr<engines::Worker> worker_;
  RowScores scores_;
  std::vector<std::int64_t> ids_;
};

namespace {

engines::Saving parse_saving(const std::string& name) {
  if (name == "counted") return engines::Saving::counted;
  if (name == "entries") return engines::Saving::entries;
  throw std::invalid_argument("saving must be 'counted' or 'entries'");
}

}  // namespace

BoundEngine::BoundEngine(std::shared_ptr<engines::Engine> engine, nb::object tables, std::size_t cached_rows)
    : tables_(std::move(tables)),
      engine_(std::move(engine)),
      cached_(cached_rows == 0 ? nullptr : std::make_unique<engines::CachedEngine>(engine_, cached_rows)),
      row_scorer_(std::make_unique<RowScorer>(this->engine())) {}

BoundEngine::~BoundEngine() = default;

const engines::Engine& BoundEngine::engine() const { return cached_ == nullptr ? *engine_ : *cached_; }

// Returns the scores of rows, an array [rows, scores]. Divides the rows into pieces, and calls fill(piece,
// scores of the piece, monitor) for each.
template <class Fill>
nb::ndarray<nb::numpy, double> BoundEngine::fill_scores(const CsrRows& rows, const Fill& fill) const {
  std::vector<double> out;
  std::size_t count = 0;
  const std::size_t width = engine_->scores();
  rows.visit([&](const auto& view) {
    count = static_cast<std::size_t>(view.rows());
    out.resize(count * width);
    run_pieces_interruptibly(view.rows(), [&](std::int64_t begin, std::int64_t end, const Monitor& monitor) {
      const auto [first, last] = std::pair(static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
      auto piece = view;  // offsets of a piece need not begin with 0
      piece.offsets = view.offsets.subspan(first, last - first + 1);
      fill(piece, std::span<double>(out).subspan(first * width, (last - first) * width), monitor);
    });
  });
  return to_numpy(std::move(out), {count, width});
}

nb::ndarray<nb::numpy, double> BoundEngine::score(const CsrRows& rows, int threads) const {
  return fill_scores(rows, [&](const auto& view, auto out, const Monitor& monitor) {
    engine().score(view, out, {threads, &monitor});
  });
}

nb::ndarray<nb::numpy, double> BoundEngine::score_until_decided(const CsrRows& rows, int threads) const {
  return fill_scores(rows, [&](const auto& view, auto out, const Monitor& monitor) {
    engine().score_until_decided(view, out, {threads, &monitor});
  });
}

std::unique_ptr<BoundEngine> BoundEngine::add_cache(std::size_t rows) const {
  if (rows == 0) throw std::invalid_argument("a cache has room for at least one row");
  return std::make_unique<BoundEngine>(engine_, tables_, rows);
}

nb::object BoundEngine::cache_counts() const {
  if (cached_ == nullptr) return nb::none();
  const auto counts = cached_->cache().counts();
  return nb::make_tuple(counts.hits, counts.misses, cached_->cache().most_rows(), counts.rows);
}

void BoundEngine::clear_cache() {
  if (cached_ != nullptr) cached_->cache().clear();
}

nb::object BoundEngine::trie() const {
  const auto trie = conjunctions().trie();
  if (trie == nullptr) return nb::none();
  return table_of(std::pair{"first_child", trie->first_child}, std::pair{"ranks", trie->ranks},
                  std::pair{"counts", trie->counts}, std::pair{"sums", trie->sums});
}

void BoundEngine::set_trie(const Table& table) {
  const auto copy = [](const auto& values) { return std::vector(values.begin(), values.end()); };
  auto trie = std::make_shared<engines::PrefixTrie>();
  trie->first_child = copy(array<std::uint32_t>(table, "first_child"));
  trie->ranks = copy(array<std::uint32_t>(table, "ranks"));
  trie->counts = copy(array<std::uint32_t>(table, "counts"));
  trie->sums = copy(array<double>(table, "sums"));
  replace_trie(std::move(trie));
}

void BoundEngine::release_after_fork() { conjunctions().release_after_fork(); }

std::size_t BoundEngine::trie_nodes() const {
  const auto trie = conjunctions().trie();
  return trie == nullptr ? 0 : trie->nodes() - 1;
}

void BoundEngine::grow_trie(const CsrRows& csr_rows, std::size_t most_nodes, const std::string& saving,
                            int threads) {
  const auto rows = csr_rows.narrow();
  run_interruptibly([&](Monitor& monitor) {
    const auto old = conjunctions().trie();
    replace_trie(std::make_shared<const engines::PrefixTrie>(
        conjunctions().grow(old.get(), rows, most_nodes, parse_saving(saving), threads, monitor)));
  });
}

void BoundEngine::prune_trie(std::size_t most_nodes, const std::string& saving) {
  const Unlocked unlocked;
  const auto old = conjunctions().trie();
  if (old != nullptr)
    replace_trie(std::make_shared<const engines::PrefixTrie>(
        conjunctions().prune(*old, most_nodes, parse_saving(saving))));
}

// Clears the cache, because a different trie rounds sums differently: cached scores would differ from the
// scores of the engine.
void BoundEngine::replace_trie(std::shared_ptr<const engines::PrefixTrie> trie) {
  conjunctions().set_trie(std::move(trie));
  clear_cache();
}

engines::ConjunctionEngine& BoundEngine::conjunctions() const {
  auto* result = dynamic_cast<engines::ConjunctionEngine*>(engine_.get());
  if (result == nullptr) throw std::invalid_argument("only engines of conjunctions have a prefix trie");
  return *result;
}

std::vector<const engines::Engine*> list_engines(const nb::typed<nb::list, nb::any>& list) {
  std::vector<const engines::Engine*> result;
  for (const nb::handle item : list)
    result.push_back(item.is_none() ? nullptr : &nb::cast<const BoundEngine&>(item).engine());
  return result;
}

void bind_bound_engines(nb::module_& module) {
  nb::class_<RowScorer>(module, "Worker")
      .def("score_one", &RowScorer::score, nb::arg("ids"), nb::arg("values").none() = nb::none())
      .def("sum_votes_of_one", &RowScorer::sum_votes, nb::arg("ids"), nb::arg("values").none(),
           nb::arg("classes"))
      .def("choose_one", &RowScorer::choose, nb::arg("ids"), nb::arg("values").none(),
           nb::arg("zero_is_positive"))
      .def("choose_one_by_pairs", &RowScorer::choose_by_pairs, nb::arg("ids"), nb::arg("values").none(),
           nb::arg("classes"), nb::arg("by_sums"));
  nb::class_<BoundEngine>(module, "Engine")
      .def_prop_ro("nbytes", [](const BoundEngine& self) { return self.engine().bytes(); })
      .def_prop_ro("scores", [](const BoundEngine& self) { return self.engine().scores(); })
      .def("score", &BoundEngine::score, nb::arg("rows"), nb::arg("threads"))
      .def("score_until_decided", &BoundEngine::score_until_decided, nb::arg("rows"), nb::arg("threads"))
      .def_prop_ro("one_row", &BoundEngine::one_row, nb::rv_policy::reference_internal)
      .def("cached", &BoundEngine::add_cache, nb::arg("rows"))
      .def("cache_counts", &BoundEngine::cache_counts)
      .def("clear_cache", &BoundEngine::clear_cache)
      .def_prop_ro("trie_nodes", &BoundEngine::trie_nodes)
      .def("trie", &BoundEngine::trie)
      .def("set_trie", &BoundEngine::set_trie, nb::arg("trie"))
      .def("drop_trie", &BoundEngine::drop_trie)
      .def("release_after_fork", &BoundEngine::release_after_fork)
      .def("grow_trie", &BoundEngine::grow_trie, nb::arg("rows"), nb::kw_only(), nb::arg("most_nodes"),
           nb::arg("saving"), nb::arg("threads"))
      .def("prune_trie", &BoundEngine::prune_trie, nb::kw_only(), nb::arg("most_nodes"), nb::arg("saving"))
      .def(
          "worker", [](const BoundEngine& self) { return std::make_unique<RowScorer>(self.engine()); },
          nb::keep_alive<0, 1>());
}

}  // namespace unkernel::bindings
