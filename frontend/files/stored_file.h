// frontend/files/stored_file.h — StoredFile, a file open for random access, with its error
// messages.
#pragma once

#include <cstdint>
#include <string>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// A regular file, open for reading. Thread-safe: const members may be called concurrently.
class REEL_API StoredFile {
 public:
  /// `what` is the reading function; messages begin with "what: path". Throws IoError.
  StoredFile(const std::string& path, const char* what);
  ~StoredFile();
  StoredFile(const StoredFile&) = delete;
  StoredFile& operator=(const StoredFile&) = delete;

  const std::string& name() const { return name_; }  ///< "what: path"
  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// Reads `count` bytes from `offset` on. Throws IoError, also if the file is shorter.
  void read(void* to, std::uint64_t offset, std::uint64_t count) const;
  /// Returns the first bytes of the file, kFileFrontBytes at most. Throws IoError.
  std::string front() const;
  /// Throws IoError: name, "is damaged", and the reason, which may quote the file; long reasons are
  /// cut.
  [[noreturn]] void damaged(const std::string& reason) const;
  /// Throws IoError for a file of another kind: name, "is not", `expected` ("an .npy file"), and
  /// the kind that the file looks like, or `otherwise` if it is unknown.
  [[noreturn]] void is_not(const char* expected, const std::string& otherwise) const;

 private:
  void check();

  std::string path_, name_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

/// Throws the error of StoredFile::damaged, given only the file's name.
[[noreturn]] void throw_damaged(const std::string& name, const std::string& reason);

}  // namespace reel
REEL_API_END
