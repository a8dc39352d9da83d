#pragma once
#include "comm/nccl_calls.hpp"
#include "comm/ranks.hpp"
#include "core/lane.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace kozero {

/// A communicator of NCCL that does not make the host wait without end: set up without blocking and looked at
/// meanwhile; ended by a thread of its own where the library does not come back. Ranks that send to each other for the
/// first time do wait, within group(): that is best done Within a limit.
///
///     NcclConnection connection(ranks, limits);        // collective
///     connection.group(stream, [&](NcclGroup const& group) { group.send(…); group.receive(…); });
///     connection.look();                               // throws where what was given before has failed
///
/// After an error it has been aborted, so that nothing on the device waits for other ranks any more, and memory can be
/// freed. One thread uses it.
class NcclConnection;

/// Calls that begin together: each but the last would else wait for its peer.
class NcclGroup {
public:
  NcclGroup(NcclConnection& connection, void* stream) : connection_(connection), stream_(stream) {}
  void send(void const* from, std::int64_t elements, DType type, int to) const;
  void receive(void* to, std::int64_t elements, DType type, int from) const;
  /// Of equal parts in `all`, rank after rank; the own one is there.
  void all_gather(void* all, std::int64_t elements_of_part, DType type) const;
  void broadcast(void* data, std::int64_t elements, DType type, int root) const;

private:
  NcclConnection& connection_;
  void* stream_;
};

class NcclConnection {
public:
  struct Limits {
    double connect_s = 300;
    double close_s = 10;
  };
  /// While it lives, group() and look() fail after so many seconds: for what must not wait for other ranks for ever.
  class Within {
  public:
    Within(NcclConnection& connection, double seconds);
    ~Within() { connection_.until_.reset(); }
    Within(Within const&) = delete;
    Within& operator=(Within const&) = delete;

  private:
    NcclConnection& connection_;
  };
  /// Collective: an error of one rank is all ranks'. `doing` says, for errors, what is under way.
  NcclConnection(Ranks& ranks, Limits const& limits, std::function<std::string()> doing);
  /// Lets what was given end; within the limit, unless an exception unwinds or it has been aborted.
  ~NcclConnection();
  NcclConnection(NcclConnection const&) = delete;
  NcclConnection& operator=(NcclConnection const&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  template <class Calls>
  void group(void* stream, Calls const& calls) {
    if (!is_open()) return; // work that a lane had before the end
    GroupScope scope(*this);
    calls(NcclGroup(*this, stream));
    scope.end();
  }
  void look();
  /// Within alone is it other ranks that the host waits for in group().
  bool is_held_to_limit() const { return until_.has_value(); }
  /// Not after abort().
  bool is_open() const { return handle_ != nullptr; }
  /// Ends whatever is under way, on this rank alone and for good.
  void abort() noexcept;

private:
  friend class NcclGroup;
  /// A group that ends however it is left, else all later calls would be taken for a part of it.
  class GroupScope {
  public:
    explicit GroupScope(NcclConnection& connection);
    ~GroupScope();
    GroupScope(GroupScope const&) = delete;
    GroupScope& operator=(GroupScope const&) = delete;
    void end();

  private:
    NcclConnection& connection_;
  };

  void connect(ncclUniqueId const& id);
  void settle(char const* call);
  void check(ncclResult_t result, char const* call);
  void require_in_time();
  [[noreturn]] void fail(ncclResult_t result, char const* call);
  [[noreturn]] void end_with(std::string const& text);
  void leave_group() noexcept;
  void close() noexcept;

  NcclCalls const* calls_ = nullptr;
  Limits limits_;
  std::function<std::string()> doing_;
  int rank_;
  int ranks_;
  ncclComm_t handle_ = nullptr; // null once it has been given back
  bool in_group_ = false;
  double seconds_ = 0;                                         // of the limit
  std::optional<std::chrono::steady_clock::time_point> until_; // its end
};

} // namespace kozero
