// tests/short_files.h — ShortFiles, as if a disk were full.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace reel {

/// No file may be longer than so many bytes while it lives.
class ShortFiles {
 public:
  explicit ShortFiles(rlim_t bytes) : before_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &most_);
    const rlimit little{bytes, most_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &little);
  }
  ~ShortFiles() {
    setrlimit(RLIMIT_FSIZE, &most_);
    std::signal(SIGXFSZ, before_);
  }
  ShortFiles(const ShortFiles&) = delete;
  ShortFiles& operator=(const ShortFiles&) = delete;

 private:
  void (*before_)(int);
  rlimit most_{};
};

}  // namespace reel
