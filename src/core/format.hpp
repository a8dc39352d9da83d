#pragma once
// How numbers are shown to people.

#include <cstdint>
#include <string>

namespace kozero {

/// "2h 03m", "1m 20s", "7.5s"
std::string format_duration(double seconds);
/// "1.23M", "45.6k", "812"
std::string format_count(double count);

/// "53.4 GB/s", "989 TFLOP/s": three digits, steps of 1000. `unit` is "B/s", "FLOP/s".
std::string format_rate(double per_second, char const* unit);

/// The steps of a size: 1024, or 1000 as papers count.
enum class ByteUnits { binary, decimal };
/// "0 B", "812 B", "1.5 KiB", "31.40 GiB"; decimal: "812 B", "1.5 kB", "31.4 GB", "120 GB".
std::string format_bytes(std::int64_t bytes, ByteUnits units = ByteUnits::binary);

} // namespace kozero
