// Twin of attention_cudnn.cpp where there is no library for attention.
#include "kernels/attention_graph.hpp"

#include "core/error.hpp"

namespace kozero {

std::optional<AttentionLibraryLimits> attention_library_limits() { return std::nullopt; }

AttentionLibrary& attention_library() {
  throw Error("attention: there is no library for it in this build (a fault of kozero); please report it");
}

} // namespace kozero
