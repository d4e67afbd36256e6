// Measures collectives and training steps on the ranks of mpirun: all-reduces beside MPI_Allreduce
// and copies, and a step on two ranks of one thread beside one rank of one and of two threads.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "reel/distributed.h"
#include "reel/reel.h"
#include "rows.h"

namespace reel::bench {
namespace {

using Seconds = std::chrono::duration<double>;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Returns the seconds of each contender's turns, in which the contenders alternate. All ranks take
/// the same number of turns, since all call the collectives in them.
std::vector<std::vector<double>> time(const World& world, int turns,
                                      const std::vector<std::function<void()>>& contenders) {
  std::vector<std::vector<double>> seconds(contenders.size());
  for (int turn = -1; turn < turns; ++turn)  // the first is not counted
    for (std::size_t k = 0; k < contenders.size(); ++k) {
      contenders[k]();  // the contender before has left its data in the caches
      world.barrier();
      const auto start = std::chrono::steady_clock::now();
      contenders[k]();
      const Seconds taken = std::chrono::steady_clock::now() - start;
      if (turn >= 0) seconds[k].push_back(taken.count());
    }
  return seconds;
}

void measure_all_reduce(const World& world, const std::string& wanted, Rows& rows) {
  for (const std::int64_t size : {1'000, 10'000, 100'000, 1'000'000, 10'000'000}) {
    const std::string name = str("all_reduce of ", size, " floats");
    if (name.find(wanted) == std::string::npos) continue;
    const Tensor x = full({size}, 1e-3);
    // The peer's memory belongs to tensors too: large tensors are on huge pages, from which MPI
    // copies in half the time.
    const Tensor in = full({size}, 1e-3), result = full({size}, 0.);
    float* const out = result.data<float>();
    const auto bytes = static_cast<std::size_t>(in.type().bytes());
    const int repeats = static_cast<int>(std::clamp<std::int64_t>(1'000'000 / size, 1, 100));
    const auto seconds = time(world, size > 1'000'000 ? 11 : 21,
                              {[&] {
                                 for (int i = 0; i < repeats; ++i) world.all_reduce(x);
                               },
                               [&] {
                                 for (int i = 0; i < repeats; ++i)
                                   MPI_Allreduce(in.data<float>(), out, static_cast<int>(size),
                                                 MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
                               },
                               [&] {
                                 for (int i = 0; i < repeats; ++i)
                                   std::memcpy(out, in.data<float>(), bytes);
                               }});
    const double ours = median(seconds[0]) / repeats, theirs = median(seconds[1]) / repeats,
                 copy = median(seconds[2]) / repeats;
    rows.add(name, "us", "us", ours * 1e6);
    rows.add(name, "us_mpi_allreduce", "us", theirs * 1e6);
    rows.add(name, "us_copy", "us", copy * 1e6);
    std::vector<double> ratios;
    for (std::size_t i = 0; i < seconds[0].size(); ++i)
      ratios.push_back(seconds[0][i] / seconds[1][i]);
    rows.add(name, "ratio_to_mpi_allreduce", "", median(ratios));
  }
}

struct Model {
  Embedding embedding;
  LstmCell cell;
  Linear readout;
};

Weighted loss_of(const Model& model, const Tensor& text, const Tensor& target, const Dim& time) {
  auto [outputs, last] = recur(model.cell, model.embedding(text), time);
  return log_loss(model.readout(outputs), target, model.readout.out);
}

/// The step of char_rnn with 64 sequences: loss, gradient, clipping, Adam.
void measure_training(const World& world, const std::string& wanted, Rows& rows) {
  const std::string name = "char_rnn step, 64 sequences";
  if (name.find(wanted) == std::string::npos) return;
  manual_seed(1);
  const Dim symbol("symbol", 73), in("in", 65), hidden("hidden", 128);
  const Dim batch("batch", 64), time_dim("time", 64);
  const Model first{Embedding::init(symbol, in), LstmCell::init(in, hidden),
                    Linear::init(hidden, symbol)};
  const Tensor text = cast(random_uniform({batch, time_dim}, 0, 73), i32),
               target = cast(random_uniform({batch, time_dim}, 0, 73), i32);
  struct Learnt {
    Model model;
    Adam<Model> adam;
  };
  const auto update = [](Learnt learnt, const Model& gradient) {
    auto [clipped, norm] = clip_by_global_norm(gradient, 1.0);
    learnt.adam.update(learnt.model, clipped);
    return learnt;
  };
  const auto alone = jit([&](Learnt learnt, const Tensor& x, const Tensor& y) {
    const auto loss = [&](const Model& model) { return loss_of(model, x, y, time_dim).mean(); };
    return update(learnt, grad(loss)(learnt.model));
  });
  const auto together = jit([&](Learnt learnt, const Sharded<std::pair<Tensor, Tensor>>& mine) {
    const auto loss = [&](const Model& model, const std::pair<Tensor, Tensor>& own_shard) {
      return loss_of(model, own_shard.first, own_shard.second, time_dim);
    };
    return update(learnt, world.value_and_grad(loss)(learnt.model, mine).second);
  });
  const auto mine = world.shard(std::pair{text, target}, batch);
  Learnt one{first, Adam<Model>(first)}, all = one, two = one;
  const auto on_first = [&](int threads, Learnt& learnt) {
    if (world.rank() == 0) {
      set_threads(threads);
      for (int i = 0; i < 5; ++i) learnt = alone(std::move(learnt), text, target);
      set_threads(1);
    }
    world.barrier();
  };
  set_threads(1);
  const auto seconds = time(world, 9,
                            {[&] { on_first(1, one); }, [&] { on_first(2, two); },
                             [&] {
                               for (int i = 0; i < 5; ++i) all = together(std::move(all), mine);
                             },
                             [&] {
                               for (int i = 0; i < 5; ++i) world.all_reduce(first);
                             }});
  const char* const metrics[] = {"ms_1_rank_1_thread", "ms_1_rank_2_threads", "ms",
                                 "ms_in_collectives"};
  for (std::size_t k = 0; k < 4; ++k)
    rows.add(name, metrics[k], "ms", median(seconds[k]) / 5 * 1e3);
  std::vector<double> to_one, to_threads;
  for (std::size_t i = 0; i < seconds[0].size(); ++i) {
    to_one.push_back(seconds[0][i] / seconds[2][i]);
    to_threads.push_back(seconds[1][i] / seconds[2][i]);
  }
  rows.add(name, "speedup_over_1_thread", "", median(to_one));
  rows.add(name, "speedup_over_2_threads", "", median(to_threads));
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) {
  using reel::bench::option_of;
  int size = 2;
  if (const char* const ranks = std::getenv("OMPI_COMM_WORLD_SIZE")) size = std::atoi(ranks);
  const reel::World world({.shards = size});
  reel::bench::Rows rows(option_of(argc, argv, "--json"), world.rank() == 0);
  if (world.rank() == 0)
    std::printf("%d ranks, medians over turns in which contenders alternate\n", world.size());
  const std::string wanted = option_of(argc, argv, "--case");
  reel::bench::measure_all_reduce(world, wanted, rows);
  reel::bench::measure_training(world, wanted, rows);
}
