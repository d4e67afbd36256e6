#include "reel/trace/executors/spill/spill_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "reel/core/base/errors.h"
#include "reel/core/base/reason_of.h"
#include "reel/core/base/str.h"

namespace reel {
namespace {

std::mutex traffic_mutex;
SpillTraffic traffic;

/// Updates the counts of spill_traffic().
template <class F>
void note(F&& change) {
  const std::lock_guard lock(traffic_mutex);
  change(traffic);
}

std::string folder_or_default(const std::string& folder) {
  if (!folder.empty()) return folder;
  const char* given = std::getenv("TMPDIR");
  return given && *given ? given : "/tmp";
}

}  // namespace

SpillTraffic spill_traffic() {
  const std::lock_guard lock(traffic_mutex);
  return traffic;
}

SpillFile::SpillFile(const std::string& folder, std::string owner)
    : folder_(folder_or_default(folder)), owner_(std::move(owner)) {
  if (access((folder_ + "/.").c_str(), W_OK | X_OK)) throw_cannot_make();
}

void SpillFile::throw_cannot_make() const {
  throw IoError(
      str(owner_, ": swap_memory: cannot make a file in ", folder_, ": ", reason_of(errno)));
}

void SpillFile::open() {
  std::string name = folder_ + "/reel-spill-XXXXXX";
  file_ = mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) throw_cannot_make();
  unlink(name.c_str());
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {  // begin() then does the transfers itself
  } catch (...) {
    close(std::exchange(file_, -1));  // the next job tries again
    throw;
  }
}

SpillFile::~SpillFile() {
  if (file_ < 0) return;
  {
    const std::lock_guard lock(mutex_);
    note([&](SpillTraffic& all) { all.pending -= std::ssize(jobs_); });
    jobs_.clear();  // no wait() will follow
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  close(file_);
}

SpillFile::JobRef SpillFile::begin(Job job) {
  if (file_ < 0) open();
  auto result = std::make_shared<Job>(std::move(job));
  const auto count = [&] {
    note([&](SpillTraffic& all) {
      ++all.pending;
      ++(result->writes ? all.writes : all.reads);
      (result->writes ? all.bytes_written : all.bytes_read) += result->block.type().bytes();
      all.reads_ahead += result->is_ahead;
    });
  };
  if (!thread_.joinable()) {
    count();
    finish(*result);
    return result;
  }
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(result);  // counted before the thread can see it, and only if it was queued
    count();
  }
  changed_.notify_all();
  return result;
}

void SpillFile::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || !jobs_.empty(); });
    if (ends_) return;
    const JobRef job = jobs_.front();
    jobs_.pop_front();
    lock.unlock();
    finish(*job);
    lock.lock();
  }
}

void SpillFile::finish(Job& job) {
  run(job);
  note([](SpillTraffic& all) { --all.pending; });
  {
    const std::lock_guard lock(mutex_);
    job.is_done = true;
  }
  changed_.notify_all();
}

void SpillFile::run(Job& job) {
  char* data = job.block.data<char>();
  const std::int64_t bytes = job.block.type().bytes();
  // Writing behind the end of a truncated file would leave zeros in between.
  struct stat now = {};
  if (fstat(file_, &now) == 0 && now.st_size < written_) {
    job.left = now.st_size;
    return;
  }
  while (job.got < bytes) {
    const auto rest = static_cast<std::size_t>(bytes - job.got);
    const ssize_t count = job.writes ? pwrite(file_, data + job.got, rest, job.offset + job.got)
                                     : pread(file_, data + job.got, rest, job.offset + job.got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) job.error = errno;
    if (count <= 0) return;
    job.got += count;
    if (job.writes) written_ = std::max(written_, job.offset + job.got);
  }
}

Tensor SpillFile::wait(const JobRef& job) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return job->is_done; });
  }
  if (job->left >= 0)
    throw IoError(str(owner_, ": swap_memory: a file in ", folder_, " has ", job->left,
                      " bytes, fewer than were written to it"));
  const char* what = job->writes ? "write to" : "read from";
  if (job->error)
    throw IoError(str(owner_, ": swap_memory: cannot ", what, " a file in ", folder_, ": ",
                      reason_of(job->error)));
  if (job->got != job->block.type().bytes())
    throw IoError(str(owner_, ": swap_memory: a file in ", folder_, " gave ", job->got,
                      " bytes of ", job->block.type().bytes(), " that were written to it"));
  return std::exchange(job->block, Tensor());
}

}  // namespace reel
