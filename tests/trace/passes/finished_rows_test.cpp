// Loops with entries that finish one by one, run in row blocks of similar lengths, or as one block
// on one thread.
#include <gtest/gtest.h>

#include <cmath>

#include "reel/tests/trace/plan/row_cuts.h"

namespace reel {
namespace {

class FinishedRowsTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(11); }

  struct Parameters {
    Tensor x, w, h;
  };
  const Dim hidden{"hidden", 130}, next{"next", 130};

  /// Returns parameters with NaN in the padding of x.
  Parameters parameters(const std::vector<int>& lengths) const {
    const Dim batch("batch", static_cast<std::int64_t>(lengths.size())),
        time("time", tensor(lengths, {batch}));
    return {mask_padding(random_normal({time, batch, hidden}, f64), NAN),
            random_normal({hidden, next}, f64) * 0.1, random_normal({batch, hidden}, f64)};
  }
  /// Returns all results of a scan over x and of its gradient, with padding as 0.
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

TEST_F(FinishedRowsTest, RunTogetherWithThoseOfSimilarLengths) {
  const RowCut cut{Dim("batch", 6), {}, {}, {}, {2, 2, 2}};
  const Dim batch("batch", 6);
  LoopAttrs attrs;
  attrs.trips.has_bound = attrs.trips.has_lengths = true;
  attrs.entries.dims = {batch};
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

TEST_F(FinishedRowsTest, RowsOfAChunkHaveTheirRemainingLengths) {
  const RowCut cut{Dim("batch", 6), {}, {}, {}, {2, 2, 2}};
  const Dim batch("batch", 6);
  LoopAttrs attrs;
  attrs.chunking.within_chunk = attrs.trips.has_lengths = attrs.trips.is_full = true;
  attrs.entries.dims = {batch};
  attrs.slices.resize(1);
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

TEST_F(FinishedRowsTest, AreInOrderIfLengthsFallOrRise) {
  LoopAttrs attrs;
  attrs.trips.has_bound = attrs.trips.has_lengths = true;
  const Tensor bound = scalar(std::int64_t{9});
  const auto is_in_order = [&](const std::vector<int>& of) {
    const Dim batch("batch", std::ssize(of));
    attrs.entries.dims = {batch};
    const Tensor lengths = tensor(of, {batch});
    const OpInput in[] = {bound, lengths};
    return RowCut{batch, {}, {}, {}, {1}}.is_in_order(attrs, in);
  };
  EXPECT_TRUE(is_in_order({9, 9, 4, 1, 0}));
  EXPECT_TRUE(is_in_order({0, 4, 4, 9}));
  EXPECT_TRUE(is_in_order({12, 9, 10}));  // the loop runs nine steps
  EXPECT_FALSE(is_in_order({4, 9, 4}));
}

TEST_F(FinishedRowsTest, WeightsHaveOneProductAndLoopsNoSums) {
  const Parameters p = parameters({5, 4, 4, 3, 3, 2, 1, 0, 5, 5, 4, 3, 2, 2, 1, 1});
  const auto loss = [&](const Parameters& p) { return sum(std::get<0>(everything()(p)).second); };
  EXPECT_EQ(cuts(grad(loss), p), (std::vector<Blocks>{{4, 4, 4, 4}, {4, 4, 4, 4}}));
  // Products over steps and entries leave the padding out, so no zeros have to be written there.
  const auto planned = jit(grad(loss));
  planned(p);
  const std::string after =
      str(*optimise_for_plan(planned.graph(), {.fuse_pointwise = false}).graph);
  EXPECT_NE(after.find(" = dot("), after.npos);
  EXPECT_EQ(after.find(" = where("), after.npos) << after;
}

TEST_F(FinishedRowsTest, AsInTheInterpreterOnAnyNumberOfThreads) {
  for (const std::vector<int>& lengths : std::vector<std::vector<int>>{
           {3},
           {2, 3},
           {0, 4, 1},
           {5, 5, 4, 4, 3, 3, 2, 1},                          // one block in this order
           {6, 6, 5, 5, 5, 4, 4, 4, 3, 3, 2, 2, 2, 1, 0, 0},  // two in this order
           {1, 6, 0, 5, 5, 2, 4, 3, 6, 3, 2, 4, 2, 1, 0, 5, 6},
           {0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0},
           {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}}) {
    SCOPED_TRACE(str(lengths.size(), " entries, the first of length ", lengths[0]));
    expect_same_on_threads(everything(), parameters(lengths));
    expect_same_on_threads(everything(true), parameters(lengths));
  }
}

// Captures and slices with a length for each row are cut with the rows. A sum with rows, such as
// the gradient of the keys, leaves the loop.
TEST_F(FinishedRowsTest, AttendToCapturesWithALengthForEachRow) {
  const auto attention = [&](const std::vector<Tensor>& in) {
    const Tensor &xs = in[0], &keys = in[1], &w = in[2];
    const Dim source = keys.dim("source");
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor context = matmul(softmax(matmul(keys, h, hidden), source), keys, source);
      const Tensor y = tanh(x + context + rename(matmul(h, w, hidden), next, hidden));
      return std::pair{y, y};
    };
    return scan(Scan{.spatial_dim = xs.dim("time"),
                     .initial = zeros({keys.dim("batch"), hidden}, f64),
                     .xs = xs,
                     .body = body})
        .ys;
  };
  const auto loss = [&](const std::vector<Tensor>& in) { return sum(square(attention(in))); };
  const auto everything = [&](const std::vector<Tensor>& in) {
    const auto slope = [&](const std::vector<Tensor>& in) {
      const std::vector<Tensor> g = grad(loss)(in);
      return sum(square(g[0])) + sum(square(g[1])) + sum(square(g[2])) * 0.01;
    };
    const auto clean = [](const std::vector<Tensor>& g) {
      return std::vector<Tensor>{mask_padding(g[0]), mask_padding(g[1]), g[2]};
    };
    return std::tuple{attention(in), clean(grad(loss)(in)), clean(grad(slope)(in))};
  };
  for (const std::vector<int>& lengths :
       std::vector<std::vector<int>>{{3, 5, 0, 1, 5, 4, 2, 3, 0, 1, 2, 5, 4, 3, 3, 1},
                                     {5, 5, 4, 4, 3, 2, 1, 1},
                                     {1, 2, 2, 3, 4, 5, 5, 5, 5},
                                     {1, 6, 0, 5, 4, 3, 6, 2, 2, 4}}) {
    SCOPED_TRACE(str(lengths.size(), " entries, the first of length ", lengths[0]));
    const Parameters p = parameters(lengths);
    std::vector<int> sources(lengths.rbegin(), lengths.rend());
    if (lengths.size() == 10)  // the keys of all entries do not stay in the cache
      for (int& length : sources) length *= 16;
    const Dim source("source", tensor(sources, {p.h.dim("batch")}));
    const std::vector<Tensor> in{
        p.x, mask_padding(random_normal({p.h.dim("batch"), source, hidden}, f64), NAN), p.w};
    // cuts() does not know the extents of ragged dims, which these loops keep in their blocks.
    const auto gradient = jit(grad(loss));
    gradient(in);
    EXPECT_EQ(times_said(gradient.explain(), "  cut: "), 2) << gradient.explain();
    expect_same_on_threads(everything, in);
  }
}

// All blocks run together, and finished blocks leave the run. A count without rows is part of the
// state.
TEST_F(FinishedRowsTest, AsOneBlockThatShrinksOnOneThread) {
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
    return times_said(planned.explain(), ", as a shrinking batch\n");
  };
  EXPECT_EQ(shrinking(parameters(lengths(16)), 1), 2);
  EXPECT_EQ(shrinking(parameters(lengths(16)), 2), 0);
  EXPECT_EQ(shrinking(parameters(lengths(3)), 1), 0);  // a single block
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
      // A row draws the same numbers regardless of the rows that run with it.
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

// A reverse scan runs forward over reversed rows: its time steps are counted from the end of each
// row.
TEST_F(FinishedRowsTest, SharedStateOfAReverseScanCountsFromTheEndOfEachRow) {
  const Dim batch("batch", 8), time("time", tensor({6, 6, 6, 6, 2, 2, 1, 2}, {batch}));
  const auto steps = [&](bool is_reverse) {
    return [&, is_reverse](const Tensor& x, const Tensor& w) {
      const auto body = [&](const Tensor& x, const std::pair<Tensor, Tensor>& state) {
        const Tensor y = rename(matmul(state.first, w, hidden), next, hidden) + x + state.second;
        return std::pair{y, std::pair{y, state.second + 1.}};
      };
      return scan(Scan{.spatial_dim = x.dim("time"),
                       .initial = std::pair{zeros({batch, hidden}), scalar(0.f)},
                       .xs = x,
                       .body = body,
                       .reverse = is_reverse})
          .ys;
    };
  };
  const Tensor x = zeros({time, batch, hidden}), w = zeros({hidden, next});
  expect_same_on_threads(steps(true), x, w);
  expect_same_bits(jit(steps(true))(x, w), reverse(steps(false)(x, w), time));
  EXPECT_EQ(cuts(steps(true), x, w), cuts(steps(false), x, w));
}

// A sum over the steps and entries of one loop becomes a product over the steps of another loop
// behind it.
TEST_F(FinishedRowsTest, GradientsInStepsOfAnotherLoopTakeNothingOfPadding) {
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

TEST_F(FinishedRowsTest, OtherLengthsInTheSamePlan) {
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

// Blocks keep their plans if only lengths change. Other extents, other numbers of rows and dims in
// other roles need other plans.
TEST_F(FinishedRowsTest, OtherKeysInTheSamePlan) {
  const auto loss = [&](const Parameters& p, const Tensor& keys) {
    const Dim source = keys.dims()[1];
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor context = matmul(softmax(matmul(keys, h, hidden), source), keys, source);
      const Tensor y = tanh(x + context + rename(matmul(h, p.w, hidden), next, hidden));
      return std::pair{y, y};
    };
    return sum(square(
        scan(Scan{.spatial_dim = p.x.dim("time"), .initial = p.h, .xs = p.x, .body = body}).ys));
  };
  const auto gradient = [&](const Parameters& p, const Tensor& keys) {
    const auto [g, of_keys] = grad([&](const std::pair<Parameters, Tensor>& at) {
      return loss(at.first, at.second);
    })(std::pair{p, keys});
    return Tensors{mask_padding(g.x), g.w, g.h, mask_padding(of_keys)};
  };
  const auto planned = jit(gradient),
             reference = jit(gradient, {.executor = Executor::interpreter});
  struct Batch {
    std::vector<int> lengths, sources;  // no sources: keys along the loop's own dim
    int threads = 1;
  };
  for (const auto& [lengths, sources, count] : std::vector<Batch>{
           {{5, 1, 4, 4, 3, 3, 2, 1, 5}, {3, 3, 1, 2, 3, 1, 2, 2, 1}},
           {{1, 5, 2, 2, 3, 3, 4, 4, 5}, {1, 2, 3, 3, 1, 1, 1, 3, 2}},
           {{1, 5, 2, 2, 3, 3, 4, 4, 5}, {1, 2, 3, 3, 1, 1, 1, 3, 2}, 2},
           {{7, 5, 2, 2, 3, 3, 4, 4, 5}, {1, 2, 3, 3, 1, 1, 1, 3, 2}},
           {{7, 5, 2, 2, 3, 3, 4, 4, 6}, {1, 2, 4, 3, 1, 4, 1, 3, 2}, 2},
           {{5, 1, 4, 4, 3, 3, 2, 1, 5, 2, 2, 3}, {3, 3, 1, 2, 3, 1, 2, 2, 1, 4, 4, 1}},
           {{5, 1, 4, 4, 3, 3, 2, 1, 5}, {}},
           {{1, 5, 2, 4, 3, 1, 2, 4, 5}, {}},
           {{5, 1, 4, 4, 3, 3, 2, 1, 5}, {5, 1, 4, 4, 3, 3, 2, 1, 5}}}) {
    SCOPED_TRACE(str(lengths.size(), " entries, the first of length ", lengths[0]));
    const Threads these(count);
    const Parameters p = parameters(lengths);
    const Dim batch = p.h.dim("batch");
    const Dim source = sources.empty() ? p.x.dim("time") : Dim("source", tensor(sources, {batch}));
    const Tensor keys = mask_padding(random_normal({batch, source, hidden}, f64), NAN);
    const Tensors made = planned(p, keys), expected = reference(p, keys);
    for (std::size_t i = 0; i < made.size(); ++i) expect_all_close(made[i], expected[i], 1e-9);
  }
  EXPECT_GE(times_said(planned.explain(), "  cut: "), 2) << planned.explain();
}

TEST_F(FinishedRowsTest, LengthsOfEntriesThatAreNoRows) {
  // The body's `all` is as long as the part of the first running entry.
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

TEST_F(FinishedRowsTest, EmptyBatchesAndLengthsAreTheSameOnAnyThreads) {
  expect_same_on_threads(everything(), parameters({0, 0, 0}));
  expect_same_on_threads(everything(), parameters({}));
}

// Entries end one by one, but no input has their dim: the body alone makes values with rows.
TEST_F(FinishedRowsTest, NoInputHasTheRows) {
  const auto f = [](const Tensor& ragged, const Tensor& x) {
    const Dim batch = ragged.dim("batch"), time = ragged.dim("time");
    return scan(Scan{.spatial_dim = time,
                     .initial = scalar(0.0),
                     .xs = x,
                     .body =
                         [&](const Tensor& x, const Tensor& s) {
                           const Tensor rows = tanh(full({batch, time}, 0.5) * x);
                           return std::pair{Tensors{}, s + max(rows, {batch, time})};
                         }})
        .state;
  };
  const auto planned = jit(f);
  for (const std::vector<int>& lengths : std::vector<std::vector<int>>{{1, 2}, {3, 0}, {4, 4}}) {
    const Dim batch("batch", 2), time("time", tensor(lengths, {batch}));
    const Tensor x = cumsum(full({time}, 1.0), time), ragged = full({batch, time}, 1.0);
    expect_all_close(planned(ragged, x), f(ragged, x), 1e-6);
  }
}

}  // namespace
}  // namespace reel
