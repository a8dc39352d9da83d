#include "core/emulated/policy.hpp"

#include "core/emulated/queue.hpp"
#include "core/error.hpp"

#include <charconv>
#include <cstdlib>

namespace kozero::emulated {

namespace {

constexpr char const* variable = "KOZERO_EMULATED_POLICY";

struct State {
  Policy policy;
  std::uint64_t generator;
};

State& state() {
  static State state = [] {
    char const* const text = std::getenv(variable);
    Policy const policy = text ? parse_policy(text) : Policy();
    return State{policy, policy.seed};
  }();
  return state;
}

// SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t next_random() {
  std::uint64_t z = state().generator += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

} // namespace

Policy parse_policy(std::string_view text) {
  using enum Policy::Order;
  if (text == "immediate") return {immediate};
  if (text == "latest") return {latest};
  if (text == "earliest") return {earliest};
  constexpr std::string_view random_prefix = "random:";
  if (text.starts_with(random_prefix)) {
    std::string_view const digits = text.substr(random_prefix.size());
    Policy policy{random};
    auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), policy.seed);
    if (error == std::errc() && end == digits.data() + digits.size()) return policy;
  }
  throw InputError(fmt::format("{} is '{}' (there are immediate, latest, earliest and random:SEED, with a number for "
                               "SEED); set one of them",
                               variable, text));
}

Policy const& policy() { return state().policy; }

void set_policy(Policy const& policy) {
  drain_all();
  state() = {policy, policy.seed};
}

std::int64_t choose(std::int64_t n) { return static_cast<std::int64_t>(next_random() % static_cast<std::uint64_t>(n)); }

IndexOrder next_index_order(std::int64_t n) {
  if (policy().order == Policy::Order::immediate || n == 1) return {0, 1};
  std::int64_t const way = choose(4);
  if (way == 0) return {0, 1};
  if (way == 1) return {n - 1, n - 1};
  for (std::int64_t const step : {3, 5, 7, 11}) {
    if (step < n && std::gcd(step, n) == 1) return {choose(n), step};
  }
  return {n - 1, n - 1};
}

} // namespace kozero::emulated
