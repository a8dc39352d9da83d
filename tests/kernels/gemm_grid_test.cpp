#include "kernels/gemm_grid.hpp"
#include "support/catch.hpp"

using namespace kozero;

TEST_CASE("a cut covers every length once, in parts of the promised size") {
  for (std::int64_t const length : {0, 1, 15, 16, 17, 33, 257, 768, 50257}) {
    for (std::int64_t const parts : {0, 1, 2, 3, 7, 64}) {
      CAPTURE(length, parts);
      Cut const cut(length, parts);
      std::int64_t end = 0;
      for (std::int64_t i = 0; i < cut.parts(); ++i) {
        REQUIRE(cut.begin(i) == end);
        REQUIRE(cut.size(i) > 0);
        REQUIRE((cut.size(i) == cut.part || i == cut.parts() - 1));
        end += cut.size(i);
      }
      REQUIRE(end == length);
      REQUIRE(cut.part % 16 == 0);
    }
  }
}

TEST_CASE("tiles are small enough for a cache, and many where the shape allows it") {
  for (std::int64_t const m : {1, 33, 256, 1024, 50257}) {
    for (std::int64_t const n : {1, 257, 768, 3072, 50257}) {
      CAPTURE(m, n);
      GemmGrid const grid(m, n, 2000);
      REQUIRE(grid.m.part <= 256);
      REQUIRE(grid.n.part <= 512);
      REQUIRE(grid.k.part <= 384);
      REQUIRE((grid.tiles() >= 16 || (grid.m.part <= 64 && grid.n.part <= 64)));
    }
  }
}
