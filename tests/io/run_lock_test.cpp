// Locks between processes, and where there are none.
#include "io/run_lock.hpp"

#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <memory>
#include <optional>
#include <thread>

using namespace kozero;
using namespace kozero::test;

namespace {

std::string refusal(std::string const& folder) {
  return message_of<InputError>([&] { RunLock{folder}; });
}

/// A process that has the lock, until it is killed.
class Owner {
public:
  explicit Owner(std::string const& folder) {
    std::array<int, 2> ends = {};
    REQUIRE(::pipe(ends.data()) == 0);
    process_ = ::fork();
    if (process_ == 0) {
      RunLock const lock(folder);
      if (::write(ends[1], "x", 1) == 1) ::pause();
      ::_exit(0);
    }
    char byte = 0;
    CHECK(::read(ends[0], &byte, 1) == 1);
    for (int const end : ends) ::close(end);
  }
  ~Owner() { kill(); }
  Owner(Owner const&) = delete;
  Owner& operator=(Owner const&) = delete;

  int process() const { return process_; }
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

private:
  int process_ = -1;
};

/// The calling thread gets this error for each lock that it asks for, as on a file system that has none.
bool refuse_locks(unsigned error) {
  std::array<sock_filter, 6> code = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_SETLK, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  sock_fprog const program = {static_cast<unsigned short>(code.size()), code.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

} // namespace

TEST_CASE("the owner of a lock is named, and its death frees the lock at once") { // CASES 28
  TemporaryFolder const folder;
  Owner owner(folder.path());
  CHECK(contains(refusal(folder.path()), {"process " + std::to_string(owner.process()) + " on host"}));
  owner.kill();
  CHECK(refusal(folder.path()).empty());
}

TEST_CASE("a process of another host is waited for, as its lock may be a dead one's") { // CASES 28
  TemporaryFolder const folder;
  Owner owner(folder.path());
  auto const message = [&](std::chrono::milliseconds patience) {
    return message_of<InputError>([&] { RunLock(folder.path(), patience); });
  };
  CHECK(contains(message(std::chrono::hours(1)), {"process "})); // on this host it is there: not waited for
  folder.write("lock", R"({"host":"elsewhere","pid":1,"since":"2024-01-01T00:00:00Z"})");
  CHECK(contains(message(std::chrono::milliseconds(10)), {"process 1 on host elsewhere"}));
  std::thread lease([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    owner.kill();
  });
  CHECK(message(std::chrono::minutes(2)).empty());
  lease.join();
}

TEST_CASE("what a process starts does not keep its lock") { // CASES 28
  TemporaryFolder const folder;
  auto lock = std::make_optional<RunLock>(folder.path());
  int const child = ::fork();
  if (child == 0) {
    ::execlp("sleep", "sleep", "60", nullptr);
    ::_exit(1);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200)); // it is another program by now
  lock.reset();
  CHECK(refusal(folder.path()).empty());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("a file system without locks does not keep a run from its folder") { // CASES 28
  for (unsigned const error : {ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL}) {
    TemporaryFolder const folder;
    bool filtered = false;
    std::string message = "not tried";
    std::thread([&] {
      filtered = refuse_locks(error);
      message = message_of<Error>([&] { RunLock{folder.path()}; });
    }).join();
    if (!filtered) {
      WARN("no filter of system calls here");
      return;
    }
    CHECK(message.empty());
    CHECK(contains(folder.read("lock"), {"\"pid\""}));
  }
}
