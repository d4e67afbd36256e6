// Measures training on batches that each have other lengths, as users have them: every batch once,
// in the order of Batches. Benchmarks that repeat one batch do not see the cost of new sizes.
#include <sys/resource.h>

#include <cmath>
#include <string>
#include <vector>

#include "harness.h"
#include "models/char_lstm.h"
#include "models/ctc.h"
#include "models/seq2seq.h"
#include "models/stream.h"
#include "models/transformer.h"

namespace reel::bench {
namespace {

/// Returns the seconds that the kernel has worked for this process: most of it clears pages.
double system_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_stime.tv_usec) * 1e-6;
}

/// Sums over the batches of a stream, in seconds.
struct Passes {
  double first = 0;     ///< of each batch when it comes for the first time
  double repeated = 0;  ///< of each batch when it was the batch before
  double again = 0;     ///< of the whole stream once more
  double eager = 0;
  double system = 0;  ///< the kernel's part of `first`
};

void check_loss(const Stream& stream, std::size_t batch, double traced, double eager) {
  if (!(std::abs(traced - eager) <= 1e-2 * std::abs(eager)))
    throw Error(str(stream.name, ": the loss of batch ", batch, " is ", traced, " traced and ",
                    eager, " eagerly"));
}

/// Trains traced, then eagerly: with memory of both modes in turns, each would clear pages for the
/// other. Every batch is taken twice.
Passes measure(const Stream& stream, Clock clock) {
  Passes result;
  std::vector<double> losses(stream.batches);
  const BatchStep traced = stream.reel(true), eager = stream.reel(false);
  for (std::size_t b = 0; b < stream.batches; ++b) {
    const double before = system_seconds();
    result.first += seconds_of([&] { losses[b] = traced(b); }, clock);
    result.system += system_seconds() - before;
    result.repeated += seconds_of([&] { traced(b); }, clock);
  }
  result.again = seconds_of(
      [&] {
        for (std::size_t b = 0; b < stream.batches; ++b) traced(b);
      },
      clock);
  for (std::size_t b = 0; b < stream.batches; ++b) {
    double loss = 0;
    result.eager += seconds_of([&] { loss = eager(b); }, clock);
    eager(b);
    check_loss(stream, b, losses[b], loss);
  }
  return result;
}

void report(Group& group, const Stream& stream, int threads) {
  const std::string name = str(stream.name, " threads=", threads);
  if (!group.wants(name)) return;
  set_threads(threads);
  const Passes all = measure(stream, threads == 1 ? Clock::processor : Clock::wall);
  set_threads(1);
  const double count = static_cast<double>(stream.batches);
  const auto ms = [&](const char* metric, double seconds) {
    group.report(name, metric, "ms", {seconds * 1e3 / count});
  };
  ms("ms", all.first);
  ms("ms_again", all.again);
  ms("ms_repeated", all.repeated);
  ms("ms_eager", all.eager);
  ms("ms_planning", all.first - all.repeated);
  ms("ms_system", all.system);
  group.report(name, "ratio_to_repeated", "", {all.first / all.repeated});
  group.report(name, "ratio_to_eager", "", {all.first / all.eager});
  group.report(name, "ratio_of_again_to_repeated", "", {all.again / all.repeated});
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) {
  using namespace reel::bench;
  Group group("stream", argc, argv);
  constexpr std::size_t kBatches = 200;
  constexpr int kRows = 16;
  note(
      "ms: 200 batches, each for the first time; again: all once more; repeated: each right behind "
      "itself");
  for (const bool is_sorted : {false, true}) {
    const std::string order = is_sorted ? " sorted" : " mixed";
    const auto words = lengths_of_text(kBatches, kRows, is_sorted, false);
    const auto letters = lengths_of_text(kBatches, kRows, is_sorted, true);
    for (const int threads : {1, 2}) {
      report(group, char_lstm_stream({.hidden = 64}, "lstm" + order, letters), threads);
      report(group, ctc_stream({}, "bidirectional ctc" + order, words), threads);
      report(group, seq2seq_stream({}, "seq2seq" + order, words), threads);
      report(group, transformer_stream({}, "transformer" + order, words), threads);
    }
  }
  return group.finish();
}
