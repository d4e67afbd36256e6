// core/base/write_target.h — find_write_target, which follows the links of a path to write to.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "reel/core/base/visibility.h"

namespace reel {

/// The file that a path leads to.
struct WriteTarget {
  std::filesystem::path path;      ///< is no link
  std::optional<int> descriptor;   ///< of this program, if the path leads to one: /dev/stdout
  std::optional<struct stat> old;  ///< of the file that is there
};

/// Follows the links at the end of a path, also to a file that does not exist yet.
///
/// In a folder that is sticky and writable by all, such as /tmp, others may have put links and
/// files where a program is about to write. Links, files and pipes there have to belong to the
/// user of this process or to the owner of the folder, as the kernel asks if fs.protected_symlinks,
/// protected_regular and protected_fifos are set.
///
/// Throws IoError for an entry of another user, for too many links, and if the system cannot tell;
/// the message begins with `what` and names path and reason.
REEL_API WriteTarget find_write_target(const std::string& path, std::string_view what);

}  // namespace reel
