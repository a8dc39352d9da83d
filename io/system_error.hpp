#pragma once

namespace kozero {

/// What to do about a file or folder that the system refuses with errno `cause`: "make room …" helps a full disk, not
/// one that is locked. `otherwise` where the cause has no remedy of its own. Good for the program's life.
char const* remedy(int cause, char const* otherwise);

} // namespace kozero
