// frontend/stored_file.h — a file that is open to be read at any place, and says what is wrong.
#pragma once

#include <cstdint>
#include <string>

namespace reel {

/// A regular file, open for reading. Const members may be called from several threads at once.
class StoredFile {
 public:
  /// what: who reads it; messages begin with "what: path". Throws IoError.
  StoredFile(const std::string& path, const char* what);
  ~StoredFile();
  StoredFile(const StoredFile&) = delete;
  StoredFile& operator=(const StoredFile&) = delete;

  const std::string& name() const { return name_; }  ///< "what: path"
  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// `count` bytes from `offset` on, which the file must have. Throws IoError.
  void read(void* to, std::uint64_t offset, std::uint64_t count) const;
  /// The first bytes, as many as kind_of_file looks at. Throws IoError.
  std::string front() const;
  /// Throws IoError: name, "is damaged", and the reason, which may quote the file at any length.
  [[noreturn]] void damaged(const std::string& reason) const;
  /// Throws IoError for a file of another kind: name, "is not", `expected` ("an .npy file"), and
  /// what the file looks like; `otherwise` where that is unknown.
  [[noreturn]] void is_not(const char* expected, const std::string& otherwise) const;

 private:
  void check();

  std::string path_, name_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

/// The error that StoredFile::damaged throws, for those who only know its name.
[[noreturn]] void throw_damaged(const std::string& name, const std::string& reason);

}  // namespace reel
