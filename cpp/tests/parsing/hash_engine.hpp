// An engine whose scores depend on the row only; it checks that rows are ordered and in range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "check.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/engines/engine.hpp"

class HashEngine final : public unkernel::engines::Engine {
 public:
  using Narrow = unkernel::data::CsrView<std::int32_t, double>;
  using Wide = unkernel::data::CsrView<std::int64_t, double>;

  HashEngine(std::size_t scores, std::int32_t features) : scores_(scores), features_(features) {}
  std::size_t scores() const override { return scores_; }
  std::size_t bytes() const override { return 0; }
  std::unique_ptr<unkernel::engines::Worker> worker() const override {
    return std::make_unique<unkernel::engines::Worker>();
  }
  void score(const unkernel::engines::SparseRow<std::int32_t>& row, unkernel::engines::Worker&,
             double* out) const override {
    std::uint64_t hash = 1;
    for (std::size_t k = 0; k < row.columns.size(); ++k) {
      CHECK(row.columns[k] >= 0 && row.columns[k] < features_);
      CHECK(k == 0 || row.columns[k - 1] < row.columns[k]);
      hash = unkernel::Random::mix(hash + static_cast<std::uint64_t>(row.columns[k]));
    }
    for (std::size_t k = 0; k < scores_; ++k)
      out[k] = static_cast<double>(unkernel::Random::mix(hash + k) >> 40) - 0x1p23;
  }
  void score(const unkernel::engines::SparseRow<std::int64_t>&, unkernel::engines::Worker&,
             double*) const override {}
  void score(const Narrow&, std::span<double>, unkernel::Threads) const override {}
  void score(const Wide&, std::span<double>, unkernel::Threads) const override {}

 private:
  std::size_t scores_;
  std::int32_t features_;
};
