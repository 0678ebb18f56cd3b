#include "unkernel/engines/vectors/dense_block.hpp"

#include "unkernel/base/cpu.hpp"

namespace unkernel::engines {
namespace {

struct Product {
  [[gnu::always_inline]] static double add(double sum, double x, double c) { return sum + x * c; }
};

struct SquaredDifference {
  [[gnu::always_inline]] static double add(double sum, double x, double c) {
    const double difference = x - c;
    return sum + difference * difference;
  }
};

// The values of one row at four columns.
struct FourValues {
  explicit FourValues(const double* x) : x0(x[0]), x1(x[1]), x2(x[2]), x3(x[3]) {}

  template <class Term>
  [[gnu::always_inline]] double add(double sum, double c0, double c1, double c2, double c3) const {
    return Term::add(Term::add(Term::add(Term::add(sum, x0, c0), x1, c1), x2, c2), x3, c3);
  }

  double x0, x1, x2, x3;
};

template <class Term>
[[gnu::always_inline]] inline void add_to_row(const double* x, const double* const* columns,
                                              std::size_t width, double* __restrict out) {
  const FourValues row(x);
  const double *c0 = columns[0], *c1 = columns[1], *c2 = columns[2], *c3 = columns[3];
  for (std::size_t j = 0; j < width; ++j) out[j] = row.add<Term>(out[j], c0[j], c1[j], c2[j], c3[j]);
}

struct FourRows {
  const double* x;
  std::size_t x_stride;
};

template <class Term>
[[gnu::always_inline]] inline void add_to_four_rows(const FourRows& rows, const double* const* columns,
                                                    std::size_t width, double* __restrict out0,
                                                    double* __restrict out1, double* __restrict out2,
                                                    double* __restrict out3) {
  const FourValues row0(rows.x), row1(rows.x + rows.x_stride), row2(rows.x + 2 * rows.x_stride),
      row3(rows.x + 3 * rows.x_stride);
  const double *c0 = columns[0], *c1 = columns[1], *c2 = columns[2], *c3 = columns[3];
  for (std::size_t j = 0; j < width; ++j) {
    const double v0 = c0[j], v1 = c1[j], v2 = c2[j], v3 = c3[j];
    out0[j] = row0.add<Term>(out0[j], v0, v1, v2, v3);
    out1[j] = row1.add<Term>(out1[j], v0, v1, v2, v3);
    out2[j] = row2.add<Term>(out2[j], v0, v1, v2, v3);
    out3[j] = row3.add<Term>(out3[j], v0, v1, v2, v3);
  }
}

// These are not templates, because GCC does not compile templates for several instruction sets.
UNKERNEL_CLONES void products_of_row(const double* x, const double* const* columns, std::size_t width,
                                     double* __restrict out) {
  add_to_row<Product>(x, columns, width, out);
}

UNKERNEL_CLONES void differences_of_row(const double* x, const double* const* columns, std::size_t width,
                                        double* __restrict out) {
  add_to_row<SquaredDifference>(x, columns, width, out);
}

UNKERNEL_CLONES void products_of_four_rows(const FourRows& rows, const double* const* columns,
                                           std::size_t width, double* __restrict out0,
                                           double* __restrict out1, double* __restrict out2,
                                           double* __restrict out3) {
  add_to_four_rows<Product>(rows, columns, width, out0, out1, out2, out3);
}

UNKERNEL_CLONES void differences_of_four_rows(const FourRows& rows, const double* const* columns,
                                              std::size_t width, double* __restrict out0,
                                              double* __restrict out1, double* __restrict out2,
                                              double* __restrict out3) {
  add_to_four_rows<SquaredDifference>(rows, columns, width, out0, out1, out2, out3);
}

// Processes the columns in the outer loop: four columns stay in the first-level cache while it goes through
// all rows.
template <class ProcessRow, class ProcessFourRows>
void process(const DenseBlock& block, const ProcessRow& process_row,
             const ProcessFourRows& process_four_rows) {
  for (std::size_t c = 0; c < block.columns.size(); c += 4) {
    const double* const* columns = block.columns.data() + c;
    std::size_t r = 0;
    for (; r + 4 <= block.rows; r += 4) {
      double* out = block.out + r * block.out_stride;
      process_four_rows(FourRows{block.x + r * block.x_stride + c, block.x_stride}, columns, block.width, out,
                        out + block.out_stride, out + 2 * block.out_stride, out + 3 * block.out_stride);
    }
    for (; r < block.rows; ++r)
      process_row(block.x + r * block.x_stride + c, columns, block.width, block.out + r * block.out_stride);
  }
}

}  // namespace

void add_products(const DenseBlock& block) {
  process(
      block, [](const auto&... row) { products_of_row(row...); },
      [](const FourRows& rows, const auto&... arguments) { products_of_four_rows(rows, arguments...); });
}

void add_squared_differences(const DenseBlock& block) {
  process(
      block, [](const auto&... row) { differences_of_row(row...); },
      [](const FourRows& rows, const auto&... arguments) { differences_of_four_rows(rows, arguments...); });
}

}  // namespace unkernel::engines
