// States that grow from iteration to iteration, and arrays through nested loops: values, and first
// and second gradients.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using TensorFlowGrowing = InEveryMode;
REEL_IN_EVERY_MODE(TensorFlowGrowing);

struct Writing {
  Tensor i;
  TensorArray array;
};

/// Runs body n times on m and lets the number of rows change. body: (i, m) -> m.
template <class Body>
Tensor grow(const Tensor& n, const Tensor& m, Body body) {
  return std::get<1>(while_loop([&](Tensor i, Tensor) { return i < n; },
                                [&](Tensor i, Tensor m) {
                                  return std::tuple{i + 1, body(i, m)};
                                },
                                std::tuple{scalar(0), m},
                                {.shape_invariants = {std::nullopt, PartialShape{unknown, 2}}}));
}

/// Expects that the gradient of f, and the gradient of a weighted sum of it, agree with differences
/// in this mode. f: f64 tensor -> scalar.
template <class Run, class F>
void expect_derivatives(const Run& run, const F& f, const Tensor& x,
                        const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  expect_gradient_of(f, x, run(grad(f))(x), 1e-6, file, line);
  const auto slope = [&f](Tensor x) {
    const Tensor g = grad(f)(x);
    return sum(g * cast(reshape(range(static_cast<int>(g.numel())), g.shape()) + 1, f64));
  };
  expect_gradient_of(slope, x, run(grad(slope))(x), 1e-5, file, line);
}

TEST_P(TensorFlowGrowing, G31_ConcatOfACapture) {
  const auto loss = [](Tensor x) {
    return sum(grow(scalar(2), zeros({0, 2}), [&](Tensor, Tensor h) { return concat({h, x}, 0); }));
  };
  const auto step = run([=](Tensor x) { return x - grad(loss)(x) * 0.01; });
  expect_values(step(tensor({{1., 2.}})), {0.98, 1.98});
}

TEST_P(TensorFlowGrowing, P01_GradientsOfAnyOrderThroughADoublingState) {
  const auto f = [](Tensor m) {
    const Tensor grown = grow(scalar(3), m, [](Tensor, Tensor m) {
      return concat({m * m, m * 0.5}, 0);
    });
    return sum(grown * grown * grown);
  };
  expect_derivatives([this](auto g) { return run(g); }, f, tensor({{0.7, -0.9}}, {}, f64));
}

TEST_P(TensorFlowGrowing, NoIterationIsTheIdentity) {
  const auto f = [](std::pair<Tensor, Tensor> mw, Tensor n) {
    return sum(square(grow(n, mw.first, [&](Tensor, Tensor m) {
      return concat({m, m * mw.second}, 0);
    })));
  };
  const auto gradient = run(grad(f));
  const std::pair at{tensor({{1., 2.}}), tensor({3., 4.})};
  const auto [dm, dw] = gradient(at, scalar(0));
  expect_values(dm, {2, 4});
  expect_values(dw, {0, 0});
  const auto [em, ew] = gradient(at, scalar(1));
  expect_values(em, {2 + 2 * 9, 4 + 4 * 16});
  expect_values(ew, {2 * 3, 2 * 4 * 4});
}

TEST_P(TensorFlowGrowing, AGrowingLoopInAScan) {
  const auto f = [](Tensor x) {
    return sum(scan(Scan{.initial = tensor({1., 1.}, {}, f64),
                         .xs = x,
                         .body =
                             [](Tensor row, Tensor s) {
                               const Tensor grown =
                                   grow(scalar(2), reshape(row * s, {1, 2}), [](Tensor, Tensor m) {
                                     return concat({m, m * m}, 0);
                                   });
                               const Tensor next = sum(grown, {0}) * 0.5;
                               return std::pair{next * row, next};
                             }})
                   .ys);
  };
  expect_derivatives([this](auto g) { return run(g); }, f,
                     tensor({{0.7, -0.9}, {0.4, 0.8}, {-0.6, 0.5}}, {}, f64));
}

TEST_P(TensorFlowGrowing, AScanRunsOverTheStateGrownSoFar) {
  // Prefix sums of a matrix that gains a row in every iteration.
  const auto f = [](Tensor x) {
    const Tensor grown = grow(scalar(3), x, [](Tensor, Tensor m) {
      const auto [ys, last, dim] =
          scan(Scan{.initial = zeros({2}, f64), .xs = m, .body = [](Tensor row, Tensor s) {
                      const Tensor next = s * 0.5 + row * row;
                      return std::pair{next, next};
                    }});
      return concat({ys, reshape(last, {1, 2})}, 0);
    });
    return sum(grown * grown);
  };
  expect_derivatives([this](auto g) { return run(g); }, f,
                     tensor({{0.7, -0.9}, {0.4, 0.8}}, {}, f64));
}

TEST_P(TensorFlowGrowing, AGrowingLoopInAGrowingLoop) {
  const auto f = [](Tensor x) {
    const Tensor grown = grow(scalar(2), x, [](Tensor i, Tensor m) {
      return grow(i + 1, m * m, [&](Tensor, Tensor inner) { return concat({inner, m}, 0); });
    });
    return sum(grown * grown * grown);
  };
  expect_values(run([=](Tensor x) { return f(x); })(tensor({{1., 1.}}, {}, f64)), {12});
  expect_derivatives([this](auto g) { return run(g); }, f, tensor({{0.7, -0.9}}, {}, f64));
}

TEST_P(TensorFlowGrowing, GrowsInOneBranchOnly) {
  const auto f = [](Tensor x) {
    const Tensor grown = grow(scalar(4), x, [](Tensor i, Tensor m) {
      return cond(
          equal(mod(i, 2), 0),
          [&] {
            return concat({m, m * m}, 0);
          },
          [&] { return m * 2.0; });
    });
    return sum(grown * grown);
  };
  expect_derivatives([this](auto g) { return run(g); }, f, tensor({{0.7, -0.9}}, {}, f64));
}

TEST_P(TensorFlowGrowing, AStateThatGrewMayShrinkInALaterLoop) {
  const auto f = [](Tensor x) {
    const Tensor grown = grow(scalar(2), x, [](Tensor, Tensor m) { return concat({m, m * m}, 0); });
    const Tensor last = grow(scalar(2), grown, [](Tensor, Tensor m) {
      return sum(reshape(m, {2, -1, 2}), {0});
    });
    return sum(last * last);
  };
  expect_derivatives([this](auto g) { return run(g); }, f, tensor({{0.7, -0.9}}, {}, f64));
}

// ---- arrays through nested loops ----------------------------------------------------------------

/// An array of n powers of x.
TensorArray powers(const Tensor& x, const Tensor& n) {
  return while_loop([&](const Writing& s) { return s.i < n; },
                    [&](const Writing& s) {
                      return Writing{s.i + 1, s.array.push_back(s.array[-1] * x)};
                    },
                    Writing{scalar(1), TensorArray(x.type()).push_back(x)})
      .array;
}

TEST_P(TensorFlowGrowing, InnerLoopsMakeArraysThatTheOuterLoopCollects) {
  const auto f = [](Tensor x) {
    const TensorArray rows =
        while_loop([](const Writing& s) { return s.i < 3; },
                   [&](const Writing& s) {
                     const Tensor row = powers(sum(x) * cast(s.i + 1, f64), scalar(4)).stack();
                     return Writing{s.i + 1, s.array.push_back(row)};
                   },
                   Writing{scalar(0), TensorArray({f64, {4}})})
            .array;
    return sum(rows.stack() * rows[1]);
  };
  expect_derivatives([this](auto g) { return run(g); }, f, tensor({0.8}, {}, f64));
}

// The pushed value is used before and after the push; its contributions must be added in one order.
TEST(TracedTensorFlowGrowing, PushedValuesHaveTheGradientOfEagerModeToTheBit) {
  const auto f = [](Tensor x) {
    const Writing last = while_loop([](const Writing& s) { return sum(s.i) < 40.0; },
                                    [](const Writing& s) {
                                      const Tensor a = tanh(s.i) * 1.1;
                                      const Tensor early = a * a;
                                      const TensorArray pushed = s.array.push_back(a);
                                      return Writing{s.i + early + a * 0.3 + exp(a * 0.1), pushed};
                                    },
                                    Writing{x, TensorArray({f32, {3}}).push_back(x * x)});
    return sum(square(last.array.stack())) + sum(last.i);
  };
  manual_seed(3);
  const Tensor x = random_normal({3});
  expect_same_bits(jit(grad(f))(x), grad(f)(x));
}

TEST_P(TensorFlowGrowing, InnerArraysOfOtherLengthsAreCollectedAndJoined) {
  const auto f = [](Tensor x) {
    const TensorArray elements =
        while_loop([](const Writing& s) { return s.i < 4; },
                   [&](const Writing& s) {
                     return Writing{s.i + 1, s.array.push_back(powers(sum(x), s.i).stack())};
                   },
                   Writing{scalar(1), TensorArray({f64, {unknown}})})
            .array;
    const Tensor all = elements.concat();
    return sum(all * all) + sum(elements[-1]);
  };
  expect_values(run([=](Tensor x) { return f(x); })(tensor({1.}, {}, f64)), {6 + 3});
  expect_derivatives([this](auto g) { return run(g); }, f, tensor({0.8}, {}, f64));
}

TEST_P(TensorFlowGrowing, AnArrayIsWrittenByTheInnerAndReadByTheOuterLoop) {
  // Smooths an array in place, repeatedly, as a state of both loops.
  const auto f = [](Tensor x) {
    const auto smooth = [](const TensorArray& array) {
      return while_loop([](const Writing& s) { return s.i < s.array.size() - 1; },
                        [](const Writing& s) {
                          const Tensor mean =
                              (s.array[s.i - 1] + s.array[s.i] + s.array[s.i + 1]) / 3.0;
                          return Writing{s.i + 1, s.array.write(s.i, mean * s.array[s.i])};
                        },
                        Writing{scalar(1), array})
          .array;
    };
    const TensorArray last = while_loop([](const Writing& s) { return s.i < 3; },
                                        [&](const Writing& s) {
                                          return Writing{s.i + 1, smooth(s.array)};
                                        },
                                        Writing{scalar(0), TensorArray::unstack(x, 0)})
                                 .array;
    return sum(square(last.gather(tensor({1, 2, 2})))) + last[0] * last[-1];
  };
  expect_derivatives([this](auto g) { return run(g); }, f,
                     tensor({1.1, 0.7, -1.2, 0.9, 1.3}, {}, f64));
}

TEST_P(TensorFlowGrowing, AnArrayInTheStateOfAScan) {
  const auto f = [](Tensor x) {
    const auto [ys, last, dim] =
        scan(Scan{.initial = Writing{scalar(0), TensorArray({f64, {}}, {.size = 4})},
                  .xs = x,
                  .body = [](Tensor x, const Writing& s) {
                    const TensorArray next = s.array.write(s.i, x * s.array[s.i - 1] + x);
                    return std::pair{next[s.i] * x, Writing{s.i + 1, next}};
                  }});
    return sum(ys * ys) + sum(last.array.stack());
  };
  expect_derivatives([this](auto g) { return run(g); }, f, tensor({0.7, -0.9, 1.2}, {}, f64));
}

TEST_P(TensorFlowGrowing, ArraysThatScansReturnAreReadInLoops) {
  const auto f = [](Tensor x) {
    const TensorArray squares = scan(Scan{.xs = x,
                                          .body = [](Tensor x) { return x * x; },
                                          .return_tensor_arrays = std::true_type{}})
                                    .ys;
    return std::get<1>(while_loop([&](Tensor i, Tensor) { return i < squares.size(); },
                                  [&](Tensor i, Tensor total) {
                                    return std::tuple{i + 1, total * 0.5 + squares[i]};
                                  },
                                  std::tuple{scalar(0), scalar(0.0, f64)}));
  };
  expect_derivatives([this](auto g) { return run(g); }, f, tensor({0.7, -0.9, 1.2}, {}, f64));
}

TEST_P(TensorFlowGrowing, ArraysOutOfBranches) {
  const auto f = [](Tensor x) {
    const TensorArray array = TensorArray::unstack(x, 0);
    const TensorArray chosen = cond(
        array[0] > 0.0, [&] { return array.push_back(array[0] * array[1]); },
        [&] { return array.write(1, array[0]).push_back(array[1]); });
    return sum(square(chosen.stack())) * chosen[1];
  };
  for (const double first : {0.7, -0.7})
    expect_derivatives([this](auto g) { return run(g); }, f, tensor({first, -0.9, 1.2}, {}, f64));
}

TEST_P(TensorFlowGrowing, SplitsAndScattersInALoop) {
  const auto f = [](Tensor x) {
    const TensorArray elements = TensorArray::split(x, tensor({3, 1, 2}));
    const TensorArray sums =
        while_loop(
            [](const Writing& s) { return s.i < 3; },
            [&](const Writing& s) {
              const Tensor value = stack({sum(square(elements[s.i])), sum(elements[s.i])}, 0);
              const Tensor places = stack({s.i, cast(elements.size(), i32) + s.i}, 0);
              return Writing{s.i + 1, s.array.scatter(places, value)};
            },
            Writing{scalar(0), TensorArray({f64, {}}, {.dynamic_size = true})})
            .array;
    return sum(sums.gather(tensor({0, 1, 2})) * sums.gather(tensor({3, 4, 5})));
  };
  expect_derivatives([this](auto g) { return run(g); }, f,
                     tensor({1.1, 0.7, -1.2, 0.9, 1.3, 0.4}, {}, f64));
}

TEST_P(TensorFlowGrowing, GradientsThroughElementsOfUnknownSize) {
  using Out = std::function<Tensor(const TensorArray&)>;
  const Out outs[] = {[](const TensorArray& a) { return sum(square(a.stack())); },
                      [](const TensorArray& a) { return sum(square(a.concat())); },
                      [](const TensorArray& a) { return sum(square(a[1])) + sum(a[-1]); },
                      [](const TensorArray& a) {
                        return sum(square(a.gather(tensor({2, 0}))));
                      }};
  const Tensor x = tensor({.1, .2, .3}, {}, f64);
  for (const Out& out : outs) {
    const auto in_a_loop = [&](Tensor x) {
      return out(fori_loop(
          0, 3,
          [&](const Tensor& i, const TensorArray& a) { return a.push_back(x * cast(i + 1, f64)); },
          TensorArray(TensorType(f64, {unknown}))));
    };
    const auto in_a_row = [&](Tensor x) {
      return out(
          TensorArray(TensorType(f64, {unknown})).push_back(x).push_back(x * x).push_back(x));
    };
    const auto expect_gradients = [&](const auto& f) {
      expect_gradient_of(f, x, run(grad(f))(x), 1e-6);
      expect_gradient_of(f, x, grad([&](Tensor x) { return run(f)(x); })(x), 1e-6);
      const auto slope = [&](Tensor x) { return sum(sin(grad(f)(x))); };
      expect_gradient_of(slope, x, run(grad(slope))(x), 1e-6);
      expect_gradient_of(slope, x, grad([&](Tensor x) { return run(slope)(x); })(x), 1e-6);
    };
    expect_gradients(in_a_loop);
    expect_gradients(in_a_row);
  }
}

}  // namespace
}  // namespace reel
