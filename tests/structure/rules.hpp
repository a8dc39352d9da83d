#pragma once
#include "structure/source_tree.hpp"

namespace kozero::structure {

/// What of doc/structure.txt a file breaks, one message a place: which parts may include which, and the one home of
/// each dependency. Empty for a file as it should be.
std::vector<std::string> violations(SourceFile const& file);
/// The same of a file of no folder there, such as a test: the code of homes that it keeps to too.
std::vector<std::string> violations_outside(SourceFile const& file);

} // namespace kozero::structure
