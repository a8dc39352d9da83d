#include "support/catch.hpp"

#include "bench/peak.hpp"
#include "core/device_name.hpp"

#include <cmath>

using namespace kozero;

TEST_CASE("an accelerator's peak is that of the first name in the list that fits") {
  constexpr Fp32Products exact = Fp32Products::exact;
  CHECK(known_peak("NVIDIA H200", DType::bf16, exact)->flops == 989.5e12);
  CHECK(known_peak("NVIDIA H200 NVL", DType::f16, exact)->flops == 835.5e12);
  CHECK(known_peak("NVIDIA H100 80GB HBM3", DType::bf16, exact)->flops == 989.5e12);
  CHECK(known_peak("NVIDIA H100 PCIe", DType::bf16, exact)->flops == 756e12);
  CHECK(known_peak("NVIDIA A100-SXM4-80GB", DType::bf16, exact)->flops == 312e12);
  CHECK(known_peak("NVIDIA A100-SXM4-80GB", DType::f32, exact)->flops == 19.5e12);
  CHECK(known_peak("NVIDIA A100-SXM4-80GB", DType::f32, exact)->source.find("A100") != std::string::npos);
  CHECK(known_peak("NVIDIA A100-SXM4-80GB", DType::f32, Fp32Products::tf32)->flops == 156e12);
  CHECK(known_peak("NVIDIA A100-SXM4-80GB", DType::bf16, Fp32Products::tf32)->flops == 312e12);
  CHECK(known_peak("NVIDIA GB200", DType::bf16, exact)->flops == 2500e12);
  CHECK(known_peak("NVIDIA B200", DType::bf16, exact)->flops == 2250e12);
  CHECK(!known_peak("NVIDIA GeForce RTX 4090", DType::bf16, exact));
  CHECK(!known_peak("", DType::bf16, exact));
}

TEST_CASE("a host's peak is measured beside the work, round by round, and another device's looked up") {
  Ledger ledger;
  ProductLimit const limit(DType::f32, Fp32Products::exact, ledger);
  RoundFigures const figures{.work_s = 4, .limit_s = 2, .least_s = 4, .most_s = 4, .ratio = 0.25};
  CHECK(static_cast<bool>(limit.piece()) == runs_on_host<Lane>);
  CHECK(!limit.describe().empty());
  if (!runs_on_host<Lane>) {
    CHECK(limit.flops(figures).has_value() == known_peak(device_name(), DType::f32, Fp32Products::exact).has_value());
    return;
  }
  limit.piece()();
  FmaLoop const loop(ledger);
  CHECK(*limit.flops(figures) == Approx(loop.operations() / 2));
  CHECK(*limit.share(figures, 100) == Approx(0.25 * 100 / loop.operations()));
  double const threads = HostExec().concurrency();
  CHECK(std::fmod(loop.operations(), threads * 12 * 4 * 2) == 0); // vectors of four at least, twelve of them
}
