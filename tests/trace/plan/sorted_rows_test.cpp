// Batches whose rows a plan sorts by length: results are where the caller has the rows.
#include <gtest/gtest.h>

#include "reel/tests/trace/plan/explained.h"
#include "reel/tests/trace/plan/row_cuts.h"
#include "reel/trace/passes/analysis/row_order.h"

namespace reel {
namespace {

struct Parameters {
  Tensor x, w, h;
};

void expect_all_close(const TreeLeaves& made, const TreeLeaves& expected) {
  ASSERT_EQ(made.size(), expected.size());
  for (std::size_t i = 0; i < made.size(); ++i)
    if (made[i].kind == TreeLeaf::Kind::tensor) {
      EXPECT_EQ(made[i].tensor.type(), expected[i].tensor.type());
      reel::expect_all_close(made[i].tensor, expected[i].tensor, 2e-5);
    }
}

const std::vector<int> kMixed{3, 7, 0, 5, 7, 2, 4, 1, 6, 3, 5, 2};

class SortedRowsTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(7); }

  const Dim hidden{"hidden", 130}, next{"next", 130};

  Dim batch_of(const std::vector<int>& lengths) const {
    return Dim("batch", static_cast<std::int64_t>(lengths.size()));
  }
  Parameters parameters(const std::vector<int>& lengths = kMixed) const {
    const Dim batch = batch_of(lengths), time("time", tensor(lengths, {batch}));
    return {random_normal({time, batch, hidden}), random_normal({hidden, next}) * 0.1,
            random_normal({batch, hidden})};
  }
  /// Returns ys and the last state of a scan.
  std::pair<Tensor, Tensor> run(const Parameters& p, bool is_reverse = false) const {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor y = tanh(rename(matmul(h, p.w, hidden), next, hidden) + x);
      return std::pair{y * y, y};
    };
    const auto [ys, last, dim] = scan(Scan{.spatial_dim = p.x.dims()[0],
                                           .initial = p.h,
                                           .xs = p.x,
                                           .body = body,
                                           .reverse = is_reverse});
    return {ys, last};
  }
  Tensor loss(const Parameters& p) const {
    const auto [ys, last] = run(p);
    return sum(square(ys)) + sum(last * 0.1);
  }
  /// Returns the value, its gradients, and rows of all kinds.
  auto everything() const {
    return [this](const Parameters& p) {
      const auto [value, slope] =
          value_and_grad([this](const Parameters& p) { return loss(p); })(p);
      const auto [ys, last] = run(p, true);
      return std::tuple{value, mask_padding(slope.x), slope.w, slope.h, mask_padding(ys), last};
    };
  }
  /// Returns a function that computes a gradient, whose loops may sort rows, and `of`.
  template <class F>
  auto with(F of) const {
    return [this, of](const Parameters& p) {
      const Parameters slope = grad([this](const Parameters& p) { return loss(p); })(p);
      return std::pair{slope.w, of(p)};
    };
  }
  static bool is_sorted(const std::string& explained) { return has(explained, "rows: of batch="); }
};

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

/// Expects that the rows of f keep their places, and that its plan computes as the interpreter
/// does.
template <class F>
void expect_kept(const F& f, const Parameters& p, int line = __builtin_LINE()) {
  SCOPED_TRACE(str("line ", line));
  const auto planned = jit(f, {.executor = Executor::plan});
  manual_seed(3);
  const TreeLeaves made = flatten(planned(p));
  manual_seed(3);
  expect_all_close(made, flatten(jit(f, {.executor = Executor::interpreter})(p)));
  EXPECT_FALSE(find_row_order(planned.graph()));
}

TEST_F(SortedRowsTest, RowsKeepTheirPlacesIfAnOpReadsTheirOrder) {
  const Parameters p = parameters();
  const Dim batch = p.h.dims()[0], picked("picked", 2);
  expect_kept(with([&](const Parameters& p) { return argmax(p.h, batch); }), p);
  expect_kept(with([&](const Parameters& p) { return cumsum(p.h, batch); }), p);
  expect_kept(with([&](const Parameters& p) { return cast(range(batch), f32) * p.h; }), p);
  expect_kept(with([&](const Parameters& p) {
                return gather(p.h, tensor({2, 0}, {picked}), batch);
              }),
              p);
  expect_kept(
      with([&](const Parameters& p) {
        const auto body = [](const Tensor& h, const Tensor& s) {
          return std::pair{s * 0.5 + h, s};
        };
        return scan(Scan{.spatial_dim = batch, .initial = zeros({hidden}), .xs = p.h, .body = body})
            .ys;
      }),
      p);
}

TEST_F(SortedRowsTest, ExplainNamesTheOpBecauseOfWhichRowsKeepTheirPlaces) {
  const Parameters p = parameters();
  const auto planned = jit(with([](const Parameters& p) { return cumsum(p.h, p.h.dims()[0]); }));
  planned(p);
  EXPECT_TRUE(has(planned.explain(),
                  "rows: keep their places, as cumsum depends on their order; each iteration copies "
                  "rows, unless they come in the order of their lengths\n"))
      << planned.explain();
  const auto drawn = jit(with([](const Parameters& p) {
    return cumsum(p.h * random_uniform(p.h.dims()), p.h.dims()[0]);
  }));
  drawn(p);
  EXPECT_TRUE(has(drawn.explain(), "rows: keep their places, as cumsum depends"));
  const auto sorted = jit(everything());
  sorted(p);
  EXPECT_FALSE(has(sorted.explain(), "keep their places"));
}

TEST_F(SortedRowsTest, ExplainOfAGradientWhoseRowsHaveASizeOfTheirRun) {
  const Dim batch("batch", scalar(0)), letters("letters", scalar(2));
  const Tensor h = tensor(std::vector<double>{}, {batch, letters});
  const auto f = [&](const Tensor& h) {
    const Tensor go = full({batch}, true, boolean);
    const Tensor last = scan(Scan{.spatial_dim = Dim("steps"),
                                  .cond_dims = {batch},
                                  .initial = h,
                                  .cond = [&](const Tensor&) { return go; },
                                  .body = [&](const Tensor&) { return std::pair{None{}, h}; }})
                            .state;
    return sum(last + sin(last));
  };
  const auto planned = jit(grad(f));
  planned(h);
  EXPECT_TRUE(has(planned.explain(), "loop 1")) << planned.explain();
}

TEST_F(SortedRowsTest, RowsKeepTheirPlacesIfAGraphWithoutRowsReadsTheirOrder) {
  const Parameters p = parameters();
  const Dim batch = p.h.dims()[0], time = p.x.dims()[0], five("five", 5);
  const auto by_number = [&] { return sum(cast(range(batch), f32) * cast(time.lengths(), f32)); };
  const auto if_positive = [](const Tensor& x, auto then) {
    return cond(x > 0, then, [] { return zeros({}); });
  };
  expect_kept(with([&](const Parameters& p) { return if_positive(sum(abs(p.w)), by_number); }), p);
  expect_kept(
      with([&](const Parameters& p) {
        return if_positive(sum(abs(p.w)), [&] { return sum(random_uniform({batch, time})); });
      }),
      p);
  expect_kept(with([&](const Parameters& p) {
                return checkpoint([&](const Tensor& w) { return sum(w) + by_number(); })(p.w);
              }),
              p);
  expect_kept(with([&](const Parameters&) {
                const auto body = [&](const Tensor& s) {
                  const Tensor y = s + if_positive(s, by_number);
                  return std::pair{y, y};
                };
                return scan(Scan{.spatial_dim = five, .initial = ones({}), .body = body}).state;
              }),
              p);
}

TEST_F(SortedRowsTest, RowsDrawTheNumbersThatTheyDrawInTheirPlaces) {
  const auto f = with([this](const Parameters& p) {
    const Dim time = p.x.dims()[0], batch = p.h.dims()[0], three("three", 3);
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor y = tanh(rename(matmul(h, p.w, hidden), next, hidden) + x) *
                       random_uniform({batch, hidden});
      const auto inner = [&](const Tensor& s) {
        const Tensor noise = s + random_normal({hidden, batch}) * 0.1;
        return std::pair{None{}, noise};
      };
      return std::pair{
          y * sum(truncated_normal({batch, time}), time),
          scan(Scan{.spatial_dim = three, .initial = y, .body = inner}).state};
    };
    const auto [ys, last, dim] =
        scan(Scan{.spatial_dim = time, .initial = p.h, .xs = p.x, .body = body});
    return std::tuple{mask_padding(ys), last,
                      mask_padding(p.x * random_uniform(p.x.dims())),
                      random_normal({next, batch})};
  });
  const auto planned = jit(f), interpreted = jit(f, {.executor = Executor::interpreter});
  for (const std::vector<int>& lengths :
       std::vector<std::vector<int>>{kMixed, {2, 7, 0, 5, 7, 2, 4, 1, 6}, {7, 5, 5, 4, 3, 2, 1, 0}}) {
    const Parameters p = parameters(lengths);
    manual_seed(3);
    const TreeLeaves made = flatten(planned(p));
    EXPECT_EQ(is_sorted(planned.explain()), lengths.size() > 8);
    manual_seed(3);
    expect_all_close(made, flatten(interpreted(p)));
  }
}

TEST_F(SortedRowsTest, RaggedDrawsInLoops) {
  const auto loop = [](bool ends, bool reads_x) {
    return [=](const Parameters& p) {
      const Dim time = p.x.dims()[0], batch = p.h.dims()[0], steps("steps", 5);
      const auto next = [=](const Tensor& x, const Tensor& h) {
        const Tensor drawn = sum(random_uniform({batch, time}), time);
        const Tensor y = h * 0.5 + x * drawn;
        return reads_x ? y + sum(p.x, time) : y;
      };
      if (ends)
        return scan(Scan{.spatial_dim = time,
                         .initial = p.h,
                         .xs = p.x,
                         .body =
                             [=](const Tensor& x, const Tensor& h) {
                               return std::pair{None{}, next(x, h)};
                             }})
            .state;
      return scan(Scan{.spatial_dim = steps,
                       .initial = p.h,
                       .body =
                           [=](const Tensor& h) { return std::pair{None{}, next(h, h)}; }})
          .state;
    };
  };
  for (const std::vector<int>& lengths : std::vector<std::vector<int>>{kMixed, {2, 3}})
    for (const bool ends : {true, false})
      for (const bool reads_x : {true, false})
        for (const int block_rows : {0, 1, 4}) {
          const auto f = with(loop(ends, reads_x));
          const Parameters p = parameters(lengths);
          manual_seed(3);
          const TreeLeaves made = flatten(jit(f, {.passes = {.block_rows = block_rows}})(p));
          manual_seed(3);
          expect_all_close(made, flatten(jit(f, {.executor = Executor::interpreter})(p)));
        }
}

TEST_F(SortedRowsTest, GradientsOfDrawsInLoops) {
  const auto f = [this](const Parameters& p) {
    return value_and_grad([this](const Parameters& p) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor kept = where(random_uniform(h.dims()) < 0.8, h / 0.8, 0.0);
        const Tensor y = tanh(rename(matmul(kept, p.w, hidden), next, hidden) + x);
        return std::pair{y * y, y};
      };
      const auto [ys, last, dim] =
          scan(Scan{.spatial_dim = p.x.dims()[0], .initial = p.h, .xs = p.x, .body = body});
      return sum(square(ys) * random_uniform(ys.dims())) + sum(last);
    })(p);
  };
  const Parameters p = parameters();
  const auto planned = jit(f);
  manual_seed(3);
  const auto [value, slope] = planned(p);
  EXPECT_TRUE(is_sorted(planned.explain())) << planned.explain();
  manual_seed(3);
  const auto [expected, expected_slope] = f(p);
  reel::expect_all_close(value, expected, 1e-5);
  expect_all_close(flatten(std::tuple{mask_padding(slope.x), slope.w, slope.h}),
                   flatten(std::tuple{mask_padding(expected_slope.x), expected_slope.w,
                                      expected_slope.h}));
}

TEST_F(SortedRowsTest, RowsKeepTheirPlacesIfFinishedOnesReadTheFirstThatRuns) {
  const Parameters p = parameters();
  const Dim batch = p.h.dims()[0], time = p.x.dims()[0];
  const Tensor scale = random_normal({time});
  // A body that couples rows counts the first running row once for each finished one.
  const auto coupled = [&](const auto& couple) {
    return [&, couple](const Parameters& p) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor y = couple(tanh(h * 0.5 + x));
        return std::pair{y, y};
      };
      const auto [ys, last, dim] =
          scan(Scan{.spatial_dim = time, .initial = p.h, .xs = p.x, .body = body});
      return std::pair{mask_padding(ys), last};
    };
  };
  expect_kept(with(coupled([&](const Tensor& h) { return h - mean(h, batch); })), p);
  expect_kept(with(coupled([&](const Tensor& h) { return h / (1. + max(abs(h), batch)); })), p);
  // A sum over rows as y, or in a state that all rows share.
  const auto sums = [&](const Tensor& initial, const Tensor& xs) {
    const auto body = [&](const Tensor& x, const std::pair<Tensor, Tensor>& s) {
      const Tensor h = s.first * 0.5 + x, all = sum(h, batch);
      return std::pair{all, std::pair{h, s.second + all}};
    };
    const auto [ys, last, dim] = scan(Scan{.spatial_dim = time,
                                           .initial = std::pair{initial, zeros({hidden})},
                                           .xs = xs,
                                           .body = body});
    return std::pair{ys, last.second};
  };
  expect_kept(with([&](const Parameters& p) { return sums(p.h, p.x); }), p);
  // Cotangents of such copies belong to the row that was copied.
  expect_kept(with([&](const Parameters& p) {
                return mask_padding(
                    grad([&](const Tensor& x) { return sum(sums(p.h, x).first * scale); })(p.x));
              }),
              p);
}

TEST_F(SortedRowsTest, RowsKeepTheirPlacesIfEntriesOfTwoDimsFinish) {
  const Dim batch = batch_of(kMixed), words("words", tensor(kMixed, {batch}));
  std::vector<int> lengths;
  for (int i = 0; i < 12 * 7; ++i) lengths.push_back(i * 5 % 4);
  const Dim letters("letters", mask_padding(tensor(lengths, {batch, words})));
  const Tensor text = random_normal({letters, batch, words});
  // The sum over the words of a row counts the first word of the batch that still runs.
  const auto f = [&](const Parameters& p) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor y = h * 0.5 + x + sum(h, words) * 0.1;
      return std::pair{y, y};
    };
    return mask_padding(scan(Scan{.spatial_dim = letters,
                                  .initial = expand(sum(p.h, hidden), {batch, words}),
                                  .xs = text,
                                  .body = body})
                            .state);
  };
  expect_kept(with(f), {random_normal({words, batch, hidden}), parameters().w,
                        random_normal({batch, hidden})});
}

TEST_F(SortedRowsTest, RowsKeepTheirPlacesIfADimOfABodyHasTheirOrder) {
  const Parameters p = parameters();
  const Dim batch = p.h.dims()[0], picked("picked", 1);
  const Tensor lengths = p.x.dims()[0].lengths();
  // The body makes a dim; ones along it have its lengths without reading a value with rows.
  const auto along = [&](const auto& make) {
    return [&, make](const Parameters& p) {
      const auto body = [&](const Tensor&, const Tensor& s) {
        const Dim made = make(s);
        const Dims dims = made.is_ragged() ? Dims{batch, made} : Dims{made};
        return s * 0.5 + sum(ones(dims), made);
      };
      return fori_loop(0, 3, body, sum(p.h, hidden));
    };
  };
  expect_kept(with(along([&](const Tensor&) { return Dim("made", range(batch) % 4); })), p);
  expect_kept(with(along([&](const Tensor& s) { return Dim("made", argsort(s, batch)); })), p);
  expect_kept(with(along([&](const Tensor&) {
                return Dim("made", sum(gather(lengths, tensor({3}, {picked}), batch), picked));
              })),
              p);
  const auto of_rows = with(along([&](const Tensor&) { return Dim("made", lengths % 4); }));
  const auto planned = jit(of_rows);
  expect_all_close(flatten(planned(p)), flatten(of_rows(p)));
  EXPECT_TRUE(is_sorted(planned.explain()));
}

TEST_F(SortedRowsTest, RowsKeepTheirPlacesIfAnArrayHasElementsAlongTheirLengths) {
  const Parameters p = parameters();
  const Dim batch = p.h.dims()[0], time = p.x.dims()[0], element("element", 2);
  const TensorArray array = TensorArray(TensorType(f32, {time})).push_back(ones({time}));
  const auto of = [&](const TensorArray& array) {
    return with([&, array](const Parameters& p) { return sum(p.h) + array.read(0); });
  };
  expect_kept(of(array), p);  // captured
  expect_kept(with([&](const Parameters& p) {
                return array.push_back(sum(p.x, {batch, hidden})).stack(element);
              }),
              p);
  // An argument, and a result.
  const auto f = [&](const Parameters& p, const TensorArray& array) {
    return std::pair{of(array)(p), array.push_back(sum(p.x, {batch, hidden}))};
  };
  const auto g = [&](const Parameters& p) {
    return std::pair{of(array)(p).first,
                     TensorArray(TensorType(f32, {time})).push_back(sum(p.x, {batch, hidden}))};
  };
  const auto with_argument = jit(f);
  const auto with_result = jit(g);
  reel::expect_all_close(with_argument(p, array).second.read(1), f(p, array).second.read(1), 2e-5);
  reel::expect_all_close(with_result(p).second.read(0), g(p).second.read(0), 2e-5);
  EXPECT_FALSE(is_sorted(with_argument.explain()));
  EXPECT_FALSE(is_sorted(with_result.explain()));
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

TEST_F(SortedRowsTest, EqualElementsEndWithTheirRow) {
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

TEST_F(SortedRowsTest, NotIfAsMuchGoesInAndOutAsThroughLoops) {
  const auto forward = [this](const Parameters& p) { return run(p); };
  const auto planned = jit(forward);
  planned(parameters());
  EXPECT_FALSE(find_row_order(planned.graph()));
}

/// A model of parts that are present or not, by the bits of a number.
struct Tagger {
  Embedding symbols;
  GruCell forward, backward;
  Linear out;
};

class SortedTaggersTest : public ::testing::TestWithParam<int> {
 protected:
  bool has_part(int i) const { return GetParam() >> i & 1; }

  const Dim symbol{"symbol", 11}, feature{"feature", 24}, hidden{"hidden", 24}, both{"both", 48};

  Tagger tagger() const {
    return {Embedding::init(symbol, feature), GruCell::init(feature, hidden),
            GruCell::init(feature, hidden), Linear::init(both, symbol)};
  }
  Tensor loss(const Tagger& m, const Tensor& source, const Tensor& target) const {
    const Dim time = source.dim("time"), other = target.dim("other");
    const Tensor x = m.symbols(source);
    const auto [ys, last] = recur(m.forward, x, time);
    Tensor keys = ys;
    if (has_part(0))  // read backwards, and added up along time
      keys = keys + linear_scan(sigmoid(recur(m.backward, x, time, {.reverse = true}).outputs), ys,
                                zeros_like(last), time);
    const auto step = [&](const Tensor& x, const Tensor& s) {
      const Tensor h = m.forward(x, s).second;
      if (!has_part(1)) return std::pair{concat({h, x}, hidden, both), h};
      const Tensor weights = softmax(matmul(keys, h, hidden), time);
      return std::pair{concat({h, matmul(weights, keys, time)}, hidden, both), h};
    };
    const Tensor xs = rename(m.symbols(target), feature, feature);
    const Tensor states =
        scan(Scan{.spatial_dim = other, .initial = last, .xs = xs, .body = step}).ys;
    Tensor result = has_part(2) ? cross_entropy(m.out(states), target, symbol)
                                : mean(square(max(states, other)));
    if (has_part(3)) result = result + sum(cast(time.lengths(), f32) * sum(last, hidden)) * 0.01;
    return result;
  }
};

TEST_P(SortedTaggersTest, LearnAsInTheInterpreter) {
  manual_seed(static_cast<std::uint64_t>(GetParam()));
  const std::vector<int> others{1, 4, 2, 2, 0, 5, 3, 3, 1, 2, 6, 2};
  const Dim batch("batch", 12), time("time", tensor(kMixed, {batch})),
      other("other", tensor(has_part(4) ? others : kMixed, {batch}));
  const auto drawn = [&](const Dim& dim) {
    const Dims dims = has_part(5) ? Dims{batch, dim} : Dims{dim, batch};
    return cast(random_uniform(dims) * 10.99, i32);
  };
  const Tagger model = tagger();
  const Tensor source = drawn(time), target = drawn(other);
  const auto f = [this](const Tagger& m, const Tensor& source, const Tensor& target) {
    return value_and_grad([&](const Tagger& m) { return loss(m, source, target); })(m);
  };
  const auto planned = jit(f, {.executor = Executor::plan, .passes = {.block_rows = 4}});
  const TreeLeaves made = flatten(planned(model, source, target));
  expect_all_close(made,
                   flatten(jit(f, {.executor = Executor::interpreter})(model, source, target)));
  EXPECT_TRUE(find_row_order(planned.graph()));
  EXPECT_TRUE(has(planned.explain(), "rows: of batch=12")) << planned.explain();
}

INSTANTIATE_TEST_SUITE_P(Parts, SortedTaggersTest, ::testing::Range(0, 64));

}  // namespace
}  // namespace reel
