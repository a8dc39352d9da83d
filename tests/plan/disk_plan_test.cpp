// What a run's checkpoints take of a disk.
#include "plan/disk_plan.hpp"

#include "model/families.hpp"
#include "support/catch.hpp"
#include "support/small_run.hpp"

using namespace kozero;
using namespace kozero::test;

TEST_CASE("a run is planned with the checkpoints that it adds, never more than it makes") { // CASES 37
  Config config;
  config.model = odd_model();
  std::int64_t const each = 12 * parameter_count(architecture_of(config.model)->layout());
  auto const planned = [&](std::int64_t there) { return planned_disk_bytes(config, there) / each; };
  config.run.updates = 1000;
  config.checkpoint = {.every = 10, .keep = 3, .keep_best = 2};
  CHECK(planned(0) == 6); // those that stay, and one while it is saved
  CHECK(planned(4) == 2);
  CHECK(planned(50) == 1);
  config.checkpoint.every = 500;
  CHECK(planned(0) == 3); // after 500, after 1000, and at a stop
  config.checkpoint.every = 0;
  CHECK(planned(0) == 1);
  config.checkpoint.every.seconds = 60;
  CHECK(planned(0) == 6);
  config.checkpoint.keep = std::numeric_limits<std::int64_t>::max();
  CHECK(planned_disk_bytes(config, 0) == std::numeric_limits<std::int64_t>::max());
}
