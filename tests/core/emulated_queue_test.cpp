// When the work of lanes runs on the emulated device.
#include "core/emulated/policy.hpp"
#include "core/emulated/queue.hpp"
#include "support/catch.hpp"
#include "support/program.hpp"

#include "core/error.hpp"
#include "core/ledger.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>
#include <set>

namespace {

using namespace kozero;
using namespace kozero::emulated;
using Catch::Matchers::Contains;

class Under {
public:
  explicit Under(std::string_view text) : before_(policy()) { set_policy(parse_policy(text)); }
  ~Under() { set_policy(before_); }
  Under(Under const&) = delete;
  Under& operator=(Under const&) = delete;

private:
  Policy before_;
};

/// All policies, random with some seeds.
std::vector<std::string> policies() {
  std::vector<std::string> texts{"immediate", "latest", "earliest"};
  for (int seed = 0; seed < 20; ++seed) texts.push_back("random:" + std::to_string(seed));
  return texts;
}

template <class F>
void push(Queue& queue, F f) {
  queue.push("work", Entry(std::move(f)));
}

using Effects = std::function<std::string()>;

/// What comes out under each policy.
std::set<std::string> outcomes(Effects const& effects) {
  std::set<std::string> found;
  for (std::string const& text : policies()) {
    Under const under(text);
    found.insert(effects());
  }
  return found;
}

} // namespace

TEST_CASE("Work of one queue runs in the order in which it was given, under every policy") {
  CHECK(outcomes([] {
          std::string order;
          Queue queue("main");
          for (char c = 'a'; c < 'k'; ++c) push(queue, [&order, c] { order += c; });
          queue.drain();
          return order;
        }) == std::set<std::string>{"abcdefghij"});
}

TEST_CASE("A point of a queue comes after what the queue was held back for, also where nothing was pushed since") {
  CHECK(outcomes([] {
          std::string order;
          Queue first("first"), between("between"), last("last");
          push(first, [&order] { order += 'a'; });
          between.hold_back(first.here());
          last.hold_back(between.here());
          push(last, [&order] { order += 'b'; });
          last.drain();
          push(first, [&order] { order += 'c'; });
          between.hold_back(first.here());
          between.drain();
          return order;
        }) == std::set<std::string>{"abc"});
}

TEST_CASE("What must follow an event follows it under every policy, on three queues too") {
  CHECK(outcomes([] {
          std::string order;
          Queue main("main");
          Queue side("side");
          Queue third("third");
          for (char c = '0'; c < '5'; ++c) {
            push(main, [&order, c] { order += c; });
            side.hold_back(main.here());
            push(side, [&order, c] { order += static_cast<char>(c - '0' + 'a'); });
            third.hold_back(side.here());
            push(third, [&order, c] { order += static_cast<char>(c - '0' + 'A'); });
            main.hold_back(third.here());
          }
          run_to(third.here());
          return order;
        }) == std::set<std::string>{"0aA1bB2cC3dD4eE"});
}

TEST_CASE("Where an event is missing, policies differ, whichever queue is demanded") {
  for (bool const demands_main : {true, false}) {
    auto const found = outcomes([&] {
      int value = 0;
      int seen = -1;
      Queue main("main");
      Queue side("side");
      push(main, [&] { value = 1; });
      push(side, [&] { seen = value; }); // should wait for main
      if (demands_main) main.drain();
      side.drain();
      return std::to_string(seen);
    });
    CHECK(found == std::set<std::string>{"0", "1"});
  }
}

TEST_CASE("Where a fence is missing, policies differ") {
  auto const found = outcomes([] {
    int value = 0;
    Queue main("main");
    push(main, [&] { value = 1; });
    std::string const seen = std::to_string(value);
    main.drain();
    return seen;
  });
  CHECK(found == std::set<std::string>{"0", "1"});
}

TEST_CASE("Policy immediate runs work as it is given, latest only what is demanded, earliest the others first") {
  std::string order;
  auto const work = [&] {
    order.clear();
    Queue first("first");
    Queue second("second");
    Queue third("third");
    push(first, [&] { order += 'a'; });
    push(second, [&] { order += 'b'; });
    third.hold_back(first.here());
    push(third, [&] { order += 'c'; });
    Point const a = first.here();
    push(first, [&] { order += 'd'; });
    run_to(a);
    order += '|';
  };
  {
    Under const under("immediate");
    work();
    CHECK(order == "abcd|");
  }
  {
    Under const under("latest");
    work();
    CHECK(order == "a|cbd"); // the rest as the queues end, the last first
  }
  {
    Under const under("earliest");
    work();
    CHECK(order == "ba|dc");
  }
}

TEST_CASE("A question runs nothing, but is not answered in the negative for good") {
  Under const under("latest");
  Queue queue("main");
  bool done = false;
  push(queue, [&] { done = true; });
  Point const end = queue.here();
  CHECK_FALSE(reached(end));
  CHECK_FALSE(done);
  int asked = 0;
  while (!reached(end) && asked < 100000) ++asked;
  CHECK(done);
  CHECK(asked > 10);
  CHECK(reached(Point()));
}

TEST_CASE("Under policy random a question may let work run, and the seed decides all") {
  auto const run = [](std::string const& text) {
    Under const under(text);
    std::string order;
    Queue first("first");
    Queue second("second");
    for (char c = 'a'; c < 'z'; ++c) {
      push(c % 2 != 0 ? first : second, [&order, c] { order += c; });
      order += reached(first.here()) ? '+' : '-';
    }
    drain_all();
    for_each_index(7, [&](std::int64_t i) { order += std::to_string(i); });
    return order;
  };
  std::set<std::string> different;
  std::int64_t answered_yes = 0;
  std::int64_t answered_no = 0;
  for (int seed = 0; seed < 10; ++seed) {
    std::string const text = "random:" + std::to_string(seed);
    std::string const order = run(text);
    CHECK(order == run(text));
    answered_yes += std::count(order.begin(), order.end(), '+');
    answered_no += std::count(order.begin(), order.end(), '-');
    different.insert(order);
  }
  CHECK(different.size() == 10);
  CHECK(answered_yes > 20);
  CHECK(answered_no > 20);
}

TEST_CASE("An exception of work comes out where it is forced, and what follows can still run") {
  for (std::string const text : {"latest", "earliest", "random:3"}) {
    Under const under(text);
    bool after = false;
    Queue queue("main");
    auto const both = [&] {
      push(queue, [] { throw Error("no memory (of the device)"); });
      push(queue, [&] { after = true; });
      queue.drain();
    };
    CHECK_THROWS_WITH(both(), "no memory (of the device)");
    queue.drain();
    // Under random the exception may come out of the second push.
    CHECK((after || text.starts_with("random")));
  }
  Under const under("immediate");
  Queue queue("main");
  CHECK_THROWS_WITH(push(queue, [] { throw Error("at once"); }), "at once");
}

TEST_CASE("What work holds lives until it has run, and no longer") {
  Under const under("latest");
  auto const held = std::make_shared<int>(5);
  Queue queue("main");
  push(queue, [copy = std::make_unique<std::shared_ptr<int>>(held)] { ++**copy; });
  CHECK(held.use_count() == 2);
  CHECK(*held == 5);
  queue.drain();
  CHECK(held.use_count() == 1);
  CHECK(*held == 6);
}

TEST_CASE("A queue that ends runs what it has, and its points count as reached") {
  Under const under("latest");
  std::string order;
  Queue later("later");
  Point point;
  {
    Queue earlier("earlier");
    push(earlier, [&] { order += 'a'; });
    point = earlier.here();
    later.hold_back(point);
    push(later, [&] { order += 'b'; });
    CHECK(order.empty());
  }
  CHECK(order == "a");
  CHECK(reached(point));
  later.drain();
  CHECK(order == "ab");
}

TEST_CASE("Work gives no work to lanes and does not wait") {
  for (std::string const& text : policies()) {
    Under const under(text);
    Queue queue("main");
    Queue other("side");
    auto const both = [&](auto f) {
      push(queue, f);
      queue.drain();
    };
    CHECK_THROWS_WITH(both([&] { push(other, [] {}); }), Contains("only host code gives work"));
    CHECK(other.empty());
  }
  Under const under("latest");
  Queue queue("main");
  Queue other("side");
  push(other, [] {});
  push(queue, [&] { other.drain(); });
  CHECK_THROWS_WITH(queue.drain(), Contains("only host code waits"));
}

TEST_CASE("Work runs with its reach: host memory is open to a copy of it alone") {
  Under const under("latest");
  std::vector<void*> memory;
  for (Space const space : {Space::device, Space::pinned, Space::host}) memory.push_back(allocate(space, 4, "x"));
  auto const now_open = [&] {
    std::vector<bool> open;
    for (void* const one : memory) open.push_back(is_open(one, 4));
    return open;
  };
  using Open = std::vector<bool>;
  Queue queue("main");
  Open to_kernel, to_copy;
  queue.push("kernel", Entry([&] { to_kernel = now_open(); }));
  queue.push("copy", Entry([&] { to_copy = now_open(); }, Reach::device_copying));
  queue.drain();
  CHECK(to_kernel == Open{true, true, false});
  CHECK(to_copy == Open{true, true, true});
  CHECK(now_open() == Open{false, true, true});
  for (void* const one : memory) release(one);
}

TEST_CASE("Memory goes although work fails that it waits for, and the rest of the work runs") {
  Under const under("latest");
  bool after = false;
  Queue queue("main");
  auto const leave = [&] {
    Ledger ledger;
    DeviceBuffer<float> const buffer(ledger, Category::workspace, "x", 4);
    for (int i = 0; i < 2; ++i) push(queue, [] { throw Error("no memory (of the device)"); });
    push(queue, [&] { after = true; });
    queue.drain();
  };
  CHECK_THROWS_WITH(leave(), "no memory (of the device)");
  CHECK(after);
  CHECK(queue.empty());
}

TEST_CASE("Work that nobody waits for beside a buffer", "[.]") { // runs below
  Ledger ledger;
  DeviceBuffer<float> const buffer(ledger, Category::workspace, "x", 4);
  Queue queue("main");
  push(queue, [] {});
}

TEST_CASE("An unknown policy is told when the first lane is made, and the program ends in good order") {
  std::string const self = std::filesystem::read_symlink("/proc/self/exe");
  test::ProgramResult const result =
      test::run_program({self, "Work that nobody waits for beside a buffer"}, {{"KOZERO_EMULATED_POLICY", "late"}});
  CHECK(result.status == 1);
  CHECK_THAT(result.out, Contains("KOZERO_EMULATED_POLICY is 'late'"));
}

TEST_CASE("An unknown policy is bad input") {
  for (char const* text : {"", "Latest", "random", "random:", "random:x", "random:1x", "random:-1"}) {
    CHECK_THROWS_AS(parse_policy(text), InputError);
  }
  CHECK_THROWS_WITH(parse_policy("late"), Contains("KOZERO_EMULATED_POLICY is 'late'"));
  CHECK(parse_policy("random:18446744073709551615").seed == ~std::uint64_t{0});
}

TEST_CASE("A kernel takes each index once, from front to back under policy immediate alone") {
  for (std::string const& text : policies()) {
    Under const under(text);
    std::set<std::vector<std::int64_t>> orders;
    for (std::int64_t const n : {0, 1, 2, 3, 4, 10, 15, 1155, 1000}) {
      std::vector<std::int64_t> all(static_cast<std::size_t>(n));
      std::iota(all.begin(), all.end(), 0);
      bool always_forwards = true;
      for (int round = 0; round < 20; ++round) {
        std::vector<std::int64_t> taken;
        for_each_index(n, [&](std::int64_t i) { taken.push_back(i); });
        always_forwards = always_forwards && taken == all;
        std::sort(taken.begin(), taken.end());
        REQUIRE(taken == all);
      }
      CHECK(always_forwards == (text == "immediate" || n < 2));
    }
  }
}
