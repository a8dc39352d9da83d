// For LD_PRELOAD: strikes at the n-th system call by which the program changes something on a disk. The kernel hands
// over all such calls (seccomp), whichever library makes them. IO_FAULT_WHERE is a part of the paths that count, or
// "checkpoints". IO_FAULT says "WHAT N": "kill 17" ends the process there, "28 17" has that call fail with errno 28;
// "28 17+" has it fail from there on, what is being written half through, as where a disk fills: what needs no room
// succeeds then. IO_FAULT_COUNT names a file that the number of calls is written to at the end. With
// IO_FAULT_NO_EXCHANGE two names cannot change places, as on NFS. For runs of one rank: a thread that heeds no signal,
// such as the watch of several, could not be handed its calls.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

// The one place whose system calls are not handed over.
extern "C" long io_fault_gate(long number, long a, long b, long c, long d, long e, long f);
extern "C" char const io_fault_gate_end[];
asm(R"(
.text
.hidden io_fault_gate
.hidden io_fault_gate_end
.global io_fault_gate
.global io_fault_gate_end
io_fault_gate:
  mov %rdi, %rax
  mov %rsi, %rdi
  mov %rdx, %rsi
  mov %rcx, %rdx
  mov %r8, %r10
  mov %r9, %r8
  mov 8(%rsp), %r9
  syscall
io_fault_gate_end:
  ret
)");

namespace {

struct Fault {
  bool kills = false;
  int error = 0;
  long call = -1;
  bool stays = false;
};

Fault fault;
char const* where = "checkpoints";
bool can_exchange = true;
std::atomic<long> calls = 0;

void read_environment() {
  if (char const* const part = std::getenv("IO_FAULT_WHERE")) where = part;
  can_exchange = std::getenv("IO_FAULT_NO_EXCHANGE") == nullptr;
  char const* const text = std::getenv("IO_FAULT");
  char what[16] = "", plus = 0;
  if (text == nullptr || std::sscanf(text, "%15s %ld%c", what, &fault.call, &plus) < 2) return;
  fault.kills = std::strcmp(what, "kill") == 0;
  fault.error = std::atoi(what);
  fault.stays = plus == '+';
}

// ---- what a call changes

bool is_meant(int file) {
  char link[64], path[PATH_MAX] = "";
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  return ::readlink(link, path, sizeof path - 1) > 0 && std::strstr(path, where) != nullptr;
}

bool is_meant(long folder, long path) {
  auto const* const text = reinterpret_cast<char const*>(path);
  if (std::strstr(text, where) != nullptr) return true;
  return text[0] != '/' && static_cast<int>(folder) != AT_FDCWD && is_meant(static_cast<int>(folder));
}

bool is_meant(long number, long const (&of)[6]) {
  switch (number) {
  case SYS_open:
  case SYS_creat:
  case SYS_truncate:
  case SYS_mkdir:
  case SYS_rmdir:
  case SYS_unlink: return is_meant(AT_FDCWD, of[0]);
  case SYS_openat:
  case SYS_mkdirat:
  case SYS_unlinkat: return is_meant(of[0], of[1]);
  case SYS_symlink: return is_meant(AT_FDCWD, of[1]);
  case SYS_symlinkat: return is_meant(of[1], of[2]);
  case SYS_link:
  case SYS_rename: return is_meant(AT_FDCWD, of[0]) || is_meant(AT_FDCWD, of[1]);
  case SYS_linkat:
  case SYS_renameat:
  case SYS_renameat2: return is_meant(of[0], of[1]) || is_meant(of[2], of[3]);
  case SYS_copy_file_range: return is_meant(static_cast<int>(of[2]));
  default: return is_meant(static_cast<int>(of[0]));
  }
}

constexpr long opens[] = {SYS_open, SYS_openat}; // which count where they make or empty a file
constexpr long changes[] = {
    SYS_write,    SYS_pwrite64,  SYS_writev,    SYS_pwritev,   SYS_pwritev2,       SYS_sendfile,  SYS_copy_file_range,
    SYS_creat,    SYS_truncate,  SYS_ftruncate, SYS_fallocate, SYS_fsync,          SYS_fdatasync, SYS_rename,
    SYS_renameat, SYS_renameat2, SYS_link,      SYS_linkat,    SYS_symlink,        SYS_symlinkat, SYS_mkdir,
    SYS_mkdirat,  SYS_unlink,    SYS_unlinkat,  SYS_rmdir,     SYS_sync_file_range};

bool is_write(long number) { return number == SYS_write || number == SYS_pwrite64; }

bool needs_room(long number) {
  switch (number) {
  case SYS_truncate:
  case SYS_ftruncate:
  case SYS_fsync:
  case SYS_fdatasync:
  case SYS_sync_file_range:
  case SYS_rename:
  case SYS_renameat:
  case SYS_renameat2:
  case SYS_unlink:
  case SYS_unlinkat:
  case SYS_rmdir: return false;
  default: return true;
  }
}

// ---- the fault

long pass_on(long number, long const (&of)[6]) {
  return io_fault_gate(number, of[0], of[1], of[2], of[3], of[4], of[5]);
}

long answer(long number, long const (&of)[6]) {
  if (number == SYS_renameat2 && of[4] != 0 && !can_exchange) return -EINVAL;
  if (!is_meant(number, of)) return pass_on(number, of);
  long const call = ++calls;
  bool const is_over = fault.call < 0 || call < fault.call || (call > fault.call && !fault.stays);
  if (is_over) return pass_on(number, of);
  if (fault.kills) {
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
  }
  bool const is_full = fault.stays && (fault.error == ENOSPC || fault.error == EDQUOT);
  if (is_full && !needs_room(number)) return pass_on(number, of);
  if (is_full && call == fault.call && is_write(number) && of[2] > 1) {
    return pass_on(number, {of[0], of[1], of[2] / 2, of[3], of[4], of[5]});
  }
  return -fault.error;
}

void on_call(int, siginfo_t* info, void* context) {
  int const before = errno;
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  registers[REG_RAX] =
      answer(info->si_syscall, {static_cast<long>(registers[REG_RDI]), static_cast<long>(registers[REG_RSI]),
                                static_cast<long>(registers[REG_RDX]), static_cast<long>(registers[REG_R10]),
                                static_cast<long>(registers[REG_R8]), static_cast<long>(registers[REG_R9])});
  errno = before;
}

// ---- to the kernel

void load(std::vector<sock_filter>& program, std::size_t offset) {
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
}

std::vector<sock_filter> filter() {
  auto const gate = reinterpret_cast<std::uintptr_t>(io_fault_gate_end); // where it is when the call returns
  sock_filter const allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  sock_filter const hand_over = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
  std::vector<sock_filter> program;
  load(program, offsetof(seccomp_data, instruction_pointer));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(gate), 0, 3));
  load(program, offsetof(seccomp_data, instruction_pointer) + 4);
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(gate >> 32), 0, 1));
  program.push_back(allow);
  for (std::size_t i = 0; i < std::size(opens); ++i) {
    load(program, offsetof(seccomp_data, nr));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(opens[i]), 0, 3));
    load(program, offsetof(seccomp_data, args) + 8 * (i + 1));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT | O_TRUNC, 0, 1));
    program.push_back(hand_over);
  }
  load(program, offsetof(seccomp_data, nr));
  for (long const number : changes) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1));
    program.push_back(hand_over);
  }
  program.push_back(allow);
  return program;
}

[[noreturn]] void give_up(char const* what) {
  std::perror(what);
  ::_exit(99);
}

void begin() {
  read_environment();
  struct sigaction action {};
  action.sa_sigaction = on_call;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (::sigaction(SIGSYS, &action, nullptr) != 0) give_up("io_fault: sigaction");
  auto program = filter();
  sock_fprog const all = {static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) give_up("io_fault: no_new_privs");
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) != 0) give_up("io_fault: seccomp");
}

struct Watch {
  /// A launcher is none of it: what it starts would have its filter and not its handler.
  Watch() : is_program(std::strcmp(program_invocation_short_name, "kozero") == 0) {
    if (is_program) begin();
  }
  ~Watch() {
    char const* const path = std::getenv("IO_FAULT_COUNT");
    if (!is_program || path == nullptr) return;
    long const count = calls;
    FILE* const file = std::fopen(path, "w");
    if (file == nullptr) return;
    std::fprintf(file, "%ld\n", count);
    std::fclose(file);
  }
  bool is_program;
} const watch;

} // namespace
