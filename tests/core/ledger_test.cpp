#include "support/catch.hpp"

#include "core/half.hpp"
#include "core/ledger.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

namespace {

using namespace kozero;

static_assert(!std::is_copy_constructible_v<DeviceBuffer<float>>, "memory is counted once");
static_assert(std::is_nothrow_move_constructible_v<DeviceBuffer<float>>);

std::string message_of_too_much(Ledger& ledger, std::int64_t count) {
  try {
    DeviceBuffer<float> const buffer(ledger, Category::activations, "h.0.mlp", count);
  } catch (Error const& error) {
    return error.what();
  }
  return "";
}

} // namespace

TEST_CASE("A ledger counts bytes by space and category, and its peak") {
  Ledger ledger;
  {
    DeviceBuffer<float> const a(ledger, Category::master, "a", 100);
    DeviceBuffer<bf16> const b(ledger, Category::master, "b", 10);
    HostBuffer<double> const c(ledger, Category::master, "c", 3);
    PinnedBuffer<float> const d(ledger, Category::staging, "d", 0);
    CHECK(ledger.bytes(Space::device, Category::master) == 420);
    CHECK(ledger.bytes(Space::device, Category::gradients) == 0);
    CHECK(ledger.bytes(Space::device) == 420);
    CHECK(ledger.bytes(Space::host) == 24); // one memory with the device's here, two accounts
    CHECK(ledger.bytes(Space::pinned) == 0);
  }
  CHECK(ledger.bytes(Space::device) == 0);
  CHECK(ledger.bytes(Space::host) == 0);
  CHECK(ledger.peak_bytes(Space::device) == 420);
  CHECK(ledger.peak_bytes(Space::host) == 24);
}

TEST_CASE("A limit holds to the byte, each space has its own, and what does not fit leaves no trace") {
  Ledger ledger;
  ledger.set_limit(Space::device, 400);
  DeviceBuffer<float> const fits(ledger, Category::parameters, "fits", 100);
  CHECK_THROWS_AS(DeviceBuffer<bf16>(ledger, Category::activations, "over", 1), Error);
  CHECK(ledger.bytes(Space::device) == 400);
  CHECK(ledger.peak_bytes(Space::device) == 400);
  CHECK_NOTHROW(HostBuffer<float>(ledger, Category::master, "elsewhere", 1000));
  ledger.set_limit(Space::device, 402);
  CHECK_NOTHROW(DeviceBuffer<bf16>(ledger, Category::activations, "now", 1));
}

TEST_CASE("Passing a limit names what wanted memory, the key of the limit, and the rows, largest first") {
  Ledger ledger;
  ledger.set_limit(Space::device, 4 << 20);
  DeviceBuffer<float> const small(ledger, Category::gradients, "g", 1 << 18);
  DeviceBuffer<float> const large(ledger, Category::parameters, "p", 1 << 19);
  std::string const message = message_of_too_much(ledger, 1 << 19);
  CAPTURE(message);
  CHECK(message.find("'h.0.mlp' wants 2.0 MiB more (3.0 MiB of 4.0 MiB are taken)") != std::string::npos);
  CHECK(message.find("memory.device_limit") != std::string::npos);
  auto const first = message.find("parameters ");
  auto const second = message.find("gradients ");
  REQUIRE(first != std::string::npos);
  REQUIRE(second != std::string::npos);
  CHECK(first < second);
  CHECK(message.find("zero.stage: 2 or 3", second) != std::string::npos); // how to make the row smaller
}

TEST_CASE("A buffer that moves takes its entry along, and gives back what it held before") {
  Ledger ledger;
  DeviceBuffer<float> target(ledger, Category::logits, "old", 50);
  {
    DeviceBuffer<float> source(ledger, Category::master, "new", 10);
    float const* const memory = source.data();
    DeviceBuffer<float> between(std::move(source));
    CHECK(ledger.bytes(Space::device) == 240);
    target = std::move(between);
    CHECK(target.data() == memory);
    CHECK(ledger.bytes(Space::device, Category::logits) == 0);
    CHECK(ledger.bytes(Space::device, Category::master) == 40);
  }
  CHECK(ledger.bytes(Space::device) == 40);
  target = DeviceBuffer<float>();
  CHECK(ledger.bytes(Space::device) == 0);
}

TEST_CASE("New memory is zero; uninitialised memory is NaN in checked builds") {
  Ledger ledger;
  using Buffer = HostBuffer<float>;
  Buffer const zero(ledger, Category::workspace, "zero", 1000);
  CHECK(std::all_of(zero.data(), zero.data() + 1000, [](float x) { return x == 0.0f; }));
#ifdef KOZERO_CHECKED
  Buffer const none(ledger, Category::workspace, "none", 1000, Buffer::Init::none);
  CHECK(std::all_of(none.data(), none.data() + 1000, [](float x) { return std::isnan(x); }));
#endif
}

TEST_CASE("A ledger knows the peak of each row, in order, without those that stayed empty") {
  Ledger ledger;
  HostBuffer<float> const kept(ledger, Category::staging, "kept", 3);
  { DeviceBuffer<float> const gone(ledger, Category::logits, "gone", 100); }
  { DeviceBuffer<float> const again(ledger, Category::logits, "again", 60); }
  DeviceBuffer<float> const parameters(ledger, Category::parameters, "p", 7);
  DeviceBuffer<float> const nothing(ledger, Category::master, "nothing", 0);
  CHECK(ledger.bytes(Space::device, Category::logits) == 0);
  CHECK(ledger.peak_bytes(Space::device, Category::logits) == 400);
  CHECK(ledger.peak_bytes(Space::device, Category::workspace) == 0);
  CHECK(ledger.peak_bytes(Space::device) == 400); // never both at a time
  CHECK(ledger.peak_rows() == std::vector<MemoryRow>{{Space::device, Category::parameters, 28},
                                                     {Space::device, Category::logits, 400},
                                                     {Space::host, Category::staging, 12}});
}

TEST_CASE("Rows add up to budgets: pinned memory is the host's") {
  std::vector<MemoryRow> const rows = {{Space::device, Category::parameters, 100},
                                       {Space::pinned, Category::gradients, 20},
                                       {Space::host, Category::gradients, 3},
                                       {Space::host, Category::master, 22}};
  CHECK(budget_bytes(rows, Space::device) == 100);
  CHECK(budget_bytes(rows, Space::host) == 45);
  CHECK(budget_bytes(rows, Space::pinned) == 45);
  std::string const text = advice(rows, Space::host);
  CAPTURE(text);
  CHECK(text.find("parameters ") == std::string::npos);
  CHECK(text.find("gradients ") < text.find("master ")); // 23 bytes in two spaces are one row
}

TEST_CASE("A ledger that counts takes entries of any size, and no memory") {
  Ledger ledger(Ledger::Buffers::counted);
  std::int64_t const many = std::int64_t{1} << 50;
  {
    DeviceBuffer<float> buffer(ledger, Category::master, "huge", many);
    HostBuffer<bf16> const other(ledger, Category::master, "huge", many, HostBuffer<bf16>::Init::none);
    CHECK(buffer.data() == nullptr);
    CHECK(buffer.size() == many);
    CHECK(static_cast<std::int64_t>(buffer.view().extent(0)) == many);
    DeviceBuffer<float> const moved(std::move(buffer));
    CHECK(moved.size() == many);
    CHECK(ledger.bytes(Space::device, Category::master) == 4 * many);
    CHECK(ledger.bytes(Space::host, Category::master) == 2 * many);
  }
  CHECK(ledger.bytes(Space::device) == 0);
  CHECK(ledger.peak_bytes(Space::device) == 4 * many);
}
