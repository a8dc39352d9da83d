// Memory that is asked of hosts, with machines that are made of files.
#include "plan/host_room.hpp"

#include "comm/survey.hpp"
#include "core/format.hpp"
#include "plan/rank_plan.hpp"
#include "plan/run_plan.hpp"
#include "support/catch.hpp"
#include "support/small_run.hpp"
#include "support/temporary_folder.hpp"

using namespace kozero;
using namespace kozero::test;

namespace {

struct Host {
  TemporaryFolder root;
  void write(std::string const& path, std::string const& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(root.file(path)).parent_path());
    root.write(path, bytes);
  }
  void has(std::int64_t bytes) const { write("proc/meminfo", fmt::format("MemAvailable: {} kB\n", bytes / 1024)); }
  /// This process is alone in a group of version 2.
  void group(std::string const& path, std::int64_t limit, std::int64_t used) const {
    write("proc/self/cgroup", "0::" + path + "\n");
    write("sys/fs/cgroup" + path + "/memory.max", std::to_string(limit));
    write("sys/fs/cgroup" + path + "/memory.current", std::to_string(used));
  }
};

struct Job {
  std::unique_ptr<Ranks> ranks = make_world_ranks();
  Config config = [] {
    Config config;
    config.model = odd_model();
    config.zero.stage = 1;
    config.offload.optimizer = OffloadTarget::host;
    return config;
  }();
  BatchShape batch{2, 1, ranks->size()};
  Host host; // with what the kernel says of this process; of control groups all have what it says of them
  std::string groups;

  Job() {
    if (ranks->rank() == 0) std::filesystem::create_directories(groups = host.root.file("sys"));
    ranks->broadcast(groups, 0);
    if (ranks->rank() != 0) std::filesystem::create_directory_symlink(groups, host.root.file("sys"));
  }

  std::int64_t need(int rank) const { return host_bytes_of(plan_rank(config, batch, rank).memory); }
  std::int64_t all() const {
    std::int64_t sum = 0;
    for (int rank = 0; rank < ranks->size(); ++rank) sum += need(rank);
    return sum;
  }
  std::optional<std::string> lack() const {
    ranks->barrier(); // all have written their files
    return lack_of_host_memory(config, batch, *ranks, host.root.path());
  }
};

} // namespace

TEST_CASE("a rank needs of its host what its plan holds there, and what no ledger counts") {
  std::vector<MemoryRow> const rows = {{Space::device, Category::parameters, 1000},
                                       {Space::host, Category::master, 200},
                                       {Space::pinned, Category::staging, 30}};
  bool const device_is_host = host_reaches_device || KOZERO_EMULATED;
  CHECK(host_bytes_of(rows) == uncounted_host_bytes + 230 + (device_is_host ? 1000 : 0));
}

TEST_CASE("ranks of a host count together against what it has available") { // CASES 36
  Job const job;
  CHECK(!job.lack()); // a host that does not tell
  std::int64_t const enough = (job.all() / 1024 + 1) * 1024;
  job.host.has(enough);
  CHECK(!job.lack());
  job.host.has(enough - 2048);
  auto const lack = job.lack();
  REQUIRE(lack);
  INFO(*lack);
  CHECK(contains(*lack, {"on host " + host_name(), format_bytes(job.all()), "the host has", "smaller with",
                         "offload.ratio", "memory.host_limit"}));
  auto const texts = job.ranks->gather(*lack);
  CHECK(texts.front() == texts.back());
  if (job.ranks->size() > 1) CHECK(contains(*lack, {std::to_string(job.ranks->size()) + " ranks"}));
}

TEST_CASE("a control group bounds the ranks that are in it") { // CASES 36
  Job const job;
  job.host.has(std::int64_t{1} << 50);
  job.host.group("/job", 1000 + job.all(), 1000);
  CHECK(!job.lack());
  job.host.group("/job", 999 + job.all(), 1000);
  auto const lack = job.lack();
  REQUIRE(lack);
  CHECK(contains(*lack, {"control group /job has"}));

  // Each rank in a group of its own, which has room for one.
  std::int64_t const most = job.need(0);
  job.host.group(fmt::format("/job/task_{}", job.ranks->rank()), most, 0);
  std::filesystem::remove_all(job.host.root.file("sys/fs/cgroup/job/memory.max"));
  CHECK(!job.lack());
  if (job.ranks->rank() == job.ranks->size() - 1) {
    job.host.group(fmt::format("/job/task_{}", job.ranks->rank()), uncounted_host_bytes, 0);
  }
  auto const of_last = job.lack();
  REQUIRE(of_last);
  CHECK(contains(*of_last, {fmt::format("control group /job/task_{} has", job.ranks->size() - 1), "the rank on host"}));
}
