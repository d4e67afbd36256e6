// frontend/replace_file.h — writing a file so that it is there as a whole, or not at all.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace reel {

/// Writes the parts one after another to the file at `path`, in place of what it was.
///
/// They go to a new file in the same folder, PATH.reel-part (or PATH.reel-part-1, ... while others
/// write there too), which then takes the old one's place and permissions; both the file and the
/// folder are on the disk when the function returns. A PATH.reel-part that a killed program left is
/// removed by the next call. A device is written to directly. Throws IoError, which begins with
/// `what` and names path and reason; then the file is as it was, and no other is left behind.
void replace_file(const std::string& path, std::span<const std::string_view> parts,
                  std::string_view what);

/// The system's words for an errno.
std::string reason_of(int error);

}  // namespace reel
