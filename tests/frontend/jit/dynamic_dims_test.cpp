// JitOptions::dynamic: one trace for all sizes of static dims with the given names.
#include "reel/tests/modes.h"

namespace reel {
namespace {

const Dim feature("feature", 3);

class DynamicDimsTest : public InEveryMode {
 protected:
  template <class F>
  auto dynamic(F f, Dims dims) const {
    JitOptions options = options_of(GetParam());
    options.dynamic = std::move(dims);
    return jit(f, options);
  }
  /// Expects that one trace of f has the values and gradients of eager mode for all of `inputs`.
  template <class F>
  void expect_one_trace(const F& f, const Dims& dims, const std::vector<Tensor>& inputs) const {
    if (is_eager()) return;
    const auto inside = dynamic(value_and_grad(f), dims);
    const auto outside = dynamic(f, dims);
    for (const Tensor& x : inputs) {
      SCOPED_TRACE(str(x.type()));
      const auto [expected, slope] = value_and_grad(f)(x);
      const auto [value, gradient] = inside(x);
      expect_all_close(value, expected, 1e-12);
      expect_all_close(gradient, slope, 1e-12);
      EXPECT_EQ(gradient.dims(), x.dims());
      expect_all_close(grad(outside)(x), slope, 1e-12);
    }
    EXPECT_EQ(inside.trace_count(), 1);
    EXPECT_EQ(outside.trace_count(), 1);
  }
};

std::vector<Tensor> rows_of_sizes(std::initializer_list<int> sizes) {
  std::vector<Tensor> result;
  for (const int size : sizes) result.push_back(random_normal({Dim("batch", size), feature}, f64));
  return result;
}

TEST_P(DynamicDimsTest, OneTraceServesAllSizes) {
  const Tensor w = random_normal({feature, Dim("hidden", 2)}, f64);
  expect_one_trace(
      [&](const Tensor& x) {
        const Dim batch = x.dim("batch");
        return mean(square(tanh(matmul(x, w, feature)))) + sum(softmax(x, batch) * x) +
               sum(square(cumsum(x, batch)));
      },
      {Dim("batch")}, rows_of_sizes({5, 2, 9, 1}));
}

TEST_P(DynamicDimsTest, LoopsRunAsOftenAsTheDimSays) {
  std::vector<Tensor> inputs;
  for (const int size : {4, 1, 7})
    inputs.push_back(random_normal({Dim("time", size), feature}, f64));
  expect_one_trace(
      [](const Tensor& x) {
        const auto [ys, last, steps] = scan(Scan{.spatial_dim = x.dim("time"),
                                                 .initial = zeros({feature}, f64),
                                                 .xs = x,
                                                 .body = [](const Tensor& x, const Tensor& s) {
                                                   const Tensor next = sin(s * 0.5 + x);
                                                   return std::pair{next, next};
                                                 }});
        const Dim time = x.dim("time");
        return sum(ys * x) + sum(square(last)) +
               sum(slice(ys, time, 1, std::nullopt, time - 1) * slice(x, time, 0, -1, time - 1));
      },
      {Dim("time")}, inputs);
}

TEST_P(DynamicDimsTest, LoopsCarryAndCaptureDynamicDims) {
  expect_one_trace(
      [](const Tensor& x) {
        const auto step = [&](const Tensor& s) { return tanh(s + x * 0.1); };
        const auto is_small = [](const Tensor& s) { return sum(square(s)) < 40; };
        return sum(while_loop(is_small, step, x, {.maximum_iterations = 5}) * x);
      },
      {Dim("batch")}, rows_of_sizes({3, 6, 2}));
}

TEST_P(DynamicDimsTest, CheckpointedLoopsHaveOneTrace) {
  std::vector<Tensor> inputs;
  for (const int size : {5, 8, 1})
    inputs.push_back(random_normal({Dim("time", size), feature}, f64));
  expect_one_trace(
      [](const Tensor& x) {
        return sum(square(scan(Scan{.spatial_dim = x.dim("time"),
                                    .initial = zeros({feature}, f64),
                                    .xs = x,
                                    .body =
                                        [](const Tensor& x, const Tensor& s) {
                                          const Tensor next = sin(s * x) + cos(x);
                                          return std::pair{next, next};
                                        },
                                    .checkpoint = Checkpoint::every(2)})
                              .ys));
      },
      {Dim("time")}, inputs);
}

TEST_P(DynamicDimsTest, RaggedDimsLieOverThem) {
  std::vector<Tensor> inputs;
  for (const std::vector<int>& lengths :
       {std::vector{3, 1}, std::vector{2, 4, 1, 0}, std::vector{5}}) {
    const Dim batch("batch", static_cast<std::int64_t>(lengths.size()));
    const Dim time("time", tensor(lengths, {batch}, i32));
    inputs.push_back(random_normal({batch, time, feature}, f64));
  }
  expect_one_trace(
      [](const Tensor& x) {
        const Dim batch = x.dim("batch"), time = x.dim("time");
        const Tensor h = scan(Scan{.spatial_dim = time,
                                   .initial = zeros({batch, feature}, f64),
                                   .xs = x,
                                   .body =
                                       [](const Tensor& x, const Tensor& s) {
                                         return std::pair{None{}, tanh(s * 0.5 + x)};
                                       }})
                             .state;
        return mean(square(h)) + sum(softmax(x, time) * x);
      },
      {Dim("batch")}, inputs);
}

TEST_P(DynamicDimsTest, DimsComputedFromThemAreDynamic) {
  if (is_eager()) return;
  const auto f = dynamic(
      [](const Tensor& x, const Tensor& y) {
        const Dim time = x.dim("time");
        return sum(pad(x, time, 1, 0, 0, time + 1) * y);
      },
      {Dim("time")});
  for (const int size : {2, 5, 1}) {
    const Dim time("time", size);
    const Tensor x = random_normal({time}, f64), y = random_normal({time + 1}, f64);
    expect_all_close(f(x, y), sum(x * slice(y, time + 1, 1, std::nullopt, time)), 1e-12);
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(DynamicDimsTest, SeveralDimsAndArguments) {
  if (is_eager()) return;
  struct Arguments {
    Tensor x, y;
    Dim batch;
  };
  const auto product = [](const Arguments& a) {
    return std::pair{matmul(a.x, a.y, a.x.dim("time")), expand(scalar(1., f64), a.batch)};
  };
  const auto f = dynamic(product, {Dim("batch"), Dim("time")});
  for (const auto& [rows, steps] : {std::pair{2, 3}, {5, 1}, {1, 4}, {2, 3}}) {
    const Dim batch("batch", rows), time("time", steps);
    const Arguments a{random_normal({batch, time}, f64), random_normal({time, feature}, f64),
                      batch};
    const auto [products, ones] = f(a);
    EXPECT_EQ(products.dims(), (Dims{batch, feature}));
    EXPECT_EQ(ones.dims(), (Dims{batch}));
    expect_all_close(products, matmul(a.x, a.y, time), 1e-12);
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(DynamicDimsTest, OtherDimsKeepTheirSizes) {
  if (is_eager()) return;
  const auto f = dynamic([](const Tensor& x) { return x * x.dim("time").size(); }, {Dim("batch")});
  for (const int rows : {2, 3})
    for (const int steps : {4, 5})
      expect_all_close(f(ones({Dim("batch", rows), Dim("time", steps)})),
                       expand(scalar(float(steps)), {Dim("b", rows), Dim("t", steps)}), 0);
  EXPECT_EQ(f.trace_count(), 2);
}

TEST_P(DynamicDimsTest, ATrainingStepUpdatesInPlace) {
  if (is_eager()) return;
  const auto step = dynamic(
      [](Tensor w, const Tensor& x) {
        w -= 0.1 * grad([&](const Tensor& w) { return mean(square(x * w)); })(w);
        return w;
      },
      {Dim("batch")});
  Tensor w = ones({feature}, f64), expected = w;
  for (const Tensor& x : rows_of_sizes({4, 2, 4})) {
    w = step(std::move(w), x);
    expected -= 0.2 * mean(square(x), x.dim("batch")) * expected / 3;
  }
  expect_all_close(w, expected, 1e-12);
  EXPECT_EQ(step.trace_count(), 1);
}

TEST_P(DynamicDimsTest, PlainAxesAreNamedByArgumentAndPlace) {
  if (is_eager()) return;
  JitOptions options = options_of(GetParam());
  options.any_length = {0, {0, 1}, {1, 1}};
  const auto loss = [](const Tensor& x, const Tensor& y) { return sum(tanh(matmul(x, y))); };
  const auto f = jit(grad(loss), options);
  for (const auto& [rows, columns] : {std::pair{2, 3}, {5, 1}, {1, 4}}) {
    const Tensor x = random_normal({rows, 3}, f64), y = random_normal({3, columns}, f64);
    expect_all_close(f(x, y), grad(loss)(x, y), 1e-12);
  }
  EXPECT_EQ(f.trace_count(), 1);
}

REEL_IN_EVERY_MODE(DynamicDimsTest);

template <class F>
std::string error_of(F f, const Tensor& x) {
  const auto traced = jit(f, {.name = "f", .dynamic = {Dim("batch")}});
  return message_of<TraceError>([&] { traced(x); });
}

TEST(DynamicDimsErrorTest, NameTheOpThatNeedsTheSize) {
  const Tensor x = ones({Dim("batch", 4), feature});
  EXPECT_EQ(
      error_of([](const Tensor& x) { return unstack(x, x.dim("batch"))[0]; }, x),
      "unstack: the size of axis batch of f32[batch,feature=3] is not known while tracing; use "
      "scan to go through it, or a TensorArray");
  EXPECT_EQ(error_of([](const Tensor& x) { return x * x.shape()[0]; }, x),
            "shape: the size of dim batch of f32[batch,feature=3] is not known while tracing; use "
            "dim.lengths(), or range(dim)");
  EXPECT_EQ(error_of([](const Tensor& x) { return x * x.numel(); }, x),
            "numel: not all sizes of f32[batch,feature=3] are known while tracing; use "
            "dim.lengths()");
  EXPECT_EQ(error_of([](const Tensor& x) { return x * x.dim("batch").size(); }, x),
            "the size of dim batch is not known while tracing; use dim.lengths(), or range(dim)");
}

TEST(DynamicDimsErrorTest, NameTheOpThatHasNoFixedSize) {
  const auto f = jit([](const Tensor& x) { return squeeze(x, x.dim("batch")); },
                     {.name = "f", .dynamic = {Dim("batch")}});
  EXPECT_EQ(
      message_of<ShapeError>([&] {
        f(ones({Dim("batch", 1), feature}));
      }),
      "squeeze: axis batch of f32[batch,feature=3] has no fixed size; use gather(x, scalar(0), "
      "axis)");
}

/// The size that the trace did not know is checked in each run.
TEST(DynamicDimsErrorTest, RunsCheckSizes) {
  const auto f = jit([](const Tensor& x) { return reshape(x, {12}); },
                     {.name = "f", .dynamic = {Dim("batch")}});
  expect_values(sum(f(ones({Dim("batch", 4), feature}))), {12});
  EXPECT_EQ(message_of<ShapeError>([&] {
              f(ones({Dim("batch", 3), feature}));
            }),
            "reshape: f32[batch=3,feature=3] has 9 elements, f32[12] has 12");
}

TEST(DynamicDimsErrorTest, NameADimThatNoArgumentHas) {
  const auto f =
      jit([](const Tensor& x) { return x; }, {.name = "f", .dynamic = {Dim("batch"), Dim("time")}});
  EXPECT_EQ(message_of<ArgumentError>([&] {
              f(ones({Dim("batch", 2), feature}));
            }),
            "jit \"f\": dynamic names dim time, but no argument has a dim of this name; the "
            "arguments' dims are [batch=2,feature=3]");
}

TEST(DynamicDimsErrorTest, RefuseAPlainDim) {
  EXPECT_EQ(
      message_of<ArgumentError>([&] { jit([](const Tensor& x) { return x; }, {.dynamic = {3}}); }),
      "jit: dynamic takes named dims, got 3; plain axes are dynamic by any_length");
}

TEST(DynamicDimsErrorTest, RefuseAnotherDimThanTheFunctionNames) {
  const Dim batch("batch", 2);
  const auto f =
      jit([&](const Tensor& x) { return sum(x, batch); }, {.name = "f", .dynamic = {batch}});
  expect_values(f(ones({batch, feature})), {2, 2, 2});
  EXPECT_EQ(
      message_of<ShapeError>([&] {
        f(ones({Dim("batch", 3), feature}));
      }),
      "jit \"f\": the function names dim batch=2 itself, but this call's argument has batch=3; "
      "the two called batch are not one Dim: use one Dim for both, as x.dim(\"batch\") gives "
      "it");
}

}  // namespace
}  // namespace reel
