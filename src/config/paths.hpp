#pragma once
#include <string>

namespace kozero {

/// A deck's paths are taken as they are. What is wrong with one that waits for a shell, which would put a folder in the
/// place of "~" or "$HOME", to be read after the key; empty where it does not. "./~" is a file of that name.
std::string path_fault(std::string const& path);

} // namespace kozero
