// examples/training/write_file.h — write_file, for pictures.
#pragma once

#include <string>

/// Writes a file. Throws UserError, which names path and reason.
void write_file(const std::string& path, const std::string& content);

/// Throws UserError if the folder of the file is not writable, so that hours of training do not end
/// with that error.
void check_folder_of(const std::string& path);
