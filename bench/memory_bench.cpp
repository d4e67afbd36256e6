// Measures memory and time of gradients of long sequences under each policy. Each run is a process
// of its own; the operating system reports its peak resident size.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <streambuf>

#include "harness.h"
#include "libtorch.h"
#include "reel/reel.h"
#include "reel/trace/executors/spill/spill_file.h"

namespace reel::bench {
namespace {

constexpr int kBatch = 16, kIn = 16, kHidden = 128;
constexpr double kMiB = 1 << 20;

struct Policy {
  Checkpoint checkpoint;
  SwapMemory swap = false;
};

/// Measurements of a run.
struct Taken {
  double seconds = 0, peak = 0;  ///< peak: bytes above those before the run, without results
  double kept = 0;               ///< of these, the maximum for gradients
  double written = 0, read = 0;  ///< bytes written to, read from a file
};

double status_bytes(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind(field, 0) == 0) return std::stod(line.substr(std::strlen(field) + 1)) * 1024;
  throw Error(str("this system does not tell ", field));
}
/// Resets the peak.
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

/// While it lives, records the peak when something is printed.
class PeakWhenPrinted : public std::streambuf {
 public:
  PeakWhenPrinted() : before_(std::cout.rdbuf(this)) {}
  ~PeakWhenPrinted() override { std::cout.rdbuf(before_); }
  double peak() const { return peak_; }

 private:
  int overflow(int c) override { return c; }
  int sync() override {
    peak_ = status_bytes("VmHWM:");
    return 0;
  }

  std::streambuf* before_;
  double peak_ = 0;
};

/// results: bytes of a run's results. Results have no pages before they are written, in the
/// backward pass, and so cannot hide an earlier peak. A run that prints a loss therefore reports
/// the peak up to then without results. For tensors, the maximum allocated is counted, which
/// includes results as soon as their memory is allocated.
Taken measure(const std::function<void()>& run, double results) {
  reset_peak();
  reset_peak_memory();
  const SpillTraffic traffic = spill_traffic();
  const double before = status_bytes("VmRSS:");
  const auto allocated = static_cast<double>(memory().all.current);
  PeakWhenPrinted printed;
  const auto begin = std::chrono::steady_clock::now();
  run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const Memory kept = memory();
  return {took.count(),
          std::max({status_bytes("VmHWM:") - before - results, printed.peak() - before,
                    static_cast<double>(kept.all.peak) - allocated - results}),
          static_cast<double>(kept.saved.peak + kept.checkpoints.peak),
          static_cast<double>(spill_traffic().bytes_written - traffic.bytes_written),
          static_cast<double>(spill_traffic().bytes_read - traffic.bytes_read)};
}

/// Runs the function in a process of its own. Returns its measurements.
Taken apart(const std::function<Taken()>& measured) {
  int ends[2];
  if (pipe(ends)) throw Error("cannot make a pipe");
  const pid_t child = fork();
  if (child < 0) throw Error("cannot start a process");
  if (!child) {
    const Taken taken = measured();
    const bool is_told = write(ends[1], &taken, sizeof taken) == sizeof taken;
    _exit(is_told ? 0 : 1);
  }
  close(ends[1]);
  Taken taken;
  const bool is_told = read(ends[0], &taken, sizeof taken) == sizeof taken;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!is_told || status) throw Error("a child process failed; it may have had too little memory");
  return taken;
}

/// The gradients of an LSTM's weights and of x; the loss reads every step.
Taken run_lstm(int steps, const Policy& policy, bool is_traced, int rounds) {
  set_threads(1);
  manual_seed(1);
  const Dim time("time", steps), batch("batch", kBatch), in("in", kIn);
  const LstmCell cell = LstmCell::init(in, Dim("hidden", kHidden));
  using Arguments = std::pair<LstmCell, Tensor>;
  const Arguments arguments{cell, random_normal({time, batch, in})};
  const auto loss = [&](const Arguments& given) {
    const auto& [cell, x] = given;
    const auto body = [&cell = cell](const Tensor& x, const LstmCell::State& state) {
      const LstmCell::State next = cell(x, state).second;
      return std::pair{sum(square(next.h)), next};
    };
    return print(sum(scan(Scan{.spatial_dim = x.dim("time"),
                               .initial = cell.initial_state({x.dim("batch")}),
                               .xs = x,
                               .body = body,
                               .checkpoint = policy.checkpoint,
                               .swap_memory = policy.swap})
                         .ys));
  };
  const auto eager = value_and_grad(loss);
  const auto traced = jit(eager);
  const auto run = [&] { is_traced ? traced(arguments) : eager(arguments); };
  const double results = static_cast<double>(arguments.second.type().bytes());
  Taken first = measure(run, results);
  // Takes the fastest of several rounds: memory is warm then.
  for (int round = 1; round < rounds; ++round)
    first.seconds = std::min(first.seconds, measure(run, results).seconds);
  return first;
}

std::string sizes(int steps) { return str("T=", steps, " B=", kBatch, " I=", kIn, " H=", kHidden); }

struct Case {
  std::string name;
  int steps;
  Policy policy;
  bool is_traced = true;
  int turns = 3;  ///< of this policy and of keeping all; 0: this policy once, alone
};

void run_case(Group& group, const Case& c) {
  const std::string name = str(c.is_traced ? "" : "eager ", "lstm ", sizes(c.steps), " ", c.name);
  if (!group.wants(name)) return;
  std::vector<double> seconds, all_seconds, peaks, all_peaks, per_step, kept, written, read;
  for (int turn = 0; turn < std::max(c.turns, 1); ++turn) {
    const Taken taken =
        apart([&] { return run_lstm(c.steps, c.policy, c.is_traced, c.turns ? 2 : 1); });
    seconds.push_back(taken.seconds);
    peaks.push_back(taken.peak / kMiB);
    per_step.push_back(taken.peak / c.steps);
    kept.push_back(taken.kept / kMiB);
    written.push_back(taken.written / kMiB);
    read.push_back(taken.read / kMiB);
    if (!c.turns) continue;
    const Taken all = apart([&] { return run_lstm(c.steps, {}, c.is_traced, 2); });
    all_seconds.push_back(all.seconds);
    all_peaks.push_back(all.peak / kMiB);
  }
  group.report(name, "peak_rss_over_io_MiB", "MiB", peaks);
  group.report(name, "bytes_per_step", "B", per_step);
  group.report(name, "saved_and_checkpoints_MiB", "MiB", kept);
  if (c.policy.swap.spill()) {
    group.report(name, "written_MiB", "MiB", written);
    group.report(name, "read_MiB", "MiB", read);
  }
  group.report(name, "seconds", "s", seconds);
  if (!c.turns) return;
  group.report_ratio(name, "ratio_to_save_all", seconds, all_seconds);
  group.report_ratio(name, "peak_ratio_to_save_all", peaks, all_peaks);
}

/// A loop with a condition that reads data. Compares its gradient with one that keeps everything,
/// on as many steps as memory allows for that.
void run_unknown_length(Group& group, int steps, int prefix) {
  const std::string name = str("while T=", steps, " budget=16MiB");
  if (!group.wants(name)) return;
  const auto gradient = [](int steps, const Checkpoint& policy) {
    set_threads(1);
    manual_seed(2);
    const Tensor w = random_normal({32, 32}) * 0.1;
    const auto f = [&](const Tensor& w) {
      struct State {
        Tensor work, h, loss;
      };
      // Each step adds an amount that depends on its values and position: data decide when it ends.
      const auto cond = [&](const State& s) { return s.work < static_cast<double>(steps) - 0.5; };
      const auto body = [&](const State& s) {
        const Tensor h = tanh(matmul(s.h, w) + sin(cast(s.work, f32) * 0.37));
        return State{s.work + cast(sum(h) < 1e9, f64), h, s.loss + mean(square(h))};
      };
      return while_loop(cond, body, State{scalar(0.0, f64), ones({8, 32}), scalar(0.f)},
                        {.checkpoint = policy})
          .loss;
    };
    return jit(grad(f))(w);
  };
  const Taken taken = apart([&] {
    gradient(10, {});  // so that code and weights are in memory
    return measure([&] { gradient(steps, Checkpoint::budget(16 << 20)); }, 0);
  });
  // The second budget is so small that replay segments have checkpoints of their own.
  const Tensor b = gradient(prefix, {});
  for (const std::int64_t bytes : {16 << 20, 256 << 10}) {
    const Tensor a = gradient(prefix, Checkpoint::budget(bytes));
    if (std::memcmp(a.data<char>(), b.data<char>(), static_cast<std::size_t>(a.type().bytes())))
      throw Error(str(name, ": with ", bytes, " bytes the gradient differs"));
  }
  group.report(name, "peak_rss_over_io_MiB", "MiB", {taken.peak / kMiB});
  group.report(name, "seconds", "s", {taken.seconds});
  group.report(name, str("same_bits_at_T=", prefix), "", {1});
}

/// libtorch's nn::LSTM at growing lengths: memory per step, and the longest possible sequence.
void run_libtorch(Group& group, double most) {
  const std::string name = str("libtorch lstm B=", kBatch, " I=", kIn, " H=", kHidden);
  if (!group.wants(name) || !libtorch()) return;
  const auto peak = [](int steps) {
    return apart([&] {
             start_on_one_thread();
             const RnnProblem problem{
                 .steps = steps, .batch = kBatch, .in = kIn, .hidden = kHidden};
             const RnnRun run = libtorch()->layer(problem);
             return measure(run.run, 4. * steps * kBatch * (kIn + kHidden));
           })
        .peak;
  };
  const double small = peak(500), large = peak(2500), per_step = (large - small) / 2000;
  const double longest = (most * kMiB - small) / per_step + 500;
  group.report(name, "bytes_per_step", "B", {per_step});
  group.report(name, str("largest_T_in_", most, "MiB"), "", {longest});
  group.report(name, "peak_at_that_T_MiB", "MiB", {peak(static_cast<int>(longest)) / kMiB});
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) {
  using namespace reel::bench;
  using reel::Checkpoint;
  using reel::Spill;
  Group group("memory", argc, argv);
  note("one thread; peaks are of the first run of a process, over its resident size before it");
  const Policy budget{Checkpoint::budget(64 << 20)};
  run_case(group, {"save_all", 20'000, {}});
  run_case(group, {"every=64", 20'000, {Checkpoint::every(64)}});
  run_case(group, {"every=64", 20'000, {Checkpoint::every(64)}, false});
  run_case(group, {"budget=64MiB", 100'000, budget});
  run_case(group, {"spill=values", 100'000, {{}, Spill{}}});
  run_case(group, {"budget=64MiB", 1'000'000, budget, true, 0});
  run_case(group, {"budget=64MiB spill=checkpoints",
                   1'000'000,
                   {budget.checkpoint, Spill{.bytes_in_memory = 4 << 20}},
                   true,
                   0});
  run_unknown_length(group, 300'000, 20'000);
  run_libtorch(group, 1024);
  return group.finish();
}
