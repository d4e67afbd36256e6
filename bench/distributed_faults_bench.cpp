// Measures how soon all ranks are gone if a rank has a fault. Starts itself under mpirun, 20
// times for each kind of fault, which comes at another instant each time.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "reel/distributed.h"
#include "reel/reel.h"
#include "rows.h"

namespace reel::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRanks = 4, kRuns = 20;

/// A file that the ranks and their starter map. A rank also locks it, until its process is gone.
class Shared {
 public:
  explicit Shared(const std::string& path) : file_(::open(path.c_str(), O_RDWR | O_CREAT, 0600)) {
    if (file_ < 0 || ::ftruncate(file_, sizeof(State)) != 0)
      throw ArgumentError("cannot write " + path);
    void* const memory =
        ::mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (memory == MAP_FAILED) throw ArgumentError("cannot map " + path);
    state_ = static_cast<State*>(memory);
  }
  ~Shared() {
    ::munmap(state_, sizeof(State));
    ::close(file_);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  void begin_rank() {
    ::flock(file_, LOCK_SH);
    ++state_->ranks;
  }
  int ranks() const { return state_->ranks; }
  void wait_until_gone() { ::flock(file_, LOCK_EX); }

  void mark_fault() { state_->fault = Clock::now().time_since_epoch().count(); }
  /// Returns the time since the fault.
  double milliseconds() const {
    const Clock::time_point fault{Clock::duration(state_->fault.load())};
    return std::chrono::duration<double, std::milli>(Clock::now() - fault).count();
  }

 private:
  struct State {
    std::atomic<int> ranks;
    std::atomic<Clock::rep> fault;
  };
  int file_;
  State* state_ = nullptr;
};

void reduce_for(const World& world, std::chrono::milliseconds time) {
  const auto end = Clock::now() + time;
  while (Clock::now() < end) world.all_reduce(ones({1000}));
}

/// Reduces on all ranks until the last one has the fault.
void run_rank(const std::string& kind, std::chrono::milliseconds after, Shared& shared) {
  const World world({.shards = kRanks});
  constexpr std::chrono::hours kForEver{1};
  if (world.rank() != world.size() - 1) reduce_for(world, kForEver);
  if (kind == "is killed" || kind == "crashes") {  // wherever the rank is then
    std::thread([&] {
      std::this_thread::sleep_for(after);
      shared.mark_fault();
      ::raise(kind == "is killed" ? SIGKILL : SIGSEGV);
    }).detach();
    reduce_for(world, kForEver);
  }
  reduce_for(world, after);
  shared.mark_fault();
  if (kind == "exits") std::exit(0);
  throw ArgumentError("no batch 7");
}

/// Starts this program on the ranks. Returns mpirun's process.
pid_t start_ranks(const std::string& kind, int after, const std::string& path) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe"),
                    ranks = std::to_string(kRanks), milliseconds = std::to_string(after);
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child != 0) return child;
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(nowhere, STDERR_FILENO);
  ::execlp("mpirun", "mpirun", "-n", ranks.c_str(), "--oversubscribe", program.c_str(),
           kind.c_str(), milliseconds.c_str(), path.c_str(), nullptr);
  ::_exit(98);
}

/// Adds the median and the maximum.
void add(Rows& rows, const std::string& name, const std::string& metric,
         std::vector<double> values) {
  std::sort(values.begin(), values.end());
  rows.add(name, metric, "ms", values[values.size() / 2]);
  rows.add(name, metric + "_max", "ms", values.back());
}

void measure(const std::string& kind, Rows& rows) {
  std::vector<double> gone, finished;
  for (int i = 0; i < kRuns; ++i) {
    const std::string path =
        std::filesystem::temp_directory_path() / str("reel_ranks_", ::getpid());
    Shared shared(path);
    const pid_t mpirun = start_ranks(kind, 7 * i, path);
    int status = 0;
    while (shared.ranks() < kRanks) {
      if (::waitpid(mpirun, &status, WNOHANG) != 0)
        throw ArgumentError("mpirun did not start all ranks");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    shared.wait_until_gone();
    gone.push_back(shared.milliseconds());
    ::waitpid(mpirun, &status, 0);
    finished.push_back(shared.milliseconds());
    std::filesystem::remove(path);
    if (status == 0) throw ArgumentError("mpirun returned 0 although a rank " + kind);
  }
  const std::string name = "faults: one of 4 ranks " + kind;
  add(rows, name, "ms_until_ranks_are_gone", gone);
  add(rows, name, "ms_until_mpirun_ends", finished);
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) {
  using namespace reel::bench;
  if (std::getenv("OMPI_COMM_WORLD_RANK")) {
    const std::string kind = argv[1];
    Shared shared(argv[3]);
    shared.begin_rank();
    const std::chrono::milliseconds after(std::atoi(argv[2]));
    if (kind != "throws to a handler") {
      run_rank(kind, after, shared);
      return 0;
    }
    try {
      run_rank(kind, after, shared);
    } catch (const std::exception& error) {
      std::cerr << error.what() << '\n';
      return 1;
    }
  }
  Rows rows(option_of(argc, argv, "--json"));
  const std::string wanted = option_of(argc, argv, "--case");
  for (const char* const kind : {"is killed", "crashes", "throws", "throws to a handler", "exits"})
    if ((std::string("faults: one of 4 ranks ") + kind).find(wanted) != std::string::npos)
      measure(kind, rows);
}
