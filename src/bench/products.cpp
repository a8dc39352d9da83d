#include "bench/products.hpp"

#include "bench/numbers.hpp"
#include "comm/agree.hpp"
#include "kernels/gemm.hpp"
#include "kernels/head.hpp"
#include "kernels/shapes.hpp"

namespace kozero {

namespace {

/// R is the type of the forward product: T, or float for logits.
template <class T, class R>
class ProductOf final : public Product {
public:
  ProductOf(ModelProduct const& product, std::int64_t rows, std::int64_t result_stride, Ledger& ledger)
      : inputs_(product.inputs), outputs_(product.outputs), rows_(rows), stride_(result_stride), order_(product.order),
        x_(bench_numbers<T>(ledger, rows * inputs_)), w_(bench_numbers<T>(ledger, inputs_ * outputs_)),
        dy_(bench_numbers<T>(ledger, rows * stride_)), y_(ledger, Category::workspace, "bench", rows * stride_),
        dx_(ledger, Category::workspace, "bench", rows * inputs_),
        dw_(ledger, Category::workspace, "bench", inputs_ * outputs_) {}

  void run(Lane const& lane, ProductPass pass) const override {
    auto const [m, n, k] = size(pass);
    bool const out_in = order_ == WeightOrder::out_in;
    Operand<T> const weight{w_.data(), out_in ? inputs_ : outputs_};
    Operand<T> const x{x_.data(), inputs_};
    Operand<T> const dy{dy_.data(), stride_};
    switch (pass) {
    case ProductPass::forward:
      return gemm<T, R>(lane, m, n, k, y_.data(), stride_, x, out_in ? turned(weight) : weight, nullptr,
                        Into::overwrite);
    case ProductPass::input_gradient:
      return gemm<T, T>(lane, m, n, k, dx_.data(), inputs_, dy, out_in ? weight : turned(weight), nullptr,
                        Into::overwrite);
    case ProductPass::weight_gradient:
      return gemm<T, float>(lane, m, n, k, dw_.data(), n, turned(out_in ? dy : x), out_in ? x : dy, nullptr,
                            Into::accumulate);
    }
  }

  ProductSize size(ProductPass pass) const override {
    switch (pass) {
    case ProductPass::forward: return {rows_, outputs_, inputs_};
    case ProductPass::input_gradient: return {rows_, inputs_, outputs_};
    case ProductPass::weight_gradient: break;
    }
    return order_ == WeightOrder::out_in ? ProductSize{outputs_, inputs_, rows_}
                                         : ProductSize{inputs_, outputs_, rows_};
  }

  std::int64_t rows() const override { return rows_; }

private:
  static Operand<T> turned(Operand<T> operand) {
    operand.read = Operand<T>::Read::transposed;
    return operand;
  }

  std::int64_t inputs_, outputs_, rows_;
  std::int64_t stride_; // of y and dy
  WeightOrder order_;
  DeviceBuffer<T> x_, w_, dy_;
  DeviceBuffer<R> y_;
  DeviceBuffer<T> dx_;
  DeviceBuffer<float> dw_;
};

} // namespace

char const* name_of(ProductPass pass) {
  constexpr std::array<char const*, 3> names = {"forward", "input gradient", "weight gradient"};
  return names[static_cast<std::size_t>(pass)];
}

Fp32Products fp32_products(PrecisionConfig const& precision) {
  return precision.tf32 ? Fp32Products::tf32 : Fp32Products::exact;
}

std::unique_ptr<GemmWorkspace const> bench_workspace(BenchInput const& input) {
  auto const fp32 = fp32_products(input.config.precision);
  return on_all_ranks(input.ranks,
                      [&] { return std::make_unique<GemmWorkspace const>(LazyLane(), fp32, input.ledger); });
}

std::unique_ptr<Product> make_product(ModelProduct const& product, std::int64_t rows, DType compute, Ledger& ledger) {
  return with_float_type(compute, [&]<class T>(T) -> std::unique_ptr<Product> {
    if (product.result == ModelProduct::Result::activations) {
      return std::make_unique<ProductOf<T, T>>(product, rows, product.outputs, ledger);
    }
    return std::make_unique<ProductOf<T, float>>(product, head_chunk_rows(rows, product.outputs),
                                                 padded_vocabulary(product.outputs), ledger);
  });
}

} // namespace kozero
