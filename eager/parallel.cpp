// parallel_for and Helpers on a oneTBB arena, and the number of its threads.
#include "reel/core/runtime/parallel.h"

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

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/runtime/cancellation.h"
#include "reel/core/runtime/denormals.h"
#include "reel/core/runtime/helpers.h"
#include "reel/core/runtime/random.h"
#include "reel/core/types/mode.h"
#include "reel/eager/memory_counts.h"
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace reel {
namespace {

#ifdef __SANITIZE_THREAD__
// Debian's oneTBB is not instrumented. These calls tell ThreadSanitizer that parts begin after the
// call begins, and end before it ends.
void happened_before(void* what) { __tsan_release(what); }
void happens_after(void* what) { __tsan_acquire(what); }
#else
void happened_before(void*) {}
void happens_after(void*) {}
#endif

/// Returns the number of processors that the program may use. oneTBB has no more threads, and warns
/// if more are requested.
int processors() {
  static const int count = tbb::info::default_concurrency();
  return count;
}

/// Returns how many threads beside this one can be started, at most `wanted`. oneTBB starts them
/// one by one. It ends the program if starting one fails.
int startable(int wanted) {
  static std::atomic<int> were_startable = 0;
  if (wanted <= were_startable) return wanted;
  std::vector<std::thread> started;
  started.reserve(static_cast<std::size_t>(wanted));
  std::latch all_are_started(1);
  try {
    while (std::ssize(started) < wanted) started.emplace_back([&] { all_are_started.wait(); });
  } catch (...) {  // the caller works alone, or with the threads that started
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

constexpr int kMaxThreads = 1024;

std::mutex setting_mutex;
/// The arena of set_threads(); null until that function or the first call needs one.
std::shared_ptr<Arena>& setting() {
  // Never destroyed: destructors of global objects and detached threads may still run parts.
  static std::shared_ptr<Arena>& arena = *new std::shared_ptr<Arena>;
  return arena;
}
std::shared_ptr<Arena> current_setting() {
  const std::lock_guard lock(setting_mutex);
  if (!setting()) setting() = std::make_shared<Arena>(processors());
  return setting();
}
/// Returns true if there is an arena of this many threads that could start all of them.
bool has_started(int threads) {
  const std::lock_guard lock(setting_mutex);
  const Arena* const arena = setting().get();
  return arena && arena->threads == threads && arena->at_once == std::min(threads, processors());
}

/// The arena of the part that runs on this thread. Calls inside the part stay in it, since threads
/// that wait for room in each other's arenas could wait forever.
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
          // While a thread waits here for its parts, it runs no others. If it is inside another
          // part, that part may hold a lock, for example, for which they would wait.
          tbb::this_task_arena::isolate([&] {
            tbb::parallel_for(0, count_, Part{this, &arena}, tbb::simple_partitioner{});
          });
        });
      } catch (const std::bad_alloc&) {
        // Parts do not throw: oneTBB found no memory for a task. Parts that have begun are done,
        // and the remaining ones run here.
        while (next_.load(std::memory_order_relaxed) < count_) run_next(arena);
      }
      happens_after(&end_);
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  /// Copied by oneTBB from thread to thread. oneTBB is not instrumented, so that ThreadSanitizer
  /// does not see the copy; run_part() can report it only after reading the copy.
  struct Part {
    Call* call;
    Arena* arena;
    __attribute__((no_sanitize("thread"))) void operator()(int) const { call->run_next(*arena); }
  };

  /// oneTBB halves the range repeatedly, so that a helping thread begins in its middle. Parts begin
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
    memory_counts.publish();  // memory() does not read other threads' counts
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
  char begin_ = 0, end_ = 0;  // addresses that stand for the two events in ThreadSanitizer
};

}  // namespace

void set_threads(int threads) {
  if (threads < 1 || threads > kMaxThreads)
    throw ArgumentError(
        str("set_threads: got ", threads, ", but there can be from 1 to ", kMaxThreads));
  // Threads would sleep between the two arenas of a program that sets the same number again. An
  // arena that could not start all its threads is tried anew. A program that sets one thread first
  // never starts another: as long as no thread was started, counts of references are not atomic.
  if (has_started(threads)) return;
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

  /// Copied by oneTBB, like the parts of a Call.
  struct Task {
    State* state;
    __attribute__((no_sanitize("thread"))) void operator()() const { state->run(state->work); }
  };
  /// Runs one thread's share of the work. Inside an arena oneTBB may run the leading share on
  /// another thread than the caller's, and with the flags of the thread that entered it first.
  [[gnu::noinline]] void run(void (*share)(void*)) noexcept {
    happens_after(&begin);
    Arena* const before = std::exchange(running_in, arena);
    {
      const ModeScope plain({});
      const DenormalScope as_the_caller(denormals);
      share(context);
    }
    running_in = before;
    memory_counts.publish();
    happened_before(&end);
  }

  void (*const work)(void*);
  void* const context;
  const std::shared_ptr<Arena> setting;  // held while in use
  Arena* const arena;
  const DenormalMode denormals = DenormalMode::now();
  tbb::task_group tasks;
  char begin = 0, end = 0;  // addresses that stand for the two events in ThreadSanitizer
};

Helpers::Helpers(void (*work)(void*), void* context)
    : state_(std::make_unique<State>(work, context)) {}
Helpers::~Helpers() = default;

int Helpers::most() const { return state_->arena->at_once - 1; }

void Helpers::lead(void (*lead)(void*)) {
  bool has_led = false;
  happened_before(&state_->begin);
  try {
    state_->arena->tasks.execute([&] {
      // As in a Call: a waiting thread runs nothing else.
      tbb::this_task_arena::isolate([&] {
        has_led = true;
        state_->run(lead);
        state_->tasks.wait();
      });
    });
  } catch (const std::bad_alloc&) {  // oneTBB found no memory to enter its arena
    if (!has_led) state_->run(lead);
  }
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
