// The mapped rows of a training set in one of the storages, as solvers read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "unkernel/base/monitor.hpp"
#include "unkernel/kernels/feature_map.hpp"
#include "unkernel/poly/distinct_rows.hpp"
#include "unkernel/poly/storage.hpp"
#include "unkernel/solve/row_passes.hpp"

namespace unkernel::poly {

struct Columns;
struct SplitPlan;

class StoredRows {
 public:
  virtual ~StoredRows() = default;
  virtual const solve::RowPasses& passes() const = 0;
  virtual std::size_t dimension() const = 0;  // length of a weight vector
  // Maps columns to conjunctions. Null if the number of each column equals the key of its conjunction.
  virtual const Columns* columns() const = 0;
};

// Owns a row view and its passes. Each instance of this template compiles the solvers' loops for one row
// view.
template <class Rows>
class StoredIn final : public StoredRows {
 public:
  template <class... Arguments>
  explicit StoredIn(Arguments&&... arguments)
      : rows_(std::forward<Arguments>(arguments)...), passes_(rows_) {}

  const solve::RowPasses& passes() const override { return passes_; }
  std::size_t dimension() const override { return rows_.dimension(); }
  const Columns* columns() const override {
    if constexpr (requires { rows_.columns(); }) return &rows_.columns();
    return nullptr;
  }

 private:
  Rows rows_;
  solve::PassesOver<Rows> passes_;
};

// Store the mapped rows. store_on_the_fly accepts degrees 1 to 3, the other functions degrees 2 and 3.
// store_split requires binary data.
std::unique_ptr<StoredRows> store_on_the_fly(const DistinctRows& examples, const kernels::FeatureMap& map);
std::unique_ptr<StoredRows> store_condensed(const DistinctRows& examples, const kernels::FeatureMap& map,
                                            int threads, const Monitor& monitor);
std::unique_ptr<StoredRows> store_kernel(const DistinctRows& examples, const kernels::FeatureMap& map,
                                         int threads);
std::unique_ptr<StoredRows> store_split(const DistinctRows& examples, const kernels::FeatureMap& map,
                                        const SplitPlan& plan, int threads, const Monitor& monitor);

}  // namespace unkernel::poly
