// ProjectedLstmCell, LayerNormLstmCell, SLstmCell, MinGruCell and MambaBlock: steps by hand, whole
// sequences, gradients.
#include <cmath>
#include <limits>

#include "reel/frontend/layers/lstm_variants.h"
#include "reel/frontend/layers/mamba_block.h"
#include "reel/frontend/layers/min_gru_cell.h"
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

class CellVariantsTest : public InEveryMode {
 protected:
  CellVariantsTest() { manual_seed(51); }
  const Dim batch = Dim("batch", 3), in = Dim("in", 2), hidden = Dim("hidden", 3);
  const Dim time = Dim("time", tensor({4, 0, 2}, {batch}));
  Tensor noisy() const { return where(mask(time), random_normal({batch, time, in}, f64), kNan); }

  /// Expects the cell's outputs in recur to ignore padding, and gradients to be derivatives.
  template <class Cell>
  void expect_cell(const Cell& cell) {
    const Tensor x = noisy();
    const auto f = [&](const Cell& cell, const Tensor& x) { return recur(cell, x, time).outputs; };
    const Tensor y = run(f)(cell, x);
    for (const int b : {0, 2}) {
      const Dim alone("alone", b == 0 ? 4 : 2);
      const Tensor of = slice(x.at(b), Axis(0), 0, alone.size(), alone);
      const Tensor own = transpose(y, {batch, time, cell.out_dim()}).at(b);
      expect_all_close(slice(own, Axis(0), 0, alone.size(), alone), recur(cell, of, alone).outputs,
                       1e-12);
    }
    const auto loss = [&](const Cell& cell) { return sum(sin(f(cell, x))); };
    expect_gradient_of(loss, cell, run(grad(loss))(cell), 1e-6);
    const auto slope = [&](const Tensor& x) {
      return sum(
          square(mask_padding(grad([&](const Tensor& x) { return sum(sin(f(cell, x))); })(x))));
    };
    expect_gradient_of(slope, mask_padding(x), mask_padding(run(grad(slope))(x)), 1e-6);
    const auto both = bidirectional(cell, cell, mask_padding(x), time);
    expect_all_close(mask_padding(slice(both.outputs, 2, 0, cell.out_dim().size(), cell.out_dim())),
                     mask_padding(y), 1e-12);
  }
};

TEST_P(CellVariantsTest, AnLstmMayBeProjected) {
  const Dim low("low", 2);
  const ProjectedLstmCell cell = ProjectedLstmCell::init(in, hidden, low, {.dtype = f64});
  expect_cell(cell);
  // The gates of an LstmCell with the product of both recurrent matrices.
  LstmCell like = LstmCell::init(in, hidden, {.dtype = f64});
  like.input_weight = rename(cell.input_weight, cell.gate, like.gate);
  like.bias = rename(cell.bias, cell.gate, like.gate);
  like.recurrent_weight =
      rename(matmul(cell.projection, cell.recurrent_weight, low), cell.gate, like.gate);
  const Tensor x = random_normal({batch, in}, f64);
  auto state = cell.initial_state({batch});
  auto of_like = like.initial_state({batch});
  for (int i = 0; i < 3; ++i) {
    state = cell(x, state).second;
    of_like = like(x, of_like).second;
  }
  expect_all_close(state.c, of_like.c, 1e-13);
  expect_all_close(state.h, matmul(of_like.h, cell.projection, hidden), 1e-13);
}

TEST_P(CellVariantsTest, AnLstmMayNormaliseItsGates) {
  LayerNormLstmCell cell = LayerNormLstmCell::init(in, hidden, {.dtype = f64});
  cell.of_state.bias = random_normal(cell.of_state.bias.dims(), f64);
  expect_cell(cell);
  const Tensor x = random_normal({batch, in}, f64);
  const auto [y, state] = cell(x, cell.initial_state({batch}));
  const LayerNorm norm = LayerNorm::init(cell.gate, {.dtype = f64});
  const Tensor gates = norm(matmul(x, cell.input_weight, in)) + cell.of_state.bias + cell.bias;
  const auto [i, f, g, o] = split<4>(gates, cell.gate, hidden);
  const Tensor c = sigmoid(i) * tanh(g);
  expect_all_close(state.c, c, 1e-13);
  expect_all_close(y, sigmoid(o) * tanh(LayerNorm::init(hidden, {.dtype = f64})(c)), 1e-13);
}

TEST_P(CellVariantsTest, ExponentialGatesWeighAllStepsWithoutOverflow) {
  const SLstmCell cell = SLstmCell::init(in, hidden, {.dtype = f64});
  expect_cell(cell);
  // One unit that sees x alone: h is a weighted mean of tanh(z), with weights exp(i) Π σ(f).
  const Dim one("one", 1), x_dim("x", 4);
  SLstmCell unit = SLstmCell::init(x_dim, one, {.dtype = f64});
  unit.input_weight = tensor(
      {{1.0, 0.0, 0.0, 0.0}, {0.0, 1.0, 0.0, 0.0}, {0.0, 0.0, 1.0, 0.0}, {0.0, 0.0, 0.0, 1.0}},
      {x_dim, unit.gate}, f64);
  unit.recurrent_weight = zeros({one, unit.gate}, f64);
  unit.bias = zeros({unit.gate}, f64);
  const double steps[3][4] = {{1.0, 0.5, 0.3, 0.2}, {2.0, -1.0, -0.7, 0.4}, {-1.0, 3.0, 0.9, -2.0}};
  auto state = unit.initial_state({});
  double c = 0, n = 0;
  for (const auto& [i, f, z, o] : steps) {
    Tensor y;
    std::tie(y, state) = unit(tensor({i, f, z, o}, {x_dim}, f64), state);
    const double forget = 1 / (1 + std::exp(-f));
    c = forget * c + std::exp(i) * std::tanh(z);
    n = forget * n + std::exp(i);
    expect_values(y, {c / n / (1 + std::exp(-o))}, 1e-13);
  }
  const Tensor large = unit(tensor({5000.0, 0.0, 1.0, 0.0}, {x_dim}, f64), state).first;
  expect_values(large, {0.5 * std::tanh(1.0)}, 1e-13);
}

TEST_P(CellVariantsTest, AMinGruIsALinearScan) {
  const MinGruCell cell = MinGruCell::init(in, hidden, {.dtype = f64});
  expect_cell(cell);
  const Tensor x = noisy(), h = random_normal({batch, hidden}, f64);
  const auto f = [&](const MinGruCell& cell, const Tensor& x) { return cell(x, time, h); };
  const Tensor steps =
      recur(cell, x, time, RecurOptions<Tensor>{.initial = std::optional(h)}).outputs;
  expect_all_close(mask_padding(run(f)(cell, x)),
                   mask_padding(transpose(steps, {batch, time, hidden})), 1e-13);
  const auto loss = [&](const MinGruCell& cell) { return sum(sin(f(cell, x))); };
  expect_gradient_of(loss, cell, run(grad(loss))(cell));
}

TEST_P(CellVariantsTest, AMambaBlockHasTheNumbersOfItsSteps) {
  const MambaBlock block =
      MambaBlock::init(in, {.expansion = 2, .states = 3, .rank = 1, .taps = 3, .dtype = f64});
  expect_cell(block);
  const Tensor x = noisy();
  const auto f = [&](const MambaBlock& block, const Tensor& x) { return block(x, time); };
  const Tensor steps = recur(block, x, time).outputs;
  const Tensor whole = run(f)(block, x);
  EXPECT_EQ(whole.dims(), (Dims{batch, time, in}));
  expect_all_close(mask_padding(whole), mask_padding(transpose(steps, {batch, time, in})), 1e-12);
  const auto loss = [&](const MambaBlock& block) { return sum(sin(f(block, x))); };
  expect_gradient_of(loss, block, run(grad(loss))(block), 1e-6);
  for (const double b : values_of(softplus(*block.step_up.bias))) {
    EXPECT_GE(b, 0.000999);
    EXPECT_LE(b, 0.1001);
  }
}

TEST_P(CellVariantsTest, ChunksOfAMambaBlockContinueFromAState) {
  const MambaBlock block =
      MambaBlock::init(in, {.expansion = 2, .states = 3, .rank = 1, .taps = 3, .dtype = f64});
  const Dim whole("whole", 5), first("first", 1), second("second", 4);
  const Tensor x = random_normal({batch, whole, in}, f64);
  const auto f = [&](const MambaBlock& block, const Tensor& x) {
    const auto a = recur(block, slice(x, whole, 0, 1, first), first);
    const auto b = recur(block, slice(x, whole, 1, 5, second), second,
                         RecurOptions<MambaBlock::State>{.initial = a.state});
    return concat({a.outputs, b.outputs}, 0, whole);
  };
  expect_all_close(transpose(run(f)(block, x), {batch, whole, in}), block(x, whole), 1e-12);
  const auto of_chunks = [&](const MambaBlock& block) { return sum(sin(f(block, x))); };
  const auto of_whole = [&](const MambaBlock& block) { return sum(sin(block(x, whole))); };
  const auto expected = tensors_of(flatten(grad(of_whole)(block)));
  const auto actual = tensors_of(flatten(run(grad(of_chunks))(block)));
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) expect_all_close(actual[i], expected[i], 1e-10);
}

REEL_IN_EVERY_MODE(CellVariantsTest);

TEST(CellVariantErrorsTest, NameTheCell) {
  const Dim in("in", 2), hidden("hidden", 3);
  EXPECT_EQ(message_of<ArgumentError>([&] { ProjectedLstmCell::init(in, hidden, hidden); }),
            "ProjectedLstmCell: hidden and projected are the same dim, hidden=3; make another Dim "
            "for projected");
  EXPECT_EQ(
      message_of<ArgumentError>([&] { SLstmCell::init(in, hidden, {.has_peepholes = true}); }),
      "SLstmCell: peepholes are for LstmCell");
  EXPECT_EQ(message_of<ArgumentError>([&] { MambaBlock::init(in, {.states = 0}); }),
            "MambaBlock: expansion 2, states 0, rank 1 and taps 4 must be positive");
}

}  // namespace
}  // namespace reel
