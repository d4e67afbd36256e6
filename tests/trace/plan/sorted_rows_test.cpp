// Batches with rows that a plan sorts by length: results are in the caller's order.
#include "reel/tests/trace/plan/sorted_rows.h"

namespace reel {
namespace {

TEST_F(SortedRowsTest, ResultsLieWhereTheCallerHasTheRows) {
  for (const std::vector<int>& lengths :
       std::vector<std::vector<int>>{kMixed,
                                     {7, 7, 6, 5, 5, 4, 3, 2, 1, 0},
                                     {0, 1, 2, 3, 4, 5, 6, 7},
                                     {3, 3, 3, 3, 3, 3, 3, 3},
                                     {0, 0, 0, 0, 0, 5, 0, 0, 0},
                                     {2, 5, 1}}) {
    const Parameters p = parameters(lengths);
    const auto planned = jit(everything(), {.executor = Executor::plan});
    const auto expected = everything()(p);
    const auto made = planned(p);
    expect_all_close(flatten(made), flatten(expected));
    expect_same_on_threads(everything(), p);
  }
}

TEST_F(SortedRowsTest, OnlyRowsInAnotherOrder) {
  const auto planned = jit(everything());
  const auto is_sorted_for = [&](const std::vector<int>& lengths) {
    planned(parameters(lengths));
    return is_sorted(planned.explain());
  };
  EXPECT_TRUE(is_sorted_for(kMixed));
  EXPECT_TRUE(has(planned.explain(), "rows: of batch=12, sorted by the lengths of time"));
  EXPECT_FALSE(is_sorted_for({7, 7, 6, 5, 5, 4, 3, 2, 1, 1, 1, 0}));  // as long as before
  EXPECT_TRUE(is_sorted_for({2, 7, 0, 5, 7, 2, 4, 1, 6, 3, 5, 3}));
  EXPECT_FALSE(is_sorted_for({0, 1, 1, 1, 2, 3, 4, 5, 5, 6, 7, 7}));
  EXPECT_FALSE(is_sorted_for({1, 5, 2}));
  const auto unsorted = jit(everything(), {.passes = {.shrink_batch = false}});
  unsorted(parameters());
  EXPECT_FALSE(is_sorted(unsorted.explain()));
}

TEST_F(SortedRowsTest, RowsOfLoopsThatAllRunInChunks) {
  const Parameters p = parameters();
  const Tensor scale = random_normal({p.h.dims()[0]});
  const auto f = [](const Parameters& p, const Tensor& scale) {
    const auto loss = [&](const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Dim hidden = h.dim("hidden");
        const Tensor y = tanh(rename(matmul(h, w, hidden), w.dim("next"), hidden) + x * scale);
        return std::pair{y, y};
      };
      return sum(square(
          scan(Scan{.spatial_dim = p.x.dim("time"), .initial = p.h, .xs = p.x, .body = body}).ys));
    };
    return grad(loss)(p.w);
  };
  const auto planned = jit(f);
  reel::expect_all_close(planned(p, scale), f(p, scale), 2e-5);
  const std::string text = planned.explain();
  EXPECT_EQ(times_said(text, " iterations, in "), 2) << text;  // forward and gradient, in chunks
  EXPECT_TRUE(is_sorted(text)) << text;
}

TEST_F(SortedRowsTest, RowsHaveTheBitsOfAnUnsortedBatch) {
  const auto f = [this](const Parameters& p) {
    const Parameters slope = grad([this](const Parameters& p) { return loss(p); })(p);
    return std::tuple{run(p).second, mask_padding(slope.x), slope.h, p.x.dim("time").lengths()};
  };
  const Parameters p = parameters();
  const auto sorted = jit(f), unsorted = jit(f, {.passes = {.shrink_batch = false}});
  const TreeLeaves made = flatten(sorted(p)), expected = flatten(unsorted(p));
  EXPECT_TRUE(is_sorted(sorted.explain()));
  for (std::size_t i = 0; i < made.size(); ++i)
    expect_same_bits(made[i].tensor, expected[i].tensor);
}

TEST_F(SortedRowsTest, TheOtherDimsOfTheBatchFollow) {
  // Two ragged dims of one batch, one inside the other, and rows as a second axis.
  const Dim batch = batch_of(kMixed), words("words", tensor(kMixed, {batch}));
  std::vector<int> letters;
  for (int i = 0; i < 12 * 7; ++i) letters.push_back(i * 5 % 4);
  const Dim other("other", tensor({1, 4, 2, 2, 0, 5, 3, 3, 1, 2, 6, 2}, {batch}));
  const Dim letter("letter", mask_padding(tensor(letters, {batch, words})));
  struct Data {
    Tensor x, inner, y, h, w;
  };
  const Data data{random_normal({words, batch, hidden}), random_normal({batch, words, letter}),
                  random_normal({batch, other}), random_normal({batch, hidden}),
                  random_normal({hidden, next}) * 0.1};
  const auto f = [&](const Data& d) {
    const auto loss = [&](const Data& d) {
      const auto [ys, last] = run({d.x, d.w, d.h});
      const Tensor inner = sum(square(d.inner), d.inner.dim("letter"));
      return sum(square(ys)) + sum(last * sum(d.y, d.y.dim("other"))) + sum(inner * inner);
    };
    const Data g = grad(loss)(d);
    return std::tuple{mask_padding(g.x), sum(square(g.inner), batch), sum(square(g.y)), g.h, g.w};
  };
  const auto planned = jit(f, {.executor = Executor::plan});
  expect_all_close(flatten(planned(data)), flatten(f(data)));
  EXPECT_TRUE(is_sorted(planned.explain()));
}

// The sorted copy of such a dim had lengths over unsorted words: too few elements, and memory
// behind them was overwritten.
TEST_F(SortedRowsTest, DimsMayComeBeforeThoseThatTheyDependOn) {
  const Dim batch = batch_of(kMixed), words("words", tensor(kMixed, {batch}));
  std::vector<int> letters;
  for (int row = 0; row < 12; ++row)
    for (int word = 0; word < 7; ++word)
      letters.push_back(word >= kMixed[static_cast<std::size_t>(row)] ? 0
                        : row == 10                                   ? 9
                                                                      : word % 3);
  const Dim letter("letter", tensor(letters, {batch, words}));
  struct Data {
    Tensor inner, pairs;
    Parameters p;
  };
  const Data data{random_normal({letter, batch, words}),
                  random_normal({ceildiv(words, 2), batch}),
                  {random_normal({words, batch, hidden}), random_normal({hidden, next}) * 0.1,
                   random_normal({batch, hidden})}};
  const auto f = [&](const Data& d) {
    const auto loss = [&](const Data& d) {
      const Dim words = d.p.x.dim("words");
      const Tensor inner = sum(square(d.inner), d.inner.dim("letter"));
      return this->loss(d.p) + sum(inner * inner) + sum(square(sum(d.p.x, words)) * 0.1) +
             sum(square(sum(d.pairs, ceildiv(words, 2))));
    };
    const Data slope = grad(loss)(d);
    return std::tuple{mask_padding(slope.inner), mask_padding(slope.pairs), slope.p.h, slope.p.w};
  };
  const auto planned = jit(f, {.passes = {.block_rows = 4}});
  expect_all_close(flatten(planned(data)), flatten(f(data)));
  EXPECT_TRUE(is_sorted(planned.explain()));
}

TEST_F(SortedRowsTest, DimsWithLengthsOverThePlacesOfWordsFollow) {
  // The lengths of marks run over words, which have a length for each row, but not over the rows.
  const Dim batch = batch_of(kMixed), words("words", tensor(kMixed, {batch}));
  const Dim marks("marks", tensor({2, 0, 3, 1, 1, 4, 2}, {words}));
  struct Data {
    Parameters p;
    Tensor marks;
  };
  const Data data{{random_normal({words, batch, hidden}), random_normal({hidden, next}) * 0.1,
                   random_normal({batch, hidden})},
                  random_normal({marks, words})};
  const auto f = [&](const Data& d) {
    const auto loss = [&](const Data& d) {
      const Dim marks = d.marks.dim("marks"), words = d.marks.dim("words");
      const Tensor by_word = mean(d.marks, marks), of_rows = sum(d.p.x * by_word, words);
      return this->loss(d.p) + sum(of_rows * d.p.h);
    };
    const Data slope = grad(loss)(d);
    return std::tuple{slope.p.w, mask_padding(slope.marks), d.marks * 2.};
  };
  const auto planned = jit(f, {.passes = {.block_rows = 4}});
  expect_all_close(flatten(planned(data)), flatten(f(data)));
  EXPECT_TRUE(is_sorted(planned.explain()));
}

TEST_F(SortedRowsTest, ArgumentsAreBackBehindAnError) {
  const auto f = [this](const Parameters& p, const Tensor& index) {
    const Parameters slope = grad([this](const Parameters& p) { return loss(p); })(p);
    return std::pair{slope.w, gather(slope.w, index, hidden)};
  };
  const Parameters p = parameters();
  const Dim picked("picked", 1);
  const auto planned = jit(f);
  const TreeLeaves expected = flatten(planned(p, tensor({1}, {picked})));
  EXPECT_TRUE(is_sorted(planned.explain()));
  Parameters moved{p.x + 0, p.w + 0, p.h + 0};
  EXPECT_THROW(planned(std::move(moved), tensor({130}, {picked})), IndexError);
  const TreeLeaves made = flatten(planned(p, tensor({1}, {picked})));
  for (std::size_t i = 0; i < made.size(); ++i)
    expect_same_bits(made[i].tensor, expected[i].tensor);
}

TEST_F(SortedRowsTest, SecondGradientsSortRows) {
  const Parameters p = parameters();
  const auto f = [this](const Parameters& p) {
    const auto of = [&](const Tensor& w) { return loss({p.x, w, p.h}); };
    return hvp(of, p.w, p.w);
  };
  const auto planned = jit(f);
  reel::expect_all_close(planned(p), f(p), 1e-4);
  EXPECT_TRUE(is_sorted(planned.explain()));
}

TEST_F(SortedRowsTest, ArgumentsWithSortedRowsAreNotUpdatedInPlace) {
  const auto f = [this](const Parameters& p) {
    const Parameters slope = grad([this](const Parameters& p) { return loss(p); })(p);
    return std::pair{p.w - slope.w, p.h * 0.5 - slope.h};
  };
  const Parameters p = parameters();
  for (const bool is_moved : {false, true}) {
    const auto planned = jit(f);
    Parameters given{p.x, p.w + 0, p.h + 0};
    if (is_moved)
      planned(std::move(given));
    else
      planned(given);
    const std::string text = planned.explain();
    EXPECT_TRUE(is_sorted(text));
    EXPECT_TRUE(has(text, "not in place: argument 0.h, its rows are sorted for the call")) << text;
    EXPECT_EQ(times_said(text, "not in place: argument 0.w"), !is_moved) << text;
  }
}

TEST_F(SortedRowsTest, EqualElementsFinishWithTheirRow) {
  const Parameters p = parameters();
  const auto f = [this](const Parameters& p) {
    const Parameters slope = grad([this](const Parameters& p) { return loss(p); })(p);
    const Dim time = p.x.dims()[0];
    const auto body = [&](const Tensor& x, const Tensor& h) {
      return std::pair{full(p.h.dims(), 1.5), h + x};
    };
    const Tensor ys = scan(Scan{.spatial_dim = time, .initial = p.h, .xs = p.x, .body = body}).ys;
    return std::tuple{slope.w, mask_padding(ys), sum(ys, time)};
  };
  const auto planned = jit(f);
  expect_all_close(flatten(planned(p)), flatten(f(p)));
  EXPECT_TRUE(is_sorted(planned.explain()));
}

TEST_F(SortedRowsTest, SumsAndExtremesOverRowsHaveNoOrder) {
  const auto f = [this](const Parameters& p) {
    const Parameters slope = grad([this](const Parameters& p) { return loss(p); })(p);
    const Dim& batch = p.h.dims()[0];
    return std::tuple{slope.w, sum(p.h, batch), max(p.h, batch), any(p.h > 2, batch)};
  };
  const Parameters p = parameters();
  const auto planned = jit(f);
  expect_all_close(flatten(planned(p)), flatten(f(p)));
  EXPECT_TRUE(is_sorted(planned.explain()));
}

}  // namespace
}  // namespace reel
