// jvp and hvp, compared with differences and with gradients of the same function.
#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class JvpTest : public InEveryMode {
 protected:
  using In = std::vector<Tensor>;

  static In valid(In tensors) {
    for (Tensor& t : tensors) t = mask_padding(t);
    return tensors;
  }
  static double dot(const In& a, const In& b) {
    double total = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto u = values_of(mask_padding(a[i])), v = values_of(mask_padding(b[i]));
      for (std::size_t k = 0; k < u.size(); ++k) total += u[k] * v[k];
    }
    return total;
  }
  static In numbers_like(const In& x, double seed, double padding) {
    In result;
    for (const Tensor& t : x) {
      std::vector<double> values(static_cast<std::size_t>(t.numel()));
      const auto is_valid = values_of(mask_padding(ones_like(t)));
      for (std::size_t k = 0; k < values.size(); ++k)
        values[k] = is_valid[k] ? std::sin(seed += 1.7) : padding;
      result.push_back(t.rank() ? tensor(values, t.dims()) : scalar(values[0], f64));
    }
    return result;
  }

  /// Expects that the tangent of f agrees with central differences along `v`. Its scalar product
  /// with any cotangent must equal the product of v and the gradient. Checks the tangent of the
  /// tangent in this way, too. f: In -> In, of f64.
  template <class F>
  void expect_tangents(const F& f, const In& x) {
    const In v = numbers_like(x, 0.3, kNan);
    const auto [value, tangent] = run([f](const In& x, const In& v) { return jvp(f, x, v); })(x, v);
    const auto moved = [&](const In& x, double by) {
      In y;
      for (std::size_t i = 0; i < x.size(); ++i) y.push_back(x[i] + v[i] * by);
      return y;
    };
    const auto expect_differences = [&](const auto& g, const In& expected, double tolerance) {
      constexpr double kStep = 1e-5;
      const In up = valid(g(moved(x, kStep))), down = valid(g(moved(x, -kStep)));
      for (std::size_t i = 0; i < up.size(); ++i)
        expect_all_close(mask_padding(expected[i]), (up[i] - down[i]) / (2 * kStep), tolerance);
    };
    const In plain = f(x);
    for (std::size_t i = 0; i < plain.size(); ++i)
      expect_same_bits(mask_padding(value[i]), mask_padding(plain[i]));
    expect_differences(f, tangent, 1e-7);

    const In cotangent = numbers_like(plain, 5.1, kNan);
    const In pulled =
        run([f](const In& x, const In& c) { return vjp(f, x).second(c); })(x, cotangent);
    EXPECT_NEAR(dot(cotangent, tangent), dot(pulled, v), 1e-10);

    const auto directional = [f, v](const In& x) { return jvp(f, x, v).second; };
    const In second =
        run([directional, v](const In& x) { return jvp(directional, x, v).second; })(x);
    expect_differences(directional, second, 1e-6);
    const In gradient = run([directional](const In& x, const In& c) {
      return vjp(directional, x).second(c);
    })(x, cotangent);
    EXPECT_NEAR(dot(cotangent, second), dot(gradient, v), 1e-9);
  }

  const Dim batch{"batch", 3};
  const Dim time{"time", tensor({3, 0, 1}, {batch})};
  const Tensor x = tensor({.5, -.3, .8, kNan, kNan, kNan, -.7, kNan, kNan}, {batch, time}, f64);
  const Tensor s0 = tensor({.1, .2, .3}, {batch}, f64);
  const Tensor w = scalar(0.9, f64);
};
REEL_IN_EVERY_MODE(JvpTest);

struct Params {
  Tensor w;
  Tensor count;
  int layers;
};

/// The state of the while loop has as many elements as the scan had iterations, and never changes.
/// A pass then dropped the loop's result, although other ops mention its size.
TEST_P(JvpTest, UnchangedStateOfUnknownSizeHasTangentsOfTangents) {
  const auto f = [](const In& x) {
    const auto step = [&](const Tensor& at) { return sin(at) * x[0]; };
    const Tensor limit = cast(floor(sum(x[0] * 0.)), i32) + 2;
    const Tensor many = scan(Scan{.xs = x[0], .body = step, .max_seq_len = limit}).ys;
    const Tensor same = while_loop([](const Tensor& s) { return sum(s) < -100.; },
                                   [](const Tensor& s) { return s; }, sum(many, 1));
    return In{sum(0.5 * same + sin(same))};
  };
  expect_tangents(f, {tensor({0.3, 0.5, -0.2}, {}, f64)});
}

TEST_P(JvpTest, KnowsTreesAndIntegerLeaves) {
  const auto f = [](const Params& p) {
    return std::tuple{Params{square(p.w), p.count + 1, p.layers}, p.w > 1.0, scalar(3.0), 2};
  };
  const auto [value, tangent] = run([f](const Params& p, const Params& v) { return jvp(f, p, v); })(
      Params{tensor({1., 2.}), scalar(7), 3}, Params{tensor({1., 10.}), scalar(5), 3});
  expect_values(std::get<0>(value).w, {1, 4});
  expect_values(std::get<0>(value).count, {8});
  expect_values(std::get<0>(tangent).w, {2, 40});
  expect_values(std::get<0>(tangent).count, {0});
  EXPECT_EQ(std::get<0>(tangent).count.dtype(), i32);
  EXPECT_EQ(std::get<0>(tangent).layers, 3);
  expect_values(std::get<1>(tangent), {0, 0});
  EXPECT_EQ(std::get<1>(tangent).dtype(), boolean);
  expect_values(std::get<2>(tangent), {0});
}

TEST_P(JvpTest, TakesATupleApart) {
  const auto f = run([](const Tensor& x, const Tensor& y) {
    return jvp([](const Tensor& x, const Tensor& y) { return x * y; }, std::tuple{x, y},
               std::tuple{scalar(1.0), scalar(10.0)});
  });
  const auto [value, tangent] = f(scalar(3.0), scalar(4.0));
  expect_values(value, {12});
  expect_values(tangent, {34});
}

TEST_P(JvpTest, IdentityReturnsItsTangent) {
  const auto f = run([](const Tensor& x, const Tensor& v) {
    return jvp([](const Tensor& x) { return std::pair{x, x}; }, x, v).second;
  });
  const auto [first, second] = f(scalar(3.0), scalar(4.0));
  expect_values(first, {4});
  expect_values(second, {4});
}

TEST_P(JvpTest, IntegersGatherAndBranches) {
  expect_tangents(
      [](const In& in) {
        const Tensor order = argsort(in[0], 0);
        const Tensor sorted = gather(in[0], order, 0);
        const Tensor rounded = floor(in[0]) * in[1];
        const Tensor branch = cond(
            sum(in[0]) > 0.0, [&] { return sorted * in[1]; }, [&] { return exp(sorted); });
        return In{sorted * rounded, branch, where(in[0] > 0.0, square(in[0]), in[0] * 3.0)};
      },
      {tensor({.5, -1.2, 2.5, .1}, {}, f64), w});
}

TEST_P(JvpTest, RaggedScansHaveTheirTangents) {
  for (const bool backwards : {false, true})
    expect_tangents(
        [backwards](const In& in) {
          auto [ys, last, dim] = scan(Scan{.spatial_dim = in[0].dim("time"),
                                           .initial = in[1],
                                           .xs = in[0],
                                           .body =
                                               [&](const Tensor& x, const Tensor& s) {
                                                 const Tensor next = tanh(s * in[2] + x);
                                                 return std::pair{next * x, next};
                                               },
                                           .reverse = backwards});
          return In{ys, last, sum(square(ys))};
        },
        {x, s0, w});
}

TEST_P(JvpTest, EntriesThatFinishByAConditionHaveTangents) {
  expect_tangents(
      [](const In& in) {
        auto [ys, last, dim] = scan(Scan{.cond_dims = in[0].dims(),
                                         .initial = in[0],
                                         .cond = [](const Tensor& s) { return s < 1.0; },
                                         .body =
                                             [&](const Tensor& s) {
                                               return std::pair{s * in[1], s * in[1] + 0.3};
                                             }});
        return In{sum(square(ys)), last};
      },
      {s0, w});
}

TEST_P(JvpTest, LoopsOfUnknownLengthInLoops) {
  expect_tangents(
      [](const In& in) {
        return In{fori_loop(
            0, 3,
            [&](const Tensor& i, const Tensor& s) {
              return while_loop([](const Tensor& s) { return s < 4.0; },
                                [&](const Tensor& s) { return s * 1.7 + in[1]; },
                                s * 0.25 + cast(i, f64) * in[1]);
            },
            in[0])};
      },
      {scalar(1.3, f64), w});
}

TEST_P(JvpTest, ArraysInLoops) {
  expect_tangents(
      [](const In& in) {
        const auto array = std::get<1>(
            while_loop([](const Tensor& i, const TensorArray&) { return i < 4; },
                       [&](const Tensor& i, const TensorArray& a) {
                         return std::tuple{i + 1, a.push_back(sin(a[-1] * in[1]) + in[0])};
                       },
                       std::tuple{scalar(0), TensorArray({f64, {}}).push_back(in[0])}));
        return In{array.stack(), array[2]};
      },
      {scalar(0.6, f64), w});
}

TEST_P(JvpTest, TangentOfAnArrayIsAnArray) {
  const auto f = run([](const Tensor& x) {
    const auto squares = [](const Tensor& x) {
      return TensorArray({f32, {}}).push_back(x * x).push_back(x).push_back(scalar(5.0));
    };
    const auto [value, tangent] = jvp(squares, x, scalar(1.0));
    return std::pair{value.stack(), tangent.stack()};
  });
  const auto [value, tangent] = f(scalar(3.0));
  expect_values(value, {9, 3, 5});
  expect_values(tangent, {6, 1, 0});
}

TEST_P(JvpTest, ThroughACallOfAJittedFunction) {
  const auto inner = jit([](const Tensor& x) {
    return while_loop([](const Tensor& x) { return x < 9.0; },
                      [](const Tensor& x) { return x * x; }, x);
  });
  const auto f = run([=](const Tensor& x) { return jvp(inner, x, ones_like(x)).second; });
  expect_values(f(scalar(2.0)), {32});
  expect_values(f(scalar(3.0)), {6});
  const auto twice = run([=](const Tensor& x) {
    return jvp([=](const Tensor& x) { return jvp(inner, x, ones_like(x)).second; }, x, ones_like(x))
        .second;
  });
  expect_values(twice(scalar(2.0)), {48});
}

TEST_P(JvpTest, PrintsOnceAndInOrder) {
  const auto f = run([](const Tensor& x) {
    const auto square_up = [](const Tensor& x) {
      const Tensor last =
          while_loop([](const Tensor& x) { return x < 9.0; },
                     [](const Tensor& x) { return print(x, "x") * x; }, print(x, "first"));
      return print(last, "last") * 2.0;
    };
    return jvp(square_up, x, ones_like(x)).second;
  });
  testing::internal::CaptureStdout();
  expect_values(f(scalar(2.0)), {64});
  EXPECT_EQ(
      testing::internal::GetCapturedStdout(),
      // Dataflow modes drop effects that no result needs: the derivative of `last` reads no value.
      str("first: f32[] 2.0\nx: f32[] 2.0\nx: f32[] 4.0\n",
          is_dataflow() ? "" : "last: f32[] 16.0\n"));
}

TEST_P(JvpTest, ABodyMayTakeTangents) {
  // Newton's method: x - f(x) / f'(x).
  const auto root = run([](const Tensor& x) {
    return fori_loop(
        0, 8,
        [](const Tensor&, const Tensor& x) {
          const auto [y, slope] =
              jvp([](const Tensor& x) { return x * x * x - 2.0; }, x, ones_like(x));
          return x - y / slope;
        },
        x);
  });
  expect_values(root(scalar(1.0, f64)), {std::cbrt(2.0)}, 1e-12);
}

TEST_P(JvpTest, HessianTimesAVector) {
  const auto f = [](const In& in) {
    auto [ys, last, dim] =
        scan(Scan{.initial = in[0], .xs = in[1], .body = [](const Tensor& x, const Tensor& s) {
                    const Tensor next = tanh(s * x) + s;
                    return std::pair{next * x, next};
                  }});
    return sum(square(ys)) + sum(last * last * last);
  };
  const In x{scalar(0.4, f64), tensor({.3, -.2, .8}, {}, f64)};
  const In v = numbers_like(x, 2.2, 0);
  const In product = run([f](const In& x, const In& v) { return hvp(f, x, v); })(x, v);
  const In forward = run([f](const In& x, const In& v) { return jvp(grad(f), x, v).second; })(x, v);
  constexpr double kStep = 1e-5;
  const auto gradient_at = [&](double by) {
    return grad(f)(In{x[0] + v[0] * by, x[1] + v[1] * by});
  };
  const In up = gradient_at(kStep), down = gradient_at(-kStep);
  for (std::size_t i = 0; i < x.size(); ++i) {
    expect_all_close(product[i], (up[i] - down[i]) / (2 * kStep), 1e-8);
    expect_all_close(forward[i], product[i], 1e-12);
  }
}

TEST_P(JvpTest, ErrorsNameTangentsOfOtherTypes) {
  const auto f = [](const Params& p) { return p.w; };
  const auto call = [&](const Params& v) {
    return run([=](const Params& p) { return jvp(f, p, v).second; })(
        Params{tensor({1., 2.}), scalar(7), 3});
  };
  EXPECT_EQ(message_of<DTypeError>([&] {
              call({tensor({1, 2}), scalar(7), 3});
            }),
            "jvp: the tangents are not of the types of the primals\n  primals.w: f32[2], its "
            "tangent i32[2] (dtypes differ)\nGive every floating tensor a tangent of its own type, "
            "zeros if it is constant.");
  EXPECT_EQ(message_of<ShapeError>([&] {
              call({tensor({1., 2., 3.}), scalar(7), 3});
            }),
            "jvp: the tangents are not of the types of the primals\n  primals.w: f32[2], its "
            "tangent f32[3] (dims differ)\nGive every floating tensor a tangent of its own type, "
            "zeros if it is constant.");
  EXPECT_EQ(message_of<StructureError>([&] {
              call({Tensor(), scalar(7), 3});
            }),
            "jvp: the tangents are not of the types of the primals\n  primals.w: f32[2], its "
            "tangent an empty Tensor\nGive every floating tensor a tangent of its own type, zeros "
            "if it is constant.");
  const auto g = [](const In& in) { return in[0]; };
  EXPECT_EQ(
      message_of<StructureError>([&] {
        jvp(g, In{w, w}, In{w});
      }),
      "jvp: the tangents are not of the types of the primals\n  primals: of size 2, its tangent of "
      "size 1\nGive every floating tensor a tangent of its own type, zeros if it is constant.");
  EXPECT_EQ(message_of<ShapeError>([&] { hvp(g, In{w}, In{s0}); }),
            "hvp: the tangents are not of the types of the primals\n  x.0: f64[], its tangent "
            "f64[batch=3] (dims differ)\nGive every floating tensor a tangent of its own type, "
            "zeros if it is constant.");
}

// Dropping a capture also dropped the definition of its ragged dim in the body. A dead record was
// then taken for the definition.
TEST(JvpTest, LoopThatReadsACaptureWithARaggedDim) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch}));
  const Tensor x = tensor({.1, .2, .3, .4}, {batch, time}, f64);
  const auto f = [&](const Tensor& x) {
    return sum(while_loop([](const Tensor&) { return true; },
                          [&](const Tensor& s) {
                            return s + sum(transpose(x, {time, batch}), time);
                          },
                          zeros({batch}, f64), {.maximum_iterations = 2}));
  };
  const auto tangent = [&](const Tensor& x) { return jvp(f, x, x).second; };
  expect_values(tangent(x), {1.2}, 1e-12);
  expect_values(jit(tangent)(x), {1.2}, 1e-12);
}

TEST_P(JvpTest, HessianTimesACapturedVector) {
  const Dim width("width", 2);
  const Tensor v = tensor({1., -1.}, {width});
  const auto f = [](const Tensor& x) { return sum(x * x * x); };
  expect_values(run([&](const Tensor& x) { return hvp(f, x, v); })(tensor({1., 2.}, {width})),
                {6, -12});
}

TEST_P(JvpTest, ErrorsOfHvpNameIt) {
  EXPECT_EQ(message_of<ShapeError>([&] {
              run([](const Tensor& x) { return hvp([](const Tensor& x) { return x * x; }, x, x); })(
                  ones({2}));
            }),
            "hvp: the function must return a scalar, got f32[2]; reduce it, with sum or mean");
}

TEST_P(JvpTest, NestedScanWhoseEntriesFinishHasTangents) {
  // A trace needs only the number of iterations of the inner loop's gradient.
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch}));
  using In = std::pair<Tensor, Tensor>;
  const auto f = [&](const In& in) {
    const Dim batch = in.first.dim("batch"), time = in.first.dim("time");
    const auto inner = [&](const Tensor& s) {
      return scan(Scan{
                      .spatial_dim = time,
                      .initial = s,
                      .xs = in.first,
                      .body =
                          [&](const Tensor& x, const Tensor& q) {
                            return std::pair{None{}, q * in.second + x};
                          },
                  })
          .state;
    };
    return sum(sin(scan(Scan{
                            .cond_dims = Dims{batch},
                            .initial = sum(in.first, time),
                            .cond = [](const Tensor& s) { return s < 1.0; },
                            .body =
                                [&](const Tensor& s) {
                                  return std::pair{None{}, s + 0.5 + 0.01 * inner(s)};
                                },
                            .max_seq_len = 4,
                        })
                       .state));
  };
  const In x{tensor({.1, .2, .3, .4}, {batch, time}, f64), scalar(.8, f64)};
  const auto along = [&](const In& x) { return jvp(f, x, x).second; };
  expect_all_close(run(along)(x), along(x), 1e-12);
  const auto g = grad(f)(x);
  expect_all_close(along(x), sum(mask_padding(g.first * x.first)) + g.second * x.second, 1e-12);
}

}  // namespace
}  // namespace reel
