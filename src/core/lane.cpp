#include "core/lane.hpp"

#include "core/activity.hpp"
#include "core/device_errors.hpp"
#include "core/error.hpp"
#include "core/event.hpp"
#include "core/launch.hpp"
#include "core/log.hpp"
#include "core/profile.hpp"
#include "core/while_waiting.hpp"

#if KOZERO_EMULATED
#include "core/emulated/queue.hpp"
#endif

namespace kozero {

#if KOZERO_EMULATED

Lane::Lane() {
  static auto const queue = std::make_shared<emulated::Queue>("default lane");
  queue_ = queue;
}

Lane separate_lane(char const* name) { return Lane(std::make_shared<emulated::Queue>(name)); }

char const* Lane::name() const { return queue_->name().c_str(); }

void const* Lane::id() const { return queue_.get(); }

void Lane::fence(char const* why) const {
  HostSpan const waits("wait", why);
  activity().count_fence(why);
  queue_->drain();
  WhileWaiting::look();
}

struct Event::Point {
  emulated::Point point;
};

void Event::record(Lane const& lane) {
  if (!point_) point_ = std::make_unique<Point>();
  point_->point = lane.queue()->here();
}
void Event::hold_back(Lane const& later) const {
  if (point_) later.queue()->hold_back(point_->point);
}
bool Event::done() const { return !point_ || emulated::reached(point_->point); }
void Event::wait(char const* why) const {
  HostSpan const waits("wait", why);
  activity().count_fence(why);
  if (point_) emulated::run_to(point_->point);
  WhileWaiting::look();
}

#else

Lane::Lane() = default;

namespace {

#if defined(KOKKOS_ENABLE_CUDA)
/// Written at once too: while the exception goes up memory is freed, where Kokkos ends the process if the device is
/// lost.
void check(cudaError_t code, char const* call) {
  if (code == cudaSuccess) return;
  auto const text = explain_device_error(call, cudaGetErrorName(code), cudaGetErrorString(code));
  log::error("{}", text);
  throw Error(text);
}

/// A launch that the device refuses is told to nobody else: Kokkos does not look, and waiting for the lane succeeds.
void check_launches() { check(cudaGetLastError(), "a kernel's launch before this"); }

/// Of cudaStreamQuery or cudaEventQuery, before which check_launches() was asked: what is not ready leaves an error
/// that nobody is to find, and taking that away would take another one with it.
bool is_ready(cudaError_t code, char const* call) {
  if (code == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  check(code, call);
  return true;
}

void wait_beside_ranks(Lane::Exec const& exec) {
  WhileWaiting::wait([&] {
    check_launches();
    return is_ready(cudaStreamQuery(exec.cuda_stream()), "cudaStreamQuery");
  });
}
#else
void check_launches() {}
void wait_beside_ranks(Lane::Exec const&) {}
#endif

} // namespace

void Lane::fence(char const* why) const {
  HostSpan const waits("wait", why);
  activity().count_fence(why);
  wait_beside_ranks(exec_);
#if KOKKOS_VERSION >= 30500
  exec_.fence(detail::tool_label(why));
#else
  exec_.fence();
#endif
  check_launches();
  WhileWaiting::look();
}

void const* Lane::id() const {
#if defined(KOKKOS_ENABLE_CUDA)
  return exec_.cuda_stream();
#else
  return nullptr;
#endif
}

Lane separate_lane(char const* name) {
#if KOZERO_HAS_ACCELERATOR && KOKKOS_VERSION >= 40000
  return Lane(Kokkos::Experimental::partition_space(DeviceExec(), 1).front(), name);
#else
  return Lane(DeviceExec(), name);
#endif
}

#if defined(KOKKOS_ENABLE_CUDA)

struct Event::Point {
  cudaEvent_t event = nullptr;
  Point() { check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags"); }
  ~Point() { cudaEventDestroy(event); } // CUDA keeps it until it has happened
  Point(Point const&) = delete;
  Point& operator=(Point const&) = delete;
};

void Event::record(Lane const& lane) {
  if (!point_) point_ = std::make_unique<Point>();
  check(cudaEventRecord(point_->event, lane.exec().cuda_stream()), "cudaEventRecord");
}
void Event::hold_back(Lane const& later) const {
  if (point_) check(cudaStreamWaitEvent(later.exec().cuda_stream(), point_->event, 0), "cudaStreamWaitEvent");
}
bool Event::done() const {
  if (!point_) return true;
  check_launches();
  return is_ready(cudaEventQuery(point_->event), "cudaEventQuery");
}
void Event::wait(char const* why) const {
  HostSpan const waits("wait", why);
  activity().count_fence(why);
  WhileWaiting::wait([this] { return done(); });
  if (point_) check(cudaEventSynchronize(point_->event), "cudaEventSynchronize");
  check_launches();
  WhileWaiting::look();
}

#else

// Program order does it on a host; other accelerators' events are not used yet, so the host waits for them.
struct Event::Point {};

void Event::record(Lane const& lane) {
  if constexpr (!runs_on_host<Lane>) lane.fence("event");
}
void Event::hold_back(Lane const&) const {}
bool Event::done() const { return true; }
void Event::wait(char const* why) const {
  HostSpan const waits("wait", why);
  activity().count_fence(why);
  WhileWaiting::look();
}

#endif
#endif

Event::Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;
Event::~Event() = default;

void order_after(Lane const& later, Lane const& earlier) {
  static Event here; // later lanes have taken it as it was when they were held back
  here.record(earlier);
  here.hold_back(later);
}

} // namespace kozero
