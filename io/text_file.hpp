#pragma once
#include <string>

namespace kozero {

/// The whole file. InputError when it is missing, not to be read, or too large to be text that a person wrote.
std::string read_text_file(std::string const& path);

/// For messages about a file that is not there: "; looked for in '/home/…'" for a relative path, else nothing.
std::string seen_from(std::string const& path);

} // namespace kozero
