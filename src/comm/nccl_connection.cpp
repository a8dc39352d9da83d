#include "comm/nccl_connection.hpp"

#include "comm/agree.hpp"
#include "comm/mpi_calls.hpp"
#include "comm/nccl.hpp"
#include "comm/survey.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/heartbeat.hpp"
#include "core/log.hpp"
#include "core/quiet_thread.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>

namespace kozero {

namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

char const* advice_for(ncclResult_t result) {
  switch (result) {
  case ncclRemoteError:
    return "another rank's process or device is gone, or the network to it; look for the first rank "
           "that failed, then go on with --resume auto";
  case ncclSystemError:
    return "a call of the system failed, as with too little /dev/shm or locked memory (ulimit -l), "
           "or the network; NCCL_DEBUG=INFO tells more";
  case ncclUnhandledCudaError:
    return "a call of CUDA failed: look at nvidia-smi and at XIDs in dmesg; NCCL_DEBUG=INFO "
           "tells more";
  default: break;
  }
  return "NCCL_DEBUG=INFO tells more";
}

/// Runs `work` in a thread of its own; whether it ended within so many seconds. Else it is left to itself.
template <class Work>
bool ends_within(double seconds, Work const& work) noexcept try {
  auto const ended = std::make_shared<std::atomic<bool>>(false);
  std::thread thread = start_quiet_thread([ended, work] {
    work();
    *ended = true;
  });
  auto const deadline = after(seconds);
  while (!*ended && Clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (*ended) {
    thread.join();
  } else {
    thread.detach();
  }
  return *ended;
} catch (std::exception const&) {
  return false;
}

std::string text_of(ncclUniqueId const& id) { return {id.internal, sizeof id.internal}; }

ncclUniqueId id_of(std::string const& text) {
  ncclUniqueId id{};
  std::memcpy(id.internal, text.data(), std::min(text.size(), sizeof id.internal));
  return id;
}

} // namespace

NcclConnection::NcclConnection(Ranks& ranks, Limits const& limits, std::function<std::string()> doing)
    : limits_(limits), doing_(std::move(doing)), rank_(ranks.rank()), ranks_(ranks.size()) {
  std::string version;
  share_failure(ranks, failure_of([&] {
                  version = load_nccl();
                  calls_ = &nccl_calls();
                }));
  auto const versions = ranks.gather(version);
  auto const other = std::ranges::find_if(versions, [&](auto const& its) { return its != versions.front(); });
  if (other != versions.end()) {
    throw SharedError(fmt::format("rank {} has NCCL {} and rank 0 has {} (they cannot exchange); let all nodes use one "
                                  "library",
                                  other - versions.begin(), *other, versions.front()));
  }
  std::string id;
  share_failure(ranks, failure_of([&] {
                  if (rank_ != 0) return;
                  ncclUniqueId made{};
                  check(calls_->get_unique_id(&made), "ncclGetUniqueId");
                  id = text_of(made);
                }));
  ranks.broadcast(id, 0);
  // Each rank comes to its end within the limit, whether the others have come or not.
  Failure const failure = failure_of([&] { connect(id_of(id)); });
  try {
    share_failure(ranks, failure);
  } catch (...) {
    abort(); // the destructor does not run
    throw;
  }
}

NcclConnection::~NcclConnection() {
  if (std::uncaught_exceptions() > 0) {
    abort();
  } else {
    close();
  }
}

void NcclConnection::connect(ncclUniqueId const& id) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclResult_t result = calls_->comm_init_rank_config(&handle_, ranks_, id, rank_, &config);
  auto const deadline = after(limits_.connect_s);
  Heartbeat::Wait const wait;
  while (result == ncclInProgress || result == ncclSuccess) {
    ncclResult_t state = ncclSuccess;
    check(calls_->comm_get_async_error(handle_, &state), "ncclCommGetAsyncError");
    if (state == ncclSuccess) return;
    result = state;
    KOZERO_REQUIRE(Clock::now() < deadline,
                   "ranks do not find each other by NCCL within {} (its network is not the one between the nodes, or "
                   "some rank does not come); NCCL_DEBUG=INFO tells more, NCCL_SOCKET_IFNAME names the network",
                   format_duration(limits_.connect_s));
    keep_messages_moving();
    sched_yield();
  }
  check(result, "ncclCommInitRankConfig");
}

NcclConnection::Within::Within(NcclConnection& connection, double seconds) : connection_(connection) {
  connection.seconds_ = seconds;
  connection.until_ = after(seconds);
}

void NcclConnection::require_in_time() {
  if (!until_ || Clock::now() < *until_) return;
  end_with(
      fmt::format("rank {} on host {}: NCCL does not get on with {} within {} (another rank does not come to it, or "
                  "the network between them carries nothing); NCCL_DEBUG=INFO tells more, NCCL_SOCKET_IFNAME and "
                  "NCCL_IB_HCA name the network",
                  rank_, host_name(), doing_(), format_duration(seconds_)));
}

/// Until what was called is with the device, or has failed. The library does that by a thread of its own, and it waits
/// for no rank but when two meet for the first time.
void NcclConnection::settle(char const* call) {
  ncclResult_t state = ncclInProgress;
  std::optional<Heartbeat::Wait> for_ranks;
  if (is_held_to_limit()) for_ranks.emplace(); // they meet, or close
  while (true) {
    check(calls_->comm_get_async_error(handle_, &state), "ncclCommGetAsyncError");
    if (state != ncclInProgress) break;
    require_in_time();
    keep_messages_moving();
    sched_yield();
  }
  check(state, call);
}

void NcclConnection::look() {
  if (!handle_) return;
  ncclResult_t state = ncclSuccess;
  check(calls_->comm_get_async_error(handle_, &state), "ncclCommGetAsyncError");
  if (state != ncclSuccess && state != ncclInProgress) fail(state, "what was under way");
  require_in_time();
}

void NcclConnection::check(ncclResult_t result, char const* call) {
  if (result != ncclSuccess && result != ncclInProgress) fail(result, call);
}

void NcclConnection::fail(ncclResult_t result, char const* call) {
  char const* const last = calls_->get_last_error(handle_);
  std::string const more = last != nullptr && *last != 0 ? fmt::format(": {}", last) : std::string();
  end_with(fmt::format("rank {} on host {}: NCCL failed in {} ({}, {}{}); {}", rank_, host_name(), doing_(), call,
                       calls_->get_error_string(result), more, advice_for(result)));
}

void NcclConnection::end_with(std::string const& text) {
  leave_group();
  // Said at once too: memory is freed while the exception goes up, where a process may end without a word if its device
  // is lost.
  log::error("{}", text);
  abort();
  throw Error(text);
}

void NcclConnection::abort() noexcept {
  auto* const handle = std::exchange(handle_, nullptr);
  if (!handle) return;
  if (!ends_within(limits_.close_s, [calls = calls_, handle] { calls->comm_abort(handle); })) {
    log::warn("warning: NCCL does not end what is under way on rank {}; the process ends without it", rank_);
  }
}

void NcclConnection::close() noexcept {
  auto* const handle = std::exchange(handle_, nullptr);
  if (!handle) return;
  auto const finalise = [calls = calls_, handle, limit = limits_.close_s] {
    auto const deadline = after(limit);
    ncclResult_t state = calls->comm_finalize(handle);
    while (state == ncclInProgress && Clock::now() < deadline) {
      sched_yield();
      if (calls->comm_get_async_error(handle, &state) != ncclSuccess) break;
    }
    if (state == ncclSuccess) {
      calls->comm_destroy(handle);
    } else {
      calls->comm_abort(handle);
    }
  };
  if (!ends_within(limits_.close_s + 2, finalise)) {
    log::warn("warning: NCCL does not close on rank {} within {}; the process ends without it", rank_,
              format_duration(limits_.close_s));
  }
}

NcclConnection::GroupScope::GroupScope(NcclConnection& connection) : connection_(connection) {
  connection_.check(connection_.calls_->group_start(), "ncclGroupStart");
  connection_.in_group_ = true;
}

NcclConnection::GroupScope::~GroupScope() { connection_.leave_group(); }

void NcclConnection::leave_group() noexcept {
  if (std::exchange(in_group_, false)) calls_->group_end();
}

void NcclConnection::GroupScope::end() {
  connection_.in_group_ = false;
  connection_.check(connection_.calls_->group_end(), "ncclGroupEnd");
  connection_.settle("ncclGroupEnd");
}

void NcclGroup::send(void const* from, std::int64_t elements, DType type, int to) const {
  if (elements == 0) return;
  connection_.check(connection_.calls_->send(from, static_cast<std::size_t>(elements), nccl_type(type), to,
                                             connection_.handle_, static_cast<cudaStream_t>(stream_)),
                    "ncclSend");
}

void NcclGroup::receive(void* to, std::int64_t elements, DType type, int from) const {
  if (elements == 0) return;
  connection_.check(connection_.calls_->recv(to, static_cast<std::size_t>(elements), nccl_type(type), from,
                                             connection_.handle_, static_cast<cudaStream_t>(stream_)),
                    "ncclRecv");
}

void NcclGroup::all_gather(void* all, std::int64_t elements_of_part, DType type) const {
  if (elements_of_part == 0) return;
  auto const* const own =
      static_cast<unsigned char const*>(all) + connection_.rank() * elements_of_part * size_of(type);
  connection_.check(connection_.calls_->all_gather(own, all, static_cast<std::size_t>(elements_of_part),
                                                   nccl_type(type), connection_.handle_,
                                                   static_cast<cudaStream_t>(stream_)),
                    "ncclAllGather");
}

void NcclGroup::broadcast(void* data, std::int64_t elements, DType type, int root) const {
  if (elements == 0) return;
  connection_.check(connection_.calls_->broadcast(data, data, static_cast<std::size_t>(elements), nccl_type(type), root,
                                                  connection_.handle_, static_cast<cudaStream_t>(stream_)),
                    "ncclBroadcast");
}

} // namespace kozero
