// trace/executors/spill/spill_file.h — SpillFile: a temporary file for residuals and checkpoints.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "reel/core/types/tensor.h"

namespace reel {

/// Transfers of all spill files of this program so far.
struct SpillTraffic {
  std::int64_t writes = 0, bytes_written = 0, reads = 0, bytes_read = 0;
  std::int64_t reads_ahead = 0;  ///< reads that began before a wait() for them
  std::int64_t pending = 0;      ///< reads and writes in flight
};
SpillTraffic spill_traffic();

/// An unnamed file that the system removes when it is closed, even if the program is killed. A
/// thread of its own writes and reads blocks one after the other, with pwrite and pread. If no
/// thread can be started, the calling thread does so.
class SpillFile {
 public:
  /// folder: the file is created there at the first write; empty for the system's folder for
  /// temporary files.
  /// owner: name of the loop in error messages, such as: scan "encoder".
  /// Throws IoError at once if the folder takes no file, rather than hours later when the window is
  /// full.
  SpillFile(const std::string& folder, std::string owner);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  /// A transfer in flight. Its tensor must not be used before wait() returned.
  struct Job {
    Tensor block;
    std::int64_t offset;
    bool writes, is_ahead = false;
    bool is_done = false;
    int error = 0;           ///< errno
    std::int64_t got = 0;    ///< bytes transferred
    std::int64_t left = -1;  ///< bytes of the file, if it is shorter than the data written to it
  };
  using JobRef = std::shared_ptr<Job>;

  /// Reserves `bytes` at the end of the file. Returns their offset.
  std::int64_t take(std::int64_t bytes) { return std::exchange(end_, end_ + bytes); }

  /// Starts writing a block. Throws IoError if the file cannot be created.
  JobRef write(std::int64_t offset, Tensor block) {
    return begin({std::move(block), offset, true});
  }
  /// Starts reading into a block. is_ahead: a prefetch, which is not yet waited for.
  JobRef read(std::int64_t offset, Tensor block, bool is_ahead = false) {
    return begin({std::move(block), offset, false, is_ahead});
  }
  /// Waits until the job is done. Returns its block, which the job then holds no longer: the thread
  /// may keep the job a moment, and its memory would count for that long. Throws IoError if it
  /// failed: the disk is full, or the file was truncated. Then the job keeps the block.
  Tensor wait(const JobRef& job);

 private:
  JobRef begin(Job job);
  [[noreturn]] void throw_cannot_make() const;
  void open();
  void work();
  void run(Job& job);
  void finish(Job& job);

  std::string folder_, owner_;
  std::int64_t end_ = 0;
  std::int64_t written_ = 0;  ///< bytes up to the last byte written; used by the I/O thread
  int file_ = -1;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<JobRef> jobs_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace reel
