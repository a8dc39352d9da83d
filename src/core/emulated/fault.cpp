#include "core/emulated/fault.hpp"

#include "core/emulated/arena_state.hpp"
#include "core/ledger.hpp"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <unistd.h>

namespace kozero::emulated {

namespace {

/// A line that is put together without memory of its own.
class Line {
public:
  Line& operator<<(char const* text) {
    for (; text && *text; ++text) add(*text);
    return *this;
  }
  Line& operator<<(std::int64_t number) {
    char digits[24];
    int n = 0;
    bool const negative = number < 0;
    for (std::uint64_t left = negative ? 0 - static_cast<std::uint64_t>(number) : number; n == 0 || left > 0;
         left /= 10) {
      digits[n++] = static_cast<char>('0' + left % 10);
    }
    if (negative) add('-');
    while (n > 0) add(digits[--n]);
    return *this;
  }
  void print() {
    add('\n');
    [[maybe_unused]] ssize_t const written = write(STDERR_FILENO, text_, size_);
  }

private:
  void add(char c) {
    if (size_ < sizeof text_) text_[size_++] = c;
  }
  char text_[1024];
  std::size_t size_ = 0;
};

enum class Deed { touched, read, wrote };

Deed deed_of([[maybe_unused]] void const* context) {
#if defined(__x86_64__)
  auto const error = static_cast<ucontext_t const*>(context)->uc_mcontext.gregs[REG_ERR];
  return (error & 2) != 0 ? Deed::wrote : Deed::read;
#else
  return Deed::touched;
#endif
}

char const* word_of(Deed deed) { return deed == Deed::read ? "read " : deed == Deed::wrote ? "wrote " : "touched "; }

void tell_who(Line& line, Running const& now) {
  if (now.reach == Reach::host_code) {
    line << "host code ";
  } else {
    line << "'" << now.label << "' of lane '" << now.lane << "' ";
  }
}

void tell_why(Line& line, Slice const& slice, char const* p, Deed deed, Running const& now) {
  if (slice.released) {
    line << " after it was released; keep it until the work that uses it has run";
  } else if (slice.space == Space::device) {
    line << " (device memory is closed while host code runs); fence the lane and copy it, or launch a kernel";
  } else if (slice.space == Space::host) {
    line << " (host memory is closed while work of a lane runs); copy it to device or pinned memory first";
  } else if (Closure const* const copy = closure_of(p, p + 1, deed == Deed::read ? Access::read : Access::write);
             copy && now.reach == Reach::host_code) {
    line << " (the copy '" << copy->label << "' of lane '" << copy->lane << "' that "
         << (copy->access == Access::write ? "writes" : "reads")
         << " it has not run); wait for its event or fence the lane";
  }
}

void report(char const* p, Space space, Deed deed) {
  Running const& now = running();
  Line line;
  line << "kozero: emulated device: ";
  tell_who(line, now);
  line << word_of(deed) << name_of(space);
  if (auto const slice = slice_of(p)) {
    line << " buffer '" << slice->label << "' at byte " << std::int64_t{p - slice->begin} << " of " << slice->bytes;
    tell_why(line, *slice, p, deed, now);
  } else {
    line << " memory that no buffer has";
  }
  line.print();
}

struct sigaction before_segv, before_bus; // whose turn it is where an address is not ours
bool passed_on = false;

struct sigaction& before(int signal) {
  return signal == SIGBUS ? before_bus : before_segv;
}

/// The instruction runs again, faults again, and finds the other handler; a signal that was sent is sent again. Once
/// only: a handler that gives the signal back would do so forever.
void pass_on(int signal, bool sent) {
  struct sigaction action = before(signal);
  if (passed_on) {
    action = {};
    action.sa_handler = SIG_DFL;
  }
  passed_on = true;
  sigaction(signal, &action, nullptr);
  if (sent) raise(signal); // comes when this handler is left
}

void on_fault(int signal, siginfo_t* info, void* context) {
  bool const sent = info->si_code <= 0; // by kill or raise
  std::optional<Space> const space = sent ? std::nullopt : range_of(info->si_addr);
  if (!space) return pass_on(signal, sent);
  report(static_cast<char const*>(info->si_addr), *space, deed_of(context));
  std::abort();
}

/// The stack at fault may be a fibre's, or full.
void give_alternate_stack() {
  static char stack[64 << 10];
  stack_t now;
  if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
  stack_t ours{};
  ours.ss_sp = stack;
  ours.ss_size = sizeof stack;
  sigaltstack(&ours, nullptr);
}

} // namespace

void watch_faults() {
  if (passed_on) return;
  for (int const signal : {SIGSEGV, SIGBUS}) {
    struct sigaction now;
    sigaction(signal, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault) continue;
    before(signal) = now;
    struct sigaction ours {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    sigaction(signal, &ours, nullptr);
  }
  give_alternate_stack();
}

} // namespace kozero::emulated
