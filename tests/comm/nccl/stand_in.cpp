#include "comm/nccl/stand_in.hpp"

#include "comm/nccl.hpp"
#include "comm/nccl_calls.hpp"
#include "core/error.hpp"
#include "core/memory.hpp"

#if KOZERO_EMULATED
#include "core/emulated/arena.hpp"
#endif

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace {

using kozero::test::NcclBehaviour;
using kozero::test::NcclCounts;

NcclBehaviour the_behaviour;
std::atomic<std::int64_t> open_comms = 0;
std::atomic<std::int64_t> aborted_comms = 0;
NcclCounts the_counts;

/// A rule of NCCL's, or of MPI below it.
void rule(bool held, char const* words) {
  if (held) return;
  std::fprintf(stderr, "stand-in for NCCL: %s\n", words);
  std::abort();
}

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

std::mt19937& dice() {
  static std::mt19937 all(static_cast<unsigned>(7919 * world_rank() + 1));
  return all;
}

struct Id {
  int root = -1; // in MPI_COMM_WORLD
  int number = 0;
};

struct Message {
  enum class Kind { send, receive } kind;
  void* data;
  int bytes;
  int peer;
};

/// What MPI has of a message: memory of its own, which may stay there when a rank goes away.
struct Transfer {
  std::vector<char> bytes;
  void* to = nullptr; // null: it is sent
};

int size_of_type(ncclDataType_t type) {
  switch (type) {
  case ncclUint8: return 1;
  case ncclFloat16:
  case ncclBfloat16: return 2;
  case ncclInt32:
  case ncclFloat32: return 4;
  case ncclInt64:
  case ncclFloat64: return 8;
  }
  rule(false, "a type that NCCL does not know");
  return 0;
}

void require_device(void const* memory) {
  rule(memory != nullptr, "a null pointer");
#if KOZERO_EMULATED
  rule(kozero::emulated::space_of(memory) == kozero::Space::device, "memory that is not the device's");
#endif
}

} // namespace

/// Of one rank. Members know each other's ranks in MPI_COMM_WORLD once it is connected: each tells the root its own,
/// which tells all to each. Everything between two members has one tag, in the order of the calls.
struct ncclComm {
  enum class State { connecting, ready, late, moving, failed, finalising, finalised };
  State state = State::connecting;
  std::atomic<bool> aborted = false;
  int rank = 0;
  int ranks = 0;
  Id id;
  std::vector<int> table;             // ranks in MPI_COMM_WORLD
  std::vector<std::vector<int>> told; // by rank, at the root
  std::vector<MPI_Request> requests;
  bool told_all = false;
  std::vector<Message> given;      // of the group that has been given
  std::vector<Transfer> transfers; // by request
  int late = 0;
  bool stops = false;
  ncclResult_t failure = ncclSuccess;
  char notice = 0;

  int tag() const { return 1000 + 2 * (id.root * 2000 + id.number); }
  int failure_tag() const { return tag() + 1; }

  void begin_to_connect() {
    table.assign(static_cast<std::size_t>(ranks), -1);
    own_ = {rank, world_rank()};
    if (world_rank() == id.root) {
      told.assign(static_cast<std::size_t>(ranks), std::vector<int>(2));
      for (auto& entry : told) {
        MPI_Irecv(entry.data(), 2, MPI_INT, MPI_ANY_SOURCE, tag(), MPI_COMM_WORLD, &requests.emplace_back());
      }
    } else {
      MPI_Irecv(table.data(), ranks, MPI_INT, id.root, tag(), MPI_COMM_WORLD, &requests.emplace_back());
    }
    MPI_Isend(own_.data(), 2, MPI_INT, id.root, tag(), MPI_COMM_WORLD, &requests.emplace_back());
  }

  bool all_complete() {
    int done = 0;
    statuses_.resize(requests.size());
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, statuses_.data());
    return done != 0;
  }

  void connect() {
    if (!all_complete()) return;
    requests.clear();
    if (world_rank() == id.root && !told_all) {
      told_all = true;
      for (auto const& entry : told) table.at(static_cast<std::size_t>(entry[0])) = entry[1];
      for (int const other : table) {
        if (other == id.root) continue;
        MPI_Isend(table.data(), ranks, MPI_INT, other, tag(), MPI_COMM_WORLD, &requests.emplace_back());
      }
      return;
    }
    state = State::ready;
  }

  void begin_group() {
    auto& behaviour = the_behaviour;
    if (char const* const asked = std::getenv("KOZERO_STAND_IN_FAILS")) {
      int failing = -1;
      int group = -1;
      if (std::sscanf(asked, "%d:%d", &failing, &group) == 2 && failing == world_rank()) behaviour.fails_at = group;
    }
    if (behaviour.fails_at && the_counts.groups == *behaviour.fails_at) return fail(behaviour.failure, true);
    stops = behaviour.stops_at == the_counts.groups;
    ++the_counts.groups;
    state = State::late;
    late = behaviour.most_late > 0 ? static_cast<int>(dice()() % static_cast<unsigned>(behaviour.most_late + 1)) : 0;
  }

  /// Sends to itself meet their receives in order; the rest goes by MPI, receives first.
  void post() {
    std::vector<Message> self_sends, self_receives;
    transfers.clear();
    // Which rank comes first is chance; messages to one keep their order.
    int const first = static_cast<int>(dice()() % static_cast<unsigned>(ranks));
    std::ranges::stable_sort(given, {}, [&](Message const& message) { return (message.peer + first) % ranks; });
    for (auto const kind : {Message::Kind::receive, Message::Kind::send}) {
      for (Message const& message : given) {
        if (message.kind != kind) continue;
        bool const sends = kind == Message::Kind::send;
        if (message.peer == rank) {
          (sends ? self_sends : self_receives).push_back(message);
          continue;
        }
        int const peer = table.at(static_cast<std::size_t>(message.peer));
        MPI_Request& request = requests.emplace_back();
        auto& [bytes, to] =
            transfers.emplace_back(Transfer{std::vector<char>(static_cast<std::size_t>(message.bytes))});
        if (sends) {
          ++the_counts.messages;
          std::memcpy(bytes.data(), message.data, bytes.size());
          MPI_Isend(bytes.data(), message.bytes, MPI_BYTE, peer, tag(), MPI_COMM_WORLD, &request);
        } else {
          to = message.data;
          MPI_Irecv(bytes.data(), message.bytes, MPI_BYTE, peer, tag(), MPI_COMM_WORLD, &request);
        }
      }
    }
    rule(self_sends.size() == self_receives.size(), "a rank sends to itself what it does not receive");
    for (std::size_t i = 0; i < self_sends.size(); ++i) {
      rule(self_sends[i].bytes == self_receives[i].bytes, "a message of another size than its receive");
      std::memmove(self_receives[i].data, self_sends[i].data, static_cast<std::size_t>(self_sends[i].bytes));
    }
    given.clear();
    state = State::moving;
  }

  void move() {
    if (!all_complete()) return;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      auto const& [bytes, to] = transfers[i];
      if (to == nullptr) continue;
      int came = 0;
      MPI_Get_count(&statuses_[i], MPI_BYTE, &came);
      rule(came == static_cast<int>(bytes.size()), "a message of another size than its receive");
      std::memcpy(to, bytes.data(), bytes.size());
    }
    transfers.clear();
    requests.clear();
    state = State::ready;
  }

  void fail(ncclResult_t result, bool tells) {
    failure = result;
    state = State::failed;
    given.clear();
    for (int other = 0; tells && other < ranks; ++other) {
      if (other == rank) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Isend(&notice, 1, MPI_BYTE, table.at(static_cast<std::size_t>(other)), failure_tag(), MPI_COMM_WORLD,
                &request);
      MPI_Request_free(&request);
    }
  }

  void look_for_failures() {
    int any = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, failure_tag(), MPI_COMM_WORLD, &any, &status);
    if (any) fail(ncclRemoteError, false);
  }

  ncclResult_t advance() {
    if (state == State::moving || state == State::ready) look_for_failures();
    switch (state) {
    case State::connecting:
      if (!the_behaviour.init_never_ends) connect();
      break;
    case State::late:
      if (!stops && late-- <= 0) post();
      break;
    case State::moving: move(); break;
    case State::finalising:
      if (!the_behaviour.finalize_never_ends) state = State::finalised;
      break;
    default: break;
    }
    if (state == State::failed) return failure;
    return state == State::ready || state == State::finalised ? ncclSuccess : ncclInProgress;
  }

private:
  std::vector<int> own_;
  std::vector<MPI_Status> statuses_;
};

namespace {

int group_depth = 0;
std::vector<ncclComm*> in_group;

/// The message joins the group that is open.
ncclResult_t give(ncclComm* comm, Message const& message) {
  rule(comm != nullptr, "no communicator");
  rule(group_depth > 0, "kozero calls within groups alone");
  rule(comm->state == ncclComm::State::ready, "a call before the one before is with the device");
  rule(0 <= message.peer && message.peer < comm->ranks, "a peer that is none");
  require_device(message.data);
  comm->given.push_back(message);
  if (std::ranges::find(in_group, comm) == in_group.end()) in_group.push_back(comm);
  return ncclSuccess;
}

int bytes_of(std::size_t count, ncclDataType_t type) {
  auto const bytes = count * static_cast<std::size_t>(size_of_type(type));
  rule(0 < bytes && bytes < (std::size_t{1} << 31), "a size that the stand-in does not take");
  return static_cast<int>(bytes);
}

} // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = the_behaviour.version;
  return ncclSuccess;
}

char const* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSystemError: return "unhandled system error";
  case ncclRemoteError: return "remote process exited or there was a network error";
  case ncclUnhandledCudaError: return "unhandled cuda error";
  default: return "an error";
  }
}

char const* ncclGetLastError(ncclComm_t) { return "the stand-in was told to fail"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int number = 0;
  Id const content{world_rank(), number++};
  *id = {};
  std::memcpy(id->internal, &content, sizeof content);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  rule(config != nullptr && config->size == sizeof *config && config->magic == 0xcafebeef,
       "a config without its start");
  rule(config->blocking == 0, "the stand-in does not block");
  rule(0 <= rank && rank < ranks, "a rank that is none");
  if (the_behaviour.init_fails) {
    *comm = nullptr;
    return ncclSystemError;
  }
  auto* const made = new ncclComm;
  made->rank = rank;
  made->ranks = ranks;
  std::memcpy(&made->id, id.internal, sizeof made->id);
  rule(made->id.root >= 0, "an id that nobody made");
  if (!the_behaviour.init_never_ends) made->begin_to_connect();
  ++open_comms;
  *comm = made;
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  rule(comm != nullptr, "no communicator");
  // What finalises is asked by a thread that may not call MPI.
  *error = comm->advance();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  rule(comm->state == ncclComm::State::ready, "finalised with something under way");
  while (the_behaviour.finalize_hangs) std::this_thread::sleep_for(std::chrono::seconds(1));
  comm->state = ncclComm::State::finalising;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  rule(comm->state == ncclComm::State::finalised, "destroyed before it was finalised");
  --open_comms;
  delete comm;
  return ncclSuccess;
}

// What MPI still has of it stays, as on a rank that goes away.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->aborted = true;
  --open_comms;
  ++aborted_comms;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  rule(group_depth > 0, "a group ends that has not begun");
  if (--group_depth > 0) return ncclSuccess;
  for (auto* const comm : in_group) {
    if (!comm->aborted) comm->begin_group();
  }
  bool const any = !in_group.empty();
  in_group.clear();
  return any ? ncclInProgress : ncclSuccess;
}

ncclResult_t ncclSend(void const* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t) {
  return give(comm, {Message::Kind::send, const_cast<void*>(from), bytes_of(count, type), peer});
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t) {
  return give(comm, {Message::Kind::receive, to, bytes_of(count, type), peer});
}

ncclResult_t ncclAllGather(void const* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t) {
  int const part = bytes_of(count, type);
  auto* const parts = static_cast<char*>(to);
  rule(from == parts + static_cast<std::ptrdiff_t>(comm->rank) * part, "kozero gathers in place");
  if (comm->ranks == 1)
    return give(comm, {Message::Kind::send, parts, part, 0}), // to itself, as a group is one
           give(comm, {Message::Kind::receive, parts, part, 0});
  for (int other = 0; other < comm->ranks; ++other) {
    if (other == comm->rank) continue;
    give(comm, {Message::Kind::receive, parts + static_cast<std::ptrdiff_t>(other) * part, part, other});
    give(comm, {Message::Kind::send, const_cast<void*>(from), part, other});
  }
  return ncclSuccess;
}

ncclResult_t ncclBroadcast(void const* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t) {
  int const bytes = bytes_of(count, type);
  rule(from == to, "kozero broadcasts in place");
  if (comm->rank != root) return give(comm, {Message::Kind::receive, to, bytes, root});
  if (comm->ranks == 1)
    give(comm, {Message::Kind::receive, to, bytes, 0}), give(comm, {Message::Kind::send, to, bytes, 0});
  for (int other = 0; other < comm->ranks; ++other) {
    if (other != root) give(comm, {Message::Kind::send, to, bytes, other});
  }
  return ncclSuccess;
}

} // extern "C"

namespace kozero {

NcclCalls const& nccl_calls() {
  KOZERO_REQUIRE(the_behaviour.loads, "NCCL cannot be loaded (a test says so); set parallel.transport: mpi");
  static NcclCalls const calls = [] {
    NcclCalls all;
#define KOZERO_NCCL_SET(member, function) all.member = &::function;
    KOZERO_NCCL_FUNCTIONS(KOZERO_NCCL_SET)
#undef KOZERO_NCCL_SET
    return all;
  }();
  return calls;
}

namespace test {

NcclBehaviour& nccl_behaviour() { return the_behaviour; }

NcclCounts nccl_counts() {
  NcclCounts counts = the_counts;
  counts.open = open_comms;
  counts.aborted = aborted_comms;
  return counts;
}

void restart_nccl_counts() { the_counts = {}; }

} // namespace test

} // namespace kozero
