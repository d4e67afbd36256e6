// frontend/replace_file.h — writing a file so that it is there as a whole, or not at all.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace reel {

/// Writes the parts one after another to the file at `path`, in place of what it was.
///
/// They go to a new file in the same folder, PATH.reel-part-XXXXXXXXXXXXXXXX of 16 random
/// hexadecimal digits, which then takes the old one's place and permissions; both the file and the
/// folder are on the disk when the function returns. The next call for the
/// same path removes such a file of a killed program; no other file is touched. A link stays a
/// link, also one whose target is not there yet. A device, a pipe or a descriptor (/dev/stdout,
/// /dev/fd/3) is written to directly; data in the program's own buffers may come later.
///
/// Throws IoError, which begins with `what` and names path and reason; then the file is as it was,
/// and no other is left behind. A pipe that is closed at its other end is an error, not a signal.
void replace_file(const std::string& path, std::span<const std::string_view> parts,
                  std::string_view what);

}  // namespace reel
