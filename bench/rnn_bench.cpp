// Measures recurrent layers, forward and backward with all gradients, as users write them (cells in
// ops, traced), and hand-written layers of other libraries. Also measures loops, traces and
// training steps around them.
#include <random>
#include <set>
#include <string>
#include <vector>

#include "harness.h"
#include "libtorch.h"
#include "onednn.h"
#include "reel/examples/char_rnn/model.h"
#include "reel/examples/training/trainer.h"
#include "reel/reel.h"
#include "rnn.h"

namespace reel::bench {
namespace {

/// The sizes of the table in docs/performance.md; the last one is too small for two threads.
const std::vector<RnnProblem> kLstms{
    {.steps = 1000, .batch = 16, .in = 64, .hidden = 128},
    {.steps = 784, .batch = 64, .in = 1, .hidden = 128},
    {.steps = 200, .batch = 32, .in = 256, .hidden = 256},
    {.steps = 200, .batch = 64, .in = 128, .hidden = 512},
    {.steps = 1000, .batch = 1, .in = 128, .hidden = 128},
    {.steps = 1000, .batch = 1, .in = 32, .hidden = 32},
};

std::string name_of(const RnnProblem& p, int threads) {
  return str(p.name(), " threads=", threads);
}

/// Contenders for one problem: times them, then compares their results.
class Comparison {
 public:
  Comparison(Group& group, const RnnProblem& problem, int threads)
      : group_(group), problem_(problem), name_(name_of(problem, threads)), threads_(threads) {}

  /// Adds a contender for this problem; the first one is the reference.
  void add(const std::string& name, const RnnRun& run) {
    checked_.emplace_back(contenders_.size(), run);
    contenders_.push_back({name, run.run});
  }
  /// Adds a contender for other work.
  void add_other(const std::string& name, const std::function<void()>& run) {
    contenders_.push_back({name, run});
  }
  void add_onednn(int threads, const std::string& name = "onednn") {
    if (is_in_onednn(problem_)) add(name, onednn_rnn(problem_, threads));
  }

  void time() {
    set_threads(threads_);
    turns_ = group_.time(contenders_, threads_ == 1 ? Clock::processor : Clock::wall);
    const Numbers expected = checked_.front().second.numbers();
    for (const auto& [i, run] : checked_) try {
        check_same(expected, run.numbers());
      } catch (const Error& error) {
        throw Error(str(name_, ": ", contenders_[i].name, " and ", contenders_[0].name,
                        " disagree: ", error.what()));
      }
    set_threads(1);
  }

  const std::string& name() const { return name_; }
  /// Returns the seconds of a contender; null if the case lacks it.
  const Turns* find(const std::string& contender) const {
    for (std::size_t i = 0; i < contenders_.size(); ++i)
      if (contenders_[i].name == contender) return &turns_[i];
    return nullptr;
  }
  const Turns& turns_of(const std::string& contender) const { return *find(contender); }

  void report_milliseconds(const std::string& contender) const {
    if (const Turns* turns = find(contender))
      group_.report(name_, contender == "reel" ? "ms" : "ms_" + contender, milliseconds(), *turns);
  }
  void report_ratio_to(const std::string& contender) const {
    if (const Turns* turns = find(contender))
      group_.report_ratio(name_, "ratio_to_" + contender, turns_of("reel"), *turns);
  }
  /// Reports milliseconds of all contenders, then ratios to `others`.
  void report(const std::vector<std::string>& others) const {
    report_milliseconds("reel");
    for (const std::string& other : others) report_milliseconds(other);
    for (const std::string& other : others) report_ratio_to(other);
  }

 private:
  Group& group_;
  RnnProblem problem_;
  std::string name_;
  int threads_;
  std::vector<Contender> contenders_;
  std::vector<std::pair<std::size_t, RnnRun>> checked_;
  std::vector<Turns> turns_;
};

/// Returns seconds per unit of work.
Turns per(const Turns& turns, double work) {
  Turns result = turns;
  for (double& seconds : result) seconds /= work;
  return result;
}

/// Reports the products' flops per second as a share of the maximum of a core.
void report_fraction_of_roof(Group& group, const Comparison& c, const RnnProblem& problem,
                             const Product& product) {
  group.report_ratio(c.name(), "fraction_of_roof", per(c.turns_of("roof"), product.flops),
                     per(c.turns_of("reel"), problem.flops()));
}

void compare_lstm(Group& group, const RnnProblem& problem) {
  Comparison c(group, problem, 1);
  if (!group.wants(c.name())) return;
  const bool is_small = problem.hidden <= 32;
  const Product product = onednn_product();
  c.add("reel", traced_rnn(problem));
  if (is_small) c.add("eager", eager_rnn(problem));
  c.add_onednn(1);
  if (libtorch() && problem.layers == 1) {
    c.add("libtorch", libtorch()->layer(problem));
    c.add("libtorch_ops", libtorch()->in_ops(problem));
    c.add("torchscript", libtorch()->in_torchscript(problem));
  }
  c.add_other("roof", product.run);
  c.time();
  c.report({"eager", "onednn", "libtorch", "libtorch_ops", "torchscript"});
  report_fraction_of_roof(group, c, problem, product);
}

RnnRun on(int threads, const RnnRun& run) {
  return {[=] {
            set_threads(threads);
            run.run();
          },
          run.numbers};
}

void compare_with_two_threads(Group& group, const RnnProblem& problem) {
  Comparison c(group, problem, 2);
  if (!group.wants(c.name())) return;
  const RnnRun layers = traced_rnn(problem);
  c.add("reel", on(2, layers));
  if (problem.layers > 1) c.add("1_thread", on(1, layers));
  c.add_onednn(2, "onednn_2_threads");
  c.add_onednn(1, "onednn_1_thread");
  c.time();
  c.report({"onednn_2_threads", "onednn_1_thread"});
  c.report_milliseconds("1_thread");
  if (const Turns* one = c.find("1_thread"))
    group.report_ratio(c.name(), "speedup_over_1_thread", *one, c.turns_of("reel"));
  // Compares with the faster of the peer's two ways.
  const Turns *two = c.find("onednn_2_threads"), *one = c.find("onednn_1_thread");
  if (two && one)
    group.report_ratio(c.name(), "ratio_to_onednn", c.turns_of("reel"),
                       median(*two) < median(*one) ? *two : *one);
}

/// Compares another cell with the LSTM of its sizes.
void compare_with_lstm(Group& group, const RnnProblem& problem) {
  Comparison c(group, problem, 1);
  if (!group.wants(c.name())) return;
  RnnProblem lstm = problem;
  lstm.cell = Cell::lstm;
  const Product product = onednn_product();
  c.add("reel", traced_rnn(problem));
  c.add_onednn(1);
  if (libtorch() && problem.cell == Cell::gru_reset_after)
    c.add("libtorch", libtorch()->layer(problem));
  if (libtorch() && problem.cell == Cell::custom) {
    c.add("libtorch_ops", libtorch()->in_ops(problem));
    c.add("torchscript", libtorch()->in_torchscript(problem));
  }
  c.add_other("lstm", traced_rnn(lstm).run);
  c.add_other("roof", product.run);
  c.time();
  c.report({"onednn", "libtorch", "libtorch_ops", "torchscript"});
  c.report_milliseconds("lstm");
  group.report_ratio(c.name(), "ratio_to_lstm_per_flop", per(c.turns_of("reel"), problem.flops()),
                     per(c.turns_of("lstm"), lstm.flops()));
  report_fraction_of_roof(group, c, problem, product);
}

/// Compares sequences of different lengths with as many of full length.
void compare_with_full_length(Group& group, RnnProblem problem, int threads) {
  const RnnProblem full = problem;
  problem.is_ragged = true;
  Comparison c(group, problem, threads);
  if (!group.wants(c.name())) return;
  c.add("reel", on(threads, traced_rnn(problem)));
  if (threads == 1) c.add("eager", eager_rnn(problem));
  c.add_other("full_length", on(threads, traced_rnn(full)).run);
  c.time();
  c.report({"eager", "full_length"});
  const std::vector<int> lengths = problem.lengths();
  double steps = 0;
  for (const int length : lengths) steps += length;
  group.report(c.name(), "live_work", "ratio", {steps / problem.batch / problem.steps});
}

/// Returns the instructions of a step in a plan's only loop, including its condition; fused
/// element-wise ops count as one.
double instructions_of_step(const std::string& explained) {
  const std::string_view before = " instruction";
  const std::size_t end = explained.find(before, explained.find("\nloop 1: "));
  if (end == std::string::npos) throw Error("explain() counts no instructions:\n" + explained);
  return std::stod(explained.substr(explained.rfind(' ', end - 1) + 1)) + 1;
}

/// Runs a nearly empty loop 100,000 times, for the cost of an op and of an instruction. ops: of a
/// step, as written.
template <class Loop>
void time_small_loop(Group& group, const std::string& name, int ops, const Loop& body) {
  constexpr int kIterations = 100'000;
  if (!group.wants(name)) return;
  const auto loop = jit([&](const Tensor& begin, const Tensor& x) {
    return while_loop([](Tensor i, Tensor) { return i < kIterations; },
                      [&](Tensor i, Tensor y) {
                        return std::tuple{i + 1, body(y)};
                      },
                      std::tuple{begin, x});
  });
  const Tensor begin = scalar(0), x = scalar(1.0f);
  const Turns turns = group.time({{"reel", [&] { loop(begin, x); }}}, Clock::processor)[0];
  group.report(name, "ns_per_iteration", {"", "ns", 1e9 / kIterations}, turns);
  group.report(name, "ns_per_op", {"", "ns", 1e9 / kIterations / ops}, turns);
  const double instructions = instructions_of_step(loop.explain());
  group.report(name, "instructions", "instructions", {instructions});
  group.report(name, "ns_per_instruction", {"", "ns", 1e9 / kIterations / instructions}, turns);
}

void time_small_loops(Group& group) {
  // The comparison and the sum; a state that stays unchanged costs nothing.
  time_small_loop(group, "counter loop", 2, [](const Tensor& y) { return y; });
  time_small_loop(group, "scalar loop", 6, [](const Tensor& y) { return y - 0.1 * sin(y) * y; });
}

/// The training step of examples/char_rnn, on random text.
class CharRnnStep {
 public:
  explicit CharRnnStep(int length)
      : time_("time", length), trainer_(trainer(Model::random(kSymbols, kHidden, 1))) {
    std::mt19937 generator(1);
    std::uniform_int_distribution<int> symbol(0, kSymbols - 1);
    std::vector<int> text(static_cast<std::size_t>(kBatch * length));
    for (int& s : text) s = symbol(generator);
    text_ = tensor(text, {batch_, time_});
  }
  static std::string sizes(int length) { return str("T=", length, " B=", kBatch, " H=", kHidden); }
  void run(bool is_traced) { trainer_.step(text_, text_, is_traced); }

 private:
  static constexpr int kSymbols = 73, kBatch = 32, kHidden = 128;
  using Model = CharModel<LstmCell>;
  struct Loss {
    Dim time;
    std::pair<Tensor, Model::State> operator()(const Model& model, const Model::State& state,
                                               const Tensor& text, const Tensor& target) const {
      return text_loss<LstmCell>(model, state, text, target, time);
    }
  };
  using TheTrainer = Trainer<Model, Model::State, Loss>;
  TheTrainer trainer(const Model& model) const {
    constexpr int kManySteps = 1'000'000;
    return {model, model.network.initial_state({batch_}), Loss{time_}, kManySteps};
  }

  Dim batch_{"batch", kBatch}, time_;
  TheTrainer trainer_;
  Tensor text_;
};

/// Compares traced training on some threads with eager training on one.
void compare_char_rnn(Group& group, int threads) {
  const std::string name = str("char_rnn step ", CharRnnStep::sizes(64), " threads=", threads);
  if (!group.wants(name)) return;
  CharRnnStep traced(64), eager(64);
  const auto run = [](CharRnnStep& step, bool is_traced, int threads) {
    set_threads(threads);
    step.run(is_traced);
  };
  group.compare(name, milliseconds(),
                {{"reel", [&] { run(traced, true, threads); }},
                 {threads == 1 ? "eager" : "eager_1_thread", [&] { run(eager, false, 1); }}},
                threads == 1 ? Clock::processor : Clock::wall);
  set_threads(1);
}

/// Compares a first call with later calls of the same step; their runs take equally long. The
/// sequence is long enough for chunks, which are part of the passes' work.
void time_tracing(Group& group) {
  constexpr int kTimes = 9, kSteps = 256, kLater = 3;
  const std::string name = "trace, passes and plan of an lstm training step";
  if (!group.wants(name)) return;
  std::vector<double> milliseconds;
  for (int i = 0; i < kTimes; ++i) {
    CharRnnStep step(kSteps);
    const auto run = [&] { step.run(true); };
    const double first = seconds_of(run, Clock::processor);
    std::vector<double> later;
    for (int k = 0; k < kLater; ++k) later.push_back(seconds_of(run, Clock::processor));
    milliseconds.push_back(1e3 * (first - median(later)));
  }
  group.report(name, "ms", "ms", milliseconds);
}

void compare_all(Group& group) {
  for (const RnnProblem& problem : kLstms) compare_lstm(group, problem);
  for (const RnnProblem& problem : kLstms)
    if (problem.hidden >= 128) compare_with_two_threads(group, problem);
  for (const RnnProblem& sizes : {kLstms[0], kLstms[1], kLstms[2], kLstms[4]})
    for (const Cell cell :
         {Cell::gru_reset_after, Cell::gru_reset_before, Cell::layernorm_lstm, Cell::custom}) {
      RnnProblem problem = sizes;
      problem.cell = cell;
      compare_with_lstm(group, problem);
    }
  RnnProblem stacked = kLstms[4];
  stacked.layers = 2;
  compare_lstm(group, stacked);
  compare_with_two_threads(group, stacked);
  for (const int threads : {1, 2}) compare_with_full_length(group, kLstms[0], threads);
  time_small_loops(group);
  for (const int threads : {1, 2}) compare_char_rnn(group, threads);
  time_tracing(group);
}

/// Notes the kernels of all cases, each line once.
void note_kernels() {
  std::set<std::string> lines;
  for (const RnnProblem& sizes : kLstms)
    for (const Cell cell : {Cell::lstm, Cell::gru_reset_after, Cell::gru_reset_before})
      for (const int threads : {1, 2}) {
        RnnProblem problem = sizes;
        problem.cell = cell;
        const char* name = cell == Cell::lstm              ? "lstm"
                           : cell == Cell::gru_reset_after ? "lbr_gru"
                                                           : "gru";
        lines.insert(str("oneDNN's ", name, ": ", onednn_kernels(problem, threads)));
      }
  for (const std::string& line : lines) note(line);
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) {
  using namespace reel::bench;
  Group group("rnn", argc, argv);
  start_on_one_thread();
  note_kernels();
  note("threads=1: processor time of one thread each; threads=2: the clock's");
  compare_all(group);
  return group.finish();
}
