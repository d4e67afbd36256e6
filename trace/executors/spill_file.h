// trace/executors/spill_file.h — SpillFile, memory that is put away in a file.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "reel/core/tensor.h"

namespace reel {

/// What all files of this program have been asked for so far.
struct SpillTraffic {
  std::int64_t writes = 0, bytes_written = 0, reads = 0, bytes_read = 0;
  std::int64_t reads_ahead = 0;  ///< of those, begun before somebody waited for them
  std::int64_t pending = 0;      ///< of both, on their way
};
SpillTraffic spill_traffic();

/// A file without a name, which goes when nobody has it open any more, whatever happens. Blocks are
/// written and read by a thread of its own, one after the other, with pwrite and pread; by the
/// caller's where no thread can be started.
class SpillFile {
 public:
  /// folder: where the file is made, when something is written for the first time; empty: that of
  /// the system for temporary files. owner: whose it is, as errors have it: scan "encoder". Throws
  /// IoError for a folder that takes none: whoever runs for hours before the window is full had
  /// better know at once.
  SpillFile(const std::string& folder, std::string owner);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  /// A block on its way. Its tensor must be left alone until wait().
  struct Job {
    Tensor block;
    std::int64_t offset;
    bool writes, is_ahead = false;
    bool is_done = false;
    int error = 0;           ///< errno
    std::int64_t got = 0;    ///< bytes
    std::int64_t left = -1;  ///< of the file, where it is shorter than what was written to it
  };
  using JobRef = std::shared_ptr<Job>;

  /// Room for so many bytes behind what there is -> where.
  std::int64_t take(std::int64_t bytes) { return std::exchange(end_, end_ + bytes); }

  /// Begins to. Throws IoError where no file can be made in the folder any more.
  JobRef write(std::int64_t offset, Tensor block) {
    return begin({std::move(block), offset, true});
  }
  /// is_ahead: nobody waits for it yet.
  JobRef read(std::int64_t offset, Tensor block, bool is_ahead = false) {
    return begin({std::move(block), offset, false, is_ahead});
  }
  /// Until it is done. Throws IoError where it could not be: for lack of room, or because the file
  /// is shorter than it was.
  void wait(const JobRef& job);

 private:
  JobRef begin(Job job);
  [[noreturn]] void throw_cannot_make() const;
  void open();
  void work();
  void run(Job& job);
  void finish(Job& job);

  std::string folder_, owner_;
  std::int64_t end_ = 0;
  std::int64_t written_ = 0;  ///< of the file, where its last byte is; the thread's
  int file_ = -1;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<JobRef> jobs_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace reel
