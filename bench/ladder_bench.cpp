// Measures the gain of each pass of a plan: recurrent layers, forward and backward, without one
// pass.
#include <string>
#include <utility>
#include <vector>

#include "harness.h"
#include "libtorch.h"
#include "reel/reel.h"
#include "rnn.h"

namespace reel::bench {
namespace {

struct Rung {
  const char* name;
  bool Passes::*pass;
};
constexpr Rung kRungs[] = {
    {"simplify", &Passes::simplify},
    {"hoist_invariants", &Passes::hoist_invariants},
    {"hoist_embedding_products", &Passes::multiply_tables},
    {"batch_across_iterations", &Passes::batch_over_time},
    {"split_loops", &Passes::split_loops},
    {"chunk_loops", &Passes::chunk_loops},
    {"group_pipelined_loops", &Passes::adjoin_loops},
    {"pack_weights", &Passes::pack_weights},
    {"fuse_pointwise", &Passes::fuse_pointwise},
    {"cut_rows", &Passes::cut_rows},
    {"shrink_batch", &Passes::shrink_batch},
    {"reuse_memory", &Passes::reuse_memory},
};

/// Reports times relative to a plan with all passes: above 1, the pass pays by that factor.
void climb(Group& group, const RnnProblem& problem, int threads) {
  const std::string name = str(problem.name(), " threads=", threads);
  if (!group.wants(name)) return;
  set_threads(threads);
  std::vector<std::string> names;
  std::vector<RnnRun> runs{traced_rnn(problem)};
  const auto add = [&](const std::string& without, const RnnRun& run) {
    names.push_back(without);
    runs.push_back(run);
  };
  Passes few, in_place;
  few.batch_over_time = few.pack_weights = few.fuse_pointwise = false;
  in_place.hoist_invariants = in_place.batch_over_time = false;
  for (const auto& [pass, member] : kRungs) {
    Passes passes;
    passes.*member = false;
    add(str("without_", pass), traced_rnn(problem, {.passes = passes}));
  }
  add("without_batching_packing_fusion", traced_rnn(problem, {.passes = few}));
  add("without_hoisting_and_batching", traced_rnn(problem, {.passes = in_place}));
  add("by_interpreter", traced_rnn(problem, {.executor = Executor::interpreter}));
  add("eager", eager_rnn(problem));

  std::vector<Contender> contenders;
  for (const RnnRun& run : runs) contenders.push_back({"", run.run});
  const std::vector<Turns> turns =
      group.time(contenders, threads == 1 ? Clock::processor : Clock::wall);
  const Numbers expected = runs[0].numbers();
  group.report(name, "ms", milliseconds(), turns[0]);
  for (std::size_t i = 1; i < runs.size(); ++i) {
    check_same(expected, runs[i].numbers());
    group.report_ratio(name, names[i - 1], turns[i], turns[0]);
  }
  set_threads(1);
}

void climb_all(Group& group) {
  const RnnProblem many_rows{.steps = 1000, .batch = 16, .in = 64, .hidden = 128};
  const RnnProblem one_row{.steps = 1000, .batch = 1, .in = 128, .hidden = 128};
  RnnProblem gru = many_rows, custom = many_rows, ragged = many_rows, layers = one_row,
             gru_of_one_row = one_row, weight_norm = one_row;
  gru.cell = gru_of_one_row.cell = Cell::gru_reset_before;
  weight_norm.cell = Cell::weight_norm_lstm;
  custom.cell = Cell::custom;
  ragged.is_ragged = true;
  layers.layers = 2;
  const RnnProblem small{.steps = 1000, .batch = 1, .in = 32, .hidden = 32};
  for (const RnnProblem& problem :
       {many_rows, gru, custom, ragged, one_row, gru_of_one_row, layers, weight_norm, small})
    climb(group, problem, 1);
  for (const RnnProblem& problem : {many_rows, ragged, layers}) climb(group, problem, 2);
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) {
  using namespace reel::bench;
  Group group("ladder", argc, argv);
  start_on_one_thread();
  note("times over that with all passes; threads=1: processor time; threads=2: the clock's");
  climb_all(group);
  return group.finish();
}
