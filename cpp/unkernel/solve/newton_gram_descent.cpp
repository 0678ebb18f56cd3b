// Proximal Newton: coordinate descent on the quadratic model with its Hessian in memory.
#include <algorithm>
#include <span>
#include <vector>

#include "unkernel/solve/joint_moves.hpp"
#include "unkernel/solve/newton_model.hpp"

namespace unkernel::solve {

// Stores the Hessian of the columns in memory.
class ProximalNewton::GramHessian {
 public:
  GramHessian(const WeightedGram& gram, Model& model)
      : gram_(gram), gradient_(gram.size(), 0.0), place_(model.columns.size()) {
    for (std::size_t j = 0; j < place_.size(); ++j) {
      place_[j] = gram_.member(model.columns[j]);
      gradient_[place_[j]] = model.gradient[j];
      model.curvature[j] = std::max(gram_.row(place_[j])[place_[j]], 0.0);
    }
  }

  double gradient(std::size_t j) const { return gradient_[place_[j]]; }
  void move(std::size_t j, double step) { add(step, gram_.row(place_[j]), gradient_); }

  std::size_t heavy_columns(std::span<const std::size_t>) const { return most_heavy_columns; }
  // All columns are already in the matrix.
  void fill_gram(WeightedGram&, std::span<const std::int32_t>) const {}

  void multiply(std::span<const std::size_t> support, std::span<const double> direction,
                std::span<double> product) {
    product_.assign(gram_.size(), 0.0);
    for (std::size_t k = 0; k < support.size(); ++k)
      add(direction[k], gram_.row(place_[support[k]]), product_);
    for (std::size_t k = 0; k < support.size(); ++k) product[k] = product_[place_[support[k]]];
  }
  void move_by_product() {
    for (std::size_t m = 0; m < gradient_.size(); ++m) gradient_[m] += product_[m];
  }

 private:
  static void add(double step, const double* row, std::vector<double>& sums) {
    for (std::size_t m = 0; m < sums.size(); ++m) sums[m] += step * row[m];
  }

  const WeightedGram& gram_;
  std::vector<double> gradient_;    // of the loss, by member
  std::vector<std::size_t> place_;  // the member of each column
  std::vector<double> product_;     // of the Hessian and the last direction, by member
};

void ProximalNewton::descend_on_gram(Model& model, int most_passes) {
  constexpr double slack = 0.2;  // relative error of curvatures; nearly the same model
  gram_.update(model.columns, curvature_, slack);
  GramHessian hessian(gram_, model);
  descend_with(hessian, model, most_passes);
}

}  // namespace unkernel::solve
