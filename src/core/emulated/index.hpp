#pragma once
// What core/views.hpp says of an index that a vector or matrix has not.

#include <cstdint>

namespace kozero::emulated {

/// Error of the kernel that runs; it comes out where the kernel is waited for.
[[noreturn]] void fail_index(std::int64_t index, std::int64_t size, char const* what);
[[noreturn]] void fail_part(std::int64_t begin, std::int64_t end, std::int64_t size, char const* what);

} // namespace kozero::emulated
