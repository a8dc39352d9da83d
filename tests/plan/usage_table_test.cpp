#include "plan/usage_table.hpp"

#include "support/catch.hpp"

using namespace kozero;

namespace {

/// The words of the line that begins so; none where there is no such line.
std::vector<std::string> words_of(std::vector<std::string> const& lines, std::string const& begin) {
  std::vector<std::string> words;
  for (auto const& line : lines) {
    if (!line.starts_with("  " + begin + " ")) continue;
    std::istringstream rest(line.substr(begin.size() + 2));
    for (std::string word; rest >> word;) words.push_back(word);
  }
  return words;
}

using Words = std::vector<std::string>;

} // namespace

TEST_CASE("predicted stands beside measured, equal or with the difference, for rows that either has") {
  Ledger ledger(Ledger::Buffers::counted);
  DeviceBuffer<unsigned char> const same(ledger, Category::parameters, "same", 100);
  DeviceBuffer<unsigned char> const more(ledger, Category::gradients, "more", 110);
  DeviceBuffer<unsigned char> const unforeseen(ledger, Category::ring, "unforeseen", 5);
  HostBuffer<unsigned char> const less(ledger, Category::staging, "less", 2048);
  RankPlan const plan{.memory = {{Space::device, Category::parameters, 100},
                                 {Space::device, Category::gradients, 100},
                                 {Space::device, Category::logits, 7},
                                 {Space::host, Category::staging, 4096}},
                      .traffic = {.parameters = {"all_gather", 3, 60},
                                  .gradients = {"reduce_scatter", 3, 90},
                                  .to_host_bytes = 40,
                                  .to_device_bytes = 10}};
  MovedSoFar before, after;
  before.received.add(Traffic::gradients, 1000, 1);
  after.received.add(Traffic::parameters, 30, 2);
  after.received.add(Traffic::gradients, 1080, 1);
  after.link = {.down_bytes = 40, .up_bytes = 20};
  MostMoved moved;
  moved.note(before, after);
  moved.note(after, after); // an update that moved less does not count

  auto const lines = usage_table(plan, ledger, moved);
  CHECK(words_of(lines, "device parameters") == Words{"100", "B", "100", "B", "="});
  CHECK(words_of(lines, "device gradients") == Words{"100", "B", "110", "B", "+10", "B"});
  CHECK(words_of(lines, "device gather ring") == Words{"0", "B", "5", "B", "+5", "B"});
  CHECK(words_of(lines, "device logits") == Words{"7", "B", "0", "B", "-7", "B"});
  CHECK(words_of(lines, "host staging") == Words{"4.0", "KiB", "2.0", "KiB", "-2.0", "KiB"});
  CHECK(words_of(lines, "all on the device") == Words{"207", "B", "215", "B", "+8", "B"});
  CHECK(words_of(lines, "parameters") == Words{"60", "B", "60", "B", "="});
  CHECK(words_of(lines, "gradients") == Words{"90", "B", "80", "B", "-10", "B"});
  CHECK(words_of(lines, "device to host") == Words{"40", "B", "40", "B", "="});
  CHECK(words_of(lines, "host to device") == Words{"10", "B", "20", "B", "+10", "B"});
  CHECK(words_of(lines, "  from other hosts").empty());
}

TEST_CASE("what comes from other hosts has lines of its own where there is any, planned or moved") {
  Ledger const ledger(Ledger::Buffers::counted);
  auto const far_words = [&](std::int64_t planned, Received const& received) {
    RankPlan const plan{.memory = {},
                        .traffic = {.parameters = {"none"}, .gradients = {"reduce_scatter", 3, 90, planned}}};
    MovedSoFar after;
    after.received.add(Traffic::gradients, received);
    MostMoved moved;
    moved.note({}, after);
    return words_of(usage_table(plan, ledger, moved), "  from other hosts");
  };
  CHECK(far_words(0, {.elements = 45, .bytes = 90}).empty());
  CHECK(far_words(60, {.elements = 45, .bytes = 90, .between_hosts_bytes = 60}) == Words{"60", "B", "60", "B", "="});
  CHECK(far_words(60, {.elements = 45, .bytes = 90}) == Words{"60", "B", "0", "B", "-60", "B"});
  CHECK(far_words(0, {.elements = 45, .bytes = 90, .between_hosts_bytes = 1}) == Words{"0", "B", "1", "B", "+1", "B"});
}
