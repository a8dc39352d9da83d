#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include "io/host_memory.hpp"

#include <unistd.h>

using namespace kozero;
using kozero::test::TemporaryFolder;

namespace {

/// A made host; each file is written with the folders that it stands in.
class Host {
public:
  Host& write(std::string const& path, std::string const& bytes) {
    std::filesystem::create_directories(std::filesystem::path(root_.file(path)).parent_path());
    root_.write(path, bytes);
    return *this;
  }
  Host& limit(std::string const& folder, std::string const& max, std::int64_t current, std::int64_t cache) {
    std::string const group = "sys/fs/cgroup" + folder;
    write(group + "/memory.max", max + "\n");
    write(group + "/memory.current", std::to_string(current) + "\n");
    return write(group + "/memory.stat", "anon 1\nfile 77777\nactive_file " + std::to_string(cache / 4) +
                                             "\ninactive_file " + std::to_string(cache - cache / 4) + "\nslab 3\n");
  }
  std::optional<std::int64_t> available() const { return available_host_memory(root_.path()); }
  std::vector<MemoryBound> bounds() const { return host_memory_bounds(root_.path()); }

private:
  TemporaryFolder root_;
};

std::string const meminfo =
    "MemTotal:       16000 kB\nMemFree:          100 kB\nMemAvailable:    9000 kB\nBuffers: 1 kB\n";
constexpr std::int64_t system_bytes = 9000 * 1024;

} // namespace

TEST_CASE("available memory is a part of what the host has, in bytes") {
  auto const available = available_host_memory();
  REQUIRE(available);
  std::int64_t const all = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  CHECK(*available <= all);
  CHECK(*available > all / 1000); // a host that runs tests has more; a number of KiB or pages would be less
}

TEST_CASE("a host that says nothing of its memory is no error") {
  CHECK(!Host().available());
  CHECK(!Host().write("proc/meminfo", "MemTotal: 16000 kB\n").write("proc/self/cgroup", "nonsense\n").available());
}

TEST_CASE("without a limit of the group all that the system has is available") {
  CHECK(Host().write("proc/meminfo", meminfo).available() == system_bytes);
  Host host;
  host.write("proc/meminfo", meminfo).write("proc/self/cgroup", "0::/job\n").limit("/job", "max", 5000, 100);
  CHECK(host.available() == system_bytes);
}

TEST_CASE("a group leaves its limit less what is used and cannot be taken back") {
  Host host;
  host.write("proc/meminfo", meminfo).write("proc/self/cgroup", "0::/job/step\n");
  host.limit("/job/step", "1000000", 700000, 200000);
  CHECK(host.available() == 1000000 - 500000);
  host.limit("/job/step", "1000000", 1100000, 0); // over it for a moment
  CHECK(host.available() == 0);
  host.limit("/job/step", "1000000", 100, 200); // the two are not read at one moment
  CHECK(host.available() == 1000000);
  host.limit("/job", "900000", 500000, 0); // so do the groups around it
  CHECK(host.available() == 400000);
  host.limit("", "300000", 0, 0);
  CHECK(host.available() == 300000);
}

TEST_CASE("a group of version 1 is one too, whose folder may not be visible in a container") {
  std::string const unlimited = "9223372036854771712\n";
  Host host;
  host.write("proc/meminfo", meminfo).write("proc/self/cgroup", "5:cpu,cpuacct:/docker/a\n4:memory:/docker/a\n0::/b\n");
  std::string const group = "sys/fs/cgroup/memory/";
  host.write(group + "memory.limit_in_bytes", unlimited).write(group + "memory.usage_in_bytes", "600000\n");
  CHECK(host.available() == system_bytes);
  host.write(group + "memory.limit_in_bytes", "1000000\n");
  CHECK(host.available() == 400000);
  host.write(group + "memory.stat", "inactive_file 1\ntotal_active_file 20000\ntotal_inactive_file 80000\n");
  CHECK(host.available() == 500000);
  host.write(group + "docker/a/memory.limit_in_bytes", "1000\n").write(group + "docker/a/memory.usage_in_bytes", "300");
  CHECK(host.available() == 700);
}

TEST_CASE("every bound has a name, so that ranks that share it are known") {
  Host host;
  host.write("proc/meminfo", meminfo).write("proc/self/cgroup", "0::/job/step\n");
  host.limit("/job/step", "max", 7, 0).limit("/job", "900000", 500000, 0).limit("", "2000000", 0, 0);
  auto const bounds = host.bounds();
  REQUIRE(bounds.size() == 3);
  CHECK(bounds[0].name == "the host");
  CHECK(bounds[0].available == system_bytes);
  CHECK(bounds[1].name == "control group /job");
  CHECK(bounds[1].available == 400000);
  CHECK(bounds[2].name == "control group /");
  CHECK(bounds[2].available == 2000000);
}
