// frontend/files/replace_file.h — replace_file, which writes a file as a whole or not at all.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reel/core/base/visibility.h"

namespace reel {

/// Writes the parts one after another to the file at `path`, and replaces the old file.
///
/// Writes to a new file in the same folder, PATH.reel-part-XXXXXXXXXXXXXXXX with 16 random
/// hexadecimal digits, and renames it, with the permissions of the old file. Ensures that file and
/// folder are on the disk when the function returns. If a program is killed while it writes, the
/// next call for the same path removes its unfinished file; no other file is touched. A link stays
/// a link, even if its target does not exist yet. A device, a pipe or a descriptor (/dev/stdout,
/// /dev/fd/3) is written to directly; data in the program's own stream buffers may appear later.
/// Links and files of other users in a folder like /tmp are refused, see core/base/write_target.h.
///
/// Throws IoError; the message begins with `what` and names path and reason; the old file is then
/// unchanged and no new file is left. A pipe that is closed at the other end is an error, not a
/// signal.
REEL_API void replace_file(const std::string& path, std::span<const std::string_view> parts,
                           std::string_view what);

}  // namespace reel
