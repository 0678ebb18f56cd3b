// The course of a training: the objective and its lower bound after each pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace unkernel {

// The passes of a solver, 24 bytes each. Keeps at most 256 passes: if there are more, every second pass is
// dropped, and the distance between kept passes doubles. The choice depends only on the numbers of the
// passes, never on time. The last pass is always kept.
class History {
 public:
  struct Pass {
    std::int64_t number;
    double objective;  // of the best weights so far; some solvers estimate it until the end
    double bound;      // lower bound of the optimum
  };

  void note(const Pass& pass) {
    if (!passes_.empty() && (passes_.back().number == pass.number || !is_kept(passes_.back())))
      passes_.pop_back();
    passes_.push_back(pass);
    if (passes_.size() <= max_passes) return;
    distance_ *= 2;
    const Pass last = passes_.back();
    std::erase_if(passes_, [this](const Pass& one) { return !is_kept(one); });
    if (passes_.empty() || passes_.back().number != last.number) passes_.push_back(last);
  }

  const std::vector<Pass>& passes() const { return passes_; }

  static constexpr std::size_t max_passes = 256;

 private:
  bool is_kept(const Pass& pass) const { return pass.number % distance_ == 0; }

  std::vector<Pass> passes_;
  std::int64_t distance_ = 1;  // between the numbers of passes that are kept
};

}  // namespace unkernel
