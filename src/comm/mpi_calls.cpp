#include "comm/mpi_calls.hpp"

#include "core/between_launches.hpp"
#include "core/error.hpp"
#include "core/heartbeat.hpp"
#include "core/while_waiting.hpp"

#include <sched.h>

#include <exception>

namespace kozero {

void check_mpi(int code, char const* call) {
  if (code == MPI_SUCCESS) return;
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  throw Error(fmt::format("{} failed ({}); look for the first rank that failed, and check the network and the nodes of "
                          "the job",
                          call, text));
}

MpiRanks::Communicator::Communicator(MPI_Comm its_handle) : handle(its_handle) {
  KOZERO_MPI(MPI_Comm_set_errhandler, handle, MPI_ERRORS_RETURN);
  KOZERO_MPI(MPI_Comm_rank, handle, &rank);
  KOZERO_MPI(MPI_Comm_size, handle, &size);
}

MpiRanks::Communicator::~Communicator() {
  if (std::uncaught_exceptions() == 0) MPI_Comm_free(&handle);
}

MPI_Datatype mpi_type(DType type) {
  switch (type) {
  case DType::f32: return MPI_FLOAT;
  case DType::bf16:
  case DType::f16: return MPI_UINT16_T;
  case DType::f64: return MPI_DOUBLE;
  case DType::i64: return MPI_INT64_T;
  case DType::i32: return MPI_INT32_T;
  case DType::u8: return MPI_BYTE;
  }
  return MPI_DATATYPE_NULL;
}

bool all_complete(std::vector<MPI_Request>& requests) {
  int complete = 0;
  KOZERO_MPI(MPI_Testall, static_cast<int>(requests.size()), requests.data(), &complete, MPI_STATUSES_IGNORE);
  if (complete == 0) return false;
  requests.clear();
  heartbeat().arrive();
  return true;
}

bool is_waiting() { return heartbeat().waits(); }

void wait_until(std::function<bool()> const& reached) {
  if (reached()) return;
  Heartbeat::Wait const wait;
  while (!reached()) {
    BetweenLaunches::run();
    WhileWaiting::look(); // a rank that others lost may be the one that is waited for
    if (reached()) return;
    sched_yield();
  }
}

void keep_messages_moving() {
  int any = 0;
  KOZERO_MPI(MPI_Iprobe, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any, MPI_STATUS_IGNORE);
}

void wait_for_all(std::vector<MPI_Request>& requests) {
  wait_until([&] { return all_complete(requests); });
}

} // namespace kozero
