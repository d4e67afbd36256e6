// Recurrent cells compared with the same formulas in plain C++: outputs, states, ragged batches,
// gradients; and recur, stack_cells and bidirectional.
#include <limits>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();
using Numbers = std::vector<double>;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// Returns column j of v·m. m: {v's size, columns}.
double product(const Numbers& v, const Tensor& m, std::size_t columns, std::size_t j) {
  const Numbers values = values_of(m);
  double result = 0;
  for (std::size_t i = 0; i < v.size(); ++i) result += v[i] * values[i * columns + j];
  return result;
}

/// h and c of one entry.
struct Memory {
  Numbers h, c;
};

Memory reference_step(const RnnCell& cell, const Numbers& x, const Memory& s) {
  Memory next = s;
  for (std::size_t j = 0; j < s.h.size(); ++j)
    next.h[j] =
        std::tanh(product(x, cell.input_weight, s.h.size(), j) +
                  product(s.h, cell.recurrent_weight, s.h.size(), j) + values_of(cell.bias)[j]);
  return next;
}

Memory reference_step(const LstmCell& cell, const Numbers& x, const Memory& s) {
  const std::size_t n = s.h.size();
  Memory next = s;
  for (std::size_t j = 0; j < n; ++j) {
    const auto gate = [&](std::size_t k) {
      return product(x, cell.input_weight, 4 * n, k * n + j) +
             product(s.h, cell.recurrent_weight, 4 * n, k * n + j) +
             values_of(cell.bias)[k * n + j];
    };
    const auto peep = [&](Tensor LstmCell::Peepholes::*which, double c) {
      return cell.peepholes ? values_of((*cell.peepholes).*which)[j] * c : 0.0;
    };
    using P = LstmCell::Peepholes;
    next.c[j] = logistic(gate(1) + peep(&P::forget, s.c[j])) * s.c[j] +
                logistic(gate(0) + peep(&P::input, s.c[j])) * std::tanh(gate(2));
    next.h[j] = logistic(gate(3) + peep(&P::output, next.c[j])) * std::tanh(next.c[j]);
  }
  return next;
}

Memory reference_step(const ZoneoutLstmCell& cell, const Numbers& x, const Memory& s) {
  Memory next = reference_step(cell.cell, x, s);
  for (std::size_t j = 0; j < s.h.size(); ++j) {
    next.h[j] = cell.zoneout_h * s.h[j] + (1 - cell.zoneout_h) * next.h[j];
    next.c[j] = cell.zoneout_c * s.c[j] + (1 - cell.zoneout_c) * next.c[j];
  }
  return next;
}

Memory reference_step(const GruCell& cell, const Numbers& x, const Memory& s) {
  const std::size_t n = s.h.size();
  const auto from_x = [&](std::size_t k, std::size_t j) {
    return product(x, cell.input_weight, 3 * n, k * n + j) + values_of(cell.bias)[k * n + j];
  };
  const auto from_h = [&](const Numbers& h, std::size_t k, std::size_t j) {
    return product(h, cell.recurrent_weight, 3 * n, k * n + j);
  };
  Numbers reset(n), reset_h(n);
  for (std::size_t j = 0; j < n; ++j) {
    reset[j] = logistic(from_x(0, j) + from_h(s.h, 0, j));
    reset_h[j] = reset[j] * s.h[j];
  }
  Memory next = s;
  for (std::size_t j = 0; j < n; ++j) {
    const double z = logistic(from_x(1, j) + from_h(s.h, 1, j));
    const double recurrent =
        cell.candidate_bias ? reset[j] * (from_h(s.h, 2, j) + values_of(*cell.candidate_bias)[j])
                            : from_h(reset_h, 2, j);
    next.h[j] = (1 - z) * std::tanh(from_x(2, j) + recurrent) + z * s.h[j];
  }
  return next;
}

Numbers state_numbers(const Tensor& h) { return values_of(h); }
Numbers state_numbers(const LstmCell::State& s) {
  Numbers both = values_of(s.h);
  for (const double c : values_of(s.c)) both.push_back(c);
  return both;
}
Tensor state_energy(const Tensor& h) { return sum(square(h)); }
Tensor state_energy(const LstmCell::State& s) { return sum(square(s.h)) + sum(s.c); }

/// Returns the tree with every float tensor drawn anew, biases and peepholes too.
template <class Tree>
Tree with_random_parameters(const Tree& tree) {
  return tree_map([](const Tensor& x) { return random_normal(x.dims(), x.dtype()) * 0.5; }, tree);
}

class CellsTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 3}, in{"in", 2}, hidden{"hidden", 3};
  const std::vector<int> lengths{4, 0, 2};
  const Dim time{"time", tensor(lengths, {batch})};
  Tensor x;

  void SetUp() override {
    manual_seed(6);
    x = random_normal({batch, time, in}, f64);
  }
  Tensor dirty() const { return where(mask(time), x, scalar(kNan, f64)); }

  template <class Cell>
  void expect_follows_the_formulas(const Cell& initialised, const bool reverse = false) {
    const Cell cell = with_random_parameters(initialised);
    const auto f = run([reverse](const Cell& cell, const Tensor& x) {
      auto [outputs, state] = recur(cell, x, x.dim("time"), {.reverse = reverse});
      return std::pair{outputs, state};
    });
    const auto [outputs, state] = f(cell, dirty());
    EXPECT_EQ(outputs.type(), TensorType(f64, {time, batch, hidden}));
    // Each entry alone, by hand.
    Numbers expected(4 * 3 * 3), h, c;
    for (std::size_t b = 0; b < 3; ++b) {
      Memory s{Numbers(3), Numbers(3)};
      const auto length = static_cast<std::size_t>(lengths[b]);
      for (std::size_t k = 0; k < length; ++k) {
        const std::size_t t = reverse ? length - 1 - k : k;
        const double* frame = x.data<double>() + (b * 4 + t) * 2;
        s = reference_step(cell, Numbers(frame, frame + 2), s);
        std::copy(s.h.begin(), s.h.end(), expected.begin() + (t * 3 + b) * 3);
      }
      h.insert(h.end(), s.h.begin(), s.h.end());
      c.insert(c.end(), s.c.begin(), s.c.end());
    }
    expect_values(outputs, expected, 1e-14);
    if constexpr (!std::is_same_v<typename Cell::State, Tensor>)
      h.insert(h.end(), c.begin(), c.end());
    check_detail::compare("state", state_numbers(state), h, 1e-14, __FILE__, __LINE__);
    // Each entry alone, without a batch dim and padding.
    for (int b = 0; b < 3; ++b) {
      const Dim length("time", lengths[static_cast<std::size_t>(b)]);
      const Tensor alone = slice(gather(x, scalar(b), batch), time, 0, length.size(), length);
      const auto [outputs_alone, state_alone] = f(cell, alone);
      EXPECT_EQ(outputs_alone.type(), TensorType(f64, {length, hidden}));
      expect_all_close(outputs_alone,
                       slice(gather(outputs, scalar(b), batch), time, 0, length.size(), length),
                       1e-14);
    }
  }

  template <class Cell>
  void expect_right_gradients(const Cell& initialised) {
    const Cell cell = with_random_parameters(initialised);
    const auto loss = [&](const std::pair<Cell, Tensor>& at) -> Tensor {
      auto [outputs, state] = recur(at.first, at.second, time);
      return sum(square(outputs)) + state_energy(state);
    };
    const auto both = run(value_and_grad(loss));
    const auto gradient = both(std::pair{cell, x}).second;
    expect_gradient_of(loss, std::pair{cell, x}, gradient);
    const auto dirty_gradient = both(std::pair{cell, dirty()}).second;
    expect_same_bits(dirty_gradient.second, gradient.second);
    const TreeLeaves a = flatten(dirty_gradient.first), b = flatten(gradient.first);
    for (std::size_t i = 0; i < a.size(); ++i)
      if (a[i].kind == TreeLeaf::Kind::tensor) expect_same_bits(a[i].tensor, b[i].tensor);
  }
};
REEL_IN_EVERY_MODE(CellsTest);

TEST_P(CellsTest, RnnFollowsItsFormula) {
  const RnnCell cell = RnnCell::init(in, hidden, {.dtype = f64});
  expect_follows_the_formulas(cell);
  expect_follows_the_formulas(cell, true);
  expect_right_gradients(cell);
}

TEST_P(CellsTest, LstmFollowsItsFormulas) {
  for (const bool has_peepholes : {false, true}) {
    const LstmCell cell =
        LstmCell::init(in, hidden, {.has_peepholes = has_peepholes, .dtype = f64});
    expect_follows_the_formulas(cell);
    expect_follows_the_formulas(cell, true);
    expect_right_gradients(cell);
  }
}

TEST_P(CellsTest, GruFollowsItsFormulasInBothForms) {
  for (const bool reset_after : {false, true}) {
    const GruCell cell = GruCell::init(in, hidden, {.reset_after = reset_after, .dtype = f64});
    expect_follows_the_formulas(cell);
    expect_right_gradients(cell);
  }
}

TEST_P(CellsTest, ZoneoutMixesByItsRatesWithoutTraining) {
  const ZoneoutLstmCell cell{LstmCell::init(in, hidden, {.dtype = f64}), 0.3, 0.1, false};
  expect_follows_the_formulas(cell);
  expect_right_gradients(cell);
}

TEST_P(CellsTest, ZoneoutKeepsUnitsAtItsRatesInTraining) {
  const Dim many("many", 2000);
  const LstmCell lstm = with_random_parameters(LstmCell::init(in, hidden, {.dtype = f64}));
  const Tensor input = random_normal({many, in}, f64);
  const LstmCell::State old{random_normal({many, hidden}, f64), random_normal({many, hidden}, f64)};
  const auto step = run([&](const ZoneoutLstmCell& cell) { return cell(input, old); });
  const auto next = lstm(input, old).second;
  const auto [output, state] = step(ZoneoutLstmCell{lstm, 0.3, 0.1});
  const auto share_kept = [](const Tensor& before, const Tensor& fresh, const Tensor& after) {
    const Numbers b = values_of(before), f = values_of(fresh), a = values_of(after);
    double kept = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_TRUE(is_close(a[i], b[i], 1e-14) || is_close(a[i], f[i], 1e-14));
      kept += a[i] == b[i];
    }
    return kept / static_cast<double>(a.size());
  };
  EXPECT_NEAR(share_kept(old.h, next.h, state.h), 0.3, 0.025);  // 4 σ
  EXPECT_NEAR(share_kept(old.c, next.c, state.c), 0.1, 0.016);
  expect_same_bits(output, state.h);
  // All units keep their state, or none does.
  const auto kept = step(ZoneoutLstmCell{lstm, 1, 1}).second;
  expect_same_bits(kept.h, old.h);
  expect_same_bits(kept.c, old.c);
  const auto fresh = step(ZoneoutLstmCell{lstm, 0, 0}).second;
  expect_all_close(fresh.h, next.h, 1e-14);
  EXPECT_EQ(message_of<ArgumentError>([&] {
              return ZoneoutLstmCell{lstm, 0.5, 2}(input, old);
            }),
            "ZoneoutLstmCell: rates must be in [0, 1], got 2");
}

TEST_P(CellsTest, ZoneoutDrawsTheSameInEveryModeAndInItsGradient) {
  const ZoneoutLstmCell cell{with_random_parameters(LstmCell::init(in, hidden, {.dtype = f64})),
                             0.5, 0.5};
  const auto loss = [&](const ZoneoutLstmCell& cell) -> Tensor {
    manual_seed(7);
    auto [outputs, state] = recur(cell, x, time);
    return sum(square(outputs)) + sum(state.c);
  };
  const auto eager = [&](const ZoneoutLstmCell& cell) { return loss(cell); };
  const auto both = run(value_and_grad(loss));
  manual_seed(7);
  const auto [value, gradient] = both(cell);
  expect_all_close(value, eager(cell), 1e-14);
  expect_gradient_of(eager, cell, gradient);
}

TEST_P(CellsTest, StartsFromTheStateThatIsGiven) {
  const LstmCell cell = LstmCell::init(in, hidden, {.dtype = f64});
  const auto f = run([&](const LstmCell& cell, const Tensor& x, const LstmCell::State& start) {
    return recur(cell, x, x.dim("time"), {.initial = start}).state;
  });
  const Dim first("time", 2), second("time", 3), both("time", 5);
  const Tensor a = random_normal({batch, first, in}, f64),
               b = random_normal({batch, second, in}, f64);
  const LstmCell::State none = cell.initial_state({batch});
  const LstmCell::State parts = f(cell, b, f(cell, a, none));
  const LstmCell::State whole = f(cell, concat({a, b}, first, both), none);
  expect_all_close(parts.h, whole.h, 1e-14);
  expect_all_close(parts.c, whole.c, 1e-14);
}

TEST_P(CellsTest, StackedCellsReadTheOutputsBelow) {
  const Dim middle("middle", 4);
  const auto stacked = with_random_parameters(stack_cells(
      LstmCell::init(in, middle, {.dtype = f64}), GruCell::init(middle, hidden, {.dtype = f64})));
  const auto f = run([](const auto& cell, const Tensor& x) {
    auto [outputs, state] = recur(cell, x, x.dim("time"));
    return std::tuple{outputs, std::get<0>(state).c, std::get<1>(state)};
  });
  const auto [outputs, c, h] = f(stacked, dirty());
  const auto& [lower, upper] = stacked.cells;
  const auto below = recur(lower, x, time);
  const auto above = recur(upper, below.outputs, time);
  EXPECT_EQ(outputs.type(), TensorType(f64, {time, batch, hidden}));
  expect_all_close(outputs, above.outputs, 1e-14);
  expect_all_close(c, below.state.c, 1e-14);
  expect_all_close(h, above.state, 1e-14);
  EXPECT_EQ(tree_paths(stacked).at(3), "cells.1.input_weight");
}

TEST_P(CellsTest, AVectorOfCellsIsAStackToo) {
  const auto stacked = with_random_parameters(stack_cells(std::vector{
      RnnCell::init(in, hidden, {.dtype = f64}), RnnCell::init(hidden, hidden, {.dtype = f64})}));
  const auto loss = [&](const std::pair<StackedCells<std::vector<RnnCell>>, Tensor>& at) -> Tensor {
    auto [outputs, state] = recur(at.first, at.second, time);
    return sum(square(outputs)) + sum(state[0]);
  };
  const auto [value, gradient] = run(value_and_grad(loss))(std::pair{stacked, x});
  const auto below = recur(stacked.cells[0], x, time);
  const auto above = recur(stacked.cells[1], below.outputs, time);
  expect_all_close(value, sum(square(above.outputs)) + sum(below.state), 1e-14);
  expect_gradient_of(loss, std::pair{stacked, x}, gradient);
  EXPECT_EQ(message_of<ArgumentError>([] { return stack_cells(std::vector<RnnCell>{}); }),
            "stack_cells: takes at least one cell");
}

TEST_P(CellsTest, BidirectionalRunsWithinEachEntry) {
  const Dim other("other", 2), out("out", 5);
  const auto cells = with_random_parameters(std::pair{GruCell::init(in, hidden, {.dtype = f64}),
                                                      LstmCell::init(in, other, {.dtype = f64})});
  const auto f = run([&](const auto& cells, const Tensor& x) {
    auto [outputs, forward, backward] =
        bidirectional(cells.first, cells.second, x, x.dim("time"), {.out = out});
    return std::tuple{outputs, forward, backward.c};
  });
  const auto [outputs, forward, c] = f(cells, dirty());
  EXPECT_EQ(outputs.type(), TensorType(f64, {time, batch, out}));
  const auto ahead = recur(cells.first, x, time);
  const auto back = recur(cells.second, reverse(x, time), time);
  expect_all_close(slice(outputs, out, 0, 3, hidden), ahead.outputs, 1e-14);
  expect_all_close(slice(outputs, out, 3, 5, other), reverse(back.outputs, time), 1e-14);
  expect_all_close(forward, ahead.state, 1e-14);
  expect_all_close(c, back.state.c, 1e-14);
  // If no dim for both directions is given, the result makes one.
  const auto plain = bidirectional(cells.first, cells.second, x, time);
  EXPECT_EQ(plain.outputs.shape(), (std::vector<std::int64_t>{4, 3, 5}));
}

TEST_P(CellsTest, OneTraceServesAllLengths) {
  const GruCell cell = GruCell::init(in, hidden);
  const auto f = run(value_and_grad([](const GruCell& cell, const Tensor& x) -> Tensor {
    return mean(square(recur(cell, x, x.dim("time")).outputs));
  }));
  for (const std::vector<int>& lengths : {std::vector<int>{4, 2, 1}, {7, 7, 7}, {0, 0, 0}}) {
    const Tensor frames = random_normal({batch, Dim("time", tensor(lengths, {batch})), in});
    const auto [value, gradient] = f(cell, frames);
    EXPECT_EQ(value.rank(), 0);
    EXPECT_EQ(gradient.bias.type(), cell.bias.type());
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(CellsTest, FinishesByLengthsOfEntriesThatXLacks) {
  const RnnCell cell = RnnCell::init(in, hidden, {.dtype = f64});
  const Tensor shared = random_normal({time, in}, f64);  // one sequence, used up to three ends
  const auto f =
      run([](const RnnCell& cell, const Tensor& x) { return recur(cell, x, x.dim("time")).state; });
  const Tensor states = f(cell, shared);
  EXPECT_EQ(states.type(), TensorType(f64, {batch, hidden}));
  const Tensor expanded = expand(shared, {batch, time, in});
  expect_all_close(states, recur(cell, expanded, time).state, 1e-14);
}

TEST(CellInitTest, ForgetBiasOpensTheForgetGate) {
  const Dim in("in", 2), hidden("hidden", 2);
  expect_values(LstmCell::init(in, hidden).bias, {0, 0, 1, 1, 0, 0, 0, 0});
  expect_values(LstmCell::init(in, hidden, {.forget_bias = 0}).bias, Numbers(8, 0.0));
}

TEST(CellInitTest, EachGateIsAMatrixOfItsOwn) {
  manual_seed(8);
  const Dim in("in", 90), hidden("hidden", 60);
  const auto largest = [](const Tensor& x) { return max(abs(x)).item<float>(); };
  for (const Tensor& weight :
       {LstmCell::init(in, hidden).input_weight, GruCell::init(in, hidden).input_weight,
        RnnCell::init(in, hidden).input_weight}) {
    EXPECT_LE(largest(weight), std::sqrt(6.0 / 150));
    EXPECT_GT(largest(weight), 0.99 * std::sqrt(6.0 / 150));
  }
  EXPECT_LE(largest(LstmCell::init(in, hidden).recurrent_weight), std::sqrt(6.0 / 120));
  EXPECT_FALSE(GruCell::init(in, hidden, {.reset_after = false}).candidate_bias.has_value());
}

TEST(CellInitTest, ErrorsNameTheCell) {
  const Dim in("in", 2);
  EXPECT_EQ(message_of<ArgumentError>([&] { return LstmCell::init(in, 3); }),
            "LstmCell: dim hidden must have a name, got 3; give it Dim(\"hidden\", 3)");
  const Dim batch("batch", 2), other("other", 2);
  EXPECT_THROW(recur(RnnCell::init(in, Dim("hidden", 3)), zeros({batch, in}), other), ShapeError);
}

}  // namespace
}  // namespace reel
