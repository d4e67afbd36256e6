#include "reel/distributed/transport.h"

#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <thread>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/distributed/distributed_error.h"

namespace reel {

struct Transport::Communicators {
  MPI_Comm all, announcements;
  bool owns_mpi;
};

namespace {

Transport* active_transport = nullptr;

/// True if mpirun, or another launcher for MPI, started the program.
bool is_launched() {
  constexpr std::array kSetByLaunchers{"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
  for (const char* const name : kSetByLaunchers)
    if (std::getenv(name)) return true;
  return false;
}

/// Returns the number of processors of this machine, whatever this process is bound to.
int processors() { return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)); }

constexpr int kIsWaiting = 1, kHasFailed = 2;  // tags of announcements
/// Returns how long ranks wait after the time limit for the calls of the others, to name them. A
/// rank that waits, too, answers at once, unless its processor is busy.
std::chrono::duration<double> time_for_answers(std::chrono::duration<double> timeout) {
  return std::min(timeout / 2, std::chrono::duration<double>(10));
}

/// Returns true if the process is mpirun, or orted, its daemon on another machine. comm:
/// /proc/PID/comm.
bool is_launcher(const char* comm) {
  std::array<char, 16> name{};
  const int file = ::open(comm, O_RDONLY);
  if (file < 0) return false;
  const bool is_read = ::read(file, name.data(), name.size() - 1) > 0;
  ::close(file);
  for (const char* const known : {"orted\n", "mpirun\n", "mpiexec\n", "orterun\n"})
    if (is_read && !std::strcmp(name.data(), known)) return true;
  return false;
}

/// Ends mpirun or its daemon on this machine if it is still there after ten seconds, which even a
/// busy machine gives it. If the network is cut, each would wait for the other for a quarter of an
/// hour.
void end_launcher_later() {
  const pid_t launcher = ::getppid();
  const std::string comm = str("/proc/", launcher, "/comm");
  if (!is_launcher(comm.c_str()) || ::fork() != 0) return;
  // Only functions that are safe after a fork. The process outlives this rank, and its output.
  ::setsid();
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(file);
  ::sleep(10);
  if (is_launcher(comm.c_str())) ::kill(launcher, SIGKILL);
  ::_exit(0);
}

}  // namespace

Shares Shares::of(const std::vector<std::int64_t>& bytes) {
  Shares shares;
  std::int64_t begin = 0;
  for (const std::int64_t count : bytes) {
    shares.bytes.push_back(static_cast<int>(count));
    shares.begin.push_back(static_cast<int>(begin));
    begin += count;
    if (begin > std::numeric_limits<int>::max())
      throw ArgumentError(
          "all_gather: the tensors of all ranks have 2 GiB or more together; gather parts of them");
  }
  return shares;
}

Transport& Transport::active(std::string_view function) {
  if (!active_transport)
    throw DistributedError(str(function, ": there is no World; keep it until the last call"));
  return *active_transport;
}
bool Transport::is_active() { return active_transport != nullptr; }

Transport::Transport(std::chrono::duration<double> timeout) : timeout_(timeout) {
  if (active_transport) throw ArgumentError("World: there is one already; a program has one World");
  if (is_launched()) start();
  active_transport = this;
}

void Transport::start() {
  int is_initialised = 0, is_finalised = 0;
  MPI_Initialized(&is_initialised);
  MPI_Finalized(&is_finalised);
  if (is_finalised)
    throw ArgumentError("World: MPI has ended; a program has one World, which starts and ends MPI");
  if (!is_initialised) {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    if (provided < MPI_THREAD_SERIALIZED)
      throw ArgumentError("World: this MPI cannot be used by several threads in turn");
  }
  mpi_ = std::make_unique<Communicators>();
  mpi_->owns_mpi = !is_initialised;
  MPI_Comm_dup(MPI_COMM_WORLD, &mpi_->all);
  MPI_Comm_dup(MPI_COMM_WORLD, &mpi_->announcements);
  MPI_Comm_rank(mpi_->all, &rank_);
  MPI_Comm_size(mpi_->all, &size_);
  MPI_Comm local;
  MPI_Comm_split_type(mpi_->all, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local);
  MPI_Comm_rank(local, &local_rank_);
  MPI_Comm_size(local, &local_size_);
  MPI_Comm_free(&local);
  is_crowded_ = local_size_ > processors();
  announced_.resize(static_cast<std::size_t>(size_));
}

Transport::~Transport() {
  active_transport = nullptr;
  if (!mpi_) return;
  MPI_Comm_free(&mpi_->all);
  MPI_Comm_free(&mpi_->announcements);
  if (mpi_->owns_mpi) MPI_Finalize();
}

void Transport::abort() {
  if (is_broken()) end_launcher_later();
  // MPI_Abort waits for mpirun, which may be out of reach if the network is cut. An alarm needs no
  // memory, unlike a thread.
  ::signal(SIGALRM, [](int) { ::_exit(1); });
  ::alarm(1);
  if (mpi_) MPI_Abort(MPI_COMM_WORLD, 1);
  ::_exit(1);
}

void Transport::announce(std::string announced, int tag) {
  if (std::exchange(has_announced_, true)) return;
  std::string& text = announced_[static_cast<std::size_t>(rank_)];
  text = std::move(announced);
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    MPI_Request request;
    // The text stays: no call follows a late one.
    MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_CHAR, other, tag, mpi_->announcements,
              &request);
    MPI_Request_free(&request);
  }
}

void Transport::collect_announcements() {
  for (;;) {
    int has_come = 0, size = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, mpi_->announcements, &has_come, &status);
    if (!has_come) return;
    MPI_Get_count(&status, MPI_CHAR, &size);
    std::string& text = announced_[static_cast<std::size_t>(status.MPI_SOURCE)];
    text.resize(static_cast<std::size_t>(size));
    MPI_Recv(text.data(), size, MPI_CHAR, status.MPI_SOURCE, status.MPI_TAG, mpi_->announcements,
             MPI_STATUS_IGNORE);
    has_failed_ = has_failed_ || status.MPI_TAG == kHasFailed;
  }
}

/// Throws an error that names the call of each rank. Ranks that wait answer at once.
void Transport::fail_late() {
  announce(pack(*current_), kIsWaiting);
  const auto is_complete = [&] {
    for (const std::string& text : announced_)
      if (text.empty()) return false;
    return true;
  };
  const auto start = Clock::now();
  const auto limit = time_for_answers(timeout_);
  while (!is_complete() && Clock::now() - start < limit) {
    collect_announcements();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::string since = number_ <= 1 ? std::string(" has called no collective")
                                         : str(" has called none since call ", number_ - 1, ", ",
                                               text_of(last_name_, last_source_));
  std::string message = has_failed_ ? str("not all ranks can finish call ", number_)
                                    : str("not all ranks came to call ", number_, " within ",
                                          timeout_.count(), " s, the World's timeout");
  std::vector<std::string> texts;
  for (const std::string& text : announced_) {
    const bool is_here = !text.empty();
    texts.push_back(is_here ? text.substr(0, text.find('\n')) : since);
    message += str("\n  rank ", texts.size() - 1, is_here ? ": " : ":", texts.back(),
                   is_here ? "" : "; it computes, has stopped, or its machine is out of reach");
  }
  if (number_ == 0 && !is_complete() && local_size_ == size_) {
    char name[256] = "";
    ::gethostname(name, sizeof name - 1);
    message += str("\nMPI takes all ranks for ranks of one machine, ", name,
                   ": if there are several of this name, give each a name of its own");
  }
  failure_ = message;
  throw DistributedError(message);
}

void Transport::wait(void* request, bool may_sleep) {
  auto* of_mpi = static_cast<MPI_Request>(request);
  const auto start = Clock::now();
  // A rank that waits for others leaves its processor to them: at once if ranks share processors.
  const auto spins = is_crowded_ ? std::chrono::microseconds(0) : std::chrono::microseconds(200);
  auto next_look = start + std::chrono::milliseconds(20);
  for (;;) {
    int is_done = 0;
    MPI_Test(&of_mpi, &is_done, MPI_STATUS_IGNORE);
    if (is_done) return;
    const auto now = Clock::now();
    if (now - start < spins) continue;
    if (may_sleep && now - start > std::chrono::milliseconds(2))
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    else
      ::sched_yield();
    if (now < next_look) continue;
    next_look = now + std::chrono::milliseconds(20);
    collect_announcements();
    bool is_late = now - start > timeout_;
    for (const std::string& text : announced_) is_late = is_late || !text.empty();
    if (is_late) fail_late();
  }
}

void Transport::check(const Call& call) {
  if (is_broken()) throw DistributedError(failure_);
  if (!mpi_) return;
  current_ = &call;
  ++number_;
  std::swap(last_name_, name_);
  name_ = call.name;
  last_source_ = std::exchange(source_, call.source);
  // The largest hash and the largest complement are of one number if all hashes are equal.
  const std::uint64_t hash = call.hash();
  std::array<std::uint64_t, 2> mine{hash, ~hash}, largest{};
  MPI_Request request;
  MPI_Iallreduce(mine.data(), largest.data(), 2, MPI_UINT64_T, MPI_MAX, mpi_->all, &request);
  wait(request, true);
  if (largest[0] != ~largest[1]) refuse(call);
}

void Transport::fail(const std::string& reason) {
  if (is_broken() || !mpi_) return;
  try {
    const std::string text = text_of(name_, source_);
    announce(str(text, " failed: ", reason), kHasFailed);
    failure_ = str("this rank failed in call ", number_, ", ", text, ": ", reason);
  } catch (const std::bad_alloc&) {
    announce("out of memory", kHasFailed);
    failure_ = "out of memory";  // short enough to need none
  }
}

void Transport::refuse(const Call& call) {
  const std::string text = pack(call);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(size_));
  const auto size = static_cast<std::int64_t>(text.size());
  MPI_Request request;
  MPI_Iallgather(&size, 1, MPI_INT64_T, sizes.data(), 1, MPI_INT64_T, mpi_->all, &request);
  wait(request, true);
  const Shares shares = Shares::of(sizes);
  std::string all(static_cast<std::size_t>(shares.begin.back() + shares.bytes.back()), ' ');
  all_gather(text.data(), all.data(), shares);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < sizes.size(); ++r)
    texts.push_back(all.substr(static_cast<std::size_t>(shares.begin[r]),
                               static_cast<std::size_t>(shares.bytes[r])));
  throw DistributedError(str("ranks differ in call ", number_, ':', compare(texts)));
}

bool Transport::all(bool value) {
  if (!mpi_) return value;
  int mine = value, least = 0;
  MPI_Request request;
  MPI_Iallreduce(&mine, &least, 1, MPI_INT, MPI_MIN, mpi_->all, &request);
  wait(request, true);
  return least != 0;
}

void Transport::broadcast(void* data, std::size_t bytes, int root) {
  if (!mpi_) return;
  constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 30;
  for (std::size_t begin = 0; begin < bytes; begin += kMaxMessageBytes) {
    MPI_Request request;
    MPI_Ibcast(static_cast<char*>(data) + begin,
               static_cast<int>(std::min(kMaxMessageBytes, bytes - begin)), MPI_BYTE, root,
               mpi_->all, &request);
    wait(request, false);
  }
}

void Transport::all_gather(const void* mine, void* all, const Shares& shares) {
  const auto own = static_cast<std::size_t>(rank_);
  if (!mpi_) {
    if (mine) std::memcpy(all, mine, static_cast<std::size_t>(shares.bytes[own]));
    return;
  }
  MPI_Request request;
  MPI_Iallgatherv(mine ? mine : MPI_IN_PLACE, shares.bytes[own], MPI_BYTE, all, shares.bytes.data(),
                  shares.begin.data(), MPI_BYTE, mpi_->all, &request);
  wait(request, false);
}

void Transport::all_to_all(const void* send, const Shares& sends, void* receive,
                           const Shares& receives) {
  if (!mpi_) {
    std::memcpy(static_cast<char*>(receive) + receives.begin[0],
                static_cast<const char*>(send) + sends.begin[0],
                static_cast<std::size_t>(sends.bytes[0]));
    return;
  }
  MPI_Request request;
  MPI_Ialltoallv(send, sends.bytes.data(), sends.begin.data(), MPI_BYTE, receive,
                 receives.bytes.data(), receives.begin.data(), MPI_BYTE, mpi_->all, &request);
  wait(request, false);
}

}  // namespace reel
