// distributed/transport.h — Transport, this process's use of MPI: exchanges with a time limit.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/distributed/call.h"

REEL_API_BEGIN
namespace reel {

/// The bytes that one rank sends to, or receives from, each rank.
struct Shares {
  std::vector<int> bytes, begin;  ///< by rank; begin: the place in the buffer
  /// Returns shares that stand one behind the other.
  /// Throws ArgumentError for 2 GiB and more together, which MPI does not send at once.
  static Shares of(const std::vector<std::int64_t>& bytes);
};

/// The ranks of one program. There is at most one object, owned by World.
///
/// The functions below are called by all ranks in one order, which check() ensures. They throw
/// DistributedError if the other ranks do not take part within the time limit, or if any of them
/// called fail(). Afterwards, all of them throw. Hold lock() during a check and the exchanges that
/// follow it.
class Transport {
 public:
  using Clock = std::chrono::steady_clock;

  /// Starts MPI if mpirun started the program; otherwise there is one rank.
  explicit Transport(std::chrono::duration<double> timeout);
  /// Ends MPI. Requires that all ranks have come here.
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// Returns the active object; throws DistributedError if there is none: the World has ended.
  static Transport& active(std::string_view function);
  static bool is_active();

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  /// True if a rank did not come in time, or failed. No exchange is possible any more.
  bool is_broken() const { return !failure_.empty(); }
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  /// Compares the call with the calls of the other ranks. Throws DistributedError on all ranks if
  /// they differ. `call` must live until the exchanges that follow have ended.
  void check(const Call& call);
  /// Tells the other ranks that this one cannot finish the present call. They throw at once, with
  /// the reason.
  void fail(const std::string& reason);

  /// Returns true if `value` is true on all ranks.
  bool all(bool value);
  void broadcast(void* data, std::size_t bytes, int root);
  /// Gathers the shares of all ranks. mine: null if it is in its place in `all` already.
  void all_gather(const void* mine, void* all, const Shares& shares);
  /// Sends share r of `send` to rank r, and receives that rank's share into `receive`.
  void all_to_all(const void* send, const Shares& sends, void* receive, const Shares& receives);

  /// Ends all ranks with exit code 1, and this process within a second. If ranks were late, also
  /// ends the daemon of mpirun on this machine.
  [[noreturn]] void abort();

 private:
  struct Communicators;

  /// Waits until a request, an MPI_Request, has ended. may_sleep: it needs no work of this rank.
  void wait(void* request, bool may_sleep);
  /// Throws an error that lists the calls of all ranks. Requires that all ranks call it.
  [[noreturn]] void refuse(const Call& call);
  [[noreturn]] void fail_late();
  /// Sends this rank's call, or the reason of its failure, to all others, so that they can name it.
  /// Does so at most once.
  void announce(std::string text, int tag);
  void collect_announcements();
  void start();

  std::chrono::duration<double> timeout_;
  std::unique_ptr<Communicators> mpi_;  ///< null for one rank
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  bool is_crowded_ = false;  ///< more ranks on this machine than processors
  std::mutex mutex_;
  std::string failure_;
  const Call* current_ = nullptr;  ///< this rank's present call
  std::string name_, last_name_;   ///< of the present call, and of the call before it
  SourceId source_ = kNoSource, last_source_ = kNoSource;
  std::vector<std::string> announced_;  ///< by rank; empty if not announced
  bool has_announced_ = false, has_failed_ = false;
  std::int64_t number_ = -1;  ///< of the present call; 0: the World's own
};

}  // namespace reel
REEL_API_END
