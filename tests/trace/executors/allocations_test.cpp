// Allocations of a traced function's calls, from the second call with the same sizes on.
//
// Two things are counted. Blocks: memory for tensors and for the values of plans that does not come
// from the pools of freed blocks. Objects: calls of operator new by the rest of the library, for
// instance for vectors of leaves.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "reel/reel.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCounts = false;
#else
constexpr bool kCounts = true;
#endif

namespace {

std::atomic<long> blocks_from_system{0}, objects_made{0};
std::atomic<long> made_by_others{0};  // both kinds, on threads other than the calling one
thread_local bool calls = false;

/// Returns the library's function that this program's function of the same name hides.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" void* scalable_aligned_malloc(std::size_t bytes, std::size_t alignment) {
  static auto* const allocate = next<void*(std::size_t, std::size_t)>("scalable_aligned_malloc");
  ++blocks_from_system;
  made_by_others += !calls;
  return allocate(bytes, alignment);
}
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  static auto* const allocate = next<void*(std::size_t, std::size_t)>("aligned_alloc");
  ++blocks_from_system;
  made_by_others += !calls;
  return allocate(alignment, bytes);
}
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++objects_made;
  made_by_others += !calls;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace reel {
namespace {

struct Counts {
  long blocks = 0, objects = 0;
};
template <class F>
Counts count(const F& f) {
  const Counts before{blocks_from_system, objects_made};
  f();
  return {blocks_from_system - before.blocks, objects_made - before.objects};
}

struct Model {
  LstmCell cell;
  Tensor readout;
};

/// A training step: loss, gradient, clipping and Adam in one graph, with its arguments moved in.
class Training {
 public:
  static constexpr int kBatch = 16, kIn = 24, kHidden = 32;

  void step(const Dim& time, const Tensor& x) {
    auto result = step_(std::move(model_), std::move(adam_), x, target_, time);
    model_ = std::move(std::get<0>(result));
    adam_ = std::move(std::get<1>(result));
  }
  Tensor draw(const Dim& time) const { return random_normal({batch_, time, in_}); }
  const Dim& batch() const { return batch_; }

 private:
  static std::tuple<Model, Adam<Model>, Tensor> take_step(Model model, Adam<Model> adam,
                                                          const Tensor& x, const Tensor& target,
                                                          const Dim& time) {
    const auto loss = [&](const Model& model) {
      const LstmCell& cell = model.cell;
      const auto body = [&](const Tensor& x, const LstmCell::State& state) {
        return std::pair{None{}, cell(x, state).second};
      };
      const auto last = scan(Scan{.spatial_dim = time,
                                  .initial = cell.initial_state({target.dim(0)}),
                                  .xs = x,
                                  .body = body})
                            .state;
      return mean(square(matmul(last.h, model.readout, cell.hidden) - target));
    };
    const auto [value, gradient] = value_and_grad(loss)(model);
    adam.update(model, clip_by_global_norm(gradient, 1.0).first);
    return {model, adam, value};
  }

  Dim batch_{"batch", kBatch}, in_{"in", kIn}, hidden_{"hidden", kHidden};
  Model model_{LstmCell::init(in_, hidden_), random_normal({hidden_})};
  Adam<Model> adam_{model_};
  Tensor target_ = random_normal({batch_});
  decltype(jit(take_step)) step_ = jit(take_step);
};

TEST(AllocationsTest, ATrainingStepWhoseArgumentsAreMovedInTakesNothingFromTheSystem) {
  if (!kCounts) GTEST_SKIP() << "sanitizers take memory over themselves";
  set_threads(1);  // a thread reuses only memory that it has freed itself
  Training training;
  const Dim time("time", 20);
  const Tensor x = training.draw(time);
  const Counts first = count([&] { training.step(time, x); });
  EXPECT_GT(first.blocks, 0);
  for (int call = 2; call < 8; ++call) {
    const Counts later = count([&] { training.step(time, x); });
    EXPECT_EQ(later.blocks, 0) << "call " << call;
    EXPECT_LT(later.objects, 120) << "call " << call << "; the first one: " << first.objects;
  }
}

TEST(AllocationsTest, ForOtherDimsOfTheSameSizesLoopsAreNotPlannedAgain) {
  if (!kCounts) GTEST_SKIP() << "sanitizers take memory over themselves";
  set_threads(1);  // a thread reuses only memory that it has freed itself
  Training training;
  const auto step = [&] {
    const Dim time("time", 20);
    const Tensor x = training.draw(time);
    return count([&] { training.step(time, x); }).objects;
  };
  const long first = step();
  step();
  for (int call = 3; call < 8; ++call) EXPECT_LT(step(), first / 20) << "call " << call;
}

TEST(AllocationsTest, ChunkedLoopsAndRaggedProductsTakeNothingFromTheSystem) {
  if (!kCounts) GTEST_SKIP() << "sanitizers take memory over themselves";
  set_threads(1);  // a thread reuses only memory that it has freed itself
  const Dim batch("batch", 4), in("in", 8);
  const Dim time("time", tensor({70, 20, 33, 9}, {batch}));
  const LstmCell first = LstmCell::init(in, Dim("hidden", 8)),
                 second = LstmCell::init(first.hidden, Dim("top", 8));
  const auto layer = [](const LstmCell& cell, const Dim& time, const Tensor& x) {
    const auto body = [&](const Tensor& x, const LstmCell::State& state) {
      const LstmCell::State next = cell(x, state).second;
      return std::pair{next.h, next};
    };
    return scan(Scan{.spatial_dim = time,
                     .initial = cell.initial_state({x.dim("batch")}),
                     .xs = x,
                     .body = body})
        .ys;
  };
  for (const bool is_ragged : {false, true}) {
    SCOPED_TRACE(is_ragged);
    const Dim steps = is_ragged ? time : Dim("time", 70);
    const Tensor x = random_normal({batch, steps, in});
    const auto step = jit(value_and_grad([&](const std::pair<LstmCell, LstmCell>& cells) {
      return sum(layer(cells.second, steps, layer(cells.first, steps, x)));
    }));
    const Counts early = count([&] { step(std::pair{first, second}); });
    EXPECT_GT(early.blocks, 0);
    for (int call = 2; call < 8; ++call) {
      const Counts later = count([&] { step(std::pair{first, second}); });
      EXPECT_EQ(later.blocks, 0) << "call " << call;
      // While entries finish, a loop handles the tensors of an iteration one by one: some twenty
      // small objects in each iteration of the four loops.
      EXPECT_LT(later.objects, is_ragged ? 4 * 70 * 25 : early.objects / 20) << "call " << call;
    }
  }
}

/// Expects that later calls of the gradient of a cell over 500 steps take no memory from the
/// system. Each call draws a new x. Its time is one dim for all calls, or a new dim of the same
/// size.
template <class Cell>
void expect_few_of_cell(const char* what, long objects, const Cell& cell, bool is_same_dim,
                        const Checkpoint& checkpoint = {}) {
  SCOPED_TRACE(what);
  set_threads(1);  // a thread reuses only memory that it has freed itself
  const Dim batch("batch", 16), time("time", 500);
  const auto step = jit(value_and_grad([&](const Cell& cell, const Tensor& x) {
    return sum(square(recur(cell, x, x.dim("time"), {.checkpoint = checkpoint}).outputs));
  }));
  const auto call = [&] {
    const Tensor x = random_normal({is_same_dim ? time : Dim("time", 500), batch, cell.in_dim()});
    return count([&] { step(cell, x); });
  };
  const long first = call().objects;
  call();
  for (int again = 3; again < 8; ++again) {
    const Counts later = call();
    EXPECT_EQ(later.blocks, 0) << "call " << again;
    EXPECT_LT(later.objects, objects) << "call " << again << "; the first one: " << first;
  }
}

TEST(AllocationsTest, RecomputedIterationsArePlannedOnceForTheirSizes) {
  if (!kCounts) GTEST_SKIP() << "sanitizers take memory over themselves";
  const LstmCell cell = LstmCell::init(Dim("in", 16), Dim("hidden", 32));
  // For each of 50 segments of ten steps: vectors of inputs and results, views, and the vectors of
  // its loop.
  expect_few_of_cell("one dim", 50 * 60, cell, true, Checkpoint::every(10));
  expect_few_of_cell("a dim each call", 50 * 80, cell, false, Checkpoint::every(10));
}

TEST(AllocationsTest, ProductsThatCopyAMatrixInEveryStepTakeNoObjectsForIt) {
  if (!kCounts) GTEST_SKIP() << "sanitizers take memory over themselves";
  // With reset_after = false, the gradient's products read matrices of several sizes transposed,
  // two in each step. Buffers are made per chunk.
  expect_few_of_cell("gru", 3 * 500,
                     GruCell::init(Dim("in", 16), Dim("hidden", 32), {.reset_after = false}), true);
}

/// Returns a scan from zeros over x, {steps, 4, 8}. next: (w, x, h) -> h.
template <class F>
auto steps_of(F next) {
  return [=](const Tensor& w, const Tensor& x) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor made = next(w, x, h);
      return std::pair{made, made};
    };
    return sum(scan(Scan{.initial = zeros({4, 8}), .xs = x, .body = body}).ys);
  };
}
Tensor rnn(const Tensor& w, const Tensor& x, const Tensor& h) { return tanh(matmul(h, w) + x); }
Tensor rnn_or_sum(const Tensor& w, const Tensor& x, const Tensor& h) {
  return cond(
      sum(x) > 0.f, [&] { return rnn(w, x, h); }, [&] { return h + x; });
}
Tensor until_large(const Tensor& w, const Tensor& x, const Tensor& h) {
  return while_loop([](const Tensor& h) { return sum(abs(h)) < 20.f; },
                    [&](const Tensor& h) { return matmul(h, w) + x + 1.f; }, h);
}
/// A while_loop with as many iterations as x has elements in its first axis.
Tensor while_there_are_steps(const Tensor& w, const Tensor& x) {
  const auto [count, h] =
      while_loop([&](const Tensor& i, const Tensor&) { return i < x.dims()[0].size(); },
                 [&](const Tensor& i, const Tensor& h) {
                   return std::tuple{i + 1, rnn(w, gather(x, i, 0), h)};
                 },
                 std::tuple{scalar(0), zeros({4, 8})});
  return sum(h);
}

/// Expects that calls from the second on take no memory from the system and make at most `objects`
/// small objects.
template <class F>
void expect_few(const char* what, long objects, const F& f, std::int64_t steps = 200) {
  for (const int on : {1, 2}) {
    SCOPED_TRACE(str(what, ", ", steps, " steps, ", on, " threads"));
    set_threads(on);
    const auto jitted = jit(f);
    const Tensor w = full({8, 8}, 0.1), x = random_normal({steps, 4, 8});
    EXPECT_GT(count([&] { jitted(w, x); }).blocks, 0);
    for (int call = 2; call < 6; ++call) {
      const Counts later = count([&] { jitted(w, x); });
      EXPECT_EQ(later.blocks, 0) << "call " << call;
      EXPECT_LT(later.objects, objects) << "call " << call;
    }
    set_threads(1);
  }
}

TEST(AllocationsTest, BranchesAndLoopsOfUnknownLengthTakeNothingFromTheSystem) {
  if (!kCounts) GTEST_SKIP() << "sanitizers take memory over themselves";
  // Fewer than one per step, for 200 steps: vectors of leaves, and a few per chunk.
  expect_few("scan", 40, steps_of(rnn));
  expect_few("its gradient", 150, value_and_grad(steps_of(rnn)));
  expect_few("cond in a scan", 100, steps_of(rnn_or_sum));
  expect_few("its gradient", 150, value_and_grad(steps_of(rnn_or_sum)));
  expect_few("while_loop", 40, while_there_are_steps);
  expect_few("its gradient", 150, value_and_grad(while_there_are_steps));
  // A loop inside a body starts in each iteration, and its run has vectors of its own.
  expect_few("while_loop in a scan", 3 * 200, steps_of(until_large));
  // The interpreter runs its reverse loop, because the length is unknown.
  expect_few("its gradient", 40 * 200, value_and_grad(steps_of(until_large)));
}

TEST(AllocationsTest, OnTwoThreadsBlocksOfRowsAndLayersTakeNothingFromTheSystem) {
  if (!kCounts) GTEST_SKIP() << "sanitizers take memory over themselves";
  // Each thread reuses only memory that it has freed, so warming up takes some calls. If other
  // programs occupy the second processor, its thread may take part in no call for a long time.
  constexpr int kWarmUp = 20, kCalls = 40, kMaxCalls = 5000;
  calls = true;
  const Dim batch("batch", 16), in("in", 64), time("time", 70);
  const LstmCell first = LstmCell::init(in, Dim("hidden", 64)),
                 second = LstmCell::init(first.hidden, Dim("top", 64));
  const auto of_rows = [](const LstmCell& cell, const Tensor& x) {
    return sum(recur(cell, x, x.dim("time")).outputs);
  };
  const auto of_layers = [](const std::pair<LstmCell, LstmCell>& cells, const Tensor& x) {
    return sum(recur(stack_cells(cells.first, cells.second), x, x.dim("time")).outputs);
  };
  const auto expect_none = [&](const char* what, long objects, const char* explained,
                               const auto& step) {
    SCOPED_TRACE(what);
    set_threads(2);
    int turns = 0;  // calls in which another thread took part
    for (int call = 0; turns < kWarmUp && call < kMaxCalls; ++call) {
      const long before = made_by_others;
      step();
      turns += made_by_others > before;
    }
    EXPECT_EQ(turns, kWarmUp);
    EXPECT_NE(step.explain().find(explained), std::string::npos) << step.explain();
    Counts all;
    std::string each;
    for (int call = 0; call < kCalls; ++call) {
      const Counts one = count(step);
      all.blocks += one.blocks;
      all.objects = std::max(all.objects, one.objects);
      each += str(' ', one.blocks, '/', one.objects);
    }
    EXPECT_EQ(all.blocks, 0) << each;
    EXPECT_LT(all.objects, objects) << each;
    set_threads(1);
  };
  struct Rows {
    decltype(jit(value_and_grad(of_rows))) f;
    LstmCell cell;
    Tensor x;
    void operator()() const { f(cell, x); }
    std::string explain() const { return f.explain(); }
  };
  struct Layers {
    decltype(jit(value_and_grad(of_layers))) f;
    std::pair<LstmCell, LstmCell> cells;
    Tensor x;
    void operator()() const { f(cells, x); }
    std::string explain() const { return f.explain(); }
  };
  expect_none("rows", 300, "cut: 2 blocks",
              Rows{jit(value_and_grad(of_rows)), first, random_normal({time, batch, in})});
  expect_none("layers", 1200, "beside loop 1",
              Layers{jit(value_and_grad(of_layers), {.passes = {.chunk_steps = 10}}),
                     {first, second},
                     random_normal({time, Dim("batch", 2), in})});
}

}  // namespace
}  // namespace reel
