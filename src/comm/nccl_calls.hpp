#pragma once
// What the files that call NCCL have in common. No other header includes NCCL's.

#include "core/dtype.hpp"

#include <nccl.h>

#include <cstdint>

namespace kozero {

// Every function of NCCL that kozero calls, with its name in NcclCalls. The oldest library that has them all is 2.18.
#define KOZERO_NCCL_FUNCTIONS(X)                                                                                       \
  X(get_version, ncclGetVersion)                                                                                       \
  X(get_error_string, ncclGetErrorString)                                                                              \
  X(get_last_error, ncclGetLastError)                                                                                  \
  X(get_unique_id, ncclGetUniqueId)                                                                                    \
  X(comm_init_rank_config, ncclCommInitRankConfig)                                                                     \
  X(comm_get_async_error, ncclCommGetAsyncError)                                                                       \
  X(comm_finalize, ncclCommFinalize)                                                                                   \
  X(comm_destroy, ncclCommDestroy)                                                                                     \
  X(comm_abort, ncclCommAbort)                                                                                         \
  X(group_start, ncclGroupStart)                                                                                       \
  X(group_end, ncclGroupEnd)                                                                                           \
  X(send, ncclSend)                                                                                                    \
  X(recv, ncclRecv)                                                                                                    \
  X(all_gather, ncclAllGather)                                                                                         \
  X(broadcast, ncclBroadcast)

struct NcclCalls {
#define KOZERO_NCCL_MEMBER(member, function) decltype(&::function) member = nullptr;
  KOZERO_NCCL_FUNCTIONS(KOZERO_NCCL_MEMBER)
#undef KOZERO_NCCL_MEMBER
};

/// The library's functions. It is loaded at the first call, so that a program that was built with it starts where it is
/// not; then, and where it is older than 2.18, an Error that says what to do.
NcclCalls const& nccl_calls();

inline constexpr int oldest_nccl = 21800;

inline ncclDataType_t nccl_type(DType type) {
  switch (type) {
  case DType::f32: return ncclFloat32;
  case DType::bf16: return ncclBfloat16;
  case DType::f16: return ncclFloat16;
  case DType::f64: return ncclFloat64;
  case DType::i64: return ncclInt64;
  case DType::i32: return ncclInt32;
  case DType::u8: break;
  }
  return ncclUint8;
}

} // namespace kozero
