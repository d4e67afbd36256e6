// Loops that run on blocks of rows: which can, and that they compute the same on any number of
// threads.
#include "reel/trace/executors/plan/row_cut.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "reel/core/ops/loop.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/threads.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {
namespace {

using Blocks = std::vector<std::int64_t>;

/// How the loops of f are cut, in their order; nothing for one that is not. Of a loop in chunks,
/// that is the loop inside.
template <class F, class... Args>
std::vector<Blocks> cuts(const F& f, const Args&... args) {
  const auto jitted = jit(f);
  jitted(args...);
  const Ref<Graph> graph = optimise_for_plan(jitted.graph(), {}).graph;
  std::vector<Blocks> result;
  const std::function<void(const Graph&)> add = [&](const Graph& graph) {
    for (const OpRecord& record : graph.records) {
      if (record.op != &loop_op) continue;
      const auto& attrs = get<LoopAttrs>(record.attrs.get());
      if (attrs.in_chunks) {
        add(*attrs.body.graph);
        continue;
      }
      const auto cut = find_row_cut(attrs, graph.types_of(graph.inputs_of(record)));
      result.push_back(cut ? cut->blocks : Blocks());
    }
  };
  add(*graph);
  return result;
}

template <class F, class... Args>
void expect_same_on_threads(const F& f, const Args&... args) {
  const auto planned = jit(f, {.executor = Executor::plan});
  const TreeLeaves expected = flatten(jit(f, {.executor = Executor::interpreter})(args...));
  TreeLeaves first;
  for (const int count : {1, 2, 3, 8}) {
    const Threads these(count);
    const TreeLeaves leaves = flatten(planned(args...));
    if (first.empty()) first = leaves;
    ASSERT_EQ(leaves.size(), expected.size());
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (leaves[i].kind != TreeLeaf::Kind::tensor) continue;
      expect_same_bits(leaves[i].tensor, first[i].tensor);
      expect_all_close(leaves[i].tensor, expected[i].tensor, 2e-5);
    }
  }
}

struct Rnn {
  Tensor x, w;
};

class RowCutTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(11); }

  static Rnn rnn(std::int64_t rows, std::int64_t hidden = 160) {
    return {random_normal({5, rows, hidden}), random_normal({hidden, hidden}) * 0.08};
  }

  /// next: what becomes of h·w + x.
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
  EXPECT_EQ(cuts(f, rnn(16, 32)), (std::vector<Blocks>{{}}));  // too little to do
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
  // Of sums of a gradient: over the rows, of each row for itself, and of what has none.
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

TEST_F(RowCutTest, SquareStates) {
  // The rows of a state, and its columns: as many of both.
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
  // A counter goes on in every block.
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

// Products of more rows are faster, and sums over rows (a bias' gradient) are taken as blocks take
// them.
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
    const std::string text = planned.explain();
    int result = 0;
    for (std::size_t at = 0; (at = text.find(", as if they were one\n", at)) != text.npos; ++at)
      ++result;
    return result;
  };
  EXPECT_EQ(joined_loops(32, 1), 2);
  EXPECT_EQ(joined_loops(32, 2), 0);
  EXPECT_EQ(joined_loops(33, 1), 0);  // blocks of 16 and of 17 rows
}

// ---- Entries that end one by one ----------------------------------------------------------------

class EndedRowsTest : public RowCutTest {
 protected:
  struct Parameters {
    Tensor x, w, h;
  };
  const Dim hidden{"hidden", 130}, next{"next", 130};

  /// NaN is in the padding.
  Parameters parameters(const std::vector<int>& lengths) const {
    const Dim batch("batch", static_cast<std::int64_t>(lengths.size())),
        time("time", tensor(lengths, {batch}));
    return {mask_padding(random_normal({time, batch, hidden}, f64), NAN),
            random_normal({hidden, next}, f64) * 0.1, random_normal({batch, hidden}, f64)};
  }
  /// Everything that comes of a scan over x, and of its gradient: padding is 0.
  auto everything(bool is_reverse = false) const {
    return [=, this](const Parameters& p) {
      const auto all = [&](const Parameters& p) {
        const auto body = [&](const Tensor& x, const Tensor& h) {
          const Tensor y = tanh(rename(matmul(h, p.w, hidden), next, hidden) + x);
          return std::pair{y * y, y};
        };
        const auto [ys, last, dim] = scan(Scan{.spatial_dim = p.x.dim("time"),
                                               .initial = p.h,
                                               .xs = p.x,
                                               .body = body,
                                               .reverse = is_reverse});
        return std::pair{ys, last};
      };
      const auto loss = [&](const Parameters& p) {
        const auto [ys, last] = all(p);
        return sum(square(ys)) + sum(last * 0.1);
      };
      const auto slope = [&](const Parameters& p) {
        const Parameters g = grad(loss)(p);
        return sum(square(g.x)) + sum(square(g.w)) * 0.01 + sum(g.h);
      };
      const auto clean = [](const Parameters& g) {
        return Parameters{mask_padding(g.x), g.w, g.h};
      };
      return std::tuple{all(p), clean(grad(loss)(p)), clean(grad(slope)(p))};
    };
  }
};

TEST_F(EndedRowsTest, RunTogetherWithThoseOfSimilarLengths) {
  const RowCut cut{Dim("batch", 6), {}, {}, {}, {2, 2, 2}};
  const Dim batch("batch", 6);
  LoopAttrs attrs;
  attrs.has_bound = attrs.has_lengths = true;
  attrs.entry_dims = {batch};
  const Tensor bound = scalar(std::int64_t{9}), lengths = tensor({3, 9, 1, 12, 3, 0}, {batch});
  const OpInput in[] = {bound, lengths};
  std::vector<std::vector<std::int64_t>> rows, steps;
  for (const BlockOfRows& block : cut.rows_of_blocks(attrs, in)) {
    rows.push_back(block.rows);
    steps.push_back(block.lengths);
  }
  EXPECT_EQ(rows, (std::vector<std::vector<std::int64_t>>{{1, 3}, {0, 4}, {2, 5}}));
  EXPECT_EQ(steps, (std::vector<std::vector<std::int64_t>>{{9, 9}, {3, 3}, {1, 0}}));
}

TEST_F(EndedRowsTest, OfAChunkHaveWhatIsLeftOfTheirLengths) {
  const RowCut cut{Dim("batch", 6), {}, {}, {}, {2, 2, 2}};
  const Dim batch("batch", 6);
  LoopAttrs attrs;
  attrs.has_chunk = attrs.has_lengths = attrs.is_full = true;
  attrs.entry_dims = {batch};
  attrs.slices = 1;
  const Tensor lengths = tensor({3, 9, 1, 12, 5, 0}, {batch}), chunk = tensor({4, 12}, {}, i64),
               slices = zeros({Dim("time", 4), batch});
  const OpInput in[] = {lengths, chunk, slices};
  std::vector<std::vector<std::int64_t>> rows, steps;
  for (const BlockOfRows& block : cut.rows_of_blocks(attrs, in)) {
    rows.push_back(block.rows);
    steps.push_back(block.lengths);
  }
  EXPECT_EQ(rows, (std::vector<std::vector<std::int64_t>>{{1, 3}, {0, 4}, {2, 5}}));
  EXPECT_EQ(steps, (std::vector<std::vector<std::int64_t>>{{4, 4}, {0, 1}, {0, 0}}));
}

TEST_F(EndedRowsTest, WeightsHaveOneProductAndLoopsNoSums) {
  const Parameters p = parameters({5, 4, 4, 3, 3, 2, 1, 0, 5, 5, 4, 3, 2, 2, 1, 1});
  const auto loss = [&](const Parameters& p) { return sum(std::get<0>(everything()(p)).second); };
  EXPECT_EQ(cuts(grad(loss), p), (std::vector<Blocks>{{4, 4, 4, 4}, {4, 4, 4, 4}}));
  // Products over steps and entries need no zeros in the padding, which they leave out.
  const auto planned = jit(grad(loss));
  planned(p);
  const std::string after =
      str(*optimise_for_plan(planned.graph(), {.fuse_pointwise = false}).graph);
  EXPECT_NE(after.find(" = dot("), after.npos);
  EXPECT_EQ(after.find(" = where("), after.npos) << after;
}

TEST_F(EndedRowsTest, AsInTheInterpreterOnAnyNumberOfThreads) {
  for (const std::vector<int>& lengths : std::vector<std::vector<int>>{
           {3},
           {2, 3},
           {0, 4, 1},
           {5, 5, 4, 4, 3, 3, 2, 1},                          // one block, as they lie
           {6, 6, 5, 5, 5, 4, 4, 4, 3, 3, 2, 2, 2, 1, 0, 0},  // two, as they lie
           {1, 6, 0, 5, 5, 2, 4, 3, 6, 3, 2, 4, 2, 1, 0, 5, 6},
           {0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0},
           {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}}) {
    SCOPED_TRACE(str(lengths.size(), " entries, the first of length ", lengths[0]));
    expect_same_on_threads(everything(), parameters(lengths));
    expect_same_on_threads(everything(true), parameters(lengths));
  }
}

// All blocks in one run, which goes on without those that have ended; a count that is the same for
// all rows goes with it.
TEST_F(EndedRowsTest, AsOneBlockThatShrinksOnOneThread) {
  const auto lengths = [](int rows) {
    std::vector<int> result;
    for (int r = 0; r < rows; ++r) result.push_back(r * 7 % 12);
    return result;
  };
  const auto gradient = [this](bool is_reverse, double noise) {
    return grad([=, this](const Parameters& p) {
      const auto body = [&](const Tensor& x, const std::pair<Tensor, Tensor>& state) {
        const auto& [h, count] = state;
        Tensor y = tanh(rename(matmul(h, p.w, hidden), next, hidden) + x * count);
        if (noise != 0) y = y + noise * random_normal(y.dims(), f64);
        return std::pair{y, std::pair{y * y, count + 0.5}};
      };
      const auto [ys, last, dim] = scan(Scan{.spatial_dim = p.x.dim("time"),
                                             .initial = std::pair{p.h, scalar(1., f64)},
                                             .xs = p.x,
                                             .body = body,
                                             .reverse = is_reverse});
      return sum(square(ys)) + sum(last.first) * last.second;
    });
  };
  const auto shrinking = [&](const Parameters& p, int count) {
    const Threads these(count);
    const auto planned =
        jit(grad([&](const Parameters& p) { return sum(std::get<0>(everything()(p)).second); }));
    planned(p);
    const std::string text = planned.explain();
    int result = 0;
    for (std::size_t at = 0; (at = text.find(", as one that shrinks\n", at)) != text.npos; ++at)
      ++result;
    return result;
  };
  EXPECT_EQ(shrinking(parameters(lengths(16)), 1), 2);
  EXPECT_EQ(shrinking(parameters(lengths(16)), 2), 0);
  EXPECT_EQ(shrinking(parameters(lengths(3)), 1), 0);  // one block
  for (const bool is_reverse : {false, true})
    for (const int rows : {8, 16, 75}) {
      const Parameters p = parameters(lengths(rows));
      const auto clean = [&](const auto& f) {
        return [=](const Parameters& p) {
          const Parameters g = f(p);
          return Parameters{mask_padding(g.x), g.w, g.h};
        };
      };
      expect_same_on_threads(clean(gradient(is_reverse, 0)), p);
      // What a row draws does not depend on the rows that run with it.
      const auto drawing = jit(clean(gradient(is_reverse, 0.1)));
      std::vector<Parameters> made;
      for (const int count : {1, 2}) {
        const Threads these(count);
        manual_seed(5);
        made.push_back(drawing(p));
      }
      expect_same_bits(made[0].x, made[1].x);
      expect_same_bits(made[0].w, made[1].w);
      expect_same_bits(made[0].h, made[1].h);
    }
}

// A reverse loop begins at the end of the longest, and blocks of others would not count its steps.
TEST_F(EndedRowsTest, WhatAllRowsShareGoesBackFromTheEndOfTheLongest) {
  const Dim batch("batch", 8), time("time", tensor({6, 6, 6, 6, 2, 2, 1, 2}, {batch}));
  const auto f = [&](const Tensor& x, const Tensor& w) {
    const auto body = [&](const Tensor& x, const std::pair<Tensor, Tensor>& state) {
      const Tensor y = rename(matmul(state.first, w, hidden), next, hidden) + x + state.second;
      return std::pair{y, std::pair{y, state.second + 1.}};
    };
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .initial = std::pair{zeros({batch, hidden}), scalar(0.f)},
                     .xs = x,
                     .body = body,
                     .reverse = true})
        .ys;
  };
  const Tensor x = zeros({time, batch, hidden}), w = zeros({hidden, next});
  expect_same_on_threads(f, x, w);
  EXPECT_EQ(cuts(f, x, w), (std::vector<Blocks>{{}}));
}

// What one loop sums up over its steps and entries is a product over another's steps behind that.
TEST_F(EndedRowsTest, GradientsInStepsOfAnotherLoopTakeNothingOfPadding) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch})), in("in", 2), out("out", 2),
      layer("layer", 3);
  const Tensor x = mask_padding(random_normal({time, batch, in}, f64), NAN),
               w = random_normal({layer, in, out}, f64);
  const auto f = [&](const Tensor& w) {
    const auto step = [&](const Tensor& w) {
      const auto loss = [&](const Tensor& w) {
        const auto body = [&](const Tensor& x, const Tensor& h) {
          const Tensor y = tanh(h + rename(matmul(x, w, in), out, in));
          return std::pair{y, y};
        };
        return sum(scan(Scan{.spatial_dim = time,
                             .initial = zeros({batch, in}, f64),
                             .xs = x,
                             .body = body})
                       .ys);
      };
      return std::pair{grad(loss)(w), None{}};
    };
    return scan(Scan{.spatial_dim = layer, .xs = w, .body = step}).ys;
  };
  for (const bool chunks : {true, false})
    expect_all_close(jit(f, {.passes = {.chunk_loops = chunks}})(w), f(w), 1e-12);
}

TEST_F(EndedRowsTest, OtherLengthsInTheSamePlan) {
  const auto planned = jit(everything()),
             reference = jit(everything(), {.executor = Executor::interpreter});
  for (const std::vector<int>& lengths : std::vector<std::vector<int>>{
           {5, 1, 4, 4, 3, 3, 2, 1, 5}, {1, 1, 5, 0, 0, 5, 0, 2, 3}, {0, 0, 0, 0, 0, 0, 0, 0, 5}}) {
    const Parameters p = parameters(lengths);
    const TreeLeaves leaves = flatten(planned(p)), expected = flatten(reference(p));
    for (std::size_t i = 0; i < leaves.size(); ++i)
      expect_all_close(leaves[i].tensor, expected[i].tensor, 2e-5);
  }
}

TEST_F(EndedRowsTest, LengthsOfEntriesThatAreNoRows) {
  // What the body sees of `all` is as long as the first live entry's part.
  const Dim batch("batch", 2), time("time", tensor({0, 2}, {batch})),
      other("other", tensor({1, 0}, {batch}));
  const auto f = [&](const Tensor& x, const Tensor& all) {
    const auto body = [&](const Tensor&, const Tensor&) { return std::pair{None{}, all}; };
    return sum(
        scan(Scan{.spatial_dim = x.dim("time"), .initial = all, .xs = x, .body = body}).state);
  };
  const Tensor x = zeros({batch, time}), all = ones({other});
  EXPECT_EQ(jit(f)(x, all).item<float>(), f(x, all).item<float>());
  EXPECT_EQ(cuts(f, x, all), (std::vector<Blocks>{{}}));
}

TEST_F(EndedRowsTest, NobodyIsThere) {
  expect_same_on_threads(everything(), parameters({0, 0, 0}));
  expect_same_on_threads(everything(), parameters({}));
}

}  // namespace
}  // namespace reel
