// vmap, compared with map, which runs f row by row: values, gradients and second derivatives.
#include <functional>

#include "reel/tests/modes.h"

namespace reel {
namespace {

Tensor total(const Tensor& y) { return sum(square(mask_padding(y))); }

class VmapTest : public InEveryMode {
 protected:
  /// Expects the values and the first two gradients of map(f, x). f must be smooth near x.
  using Function =
      std::function<Tensor(const Tensor&)>;  // one type, so that the file compiles fast
  void expect_as_map(const Function& f, const Tensor& x, const std::optional<Dim>& dim = {}) {
    const Function one_by_one = [f, dim](const Tensor& x) -> Tensor {
      return map(f, x, {.spatial_dim = dim});
    };
    const Function at_once = [f, dim](const Tensor& x) -> Tensor { return vmap(f, dim)(x); };
    const auto value = [&](const Function& g) {
      manual_seed(7);
      return mask_padding(g(x));
    };
    const auto here = [&](const Function& g) -> Function { return run(g); };
    const Tensor expected = value(one_by_one), actual = value(here(at_once));
    EXPECT_EQ(actual.type(), expected.type());
    expect_all_close(actual, expected);
    const auto slope = [](const Function& f) -> Function {
      return grad([f](const Tensor& x) -> Tensor { return total(f(x)); });
    };
    expect_all_close(value(here(slope(at_once))), value(slope(one_by_one)));
    expect_all_close(value(here(slope(slope(at_once)))), value(slope(slope(one_by_one))), 1e-4);
  }

  VmapTest() { manual_seed(3); }

  const Dim batch_{"batch", 4}, in_{"in", 3}, out_{"out", 2};
};

TEST_P(VmapTest, OpsSeeOneRow) {
  const Tensor x = random_normal({4, 3}, f64), w = random_normal({3, 3}, f64);
  expect_as_map([](const Tensor& x) { return tanh(x) * 2.0; }, x);
  expect_as_map([](const Tensor& x) { return sum(x); }, x);
  expect_as_map([](const Tensor& x) { return softmax(x, 0) + mean(x); }, x);
  expect_as_map([&](const Tensor& x) { return tanh(matmul(w, x)); }, x);
  expect_as_map([](const Tensor&) { return zeros({2}, f64) + 1.0; }, x);
  expect_as_map([](const Tensor& x) { return reshape(concat({x, x * x}, 0), {2, 3}); }, x);
}

TEST_P(VmapTest, NamedRowsMayBeAnyAxis) {
  const Tensor x = random_normal({in_, batch_}, f64), w = random_normal({in_, out_}, f64);
  expect_as_map([&](const Tensor& x) { return tanh(matmul(x, w, in_)); }, x, batch_);
  expect_as_map([&](const Tensor& x) { return softmax(x, batch_) * sum(x, batch_); }, x, in_);
}

TEST_P(VmapTest, OpsWithoutAFormForRowsRunInALoop) {
  const Tensor x = random_normal({4, 3}, f64), named = reshape(x, Dims{batch_, in_});
  expect_as_map([](const Tensor& x) { return sort(x, 0) * cumsum(x, 0); }, x);
  expect_as_map([&](const Tensor& x) { return sort(x, in_) * reverse(x, in_); }, named, batch_);
}

TEST_P(VmapTest, EveryRowHasItsOwnRandomNumbersAndIndices) {
  const Tensor x = random_normal({4, 3}), w = random_normal({3, 2});
  const Tensor named = reshape(x, Dims{batch_, in_});
  expect_as_map([](const Tensor& x) { return x * random_normal({3}); }, x);
  expect_as_map([&](const Tensor& x) { return dropout(x, 0.5) * random_normal({in_}); }, named,
                batch_);
  expect_as_map([&](const Tensor& x) { return gather(w, argmax(x, 0), 0) * sum(x); }, x);
  expect_as_map([&](const Tensor& x) { return gather(x, argmin(x, in_), in_) * x; }, named, batch_);
}

TEST_P(VmapTest, LaterDrawsAreThoseBehindMap) {
  const auto drawn = [](const auto& apply) {
    return [apply](const Tensor& x) -> Tensor {
      const Tensor y = apply(x);
      return y * random_normal({4});
    };
  };
  const auto f = [](const Tensor& x) { return sum(sort(x * random_normal({3}), 0)); };
  const Tensor x = random_normal({4, 3});
  manual_seed(7);
  const Tensor expected = drawn([f](const Tensor& x) -> Tensor { return map(f, x); })(x);
  manual_seed(7);
  expect_all_close(run(drawn([f](const Tensor& x) -> Tensor { return vmap(f)(x); }))(x), expected);
}

TEST_P(VmapTest, ALoopIsOneLoopOverAllRows) {
  const Tensor x = random_normal({4, 3}, f64), named = reshape(x, Dims{batch_, in_});
  const auto power = [](const Tensor& x) {
    return fori_loop(
        0, 3, [&](const Tensor& i, const Tensor& s) { return s * 0.5 + tanh(x) * cast(i, f64); },
        x);
  };
  expect_as_map(power, x);
  expect_as_map(power, named, batch_);
  const auto sums = [](const Tensor& x) {
    const auto [ys, last, dim] =
        scan(Scan{.initial = zeros({}, f64), .xs = x, .body = [](const Tensor& x, const Tensor& s) {
                    const Tensor next = tanh(s + x);
                    return std::pair{next * next, next};
                  }});
    return ys + last;
  };
  expect_as_map(sums, x);
  if (is_eager()) return;
  const auto jitted = jit(vmap(sums), {.executor = Executor::interpreter});
  jitted(x);
  EXPECT_EQ(std::count_if(jitted.graph().records.begin(), jitted.graph().records.end(),
                          [](const OpRecord& record) { return record.op->name == "loop"; }),
            1);
}

TEST_P(VmapTest, RowsOfALoopFinishOneByOne) {
  const Tensor x = random_normal({4, 3}, f64), named = reshape(x, Dims{batch_, in_});
  const auto shrink = [](const Tensor& x) {
    return while_loop([](const Tensor& s) { return sum(square(s)) > 0.1; },
                      [](const Tensor& s) { return s * 0.7; }, x);
  };
  expect_as_map(shrink, x);
  expect_as_map(shrink, named, batch_);
  const auto counted = [](const Tensor& x) {
    const auto [s, n] =
        while_loop([](const Tensor& s, const Tensor&) { return sum(square(s)) > 0.1; },
                   [](const Tensor& s, const Tensor& n) {
                     return std::tuple{sin(s) * 0.7, n + 1};
                   },
                   std::tuple{x, 0});
    return s * cast(n, f64);
  };
  expect_as_map(counted, x);
  const auto as_often = [](const Tensor& x) {
    return fori_loop(
        0, argmax(x, 0) + 1, [&](const Tensor&, const Tensor& s) { return tanh(s) * x; }, x);
  };
  expect_as_map(as_often, x);
}

TEST_P(VmapTest, ARowThatFinishesEarlyCausesNoNan) {
  // Beyond its end, row 0 would take the root of a negative number.
  const Tensor x = tensor({1.0, 5.0, 2.5}, f64);
  const auto f = [](const Tensor& x) {
    return while_loop([](const Tensor& s) { return s >= 1.0; },
                      [](const Tensor& s) { return sqrt(s - 1.0) * s * 0.3; }, x);
  };
  expect_as_map(f, tensor({1.5, 5.0, 2.5}, f64));
  expect_as_map(f, x + 0.5);
}

TEST_P(VmapTest, ACondOfEachRowTakesItsBranch) {
  const Tensor x = random_normal({4, 3}, f64), named = reshape(x, Dims{batch_, in_});
  const auto root = [](const Tensor& x) {
    return cond(
        sum(x) > 0.0, [&] { return log(sum(x)) * x; }, [&] { return tanh(x); });
  };
  expect_as_map(root, x);
  expect_as_map(root, named, batch_);
  expect_as_map(root, abs(x));  // no row takes the second branch
  expect_as_map(
      [&](const Tensor& y) {
        return cond(
            sum(x) > 0.0, [&] { return y * 2.0; }, [&] { return tanh(sum(x, 0)); });
      },
      x);
}

// One branch returns an argument, with a plain axis of rows; the other one computes named rows.
TEST_P(VmapTest, BranchesOfScalarRowsHaveOneType) {
  for (const int taken : {0, 1}) {
    const auto loss = [=](const Tensor& x) {
      const Tensor is_sum = scalar(taken) == 1;
      const auto row = [&](const Tensor& a) {
        return cond(
            is_sum, [&] { return a + a; }, [&] { return a; });
      };
      return sum(sin(vmap(row)(x)));
    };
    const auto slope = [=](const Tensor& x) { return sum(sin(grad(loss)(x))); };
    const Tensor x = tensor({1., 2., 3.}, {}, f64);
    const double k = 1 + taken;
    // d/dx sum sin(k cos(k x)) = -k^2 sin(k x) cos(k cos(k x)).
    const Tensor expected = -k * k * sin(k * x) * cos(k * cos(k * x));
    expect_all_close(run(grad(slope))(x), expected, 1e-12);
  }
}

TEST_P(VmapTest, GradientsInsideAreThoseOfEachRow) {
  const Tensor x = random_normal({4, 3}, f64), w = random_normal({3, 3}, f64);
  expect_as_map(
      [&](const Tensor& x) {
        return grad([&](const Tensor& w) -> Tensor { return sum(square(tanh(matmul(w, x)))); })(w);
      },
      x);
  expect_as_map(
      [&](const Tensor& x) {
        return grad([&](const Tensor& w) -> Tensor {
          return sum(scan(Scan{.initial = zeros({3}, f64),
                               .xs = x,
                               .body =
                                   [&](const Tensor& x, const Tensor& s) {
                                     const Tensor next = tanh(matmul(w, s) + x);
                                     return std::pair{next, next};
                                   }})
                         .ys);
        })(w);
      },
      x);
  expect_as_map(
      [](const Tensor& x) {
        return grad([](const Tensor& x) -> Tensor {
          return sum(while_loop([](const Tensor& s) { return sum(square(s)) > 0.1; },
                                [&](const Tensor& s) { return s * 0.7 + 0.01 * sin(x); }, x));
        })(x);
      },
      x);
}

TEST_P(VmapTest, RaggedDimsHaveTheLengthOfEachRow) {
  const Dim time("time", tensor({3, 0, 1, 2}, {batch_}));
  const Tensor x = random_normal({batch_, time, in_}, f64);
  expect_as_map([&](const Tensor& x) { return sum(x, time) + mean(x, time); }, x, batch_);
  expect_as_map([&](const Tensor& x) { return softmax(x, time) * 2.0; }, x, batch_);
  expect_as_map([&](const Tensor& x) { return tanh(x) - mean(x, time); }, x, batch_);
  expect_as_map([&](const Tensor& x) { return sum(x, time); }, x, in_);
  expect_as_map([](const Tensor& x) { return tanh(x) * 2.0; }, x, time);
  expect_as_map(
      [&](const Tensor& x) {
        return cast(x.dim("time").lengths(), f64) * sum(x, {time, in_});
      },
      x, batch_);
  expect_as_map(
      [&](const Tensor& x) {
        const Tensor query = sum(x, time);
        return matmul(softmax(matmul(query, x, in_), time), x, time);
      },
      x, batch_);
  const auto recur = [&](const Tensor& x, const Dims& dims) {
    const auto [ys, last, dim] = scan(Scan{.spatial_dim = time,
                                           .initial = zeros(dims, f64),
                                           .xs = x,
                                           .body = [](const Tensor& x, const Tensor& s) {
                                             const Tensor next = tanh(s + x);
                                             return std::pair{next * next, next};
                                           }});
    return last + sum(ys, dim);
  };
  expect_as_map([&](const Tensor& x) { return recur(x, {in_}); }, x, batch_);
  expect_as_map([&](const Tensor& x) { return recur(x, {batch_}); }, x, in_);
}

/// Ops that would read padding of ragged rows run in a loop over the rows.
TEST_P(VmapTest, ADimMadeInTheFunctionIsOneDimInItsLoopsOverRaggedRows) {
  const Dim time("time", tensor({3, 0, 1, 2}, {batch_}));
  const Tensor x = random_normal({batch_, in_, time}, f64);
  expect_as_map(
      [&](const Tensor& x) {
        const Dim two("two", 2);
        return sum(slice(x, in_, 0, 2, two) * slice(sin(x), in_, 1, 3, two), two);
      },
      x, batch_);
  expect_as_map(
      [&](const Tensor& x) {
        const Dim twice("twice", 6);
        return max(concat({x, x * x}, in_, twice), twice);
      },
      x, batch_);
  expect_as_map(
      [&](const Tensor& x) {
        return associative_scan([](const Tensor& a, const Tensor& b) { return a * b; }, x, in_);
      },
      x, batch_);
}

TEST_P(VmapTest, CustomGradientsCheckpointsAndArrays) {
  const Tensor x = random_normal({4, 3}, f64), w = random_normal({3, 3}, f64);
  const auto custom = custom_vjp(
      [](const Tensor& x) {
        return std::pair{exp(x), x};
      },
      [](const Tensor& x, const Tensor& g) { return g * x * 2.0; });
  expect_as_map([&](const Tensor& x) { return custom(x) + custom(sum(w, 0)); }, x);
  expect_as_map([&](const Tensor& x) { return custom(x) * x; }, sum(x, 1));
  expect_as_map(
      [&](const Tensor& x) {
        return checkpoint([&](const Tensor& x) { return tanh(matmul(w, x)); })(x);
      },
      x);
  expect_as_map(
      [](const Tensor& x) {
        const auto pushed = scan(Scan{.initial = zeros({}, f64),
                                      .xs = x,
                                      .body =
                                          [](const Tensor& x, const Tensor& s) {
                                            const Tensor next = tanh(s + x);
                                            return std::pair{next * next, next};
                                          },
                                      .return_tensor_arrays = std::true_type{}});
        return pushed.ys.stack() + pushed.state;
      },
      x);
}

TEST_P(VmapTest, ArgumentsWithoutTheDimAreTheSameInEveryRow) {
  const Tensor x = random_normal({batch_, in_}), w = random_normal({in_, out_});
  const auto f = [&](const Tensor& x, const Tensor& w) { return matmul(x, w, in_); };
  expect_all_close(run(vmap(f, batch_))(x, w), matmul(x, w, in_));
}

TEST_P(VmapTest, CapturesKeepTheDimOfTheRows) {
  const Tensor x = random_normal({batch_, in_});
  const Dim other("other", 4);
  const auto distances = [&](const Tensor& row) {
    return sum(square(rename(x, batch_, other) - expand(row, {other, in_})), in_);
  };
  const Tensor y = run(vmap(distances, batch_))(x);
  expect_all_close(y, map(distances, x, {.spatial_dim = batch_}));
  const auto again = [&](const Tensor& row) {
    return sum(x * expand(row, x.dims()), {batch_, in_});
  };
  expect_all_close(run(vmap(again, batch_))(x), map(again, x, {.spatial_dim = batch_}));
}

TEST_P(VmapTest, CallsNest) {
  const Tensor x = random_normal({4, 3}, f64), w = random_normal({2, 3}, f64);
  expect_as_map(
      [&](const Tensor& x) { return vmap([&](const Tensor& w) { return tanh(w * x); })(w); }, x);
  expect_as_map(
      [](const Tensor& x) {
        return vmap([&](const Tensor& y) {
          return while_loop([](const Tensor& s) { return s > 0.2; },
                            [](const Tensor& s) { return s * 0.5; }, y * sum(x));
        })(x);
      },
      x);
}

TEST_P(VmapTest, ACallInsideTakesTheRaggedDimThatHasALengthInEachRow) {
  const Dim time("time", tensor({3, 0, 1, 2}, {batch_}));
  const Tensor x = random_normal({batch_, time, in_}, f64);
  const auto f = [&](const Tensor& x) { return tanh(x) * sum(x, in_); };
  expect_as_map([&](const Tensor& x) { return vmap(f, time)(x); }, x, batch_);
  expect_as_map([&](const Tensor& x) { return vmap(f, Dims{time})(x); }, x, batch_);
}

TEST(VmapErrorTest, NamesTheArgumentWithoutRows) {
  const Dim batch("batch", 2), in("in", 3);
  const auto same = [](const Tensor& x) { return x; };
  EXPECT_EQ(message_of<ShapeError>([&] { vmap(same, batch)(zeros({in})); }),
            "vmap: no argument has the dim batch=2; give the dim of the rows, with x.dim(name)");
  EXPECT_EQ(message_of<ShapeError>([&] { vmap(same)(zeros({})); }),
            "vmap: 0 is f32[], a scalar: it has no axis of rows; capture it instead");
  EXPECT_EQ(message_of<ShapeError>([&] { vmap(same)(zeros({in})); }),
            "vmap: 0 is f32[in=3], whose dims are named; give vmap the dim of the rows");
  const auto sum_of = [](const Tensor& x, const Tensor& y) { return x + y; };
  EXPECT_EQ(message_of<ShapeError>([&] { vmap(sum_of)(zeros({2}), zeros({3})); }),
            "vmap: 1 is f32[3], with 3 rows, but arguments before have 2; all have the rows as "
            "their first axis");
  EXPECT_EQ(message_of<ShapeError>([&] { vmap(same, 0)(zeros({2})); }),
            "vmap: the arguments have 2 rows, but their number is given as 0; leave it out: the "
            "rows are the first axis");
}

TEST(VmapErrorTest, AValueOfARowCannotBeRead) {
  const auto reads = [](const Tensor& x) { return x * x.item<float>(); };
  const std::string text = message_of<TraceError>([&] { vmap(reads)(zeros({2})); });
  EXPECT_NE(text.find("\nvmap is recorded in eager mode, too, to apply ops to all rows at once"),
            std::string::npos)
      << text;
}

TEST(VmapErrorTest, AResultMayNotHaveTheDimOfTheRows) {
  const Dim batch("batch", 2);
  const Tensor x = zeros({batch});
  EXPECT_EQ(
      message_of<ShapeError>([&] { vmap([&](const Tensor& row) { return x + row; }, batch)(x); }),
      "vmap: a result has the dim of the rows, batch=2, in every row: f32[batch=2]; rename it "
      "inside the function, to another Dim");
}

REEL_IN_EVERY_MODE(VmapTest);

}  // namespace
}  // namespace reel
