#pragma once
// Files of a run's folder, where anybody may have put anything: links are not followed, pipes and devices not waited
// for, and what is written appears whole. Private to io.

#include "io/file_descriptor.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace kozero {

/// What a path is that is no plain file, "a link"; nothing where it is one or nothing is there.
std::optional<std::string> other_than_file(std::string const& path);

/// Opens a plain file, with open(2)'s `flags`; closed where none is there and none is made. InputError where it is
/// anything else, Error where it cannot be opened.
FileDescriptor open_plain_file(std::string const& path, int flags);

/// From the present place on. False, with errno, where not all of it could be written.
bool write_all(FileDescriptor const& file, std::string_view text);
/// All of an open file, as far as it can be read; errno is 0 where that is the whole.
std::string read_all(FileDescriptor const& file);
/// Nothing where there is no such file; errors as open_plain_file.
std::optional<std::string> read_plain_file(std::string const& path);

/// Whether a path still leads to an open file or folder; as long as that cannot be told, it does. Relative ones are
/// seen from `folder`.
bool is_at(FileDescriptor const& file, std::string const& path, FileDescriptor const& folder = {});

/// Puts a new file of this text, on disk already, in the place of what is there, a folder excepted: a kill leaves the
/// one or the other. It comes back open for appending. Error where that cannot be.
FileDescriptor replace_file(std::string const& path, std::string_view text);

} // namespace kozero
