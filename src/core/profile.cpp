#include "core/profile.hpp"

#include "core/error.hpp"

#if KOZERO_EMULATED
#include "core/emulated/queue.hpp"
#endif

#include <algorithm>
#include <chrono>
#include <exception>

namespace kozero {

namespace {

std::int64_t now_ns() {
  auto const since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

/// The time at which the lane comes to this point.
void stamp([[maybe_unused]] Lane const& lane, std::int64_t* time) {
#if KOZERO_EMULATED
  lane.queue()->push("kozero::profile", emulated::Entry([time] { *time = now_ns(); }));
#elif defined(KOKKOS_ENABLE_CUDA)
  auto const now = [](void* its_time) { *static_cast<std::int64_t*>(its_time) = now_ns(); };
  if (cudaLaunchHostFunc(lane.exec().cuda_stream(), now, time) != cudaSuccess) {
    throw Error("cudaLaunchHostFunc failed; look at the device and its driver");
  }
#else
  *time = now_ns();
#endif
}

/// Until every stamp has been made.
void wait_for_lanes() {
#if KOZERO_EMULATED
  emulated::drain_all();
#elif KOZERO_HAS_ACCELERATOR
  Kokkos::fence();
#endif
}

} // namespace

void Profile::start(std::int64_t capacity) {
  KOZERO_ASSERT(capacity > 0);
  wait_for_lanes(); // which may have stamps to make in the ring as it was
  ring_.assign(static_cast<std::size_t>(capacity), {});
  lanes_.clear();
  lanes_.reserve(32);
  taken_ = 0;
  on_ = true;
}

std::vector<Profile::Span> Profile::spans() const {
  wait_for_lanes();
  std::vector<Span> all;
  for (std::int64_t number = dropped(); number < taken_; ++number) {
    Span const& span = ring_[static_cast<std::size_t>(number) % ring_.size()];
    if (span.end_ns > 0) all.push_back(span);
  }
  return all;
}

std::int64_t Profile::dropped() const { return std::max<std::int64_t>(taken_ - std::ssize(ring_), 0); }

Profile::Span* Profile::take(int track, char const* what, char const* of) {
  Span& span = ring_[static_cast<std::size_t>(taken_++) % ring_.size()];
  span = {.what = what, .of = of, .track = track};
  return &span;
}

int Profile::track_of(Lane const& lane) {
  auto const index = std::ranges::find(lanes_, lane.name()) - lanes_.begin();
  if (index == std::ssize(lanes_)) lanes_.emplace_back(lane.name());
  return static_cast<int>(index) + 2;
}

std::string Profile::track_name(int track) const {
  if (track == host_track) return "host";
  if (track == message_track) return "messages";
  return "device: " + lanes_.at(static_cast<std::size_t>(track - 2));
}

Profile& profile() {
  static auto* const all = new Profile; // lanes may be static, and make stamps at their end
  return *all;
}

ToolRegion::ToolRegion(char const* what, char const* of) : pushed_(Kokkos::Tools::profileLibraryLoaded()) {
  if (pushed_) Kokkos::Profiling::pushRegion(*of ? fmt::format("{} {}", what, of) : std::string(what));
}
ToolRegion::~ToolRegion() {
  if (pushed_) Kokkos::Profiling::popRegion();
}

LaneSpan::LaneSpan(Lane const& lane, char const* what, char const* of) : region_(what, of), lane_(lane) {
  if (!profile().on()) return;
  span_ = profile().take(profile().track_of(lane), what, of);
  exceptions_ = std::uncaught_exceptions();
  stamp(lane, &span_->begin_ns);
}

LaneSpan::~LaneSpan() noexcept(false) {
  if (span_ && std::uncaught_exceptions() == exceptions_) stamp(lane_, &span_->end_ns);
}

HostSpan::HostSpan(char const* what, char const* of) {
  if (!profile().on()) return;
  span_ = profile().take(Profile::host_track, what, of);
  span_->begin_ns = now_ns();
}

HostSpan::~HostSpan() {
  if (span_) span_->end_ns = now_ns();
}

MessageSpan::MessageSpan(char const* what, char const* purpose, std::int64_t bytes) {
  if (!profile().on()) return;
  span_ = profile().take(Profile::message_track, what, purpose);
  span_->bytes = span_->early_bytes = bytes;
  span_->begin_ns = now_ns();
}

void MessageSpan::wanted(std::int64_t arrived_bytes) const {
  if (span_ && span_->end_ns == 0) span_->early_bytes = arrived_bytes;
}

void MessageSpan::end() const {
  if (span_ && span_->end_ns == 0) span_->end_ns = now_ns();
}

} // namespace kozero
