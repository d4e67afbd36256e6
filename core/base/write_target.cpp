#include "reel/core/base/write_target.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>

#include "reel/core/base/errors.h"
#include "reel/core/base/reason_of.h"
#include "reel/core/base/str.h"

namespace reel {
namespace {

namespace fs = std::filesystem;

/// Returns the number of the descriptor of this program that a link stands for, as in
/// /proc/self/fd/1.
std::optional<int> descriptor_of(const fs::path& link) {
  const std::string text = link.lexically_normal().string();
  for (const std::string& folder : {std::string("/proc/self/fd/"), std::string("/dev/fd/"),
                                    str("/proc/", ::getpid(), "/fd/")}) {
    if (!text.starts_with(folder)) continue;
    int number = -1;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data() + folder.size(), end, number);
    if (error == std::errc() && at == end && number >= 0) return number;
  }
  return std::nullopt;
}

std::string_view kind_of(const struct stat& entry) {
  if (S_ISLNK(entry.st_mode)) return "link";
  return S_ISFIFO(entry.st_mode) ? "pipe" : "file";
}

/// Follows the links of one path.
class Links {
 public:
  Links(const std::string& path, std::string_view what) : path_(path), what_(what) {}

  WriteTarget follow() const {
    constexpr int kMaxLinks = 40;  // the system's limit
    WriteTarget target{path_, {}, {}};
    // A link to a descriptor is not followed: no other path leads to the same file.
    for (int links = 0; !(target.descriptor = descriptor_of(target.path)); ++links) {
      target.old = status_of(target.path);
      if (!target.old) break;
      refuse_another_users(target.path, *target.old);
      if (!S_ISLNK(target.old->st_mode)) break;
      if (links == kMaxLinks) fail(ELOOP);
      target.path = target.path.parent_path() / read(target.path);
    }
    return target;
  }

 private:
  [[noreturn]] void fail(int error) const {
    throw IoError(str(what_, ": cannot write ", path_, ": ", reason_of(error)));
  }

  /// Returns nothing for a path that leads nowhere.
  std::optional<struct stat> status_of(const fs::path& path) const {
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0) return status;
    if (errno != ENOENT) fail(errno);
    return std::nullopt;
  }

  fs::path read(const fs::path& link) const {
    char next[PATH_MAX];
    const ssize_t size = ::readlink(link.c_str(), next, sizeof next);
    if (size < 0) fail(errno);
    return std::string(next, static_cast<std::size_t>(size));
  }

  void refuse_another_users(const fs::path& path, const struct stat& entry) const {
    if (!S_ISLNK(entry.st_mode) && !S_ISREG(entry.st_mode) && !S_ISFIFO(entry.st_mode)) return;
    const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0) fail(errno);
    const bool is_shared = (status.st_mode & S_ISVTX) && (status.st_mode & S_IWOTH);
    if (!is_shared || entry.st_uid == ::geteuid() || entry.st_uid == status.st_uid) return;
    throw IoError(str(what_, ": cannot write ", path_, ": ", path.string(), " is a ",
                      kind_of(entry), " of user ", entry.st_uid, " in a folder where all may write",
                      "; remove it, or write to a folder of your own"));
  }

  const std::string& path_;
  std::string_view what_;
};

}  // namespace

WriteTarget find_write_target(const std::string& path, std::string_view what) {
  return Links(path, what).follow();
}

}  // namespace reel
