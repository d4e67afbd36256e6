#include "reel/frontend/replace_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "reel/core/errors.h"
#include "reel/core/str.h"

namespace reel {
namespace {

namespace fs = std::filesystem;

/// The steps of one replacement; whatever is open or half done when it dies is closed and removed.
class Replacement {
 public:
  Replacement(const std::string& path, std::string_view what) : path_(path), what_(what) {}
  ~Replacement() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    close_file();
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void run(std::span<const std::string_view> parts) {
    find_target();
    if (exists_ && !S_ISREG(old_.st_mode)) {
      if (S_ISDIR(old_.st_mode)) fail(EISDIR);
      write_to_device(parts);
      return;
    }
    if (exists_ && ::access(target_.c_str(), W_OK) != 0) fail(errno);
    open_temporary();
    reserve(parts);
    write(parts);
    if (::fsync(file_) != 0) fail(errno);
    // Closed, it would be nobody's: another writer could take it before it has its name.
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
    temporary_.clear();
    close_file();
    sync_folder();
  }

 private:
  [[noreturn]] void fail(int error) const {
    throw IoError(str(what_, ": cannot write ", path_, ": ", reason_of(error)));
  }

  /// A link stays a link: what it points to is replaced.
  void find_target() {
    target_ = path_;
    std::error_code error;
    if (fs::is_symlink(target_, error)) {
      const fs::path resolved = fs::weakly_canonical(target_, error);
      if (error) fail(error.value());
      target_ = resolved;
    }
    if (!target_.has_filename()) fail(path_.empty() ? ENOENT : EISDIR);
    exists_ = ::stat(target_.c_str(), &old_) == 0;
    if (!exists_ && errno != ENOENT) fail(errno);
  }

  void write_to_device(std::span<const std::string_view> parts) {
    file_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file_ < 0) fail(errno);
    write(parts);
    close_checked();
  }

  /// The name is the same every time, so that what a killed program left is found and removed. The
  /// file is locked while it is written: a lock ends with its program, whatever ended that.
  void open_temporary() {
    constexpr int kMostWriters = 1000;  // at once, of one file
    // Short enough that the name fits wherever the target's does.
    const std::string name = target_.filename().string().substr(0, 200) + ".reel-part";
    int error = EEXIST;
    for (int writer = 0; file_ < 0 && writer < kMostWriters; ++writer) {
      const fs::path candidate = target_.parent_path() / (writer ? str(name, '-', writer) : name);
      do {
        file_ = ::open(candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file_ < 0) error = errno;
        if (file_ >= 0 && !lock(candidate)) close_file();
      } while (file_ < 0 && error == EEXIST && remove_abandoned(candidate));
      if (file_ >= 0) temporary_ = candidate;
      if (file_ < 0 && error != EEXIST) fail(error);
    }
    if (file_ < 0) fail(error);
    if (exists_) (void)!::fchmod(file_, old_.st_mode & 07777);
  }

  /// False when another writer holds file_, or took it for abandoned between the two calls. Where
  /// the file system knows no locks, all are ours, and none is abandoned.
  bool lock(const fs::path& candidate) const {
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
    struct stat mine {
    }, there{};
    return ::fstat(file_, &mine) == 0 && ::lstat(candidate.c_str(), &there) == 0 &&
           mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
  }

  /// Removes a file that no program writes any more; true when there is none.
  static bool remove_abandoned(const fs::path& candidate) {
    const int file = ::open(candidate.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return errno == ENOENT;
    struct stat mine {
    }, there{};
    const bool is_ours = ::flock(file, LOCK_EX | LOCK_NB) == 0 && ::fstat(file, &mine) == 0 &&
                         ::lstat(candidate.c_str(), &there) == 0 && mine.st_dev == there.st_dev &&
                         mine.st_ino == there.st_ino && S_ISREG(mine.st_mode);
    // Whoever removes or renames a file holds its lock, so that it is still that one.
    const bool is_gone = is_ours && ::unlink(candidate.c_str()) == 0;
    ::close(file);
    return is_gone;
  }

  /// A full disk is found out before anything is written; where the file system cannot reserve,
  /// while writing.
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
        if (written < 0) fail(errno);
        if (written == 0) fail(ENOSPC);
        part.remove_prefix(static_cast<std::size_t>(written));
      }
    }
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

  /// So that the new name survives a power failure.
  void sync_folder() {
    const fs::path parent = target_.parent_path();
    file_ = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file_ < 0) return;  // a folder that may be written to but not read: nothing to hold on to
    if (::fsync(file_) != 0 && errno != EINVAL) fail(errno);
    close_file();
  }

  const std::string& path_;
  std::string_view what_;
  fs::path target_, temporary_;
  struct stat old_ {};
  bool exists_ = false;
  int file_ = -1;
};

}  // namespace

void replace_file(const std::string& path, std::span<const std::string_view> parts,
                  std::string_view what) {
  Replacement(path, what).run(parts);
}

std::string reason_of(int error) { return std::generic_category().message(error); }

}  // namespace reel
