#include "reel/frontend/files/replace_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/reason_of.h"
#include "reel/core/base/str.h"
#include "reel/core/base/write_target.h"
#include "reel/frontend/files/broken_pipe_scope.h"

namespace reel {
namespace {

namespace fs = std::filesystem;

// ---- Names of files that are being written --------------------------------------------

constexpr std::size_t kDigits = 16;
constexpr std::string_view kHexDigits = "0123456789abcdef";

/// Returns the beginning of the temporary names: short enough to be valid if the target's name is.
std::string stem_of(const fs::path& target) {
  return target.filename().string().substr(0, 200) + ".reel-part-";
}

std::string random_digits() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number)
    number = static_cast<std::uint64_t>(
        std::chrono::steady_clock::now().time_since_epoch().count() ^ ::getpid());
  std::string digits;
  for (; digits.size() < kDigits; number >>= 4) digits += kHexDigits[number & 15];
  return digits;
}

bool is_part(std::string_view name, std::string_view stem) {
  return name.size() == stem.size() + kDigits && name.starts_with(stem) &&
         name.substr(stem.size()).find_first_not_of(kHexDigits) == std::string_view::npos;
}

/// Removes the file if no program has it locked. Writers lock their files, and a lock ends with its
/// program. On file systems without locks no file counts as abandoned.
void remove_if_abandoned(const fs::path& part) {
  const int file = ::open(part.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  struct stat opened {
  }, there{};
  // Programs remove or rename a file only while they hold its lock, so the name still means this
  // file.
  if (::flock(file, LOCK_EX | LOCK_NB) == 0 && ::fstat(file, &opened) == 0 &&
      ::lstat(part.c_str(), &there) == 0 && opened.st_dev == there.st_dev &&
      opened.st_ino == there.st_ino && S_ISREG(opened.st_mode))
    ::unlink(part.c_str());
  ::close(file);
}

/// By the calls of the system: std::filesystem's iterator allocates where it may not throw.
void remove_abandoned_parts(const fs::path& target) {
  const std::string stem = stem_of(target);
  fs::path parent = target.parent_path();
  if (parent.empty()) parent = ".";
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(parent.c_str()), ::closedir);
  if (!folder) return;
  std::vector<fs::path> parts;
  while (const dirent* entry = ::readdir(folder.get()))
    if (is_part(entry->d_name, stem)) parts.push_back(parent / entry->d_name);
  std::for_each(parts.begin(), parts.end(), remove_if_abandoned);
}

// ---- Replacing a file ---------------------------------------------------------------------------

/// The steps of one replacement. The destructor closes and removes unfinished files.
class Replacement {
 public:
  Replacement(const std::string& path, std::string_view what) : path_(path), what_(what) {}
  ~Replacement() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    close_file();
    if (folder_ >= 0) ::close(folder_);
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void run(std::span<const std::string_view> parts) {
    find_target();
    if (target_.descriptor || (target_.old && !S_ISREG(target_.old->st_mode))) {
      write_directly(parts);
      return;
    }
    if (target_.old && ::access(target_.path.c_str(), W_OK) != 0) fail(errno);
    remove_abandoned_parts(target_.path);
    open_temporary();
    reserve(parts);
    write(parts);
    if (::fsync(file_) != 0) fail(errno);
    open_folder();  // allocates: a failure has to come before the old file is replaced
    // Rename before closing: without its lock, another writer could remove the file as abandoned.
    if (::rename(temporary_.c_str(), target_.path.c_str()) != 0) fail(errno);
    temporary_.clear();
    close_file();
    sync_folder();
  }

 private:
  [[noreturn]] void fail(int error) const {
    throw IoError(str(what_, ": cannot write ", path_, ": ", reason_of(error)));
  }

  void find_target() {
    target_ = find_write_target(path_, what_);
    if (target_.descriptor) return;
    if (!target_.path.has_filename()) fail(path_.empty() ? ENOENT : EISDIR);
    if (target_.old && S_ISDIR(target_.old->st_mode)) fail(EISDIR);
  }

  void write_directly(std::span<const std::string_view> parts) {
    const BrokenPipeScope no_signal;
    file_ = target_.descriptor
                ? ::fcntl(*target_.descriptor, F_DUPFD_CLOEXEC, 0)
                : ::open(target_.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
    if (file_ < 0) fail(errno);
    write(parts);
    close_checked();
  }

  void open_temporary() {
    constexpr int kMaxTries = 1000;
    const std::string stem = stem_of(target_.path);
    for (int tries = 0; file_ < 0; ++tries) {
      if (tries == kMaxTries) fail(EEXIST);
      fs::path candidate = target_.path.parent_path() / (stem + random_digits());
      file_ = ::open(candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (file_ < 0 && errno != EEXIST) fail(errno);
      if (file_ >= 0 && !lock(candidate)) close_file();
      if (file_ >= 0) temporary_ = std::move(candidate);
    }
    if (target_.old) (void)!::fchmod(file_, target_.old->st_mode & 07777);
  }

  /// Returns false if another writer removed file_ as abandoned between opening and locking.
  bool lock(const fs::path& candidate) const {
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
    struct stat mine {
    }, there{};
    return ::fstat(file_, &mine) == 0 && ::lstat(candidate.c_str(), &there) == 0 &&
           mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
  }

  /// Reserves the disk space, so that a full disk is found before anything is written. If the file
  /// system cannot reserve, writing finds it.
  void reserve(std::span<const std::string_view> parts) {
    off_t size = 0;
    for (const std::string_view part : parts) size += static_cast<off_t>(part.size());
    if (size == 0) return;
    int error;
    do error = ::posix_fallocate(file_, 0, size);
    while (error == EINTR);
    if (error != 0 && error != EOPNOTSUPP && error != EINVAL) fail(error);
  }

  void write(std::span<const std::string_view> parts) {
    for (std::string_view part : parts) {
      while (!part.empty()) {
        const ssize_t written = ::write(file_, part.data(), part.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0 && errno == EAGAIN && wait_until_writable()) continue;
        if (written < 0) fail(errno);
        if (written == 0) fail(ENOSPC);
        part.remove_prefix(static_cast<std::size_t>(written));
      }
    }
  }

  /// Waits for a descriptor in non-blocking mode, as a terminal's may be.
  bool wait_until_writable() const {
    pollfd waiting{file_, POLLOUT, 0};
    return ::poll(&waiting, 1, -1) >= 0 || errno == EINTR;
  }

  void close_checked() {
    const int file = file_;
    file_ = -1;
    if (::close(file) != 0 && errno != EINTR) fail(errno);
  }

  void close_file() {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }

  /// Leaves folder_ at -1 for a folder with write but without read permission.
  void open_folder() {
    const fs::path parent = target_.path.parent_path();
    folder_ = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }

  /// Syncs the folder, so that the new name survives a power failure.
  void sync_folder() const {
    if (folder_ >= 0 && ::fsync(folder_) != 0 && errno != EINVAL) fail(errno);
  }

  const std::string& path_;
  std::string_view what_;
  WriteTarget target_;
  fs::path temporary_;
  int file_ = -1, folder_ = -1;
};

}  // namespace

void replace_file(const std::string& path, std::span<const std::string_view> parts,
                  std::string_view what) {
  Replacement(path, what).run(parts);
}

}  // namespace reel
