#include "comm/agree.hpp"
#include "comm/survey.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "support/world.hpp"

#include <algorithm>

using namespace kozero;
using namespace kozero::test;

namespace {

/// The ranks of `failing` fail, each in its own words; what all hear.
std::string heard(Ranks& ranks, std::vector<int> const& failing) {
  return message_of<SharedError>([&] {
    on_all_ranks(ranks, [&] {
      if (std::ranges::find(failing, ranks.rank()) == failing.end()) return true;
      throw InputError(fmt::format("no file of rank {}", ranks.rank()));
    });
  });
}

} // namespace

TEST_CASE_METHOD(World, "what fails on one rank alone is told with that rank and its host") { // CASES 43
  Ranks& ranks = *all;
  int const last = ranks.size() - 1;
  bool const alone = ranks.size() == 1;
  CHECK(heard(ranks, {}).empty());
  CHECK(heard(ranks, {last}) ==
        (alone ? "no file of rank 0" : fmt::format("rank {} on host {}: no file of rank {}", last, host_name(), last)));
  std::vector<int> everyone;
  for (int r = 0; r < ranks.size(); ++r) everyone.push_back(r);
  CHECK(heard(ranks, everyone) == "no file of rank 0");
}

TEST_CASE_METHOD(World, "the status of the first failure is that of all") {
  int status = 0;
  try {
    on_all_ranks(*all, [&]() -> bool { throw InputError("wrong"); });
  } catch (SharedError const& error) {
    status = error.exit_code();
  }
  CHECK(status == exit_bad_input);
}

TEST_CASE_METHOD(World, "work of the first rank is done there alone, and fails for all") {
  Ranks& ranks = *all;
  bool here = false;
  std::string const text = on_first_rank(ranks, [&] {
    here = true;
    return std::string("done");
  });
  CHECK(here == (ranks.rank() == 0));
  CHECK(text == (ranks.rank() == 0 ? "done" : ""));
  auto const message =
      message_of<SharedError>([&] { on_first_rank(ranks, []() -> int { throw Error("no folder"); }); });
  CHECK(message == "no folder"); // the rank says nothing here
}
