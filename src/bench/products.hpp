#pragma once
#include "bench/benchmarks.hpp"
#include "core/dtype.hpp"
#include "core/ledger.hpp"
#include "kernels/gemm_workspace.hpp"
#include "model/architecture.hpp"

#include <array>
#include <cstdint>
#include <memory>

namespace kozero {

/// The products that a weight has part in, in one micro-batch.
enum class ProductPass { forward, input_gradient, weight_gradient };
inline constexpr std::array<ProductPass, 3> product_passes = {ProductPass::forward, ProductPass::input_gradient,
                                                              ProductPass::weight_gradient};
char const* name_of(ProductPass pass);

/// How a deck has fp32 multiplied.
Fp32Products fp32_products(PrecisionConfig const& precision);

/// c[m,n] = a[m,k] · b[k,n].
struct ProductSize {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  /// A multiplication and an addition for each of m·n·k.
  double operations() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
  friend bool operator==(ProductSize const&, ProductSize const&) = default;
};

/// One of a model's products as training makes it: the same calls of gemm, on memory of its own.
class Product {
public:
  virtual ~Product() = default;
  Product() = default;
  Product(Product const&) = delete;
  Product& operator=(Product const&) = delete;

  virtual void run(Lane const& lane, ProductPass pass) const = 0;
  virtual ProductSize size(ProductPass pass) const = 0;
  /// Tokens at once.
  virtual std::int64_t rows() const = 0;
};

/// What products on the default lane work in. Collective, as memory may be short on one rank alone.
std::unique_ptr<GemmWorkspace const> bench_workspace(BenchInput const& input);

/// `rows`: tokens of a micro-batch; of logits a chunk of them.
std::unique_ptr<Product> make_product(ModelProduct const& product, std::int64_t rows, DType compute, Ledger& ledger);

} // namespace kozero
