// The programs of docs/long_sequences.md: each runs here and does as the page says.
#include <gtest/gtest.h>

#include <sstream>

#include "reel/core/runtime/memory.h"
#include "reel/frontend/files/sequence.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"
#include "reel/tests/peaks.h"

namespace reel {
namespace {

struct Model {
  LstmCell cell;
  Linear readout;
};

Tensor loss(const Model& model, const Tensor& x, const Checkpoint& checkpoint,
            const SwapMemory& swap) {
  const auto body = [&](const Tensor& x, const LstmCell::State& state) {
    const auto [h, next] = model.cell(x, state);
    return std::pair{mean(square(model.readout(h))), next};
  };
  return mean(scan(Scan{.spatial_dim = x.dim("time"),
                        .initial = model.cell.initial_state({x.dim("batch")}),
                        .xs = x,
                        .body = body,
                        .checkpoint = checkpoint,
                        .swap_memory = swap,
                        .name = "encoder"})
                  .ys);
}

class LongSequencesPage : public InOwnFolder {
 protected:
  LongSequencesPage() : InOwnFolder("text.npy") { manual_seed(3); }
  const Dim batch{"batch", 4}, in{"in", 8}, hidden{"hidden", 16};
  const Model model{LstmCell::init(in, hidden), Linear::init(hidden, Dim("out", 2))};
  Tensor steps(std::int64_t count) const { return random_normal({Dim("time", count), batch, in}); }
};

TEST_F(LongSequencesPage, EachPolicyGivesTheSameGradient) {
  const Tensor x = steps(500);
  const auto with = [&](const Checkpoint& checkpoint, const SwapMemory& swap) {
    return jit(grad([=](const Model& m, const Tensor& x) { return loss(m, x, checkpoint, swap); }))(
        model, x);
  };
  const auto keeps_all = with({}, {}), every = with(Checkpoint::every(64), {}),
             within = with(Checkpoint::budget(64 << 20), {}),
             in_file = with({}, Spill{.folder = "", .bytes_in_memory = 64 << 20});
  for (const auto& gradient : {every, within, in_file})
    expect_same_bits(gradient.readout.weight, keeps_all.readout.weight);
}

TEST_F(LongSequencesPage, AskBeforeYouRun) {
  const Tensor x = steps(10'000);
  std::ostringstream out;
  const auto within = [](const Model& m, const Tensor& x) {
    return loss(m, x, Checkpoint::budget(64 << 10), {});
  };
  out << saved_values(within)(model, x);
  EXPECT_TRUE(out.str().find("each iteration runs ") != std::string::npos) << out.str();
}

TEST_F(LongSequencesPage, MemoryReportsCheckpoints) {
  const Tensor x = steps(1000);
  const auto step = jit(
      grad([](const Model& m, const Tensor& x) { return loss(m, x, Checkpoint::every(32), {}); }));
  std::ostringstream out;
  reset_peak_memory();
  step(model, x);
  out << memory();
  EXPECT_GT(memory().checkpoints.peak, 0);
}

TEST_F(LongSequencesPage, ARuleByOp) {
  const Tensor x = steps(50);
  const auto rule = [](const StepValue& v) {
    return v.op == "dot" ? Saving::keep : Saving::recompute;
  };
  const auto f = [&](const Checkpoint& policy) {
    return grad([&](const Model& m) { return loss(m, x, policy, {}); })(model);
  };
  const auto gradient = f(Checkpoint::every(64).where(rule));
  expect_same_bits(gradient.readout.weight, f({}).readout.weight);
}

TEST_F(LongSequencesPage, AFunctionThatIsNoLoop) {
  const Tensor x = steps(50);
  const auto f = [&](const Model& m) {
    const auto head = checkpoint([&](const Tensor& h) { return tanh(m.readout(h)); });
    return mean(square(head(recur(m.cell, x, x.dim("time")).outputs)));
  };
  EXPECT_EQ(grad(f)(model).readout.weight.type(), model.readout.weight.type());
}

TEST_F(LongSequencesPage, GradientsThatReachBackAHundredSteps) {
  const Tensor x = steps(300);
  const auto f = [&](const Model& m) {
    const auto made = recur(m.cell, x, x.dim("time"),
                            {.checkpoint = Checkpoint::budget(64 << 20), .truncate = 100});
    return mean(square(m.readout(made.outputs)));
  };
  EXPECT_EQ(grad(f)(model).readout.weight.type(), model.readout.weight.type());
}

TEST_F(LongSequencesPage, ASequenceLongerThanMemory) {
  save_npy(path, steps(1000));
  const auto window_loss = [](const Model& m, const LstmCell::State& state, const Tensor& x) {
    const auto made = recur(m.cell, x, x.dim("time"), {.initial = state});
    return std::pair{mean(square(m.readout(made.outputs))), made.state};
  };
  const auto step = jit(value_and_grad(window_loss));
  LstmCell::State state = model.cell.initial_state({batch});
  int windows = 0;
  for (Sequence text(path, {batch, in}); text.left() >= 100; ++windows) {
    const auto [made, gradient] = step(model, state, text.next(Dim("time", 100)));
    state = made.second;
  }
  EXPECT_EQ(windows, 10);
}

}  // namespace
}  // namespace reel
