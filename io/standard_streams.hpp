#pragma once

namespace kozero {

/// Takes the numbers of standard streams that are closed, first thing in main: what is opened next would get them, and
/// the log would be written there. Writing to such a stream fails.
void keep_standard_streams();

} // namespace kozero
