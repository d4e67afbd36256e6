// Loops in row blocks: which loops are split, and that they compute the same on any number of
// threads.
#include <gtest/gtest.h>

#include <functional>

#include "reel/tests/trace/plan/row_cuts.h"

namespace reel {
namespace {

struct Rnn {
  Tensor x, w;
};

class RowCutTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(11); }

  static Rnn rnn(std::int64_t rows, std::int64_t hidden = 160) {
    return {random_normal({5, rows, hidden}), random_normal({hidden, hidden}) * 0.08};
  }

  /// next: applied to h·w + x.
  template <class F>
  static auto loss(F next) {
    return [next](const Rnn& p) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor y = next(matmul(h, p.w) + x);
        return std::pair{y, y};
      };
      const Dims dims(p.x.dims().begin() + 1, p.x.dims().end());
      return mean(square(scan(Scan{.initial = zeros(dims), .xs = p.x, .body = body}).ys));
    };
  }
};

TEST_F(RowCutTest, BlocksOfSixteenRowsOrTwoOfEightAndMore) {
  const auto f = loss([](const Tensor& x) { return tanh(x); });
  EXPECT_EQ(cuts(f, rnn(16)), (std::vector<Blocks>{{8, 8}}));
  EXPECT_EQ(cuts(f, rnn(21)), (std::vector<Blocks>{{10, 11}}));
  EXPECT_EQ(cuts(f, rnn(15)), (std::vector<Blocks>{{}}));
  EXPECT_EQ(cuts(f, rnn(16, 32)), (std::vector<Blocks>{{}}));  // too little work
  EXPECT_EQ(cuts(f, rnn(31)), (std::vector<Blocks>{{15, 16}}));
  EXPECT_EQ(cuts(f, rnn(50)), (std::vector<Blocks>{{16, 17, 17}}));
  EXPECT_EQ(cuts(grad(f), rnn(48)), (std::vector<Blocks>{{16, 16, 16}, {16, 16, 16}}));
}

TEST_F(RowCutTest, BlocksOfFewRowsForTests) {
  const auto cut_into = [](int block_rows, const auto& f, const Rnn& p) {
    const Passes passes{.block_rows = block_rows};
    const auto planned = jit(f, {.executor = Executor::plan, .passes = passes});
    const auto [value, gradient] = planned(p);
    const auto [expected, slope] = f(p);
    expect_all_close(value, expected, 2e-5);
    expect_all_close(gradient.x, slope.x, 2e-5);
    expect_all_close(gradient.w, slope.w, 2e-5);
    const std::string text = planned.explain();
    const std::size_t at = text.find("cut: ");
    return text.substr(at, text.find('\n', at) - at);
  };
  const auto f = value_and_grad(loss([](const Tensor& y) { return tanh(y); }));
  const Rnn small = rnn(5, 3);
  EXPECT_TRUE(
      cut_into(0, f, small).starts_with("cut: the rows, 5, are fewer than two blocks of 8"));
  EXPECT_TRUE(cut_into(1, f, small).starts_with("cut: 5 blocks of 1 rows of 5"));
  EXPECT_TRUE(cut_into(2, f, small).starts_with("cut: 2 blocks of 2 to 3 rows of 5"));
  EXPECT_TRUE(
      cut_into(3, f, small).starts_with("cut: the rows, 5, are fewer than two blocks of 3"));
}

TEST_F(RowCutTest, TheSameOnAnyNumberOfThreads) {
  const auto f = loss([](const Tensor& x) { return tanh(x); });
  for (const std::int64_t rows : {16, 19, 56}) expect_same_on_threads(value_and_grad(f), rnn(rows));
}

TEST_F(RowCutTest, OpsAlongOtherAxes) {
  const auto f = loss([](const Tensor& x) {
    const Tensor scaled = x / (1. + sum(abs(x), 1, Keep::yes));
    return softmax(scaled, 1) + concat({tanh(slice(x, 1, 0, 1)), slice(x, 1, 1, 160)}, 1);
  });
  expect_same_on_threads(value_and_grad(f), rnn(18));
}

TEST_F(RowCutTest, SumsOverRowsAddUpThoseOfBlocks) {
  // The gradient has three kinds of sums: over the rows, per row, and of values without rows.
  struct Parameters {
    Tensor x, w, bias, h;
  };
  const Dim time("time", 5), hidden("hidden", 160), next("next", 160);
  const auto f = value_and_grad([&](const Parameters& p) {
    const Tensor scale = 1. + sum(p.h, hidden) * 0.01, norm = sum(square(p.bias));
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor product = rename(matmul(h, p.w, hidden), next, hidden);
      const Tensor y = tanh((product + x) * scale + p.bias);
      return std::pair{y + norm, y * scale + p.h * 0.1};
    };
    return mean(
        square(scan(Scan{.spatial_dim = time, .initial = p.h, .xs = p.x, .body = body}).ys));
  });
  const auto parameters = [&](std::int64_t rows) {
    const Dim batch("batch", rows);
    return Parameters{random_normal({time, batch, hidden}), random_normal({hidden, next}) * 0.08,
                      random_normal({hidden}), random_normal({batch, hidden})};
  };
  EXPECT_EQ(cuts(f, parameters(48)), (std::vector<Blocks>{{16, 16, 16}, {16, 16, 16}}));
  for (const std::int64_t rows : {16, 19, 56}) expect_same_on_threads(f, parameters(rows));
}

TEST_F(RowCutTest, RowsThatMeetAreNotCut) {
  for (const auto& next : std::vector<std::function<Tensor(const Tensor&)>>{
           [](const Tensor& x) { return tanh(x - mean(x, 0)); },
           [](const Tensor& x) { return softmax(x, 0); },
           [](const Tensor& x) {
             return tanh(x + matmul(matmul(x, transpose(x, {1, 0})), x) * 0.01);
           },
           [](const Tensor& x) {
             return tanh(concat({slice(x, 0, 1, 16), slice(x, 0, 0, 1)}, 0));
           }}) {
    const auto f = loss(next);
    EXPECT_EQ(cuts(f, rnn(16)), (std::vector<Blocks>{{}}));
    expect_same_on_threads(value_and_grad(f), rnn(16));
  }
}

TEST_F(RowCutTest, SquareStatesAreNotCut) {
  // The state has as many rows as columns.
  const auto f = [](const Rnn& p) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor y = tanh(matmul(p.w, h) + x);
      return std::pair{y, y};
    };
    return mean(scan(Scan{.initial = zeros({160, 160}), .xs = p.x, .body = body}).ys);
  };
  const Rnn p = rnn(160);
  EXPECT_EQ(cuts(f, p), (std::vector<Blocks>{{}}));
  expect_same_on_threads(value_and_grad(f), p);
}

TEST_F(RowCutTest, StatesWithoutRows) {
  // Every block has its own copy of the counter.
  const auto f = [](const Rnn& p) {
    struct State {
      Tensor h, count;
    };
    const auto body = [&](const Tensor& x, const State& s) {
      const Tensor y = tanh(matmul(s.h, p.w) + x / (1. + cast(s.count, f32)));
      return std::pair{y, State{y, s.count + 1}};
    };
    const auto result =
        scan(Scan{.initial = State{zeros({16, 160}), scalar(0)}, .xs = p.x, .body = body});
    return std::pair{mean(square(result.ys)), result.state.count};
  };
  const auto [value, count] = jit(f, {.executor = Executor::plan})(rnn(16));
  EXPECT_EQ(count.item<int>(), 5);
  EXPECT_EQ(cuts(f, rnn(16)), (std::vector<Blocks>{{8, 8}}));
  expect_same_on_threads(f, rnn(16));
}

TEST_F(RowCutTest, CellsOverNamedDims) {
  const Dim time("time", 4), batch("batch", 20), in("in", 30), hidden("hidden", 70);
  const Tensor x = random_normal({batch, time, in});
  const auto of = [&](const auto& cell) {
    using Cell = std::decay_t<decltype(cell)>;
    const auto f = value_and_grad([](const std::pair<Cell, Tensor>& p) {
      return mean(square(recur(p.first, p.second, p.second.dim("time")).outputs));
    });
    const std::pair argument{cell, x};
    EXPECT_EQ(cuts(f, argument), (std::vector<Blocks>{{10, 10}, {10, 10}}));
    expect_same_on_threads(f, argument);
  };
  of(LstmCell::init(in, hidden));
  of(GruCell::init(in, Dim("hidden", 90)));
}

// Products over more rows are faster. Sums over rows, such as a bias' gradient, keep the bits of
// the blocks.
TEST_F(RowCutTest, EqualBlocksRunAsOneOnOneThread) {
  const Dim time("time", 4), in("in", 30), hidden("hidden", 70);
  const auto cell = LstmCell::init(in, hidden);
  const auto f = value_and_grad([](const std::pair<LstmCell, Tensor>& p) {
    return mean(square(recur(p.first, p.second, p.second.dim("time")).outputs));
  });
  const auto joined_loops = [&](std::int64_t rows, int count) {
    const Threads these(count);
    const std::pair argument{cell, random_normal({time, Dim("batch", rows), in})};
    expect_same_on_threads(f, argument);
    const auto planned = jit(f);
    planned(argument);
    return times_said(planned.explain(), ", as one batch\n");
  };
  EXPECT_EQ(joined_loops(32, 1), 2);
  EXPECT_EQ(joined_loops(32, 2), 0);
  EXPECT_EQ(joined_loops(33, 1), 0);  // blocks of 16 and of 17 rows
}

/// Element-wise bodies: a lattice of states in log space, and a memory that is a matrix per row.
class ElementsOfRowsTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(12); }

  /// Returns the logarithm of a sum over paths. x: {time, batch, state}.
  static Tensor paths(const Tensor& x) {
    const Dim state = x.dims()[2];
    const auto body = [&](const Tensor& x, const Tensor& alpha) {
      const Tensor next = shift(alpha, state, 1, -1e30);
      const Tensor most = maximum(alpha, next);
      return std::pair{None{}, most + log(exp(alpha - most) + exp(next - most)) + x};
    };
    const Tensor start = zeros({x.dims()[1], state});
    return mean(logsumexp(
        scan(Scan{.spatial_dim = x.dims()[0], .initial = start, .xs = x, .body = body}).state,
        state));
  }
  static Tensor scores(std::int64_t steps, std::int64_t rows, std::int64_t states) {
    return random_normal({Dim("time", steps), Dim("batch", rows), Dim("state", states)});
  }

  struct Memory {
    Tensor key, value, gate;  // {time, batch, key}, {time, batch, value}, {key}
  };
  static Memory memory(std::int64_t steps, std::int64_t rows, std::int64_t width) {
    const Dim time("time", steps), batch("batch", rows), key("key", width), value("value", width);
    return {random_normal({time, batch, key}), random_normal({time, batch, value}),
            random_uniform({key}, 0.5, 0.9)};
  }
  /// Returns the mean square of the values that keys read from a decaying sum of outer products.
  static Tensor recalled(const Memory& at) {
    const Dim time = at.key.dims()[0], batch = at.key.dims()[1], key = at.key.dims()[2],
              value = at.value.dims()[2];
    const Dims dims{batch, value, key};
    struct Element {
      Tensor key, value;
    };
    const auto body = [&](const Element& now, const Tensor& sum) {
      const Tensor next = at.gate * sum + expand(now.value, dims) * expand(now.key, dims);
      return std::pair{matmul(next, now.key, key), next};
    };
    return mean(square(scan(Scan{.spatial_dim = time,
                                 .initial = zeros(dims),
                                 .xs = Element{at.key, at.value},
                                 .body = body})
                           .ys));
  }
};

TEST_F(ElementsOfRowsTest, BodiesWithoutProductsAreCut) {
  EXPECT_EQ(cuts(paths, scores(50, 32, 101)), (std::vector<Blocks>{{16, 16}}));
  EXPECT_EQ(cuts(paths, scores(50, 32, 16)), (std::vector<Blocks>{{}}));  // a microsecond each
  EXPECT_EQ(cuts(paths, scores(5, 32, 101)), (std::vector<Blocks>{{}}));  // five iterations
  EXPECT_EQ(cuts(paths, scores(50, 31, 101)), (std::vector<Blocks>{{15, 16}}));
  for (const std::int64_t rows : {31, 32})
    expect_same_on_threads(value_and_grad(paths), scores(50, rows, 101));
}

TEST_F(ElementsOfRowsTest, BatchesOfFewRowsAreCutIfRowsShareNoMatrix) {
  const auto blocks = [&](std::int64_t rows) { return cuts(recalled, memory(20, rows, 128)); };
  EXPECT_EQ(blocks(2), (std::vector<Blocks>{{1, 1}}));
  EXPECT_EQ(blocks(4), (std::vector<Blocks>{{2, 2}}));
  EXPECT_EQ(blocks(5), (std::vector<Blocks>{{2, 3}}));
  for (const std::int64_t rows : {2, 4, 5})
    expect_same_on_threads(value_and_grad(recalled), memory(20, rows, 128));
}

TEST_F(ElementsOfRowsTest, BatchesOfFewRowsRunAsOneOnOneThread) {
  const Threads one(1);
  const auto planned = jit(value_and_grad(recalled));
  planned(memory(20, 4, 128));
  EXPECT_EQ(times_said(planned.explain(), ", as one batch\n"), 2) << planned.explain();
}

/// The gradient of the gate is a sum over rows, which has the order of the blocks. A policy runs
/// some iterations at a time.
TEST_F(ElementsOfRowsTest, NumbersOfIterationsDoNotChangeTheOrderOfSums) {
  const auto blocks_of_gradient = [](std::int64_t steps) {
    return cuts(grad(recalled), memory(steps, 4, 128)).back();
  };
  EXPECT_EQ(blocks_of_gradient(2).size(), 4u);
  EXPECT_EQ(blocks_of_gradient(40).size(), 4u);
}

// A reduction over the axis in front of the rows adds in an order that depends on their number.
TEST_F(ElementsOfRowsTest, NumbersOfIterationsDoNotCutRowsThatDependOnTheirNumber) {
  const auto f = [](const Tensor& xs) {
    const auto body = [](const Tensor& x, const Tensor& h) {
      const Tensor scale = reshape(logsumexp(transpose(h, {1, 0}), 0), {2, 1});
      const Tensor y = tanh(h + x) / scale;
      return std::pair{y, y};
    };
    return scan(Scan{.initial = ones({2, 2400}), .xs = xs, .body = body}).ys;
  };
  const Tensor xs = random_normal({50, 2, 2400}), first = slice(xs, 0, 0, 5);
  EXPECT_EQ(cuts(f, xs), cuts(f, first));
  expect_same_bits(slice(jit(f)(xs), 0, 0, 5), jit(f)(first));
}

TEST_F(ElementsOfRowsTest, ThereAreAtMostThirtyTwoBlocks) {
  EXPECT_EQ(cuts(recalled, memory(2, 256, 128)).front().size(), 32u);
}

/// A value without rows that a branch or an inner loop computes from all rows of the batch.
TEST_F(RowCutTest, GraphsInTheBodyCountAllRows) {
  using OfRows = std::function<Tensor(const Tensor&, const Dim&)>;
  const auto draw = [](const Dim& batch) { return sum(random_uniform({batch})) * 0.01; };
  const std::vector<OfRows> all{
      [](const Tensor& flag, const Dim& batch) {
        return cond(
            flag, [&] { return sum(ones({batch})) * 0.01; }, [] { return scalar(0.f); });
      },
      [](const Tensor& flag, const Dim& batch) {
        return cond(
            flag, [&] { return sum(cast(range(batch), f32)) * 0.001; }, [] { return scalar(0.f); });
      },
      [&](const Tensor& flag, const Dim& batch) {
        return cond(
            flag, [&] { return draw(batch); }, [] { return scalar(0.f); });
      },
      [&](const Tensor&, const Dim& batch) {
        const auto body = [&](const Tensor&, const Tensor& s) { return s + draw(batch); };
        return fori_loop(0, 2, body, scalar(0.f));
      }};
  const Dim batch("batch", 32), hidden("hidden", 160), next("next", 160);
  std::vector<int> lengths;
  for (int row = 0; row < 32; ++row) lengths.push_back(row * 7 % 9);
  const Tensor w = random_normal({hidden, next}) * 0.08, flag = scalar(true);
  for (const Dim& time : {Dim("time", 8), Dim("time", tensor(lengths, {batch}))}) {
    const Tensor xs = random_normal({time, batch, hidden});
    for (std::size_t i = 0; i < all.size(); ++i) {
      SCOPED_TRACE(str(time, ' ', i));
      const auto f = [&](const Tensor& xs, const Tensor& w, const Tensor& flag) {
        const auto body = [&](const Tensor& x, const Tensor& h) {
          const Tensor y =
              tanh(rename(matmul(h, w, hidden), next, hidden) + x) * all[i](flag, xs.dims()[1]);
          return std::pair{y, y};
        };
        return scan(Scan{.spatial_dim = xs.dims()[0],
                         .initial = zeros({batch, hidden}),
                         .xs = xs,
                         .body = body})
            .ys;
      };
      const auto planned = jit(f, {.executor = Executor::plan, .dynamic = {Dim("batch")}});
      manual_seed(3);
      const Tensor made = planned(xs, w, flag);
      manual_seed(3);
      expect_all_close(mask_padding(made), mask_padding(f(xs, w, flag)), 2e-5);
      EXPECT_EQ(times_said(planned.explain(), "plan failed"), 0);
    }
  }
}

}  // namespace
}  // namespace reel
