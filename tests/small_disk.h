// tests/small_disk.h — SmallDisk, a file system of a few bytes.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <thread>

namespace reel {

/// A file system in memory that no other process sees. is_there() is false if the system refuses
/// the right to mount one.
class SmallDisk {
 public:
  explicit SmallDisk(std::int64_t bytes) {
    // Only this thread gets the mount, over a folder that exists; a descriptor opened there works
    // in all threads.
    std::thread([&] {
      if (unshare(CLONE_NEWNS) || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) ||
          mount("none", "/tmp", "tmpfs", 0, ("size=" + std::to_string(bytes)).c_str()))
        return;
      folder_ = ::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }).join();
  }
  ~SmallDisk() {
    if (is_there()) ::close(folder_);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool is_there() const { return folder_ >= 0; }
  bool is_empty() const {
    struct statvfs all {};
    return fstatvfs(folder_, &all) == 0 && all.f_bfree == all.f_blocks;
  }
  std::string folder() const { return "/proc/self/fd/" + std::to_string(folder_); }

 private:
  int folder_ = -1;
};

}  // namespace reel
