// tests/fuzz/files/memory_file.h — a file in memory that can be opened by its path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace reel {

class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes)
      : file_(::memfd_create("fuzzed", MFD_CLOEXEC)),
        path_("/proc/self/fd/" + std::to_string(file_)) {
    if (::write(file_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      std::abort();
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  int file_;
  std::string path_;
};

}  // namespace reel
