#include "core/host_simd.hpp"

#include "core/error.hpp"

#include <cstdlib>
#include <string_view>

namespace kozero {

namespace {
constexpr char const* host_target_variable = "KOZERO_HOST_TARGET";
}

#ifdef KOZERO_HOST_TARGETS

char const* name_of(HostTarget target) {
  switch (target) {
  case HostTarget::avx512: return "AVX-512";
  case HostTarget::avx2: return "AVX2";
  case HostTarget::baseline: return "x86-64";
  }
  return "?";
}

HostTarget widest_host_target() {
  __builtin_cpu_init();
  // Every processor with AVX2 and FMA has F16C too.
  bool const avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2");
  if (!avx2) return HostTarget::baseline;
  bool const avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? HostTarget::avx512 : HostTarget::avx2;
}

namespace detail {
HostTarget host_target = widest_host_target();
}

HostTarget host_target() { return detail::host_target; }

void set_host_target(HostTarget target) {
  KOZERO_REQUIRE(target <= widest_host_target(),
                 "host loops cannot run as {} (this processor has no more than {}); choose another target",
                 name_of(target), name_of(widest_host_target()));
  detail::host_target = target;
}

void set_host_target_from_environment() {
  char const* const text = std::getenv(host_target_variable);
  if (!text) return;
  std::string_view const word = text;
  if (word == "x86-64") return set_host_target(HostTarget::baseline);
  if (word == "avx2") return set_host_target(HostTarget::avx2);
  if (word == "avx512") return set_host_target(HostTarget::avx512);
  throw Error(
      fmt::format("{} is '{}' (unknown); set it to x86-64, avx2 or avx512, or unset it", host_target_variable, word));
}

#else

char const* name_of(HostTarget) {
#ifdef __aarch64__
  return "AArch64";
#else
  return "the compiler's baseline";
#endif
}

HostTarget widest_host_target() { return HostTarget::baseline; }
HostTarget host_target() { return HostTarget::baseline; }
void set_host_target(HostTarget target) {
  KOZERO_REQUIRE(target == HostTarget::baseline,
                 "host loops have one target on this architecture; choose the baseline");
}
void set_host_target_from_environment() {
  KOZERO_REQUIRE(!std::getenv(host_target_variable),
                 "{} is set (but host loops have one target on this architecture); unset it", host_target_variable);
}

#endif

} // namespace kozero
