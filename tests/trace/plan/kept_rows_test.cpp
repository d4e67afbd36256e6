// Batches with rows that keep their places, and the reasons that explain() gives.
#include "reel/tests/trace/plan/sorted_rows.h"
#include "reel/trace/passes/analysis/row_order.h"

namespace reel {
namespace {

class KeptRowsTest : public SortedRowsTest {};

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

TEST_F(KeptRowsTest, RowsKeepTheirPlacesIfAnOpReadsTheirOrder) {
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

TEST_F(KeptRowsTest, ExplainNamesTheOpBecauseOfWhichRowsKeepTheirPlaces) {
  const Parameters p = parameters();
  const auto planned = jit(with([](const Parameters& p) { return cumsum(p.h, p.h.dims()[0]); }));
  planned(p);
  EXPECT_TRUE(
      has(planned.explain(),
          "rows: keep their places, as cumsum depends on their order; each iteration copies "
          "rows, unless they come in the order of their lengths\n"))
      << planned.explain();
  const auto drawn = jit(with(
      [](const Parameters& p) { return cumsum(p.h * random_uniform(p.h.dims()), p.h.dims()[0]); }));
  drawn(p);
  EXPECT_TRUE(has(drawn.explain(), "rows: keep their places, as cumsum depends"));
  const auto sorted = jit(everything());
  sorted(p);
  EXPECT_FALSE(has(sorted.explain(), "keep their places"));
}

TEST_F(KeptRowsTest, ExplainOfAGradientWhoseRowsHaveASizeOfTheirRun) {
  const Dim batch("batch", scalar(0)), letters("letters", scalar(2));
  const Tensor h = tensor(std::vector<double>{}, {batch, letters});
  const auto f = [&](const Tensor& h) {
    const Tensor go = full({batch}, true, boolean);
    const Tensor last = scan(Scan{.spatial_dim = Dim("steps"),
                                  .cond_dims = {batch},
                                  .initial = h,
                                  .cond = [&](const Tensor&) { return go; },
                                  .body =
                                      [&](const Tensor&) {
                                        return std::pair{None{}, h};
                                      }})
                            .state;
    return sum(last + sin(last));
  };
  const auto planned = jit(grad(f));
  planned(h);
  EXPECT_TRUE(has(planned.explain(), "loop 1")) << planned.explain();
}

TEST_F(KeptRowsTest, RowsKeepTheirPlacesIfAGraphWithoutRowsReadsTheirOrder) {
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

TEST_F(KeptRowsTest, RowsKeepTheirPlacesIfFinishedOnesReadTheFirstThatRuns) {
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
  // Cotangents of copies belong to the row that was copied.
  expect_kept(with([&](const Parameters& p) {
                return mask_padding(
                    grad([&](const Tensor& x) { return sum(sums(p.h, x).first * scale); })(p.x));
              }),
              p);
}

TEST_F(KeptRowsTest, RowsKeepTheirPlacesIfEntriesOfTwoDimsFinish) {
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

TEST_F(KeptRowsTest, RowsKeepTheirPlacesIfADimOfABodyHasTheirOrder) {
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

TEST_F(KeptRowsTest, RowsKeepTheirPlacesIfAnArrayHasElementsAlongTheirLengths) {
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

TEST_F(KeptRowsTest, RowsKeepTheirPlacesIfSortingCostsAsMuchAsItSaves) {
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
