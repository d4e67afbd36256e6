// write_file.h — write_file, for pictures.
#pragma once

#include <string>

/// Throws UserError, which names path and reason.
void write_file(const std::string& path, const std::string& content);

/// Throws UserError unless the folder of such a file is one that can be written to: hours of
/// training are not to end with that.
void check_folder_of(const std::string& path);
