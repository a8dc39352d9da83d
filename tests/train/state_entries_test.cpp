#include "train/state_entries.hpp"

#include "support/catch.hpp"

#include <map>
#include <numeric>

using namespace kozero;

namespace {

ModelLayout odd_layout() {
  return {BlockLayout("first", {{"a", {3, 5}, {}}, {"b", {7}, {}}, {"c", {2, 2}, {}}}),
          BlockLayout("second", {{"d", {0, 4}, {}}, {"e", {9}, {}}})};
}

} // namespace

TEST_CASE("pieces of blocks become entries of tensors that lie where the pieces have them") {
  ModelLayout const layout = odd_layout();
  // Element i of a block is the number 1000 · block + i.
  std::vector<std::vector<float>> memory;
  auto const piece = [&](int block, Interval interval, StateKind kind, Space space) {
    auto& values = memory.emplace_back(static_cast<std::size_t>(interval.size()));
    std::iota(values.begin(), values.end(), static_cast<float>(1000 * block + interval.begin));
    return HeldState{block, interval, kind, DType::f32, values.data(), space};
  };
  std::vector<HeldState> const held{
      piece(0, {4, 17}, StateKind::master, Space::device), piece(0, {17, 23}, StateKind::m, Space::host),
      piece(0, {5, 5}, StateKind::v, Space::device), piece(1, {0, 9}, StateKind::gradient, Space::pinned)};
  auto const entries = state_entries(layout, held);

  struct Expected {
    char const *name, *kind;
    Interval interval;
    Space space;
  };
  // The block is a, c (matrices), then b: a is [0, 15), c is [15, 19), b is [19, 26).
  std::vector<Expected> const expected{
      {"a", "master", {4, 15}, Space::device}, {"b", "master", {0, 0}, Space::device},
      {"c", "master", {0, 2}, Space::device},  {"a", "m", {0, 0}, Space::host},
      {"b", "m", {0, 4}, Space::host},         {"c", "m", {2, 4}, Space::host},
      {"a", "v", {0, 0}, Space::device},       {"b", "v", {0, 0}, Space::device},
      {"c", "v", {0, 0}, Space::device},       {"d", "gradient", {0, 0}, Space::pinned},
      {"e", "gradient", {0, 9}, Space::pinned}};
  std::map<std::string, float> const first{{"a", 0}, {"c", 15}, {"b", 19}, {"d", 1000}, {"e", 1000}};
  REQUIRE(entries.size() == expected.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    StateEntry const& entry = entries[i];
    INFO("entry " << i);
    CHECK(entry.name == expected[i].name);
    CHECK(entry.kind == expected[i].kind);
    CHECK(entry.interval == expected[i].interval);
    CHECK(entry.space == expected[i].space);
    CHECK(entry.type == DType::f32);
    for (std::int64_t e = 0; e < entry.interval.size(); ++e) {
      CHECK(static_cast<float const*>(entry.data)[e] ==
            first.at(entry.name) + static_cast<float>(entry.interval.begin + e));
    }
  }
  CHECK(entries[0].shape == std::vector<std::int64_t>{3, 5});
  CHECK(entries[1].data == nullptr);
}

TEST_CASE("16-bit arrays are cut in their own elements") {
  ModelLayout const layout = odd_layout();
  std::vector<bf16> values(9);
  for (int i = 0; i < 9; ++i) values[static_cast<std::size_t>(i)] = bf16(static_cast<float>(i));
  std::vector<HeldState> const held{{0, {13, 22}, StateKind::gradient, DType::bf16, values.data(), Space::host}};
  auto const entries = state_entries(layout, held);
  REQUIRE(entries.size() == 3);
  CHECK(static_cast<float>(*static_cast<bf16 const*>(entries[0].data)) == 0.0f); // a[13]
  CHECK(static_cast<float>(*static_cast<bf16 const*>(entries[1].data)) == 6.0f); // b[0] is element 19
  CHECK(static_cast<float>(*static_cast<bf16 const*>(entries[2].data)) == 2.0f); // c[0] is element 15
  CHECK(entries[2].type == DType::bf16);
}
