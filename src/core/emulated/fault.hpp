#pragma once

namespace kozero::emulated {

/// Lets accesses to closed memory be told by name before the program ends. Cheap; called again wherever memory opens or
/// closes, since others may have put their handlers in the place of ours. Faults elsewhere go to the handler that was
/// there.
void watch_faults();

} // namespace kozero::emulated
