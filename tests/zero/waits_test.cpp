// Where the stores wait for other ranks: where memory is read or wanted again, and not before.
#include "support/catch.hpp"
#include "zero/grad_store.hpp"
#include "zero/param_store.hpp"

#include <memory>
#include <vector>

using namespace kozero;

namespace {

/// Collectives that move nothing and remember who waited for them, by the number of the call.
class Noted final : public Collectives {
public:
  std::vector<int> waited;

  Pending all_gather(Lane const&, Span, Partition const&, Traffic) override { return begin(); }
  Pending reduce_scatter(Lane const&, Span, Partition const&, Traffic) override { return begin(); }
  Pending all_reduce(Lane const&, Span, Partition const&, Traffic) override { return begin(); }
  Pending broadcast(Lane const&, Span, int, Traffic) override { return begin(); }
  void progress() override {}
  int calls() const { return static_cast<int>(works_.size()); }

private:
  struct Work final : Pending::Work {
    Work(Noted& its_all, int its_number) : all(its_all), number(its_number) {}
    void finish(Lane const&) override { all.waited.push_back(number); }
    bool done() const override { return false; }
    std::int64_t arrived_bytes() const override { return 0; }
    void release() override {}
    Noted& all;
    int number;
  };
  Pending begin() { return Pending(*works_.emplace_back(std::make_unique<Work>(*this, calls()))); }

  std::vector<std::unique_ptr<Work>> works_;
};

constexpr int n_units = 5;

ModelLayout layout_of_units() {
  ModelLayout layout;
  for (int u = 0; u < n_units; ++u) layout.emplace_back("unit", std::vector<TensorSpec>{{"t", {16}}});
  return layout;
}
std::vector<UnitUses> uses_of_units() {
  std::vector<UnitUses> uses;
  for (int u = 0; u < n_units; ++u) uses.push_back({{u}, {u}, {u}});
  return uses;
}
Plan plan_of(std::int64_t stage, int ranks = 2) { return {Sharding{.zero = {stage}}, 0, ranks}; }

using Numbers = std::vector<int>;

} // namespace

TEST_CASE("published parameters are waited for by the unit that reads them") {
  for (std::int64_t const stage : {1, 2}) {
    Ledger ledger;
    Noted collectives;
    auto const layout = layout_of_units();
    auto const store = make_param_store<bf16>(plan_of(stage), layout, uses_of_units(), collectives, ledger);
    Lane const lane;
    store->publish(lane);
    CHECK(collectives.calls() == n_units);
    CHECK(collectives.waited.empty());
    store->begin(training_visits(n_units));
    Numbers expected;
    for (int u = 0; u < n_units; ++u) {
      store->fetch(lane, {u, Phase::forward});
      expected.push_back(u);
      CHECK(collectives.waited == expected);
    }
    store->fetch(lane, {n_units - 1, Phase::backward});
    CHECK(collectives.waited == expected);
  }
}

TEST_CASE("a block of stage 3 is under way while the unit before it computes") {
  Ledger ledger;
  Noted collectives;
  auto const layout = layout_of_units();
  auto const store = make_param_store<bf16>(plan_of(3), layout, uses_of_units(), collectives, ledger);
  Lane const lane;
  store->begin(training_visits(n_units));
  for (int u = 0; u < n_units; ++u) {
    store->fetch(lane, {u, Phase::forward});
    CHECK(collectives.waited.size() == static_cast<std::size_t>(u) + 1);
    CHECK(collectives.calls() == std::min(u + 2, n_units));
  }
}

TEST_CASE("a reduction is waited for where its memory is wanted again") {
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    for (DType const type : {DType::f32, DType::bf16}) {
      CAPTURE(stage, name_of(type));
      Sharding sharding{.zero = {stage}};
      if (type != DType::f32) sharding.gradients = GradientType::compute;
      Ledger ledger;
      LinkTraffic link;
      Noted collectives;
      auto const layout = layout_of_units();
      auto const store =
          make_grad_store(Plan(sharding, 0, 2), DType::bf16, layout, uses_of_units(), collectives, ledger, link);
      REQUIRE(store->type() == type);
      Lane const lane;
      store->begin(lane, {0, 1});
      for (int u = n_units - 1; u >= 0; --u) {
        store->block(lane, u);
        int const under_way = collectives.calls() - static_cast<int>(collectives.waited.size());
        CHECK(under_way >= std::min(n_units - 1 - u, 1)); // the unit before is exchanged while this one computes
        store->reduce(lane, u);
        CHECK(collectives.calls() == n_units - u);
      }
      CHECK(collectives.calls() - static_cast<int>(collectives.waited.size()) == 2);
      store->wait(lane);
      CHECK(collectives.waited == Numbers{0, 1, 2, 3, 4});
    }
  }
}
