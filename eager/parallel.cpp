// parallel_for and Helpers on an arena of oneTBB's, and the number of its threads.
#include "reel/core/parallel.h"

#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <latch>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "reel/core/cancellation.h"
#include "reel/core/denormals.h"
#include "reel/core/errors.h"
#include "reel/core/helpers.h"
#include "reel/core/mode.h"
#include "reel/core/random.h"
#include "reel/core/str.h"
#include "reel/eager/memory_counts.h"
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace reel {
namespace {

#ifdef __SANITIZE_THREAD__
// Debian's oneTBB is not instrumented: that parts begin after the call does, and end before it
// does, has to be said.
void happened_before(void* what) { __tsan_release(what); }
void happens_after(void* what) { __tsan_acquire(what); }
#else
void happened_before(void*) {}
void happens_after(void*) {}
#endif

/// That the program may use. oneTBB has no more threads than that, and warns who asks for more.
int processors() {
  static const int count = tbb::info::default_concurrency();
  return count;
}

/// Returns how many threads beside this one can be started, at most `wanted`. oneTBB starts them
/// one by one, and ends the program where a thread of its own is refused the next one.
int startable(int wanted) {
  static std::atomic<int> were_startable = 0;
  if (wanted <= were_startable) return wanted;
  std::vector<std::thread> started;
  started.reserve(static_cast<std::size_t>(wanted));
  std::latch all_are_started(1);
  try {
    while (std::ssize(started) < wanted) started.emplace_back([&] { all_are_started.wait(); });
  } catch (...) {  // the caller does the work alone, or with those
  }
  all_are_started.count_down();
  for (std::thread& thread : started) thread.join();
  const auto count = static_cast<int>(started.size());
  if (count > were_startable) were_startable = count;
  return count;
}

struct Arena {
  explicit Arena(int threads)
      : threads(threads),
        at_once(1 + startable(std::min(threads, processors()) - 1)),
        tasks(at_once) {}
  const int threads, at_once;
  tbb::task_arena tasks;
};

constexpr int kMostThreads = 1024;

std::mutex setting_mutex;
std::shared_ptr<Arena>& setting() {
  // Never destroyed: destructors of global objects and detached threads may still run parts.
  static std::shared_ptr<Arena>& arena =
      *new std::shared_ptr<Arena>(std::make_shared<Arena>(processors()));
  return arena;
}
std::shared_ptr<Arena> current_setting() {
  const std::lock_guard lock(setting_mutex);
  return setting();
}

/// That of the part which runs on this thread: calls inside it stay there, since threads that wait
/// for room in each other's arenas could wait forever.
constinit thread_local Arena* running_in = nullptr;

class Call {
 public:
  Call(int count, void (*part)(int, void*), void* context)
      : count_(count),
        first_failed_(count),
        part_(part),
        context_(context),
        stop_(cancellation_token()) {}

  void run(Arena& arena) {
    if (arena.at_once == 1 || count_ <= 1) {
      for (int i = 0; i < count_; ++i) run_part(i, arena);
    } else {
      happened_before(&begin_);
      try {
        arena.tasks.execute([&] {
          // A thread that waits here for its parts takes up no others, of which it may be in the
          // middle of one: what the part holds, a lock for example, they could wait for.
          tbb::this_task_arena::isolate([&] {
            tbb::parallel_for(0, count_, Part{this, &arena}, tbb::simple_partitioner{});
          });
        });
      } catch (const std::bad_alloc&) {
        // No part throws: oneTBB found no memory for a task. The parts that have begun are done,
        // and the others run here.
        while (next_.load(std::memory_order_relaxed) < count_) run_next(arena);
      }
      happens_after(&end_);
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  /// What oneTBB copies from thread to thread: it is not instrumented, so that ThreadSanitizer does
  /// not see how the copy gets there, and run_part() can only say so once the copy has been read.
  struct Part {
    Call* call;
    Arena* arena;
    [[gnu::no_sanitize("thread")]] void operator()(int) const { call->run_next(*arena); }
  };

  /// oneTBB halves the range again and again: a thread that helps begins in its middle. Parts begin
  /// in their order instead, so that callers may put long ones first.
  [[gnu::noinline]] void run_next(Arena& arena) noexcept {
    run_part(next_.fetch_add(1, std::memory_order_relaxed), arena);
  }

  void run_part(int i, Arena& arena) noexcept {
    if (i > first_failed_.load(std::memory_order_relaxed)) return;
    happens_after(&begin_);
    Arena* const before = std::exchange(running_in, &arena);
    try {
      const ModeScope plain({});
      const DenormalScope as_the_caller(denormals_);
      const CancellationScope cancelled_with_the_call(stop_);
      const RandomParts::Part own_numbers(random_, i);
      part_(i, context_);
    } catch (...) {
      const std::lock_guard lock(error_mutex_);
      if (i < first_failed_.load(std::memory_order_relaxed)) {
        first_failed_.store(i, std::memory_order_relaxed);
        error_ = std::current_exception();
      }
    }
    running_in = before;
    memory_counts.publish();  // memory() asks no other threads
    happened_before(&end_);
  }

  const int count_;
  std::atomic<int> next_ = 0;
  std::atomic<int> first_failed_;
  void (*const part_)(int, void*);
  void* const context_;
  const std::stop_token stop_;
  const DenormalMode denormals_ = DenormalMode::now();
  RandomParts random_;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  char begin_ = 0, end_ = 0;  // what ThreadSanitizer knows the two moments by
};

}  // namespace

void set_threads(int threads) {
  if (threads < 1 || threads > kMostThreads)
    throw ArgumentError(
        str("set_threads: got ", threads, ", but there can be from 1 to ", kMostThreads));
  const auto arena = std::make_shared<Arena>(threads);
  const std::lock_guard lock(setting_mutex);
  setting() = arena;
}

int threads() { return current_setting()->threads; }

void parallel_for(int count, void (*part)(int, void*), void* context) {
  if (count < 0)
    throw ArgumentError(str("parallel_for: got a count of ", count, "; give 0 or more"));
  Call call(count, part, context);
  if (running_in)
    call.run(*running_in);
  else
    call.run(*current_setting());
}

struct Helpers::State {
  State(void (*work)(void*), void* context)
      : work(work),
        context(context),
        setting(running_in ? nullptr : current_setting()),
        arena(running_in ? running_in : setting.get()) {}

  /// Copied by oneTBB, as the parts of a Call are.
  struct Task {
    State* state;
    [[gnu::no_sanitize("thread")]] void operator()() const { state->run(); }
  };
  [[gnu::noinline]] void run() noexcept {
    happens_after(&begin);
    Arena* const before = std::exchange(running_in, arena);
    {
      const ModeScope plain({});
      const DenormalScope as_the_caller(denormals);
      work(context);
    }
    running_in = before;
    memory_counts.publish();
    happened_before(&end);
  }

  void (*const work)(void*);
  void* const context;
  const std::shared_ptr<Arena> setting;  // held while it is used
  Arena* const arena;
  const DenormalMode denormals = DenormalMode::now();
  tbb::task_group tasks;
  char begin = 0, end = 0;  // what ThreadSanitizer knows the two moments by
};

Helpers::Helpers(void (*work)(void*), void* context)
    : state_(std::make_unique<State>(work, context)) {}
Helpers::~Helpers() = default;

int Helpers::most() const { return state_->arena->at_once - 1; }

void Helpers::lead(void (*lead)(void*)) {
  Arena* const before = std::exchange(running_in, state_->arena);
  bool has_led = false;
  try {
    state_->arena->tasks.execute([&] {
      // As in a Call: a thread that waits takes up nothing else.
      tbb::this_task_arena::isolate([&] {
        has_led = true;
        lead(state_->context);
        state_->tasks.wait();
      });
    });
  } catch (const std::bad_alloc&) {  // oneTBB found no memory to enter its arena
    if (!has_led) lead(state_->context);
  }
  running_in = before;
  happens_after(&state_->end);
}

bool Helpers::call() {
  happened_before(&state_->begin);
  try {
    state_->tasks.run(State::Task{state_.get()});
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

}  // namespace reel
