#include "support/catch.hpp"

#include "io/host_memory.hpp"

#include <unistd.h>

using namespace kozero;

TEST_CASE("available memory is a part of what the host has, in bytes") {
  auto const available = available_host_memory();
  REQUIRE(available);
  std::int64_t const all = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  CHECK(*available <= all);
  CHECK(*available > all / 1000); // a host that runs tests has more; a number of KiB or pages would be less
}
