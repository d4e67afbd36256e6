// Measures whole models: a training step in eager mode and traced, on
// one thread and on two, and the roof, which is the time of the model's matrix products alone.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "harness.h"
#include "libtorch.h"
#include "models/alignments.h"
#include "models/char_lstm.h"
#include "models/convolution.h"
#include "models/crf.h"
#include "models/decoding.h"
#include "models/forecaster.h"
#include "models/libtorch_models.h"
#include "models/ragged_attention.h"
#include "models/recurrences.h"
#include "models/seq2seq.h"
#include "models/signals.h"
#include "models/state_space.h"
#include "models/transformer.h"

namespace reel::bench {
namespace {

/// The contenders of a case.
class ModelCase {
 public:
  ModelCase(Group& group, const Model& model, int threads)
      : group_(group), name_(str(model.name, " threads=", threads)) {}

  /// Adds a contender. Requires the first contender's first losses. losses: how many are compared.
  void add(const std::string& name, const Step& step, int losses = 3) {
    std::vector<double> found;
    while (static_cast<int>(found.size()) < losses) found.push_back(step());
    if (expected_.empty()) expected_ = found;
    for (std::size_t i = 0; i < found.size(); ++i)
      if (!(std::abs(found[i] - expected_[i]) <= 1e-3 * std::abs(expected_[i])))
        throw Error(
            str(name_, ": loss ", i, " of ", name, " is ", found[i], ", not ", expected_[i]));
    add_other(name, [=] { step(); });
  }
  /// Adds a contender that does other work.
  void add_other(const std::string& name, const std::function<void()>& run) {
    contenders_.push_back({name, run});
  }

  /// Reports milliseconds of all contenders, then the ratio of the first to each other one.
  void report(Clock clock) {
    turns_ = group_.time(contenders_, clock);
    for (std::size_t i = 0; i < contenders_.size(); ++i)
      group_.report(name_, i ? "ms_" + contenders_[i].name : "ms", milliseconds(), turns_[i]);
    for (std::size_t i = 1; i < contenders_.size(); ++i)
      group_.report_ratio(name_, "ratio_to_" + contenders_[i].name, turns_[0], turns_[i]);
  }
  /// Returns null if the case lacks that contender.
  const Turns* find(const std::string& contender) const {
    for (std::size_t i = 0; i < turns_.size(); ++i)
      if (contenders_[i].name == contender) return &turns_[i];
    return nullptr;
  }
  const std::string& name() const { return name_; }

 private:
  Group& group_;
  std::string name_;
  std::vector<double> expected_;
  std::vector<Contender> contenders_;
  std::vector<Turns> turns_;
};

Step on(int threads, const Step& step) {
  return [=] {
    set_threads(threads);
    return step();
  };
}

Step libtorch_on(int threads, const Step& step) {
  return [=] {
    libtorch_models()->set_threads(threads);
    return step();
  };
}

void compare_on_one_thread(Group& group, const Model& model) {
  ModelCase c(group, model, 1);
  if (!group.wants(c.name())) return;
  set_threads(1);
  c.add("reel", model.reel(true));
  c.add("eager", model.reel(false));
  // The first loss is of equal parameters. Later ones may differ: libtorch has more biases.
  if (model.libtorch) c.add("libtorch", libtorch_on(1, model.libtorch()), 1);
  if (model.other && model.has_other_loss)
    c.add_other(model.other_name, [step = model.other()] { step(); });
  else if (model.other)
    c.add(model.other_name, model.other());
  if (!model.products.empty()) c.add_other("products", onednn_products(model.products));
  c.report(Clock::processor);
}

/// Compares with the same step on one thread, and with libtorch's better number of threads.
/// libtorch has turns of its own: its threads go on spinning behind a step, on the processor of our
/// second one.
void compare_on_two_threads(Group& group, const Model& model) {
  ModelCase ours(group, model, 2);
  if (!group.wants(ours.name())) return;
  const Step step = model.reel(true);
  ours.add("reel", on(2, step));
  ours.add_other("1_thread", [=] { on(1, step)(); });
  ours.report(Clock::wall);
  set_threads(1);
  const Turns& on_two = *ours.find("reel");
  group.report_ratio(ours.name(), "speedup_over_1_thread", *ours.find("1_thread"), on_two);
  if (!model.libtorch) return;
  const Step peer = model.libtorch();
  std::vector<Turns> peers;
  for (const int threads : {2, 1}) {
    const auto run = [=] { libtorch_on(threads, peer)(); };
    peers.push_back(group.time({{"libtorch", run}}, Clock::wall)[0]);
    group.report(ours.name(), str("ms_libtorch_", threads, threads == 1 ? "_thread" : "_threads"),
                 milliseconds(), peers.back());
  }
  const double best = std::min(median(peers[0]), median(peers[1]));
  group.report(ours.name(), "ratio_to_libtorch", "ratio", {median(on_two) / best});
}

void compare(Group& group, const Model& model) {
  compare_on_one_thread(group, model);
  if (model.threads > 1) compare_on_two_threads(group, model);
}

void compare_all(Group& group) {
  compare(group, transformer());
  compare(group, seq2seq({}));
  compare(group, seq2seq({.least = 0.06}));
  compare(group, forecaster());
  compare(group, forecaster_forward());
  compare(group, crf());
  compare(group, char_lstm());
  compare(group, char_lstm_step_by_step());
  compare(group, decoding());
  compare(group, decoding({.layers = 2, .width = 64}));
  compare(group, beam_search_of_lstm({}));
  compare(group, beam_search_of_lstm({.batch = 8, .beam = 12, .symbols = 10000, .hidden = 256}));
  compare(group, state_space({.has_gradient = false}));
  compare(group, state_space());
  compare(group, convolution({.in = 80, .out = 256, .taps = 3, .stride = 2}));
  compare(group, convolution({.in = 256, .out = 256}));
  compare(group, convolution({.in = 256, .out = 256, .least = 0.25}));
  compare(group, convolution({.in = 64, .out = 64}));
  compare(group, convolution({.in = 512, .taps = 4, .is_depthwise = true}));
  compare(group, transform({.size = 1024, .lines = 400}));
  compare(group, transform({.size = 1021, .lines = 400}));
  compare(group, transform({.size = 1 << 20, .lines = 1}));
  compare(group, transform({.size = 1048573, .lines = 1}));
  compare(group, features({}));
  compare(group, features({.batch = 16}));
  compare(group, alignments({}));
  compare(group, alignments({.batch = 16, .frames = 150, .labels = 30, .is_transducer = true}));
  compare(group, selective_scan(false));
  compare(group, selective_scan(true));
  compare(group, mingru());
  compare(group, neural_ode(false));
  compare(group, neural_ode(true));
  compare(group, vocabulary());
  for (const RaggedAttentionSizes& sizes :
       std::vector<RaggedAttentionSizes>{{16, 10, 32}, {32, 20, 64}, {64, 40, 128}, {32, 100, 256}})
    for (const Order order : {Order::mixed, Order::shortest_first, Order::longest_first})
      compare(group, ragged_attention({sizes.batch, sizes.steps, sizes.hidden, order}));
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) {
  using namespace reel::bench;
  Group group("models", argc, argv);
  start_on_one_thread();
  note("threads=1: processor time of one thread each; threads=2: the clock's");
  note("products: the model's matrix products at full length by oneDNN, on one thread");
  compare_all(group);
  return group.finish();
}
