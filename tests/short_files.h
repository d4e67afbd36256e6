// tests/short_files.h — ShortFiles, a limit on the length of files, to simulate a full disk.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace reel {

/// During its lifetime no file can grow beyond `bytes`.
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
