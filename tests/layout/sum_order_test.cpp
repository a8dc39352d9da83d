#include "layout/sum_order.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <string>
#include <vector>

using namespace kozero;

namespace {

struct Written {
  std::string sum; // in brackets
  int most_held = 0;
};

/// Follows the steps with texts in the place of numbers.
Written written(SumOrder order, std::int64_t count) {
  std::vector<std::string> held;
  Written result;
  for (std::int64_t number = 0; number < count; ++number) {
    SumStep const step = sum_step(order, number, count);
    REQUIRE(step.held == static_cast<int>(held.size()));
    REQUIRE(step.joins <= step.held);
    std::string sum = std::to_string(number);
    for (int i = 0; i < step.joins; ++i) {
      sum = "(" + held.back() + "+" + sum + ")";
      held.pop_back();
    }
    held.push_back(sum);
    result.most_held = std::max(result.most_held, static_cast<int>(held.size()));
  }
  REQUIRE(held.size() == 1);
  result.sum = held.front();
  return result;
}

/// Level by level.
std::string neighbours(std::int64_t count) {
  std::vector<std::string> level;
  for (std::int64_t i = 0; i < count; ++i) level.push_back(std::to_string(i));
  while (level.size() > 1) {
    std::vector<std::string> next;
    for (std::size_t i = 0; i < level.size(); i += 2) {
      next.push_back(i + 1 < level.size() ? "(" + level[i] + "+" + level[i + 1] + ")" : level[i]);
    }
    level = next;
  }
  return level.front();
}

} // namespace

TEST_CASE("a tree is that of neighbours, whatever the number of addends") {
  CHECK(written(SumOrder::tree, 5).sum == "(((0+1)+(2+3))+4)");
  for (std::int64_t count = 1; count <= 70; ++count) {
    INFO(count);
    CHECK(written(SumOrder::tree, count).sum == neighbours(count));
  }
}

TEST_CASE("ascending is one after another") {
  CHECK(written(SumOrder::ascending, 1).sum == "0");
  CHECK(written(SumOrder::ascending, 5).sum == "((((0+1)+2)+3)+4)");
}

TEST_CASE("as many partial sums are held as is said") {
  for (auto const order : {SumOrder::ascending, SumOrder::tree}) {
    for (std::int64_t count = 1; count <= 70; ++count) {
      INFO(count);
      CHECK(written(order, count).most_held == most_partial_sums(order, count));
    }
  }
  CHECK(most_partial_sums(SumOrder::tree, 64) == 6);
}
