// Loops with a body that changes the rank of a state: values, gradients, and functions that refuse
// a value of unknown rank.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using UnknownRankTest = InEveryMode;
REEL_IN_EVERY_MODE(UnknownRankTest);

/// Returns x after some iterations of body, which may change its rank.
template <class Body>
Tensor repeated(const Body& body, const Tensor& x, const Tensor& times, WhileOptions options = {}) {
  options.shape_invariants = {std::nullopt, PartialShape::unknown_rank()};
  return std::get<1>(while_loop([&](Tensor i, Tensor) { return i < times; },
                                [&](Tensor i, Tensor x) {
                                  return std::tuple{i + 1, body(x)};
                                },
                                std::tuple{scalar(0), x}, options));
}
const auto doubled = [](const Tensor& x) { return stack({x, x}, 0); };

TEST_P(UnknownRankTest, OneTraceServesAllRanks) {
  const auto f = run([](Tensor x, Tensor times) { return repeated(doubled, x, times); });
  const Tensor x = tensor({1., 2.}, f64);
  for (const int times : {0, 1, 3}) {
    const Tensor y = f(x, scalar(times));
    EXPECT_EQ(y.rank(), 1 + times);
    expect_values(sum(y), {3. * (1 << times)});
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(UnknownRankTest, StackPutsTheNewAxisWhereItIsAsked) {
  const auto stacked = [&](int axis) {
    return run([=](Tensor x) {
      return repeated(
          [=](const Tensor& x) {
            return stack({x, ones({2}, f64)}, axis);
          },
          x, scalar(1));
    })(tensor({3, 4}, f64));
  };
  expect_values(stacked(0), {3, 4, 1, 1});
  expect_values(stacked(1), {3, 1, 4, 1});
  expect_values(stacked(-1), {3, 1, 4, 1});
  EXPECT_THROW(stacked(2), IndexError);
}

TEST_P(UnknownRankTest, ABodyEnsuresAShape) {
  const auto f = run([](Tensor x) {
    return repeated(
        [](const Tensor& x) {
          return reshape(ensure_shape(x, PartialShape{unknown}) * 2., {2, -1});
        },
        x, scalar(1));
  });
  expect_values(f(tensor({1., 2.}, f64)), {2, 4});
  EXPECT_EQ(f(tensor({1., 2.}, f64)).rank(), 2);
}

TEST_P(UnknownRankTest, AnotherShapeThanTheEnsuredOneIsAnErrorOfTheRun) {
  const auto f = run([](Tensor x, Tensor times) {
    return ensure_shape(repeated(doubled, x, times), PartialShape{2, unknown});
  });
  expect_values(f(tensor({1., 2.}, f64), scalar(1)), {1, 2, 1, 2});
  EXPECT_NE(message_of<ShapeError>([&] {
              f(tensor({1., 2.}, f64), scalar(2));
            }).find("ensure_shape: f64[2,2,2] does not have the shape [2,?]"),
            std::string::npos);
}

/// Has rank 3 if x is a vector, and depends on all elements of it.
Tensor loss_of(const Tensor& x, WhileOptions options = {}) {
  const auto body = [&](const Tensor& y) { return stack({y, stack({x, x * x}, 0)}, 0); };
  const Tensor once = repeated(doubled, sin(x), scalar(1), options);
  const Tensor y = repeated(body, once, scalar(1), options);
  const Tensor w = ensure_shape(y, PartialShape{2, 2, 3});
  return sum(w * w * w);
}

TEST_P(UnknownRankTest, GradientsAreDerivatives) {
  const Tensor x = tensor({0.3, -0.7, 1.1}, f64);
  const auto f = [](const Tensor& x) { return loss_of(x); };
  const Tensor first = run(grad(f))(x);
  expect_gradient_of(f, x, first);
  const auto slope = [&](const Tensor& x) { return sum(square(grad(f)(x))); };
  expect_gradient_of(slope, x, run(grad(slope))(x), 1e-6);
  const auto [value, tangent] =
      run([&](const Tensor& x) { return jvp(f, std::tuple{x}, std::tuple{ones_like(x)}); })(x);
  expect_values(value, values_of(f(x)), 1e-12);
  expect_values(tangent, values_of(sum(first)), 1e-12);
}

TEST_P(UnknownRankTest, PoliciesChangeNoGradient) {
  const Tensor x = tensor({0.3, -0.7, 1.1}, f64);
  const std::vector<double> expected =
      values_of(grad([](const Tensor& x) { return loss_of(x); })(x));
  WhileOptions options;
  options.checkpoint = Checkpoint::every(1);
  for (const bool swaps : {false, true}) {
    options.swap_memory = swaps;
    expect_values(run(grad([&](const Tensor& x) { return loss_of(x, options); }))(x), expected,
                  1e-12);
  }
  expect_values(run(grad([](const Tensor& x) {
                  return checkpoint([](const Tensor& x) { return loss_of(x); })(x);
                }))(x),
                expected, 1e-12);
}

TEST_P(UnknownRankTest, LoopsAndBranchesPassItOn) {
  // Adds an axis in each iteration of the inner loop, if the outer one is even.
  const auto f = run([](Tensor x) {
    const auto deeper = [](const Tensor& x) { return repeated(doubled, x, scalar(2)); };
    return std::get<1>(
        while_loop([](Tensor i, Tensor) { return i < 3; },
                   [&](Tensor i, Tensor x) {
                     const Tensor y = cond(
                         i == 1, [&] { return x; }, [&] { return deeper(x); });
                     return std::tuple{i + 1, y};
                   },
                   std::tuple{scalar(0), x},
                   {.shape_invariants = {std::nullopt, PartialShape::unknown_rank()}}));
  });
  EXPECT_EQ(f(tensor({1.}, f64)).rank(), 5);
}

TEST_P(UnknownRankTest, BranchesOfOtherRanksMeetIfOneIsUnknown) {
  for (const bool grows : {false, true})
    for (const bool swapped : {false, true}) {
      const auto f = run([=](Tensor x, Tensor pred) {
        const auto grown = [&] { return repeated(doubled, x, scalar(2)); };
        const auto same = [&] { return x; };
        return swapped ? cond(!pred, same, grown) : cond(pred, grown, same);
      });
      EXPECT_EQ(f(tensor({1., 2.}, f64), scalar(grows)).rank(), grows ? 3 : 1);
    }
}

TEST_P(UnknownRankTest, AScanCapturesIt) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  const auto f = [&](const Tensor& w, const Tensor& x) {
    const Tensor grown = repeated(doubled, w, scalar(1));
    return sum(scan(Scan{.spatial_dim = time,
                         .initial = zeros({batch}, f64),
                         .xs = x,
                         .body =
                             [&](const Tensor& x, const Tensor& h) {
                               const Tensor m = ensure_shape(grown, PartialShape{2, 2});
                               const Tensor next = tanh(h + x * sum(m, {0, 1}));
                               return std::pair{next, next};
                             }})
                   .ys);
  };
  const Tensor x = tensor({0.1, 0.2, 0.3, 0.4, 7., 7.}, {batch, time}, f64),
               w = tensor({0.5, -0.2}, f64);
  const auto of_w = [&](const Tensor& w) { return f(w, x); };
  expect_gradient_of(of_w, w, run([&](const Tensor& w, const Tensor& x) {
                       return grad([&](const Tensor& w) { return f(w, x); })(w);
                     })(w, x));
}

TEST_P(UnknownRankTest, NamedDimsComeAndGo) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch})), pair("pair", 2);
  const auto changed = [&](auto body) {
    return run([=](Tensor x) { return repeated(body, x, scalar(1)); });
  };
  const Tensor x = tensor({1, 2, 3, 9}, {batch, time}, f64);
  const auto deeper = [=](const Tensor& x) { return stack({x, x}, pair); };
  EXPECT_EQ(changed(deeper)(x).dims(), (Dims{pair, batch, time}));
  const auto other = [=](const Tensor& x) { return sum(x, time); };
  if (is_eager()) expect_values(changed(other)(x), {3, 3});
  const auto same = [=](const Tensor& x) { return x * 2.; };
  expect_values(mask_padding(changed(same)(x)), {2, 4, 6, 0});
  const auto turned = [=](const Tensor& x) {
    return transpose(ensure_shape(x, PartialShape{batch, pair}), {pair, batch});
  };
  const Tensor square = tensor({1, 2, 3, 4}, {batch, pair}, f64);
  EXPECT_EQ(changed(turned)(square).dims(), (Dims{pair, batch}));
  const auto loss = [=](const Tensor& x) {
    const Tensor y = repeated(deeper, x, scalar(1));
    return sum(sin(ensure_shape(y, PartialShape{pair, batch, time})));
  };
  expect_all_close(mask_padding(run(grad(loss))(x)), mask_padding(2. * cos(x)), 1e-12);
}

/// The second tensor has the dims of the first one in another order.
TEST_P(UnknownRankTest, CotangentsHaveTheOrderOfTheirValues) {
  const Dim a("a", 2), b("b", 2), pair("pair", 2);
  const Tensor y = tensor({1, 2, 3, 4}, {b, a}, f64), s = tensor({5, 7, 9, 16}, {a, b}, f64);
  const auto loss = [=](const Tensor& s) {
    const auto body = [=](const Tensor& s) { return stack({y, s}, pair); };
    const Tensor z = ensure_shape(repeated(body, s, scalar(1)), PartialShape{pair, b, a});
    return sum(z * z * cast(range(a) + 1, f64));
  };
  expect_gradient_of(loss, s, run(grad(loss))(s), 1e-5);
}

TEST_P(UnknownRankTest, BranchesPassGradientsOn) {
  const auto loss = [](const Tensor& x) {
    const Tensor y = cond(
        sum(x) > 0., [&] { return repeated(doubled, sin(x), scalar(1)); }, [&] { return x; });
    return sum(square(ensure_shape(y, PartialShape{2, unknown})));
  };
  const Tensor x = tensor({0.3, 0.7}, f64);
  expect_gradient_of(loss, x, run(grad(loss))(x));
}

TEST_P(UnknownRankTest, BranchesOfABodyMayChangeTheRank) {
  const auto f = run([](const Tensor& x) {
    const auto [i, last] =
        while_loop([](Tensor i, Tensor) { return i < 3; },
                   [](Tensor i, Tensor s) {
                     const Tensor next = cond(
                         i == 1, [&] { return s; },
                         [&] {
                           return stack({s, s}, 0);
                         });
                     return std::tuple{i + 1, next};
                   },
                   std::tuple{scalar(0), x},
                   {.shape_invariants = {std::nullopt, PartialShape::unknown_rank()}});
    return last;
  });
  const Tensor y = f(tensor({1., 2.}, f64));
  EXPECT_EQ(y.rank(), 3);
  expect_values(y, {1, 2, 1, 2, 1, 2, 1, 2});
}

TEST_P(UnknownRankTest, AnErrorThatIsNoneOfRanksStays) {
  const auto wrong = [](const Tensor& x) { return x + ones({5}, f64); };
  const auto f = run([&](const Tensor& x) { return repeated(wrong, x, scalar(1)); });
  EXPECT_NE(message_of<ShapeError>([&] { f(ones({2, 3}, f64)); }).find("add: "), std::string::npos);
}

TEST_P(UnknownRankTest, AConditionThatReadsTheRankSaysSo) {
  const auto f = run([](const Tensor& x) {
    return while_loop([](Tensor x) { return x.rank() < 3; },
                      [](Tensor x) {
                        return stack({x, x}, 0);
                      },
                      x, {.shape_invariants = {PartialShape::unknown_rank()}});
  });
  if (is_eager())
    EXPECT_EQ(f(tensor({1., 2.}, f64)).rank(), 3);
  else
    EXPECT_NE(message_of<TraceError>([&] {
                f(tensor({1., 2.}, f64));
              }).find("is known only when the graph runs"),
              std::string::npos);
}

TEST_P(UnknownRankTest, PullbacksTakeTensors) {
  const auto f = run([](const Tensor& x) {
    const auto [y, pullback] =
        vjp([](const Tensor& x) { return repeated(doubled, x, scalar(1)); }, x);
    return pullback(ones({2, 2}, f64));
  });
  expect_values(f(tensor({1., 2.}, f64)), {2, 2});
}

TEST_P(UnknownRankTest, CheckpointedFunctionsTakeAndReturnIt) {
  const auto squares = [](const Tensor& y) {
    return sum(square(ensure_shape(y, PartialShape{2, 2})));
  };
  const auto returned = [&](const Tensor& x) {
    return squares(
        checkpoint([](const Tensor& x) { return repeated(doubled, sin(x), scalar(1)); })(x));
  };
  const auto taken = [&](const Tensor& x) {
    return checkpoint(squares)(repeated(doubled, sin(x), scalar(1)));
  };
  const Tensor x = tensor({0.3, 0.7}, f64), expected = 4. * sin(x) * cos(x);
  expect_all_close(run(grad(returned))(x), expected, 1e-12);
  expect_all_close(run(grad(taken))(x), expected, 1e-12);
}

TEST_P(UnknownRankTest, FunctionsWithGradientsOfTheirOwnReturnIt) {
  const auto f = custom_vjp(
      [](const Tensor& x) {
        return std::pair{repeated(doubled, x, scalar(1)), x};
      },
      [](const Tensor&, const Tensor& y_cotangent) {
        return 3. * sum(ensure_shape(y_cotangent, PartialShape{2, 2}), 0);
      });
  const auto loss = [&](const Tensor& x) { return sum(ensure_shape(f(x), PartialShape{2, 2})); };
  expect_values(run(grad(loss))(tensor({0.3, 0.7}, f64)), {6, 6});
}

TEST_P(UnknownRankTest, RaggedDimsAreEnsured) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch})), pair("pair", 2);
  const auto f = run([=](const Tensor& x) {
    const Dim own = x.dim("time");
    const Tensor y = repeated([=](const Tensor& x) { return stack({x, x}, pair); }, x, scalar(1));
    return sum(ensure_shape(y, PartialShape{pair, batch, own}));
  });
  const Tensor x = tensor({1, 2, 3, 9}, {batch, time}, f64);
  expect_values(f(x), {12});
  const Dim longer("time", tensor({3, 2}, {batch}));
  if (!is_eager()) {
    expect_values(f(tensor({1, 2, 3, 4, 5, 9}, {batch, longer}, f64)), {30});
    EXPECT_EQ(f.trace_count(), 1);
  }
}

TEST_P(UnknownRankTest, StackGivesADimThatHasNoSizeYetItsSize) {
  const Dim a("a", 2);
  const auto f = run([](const Tensor& x) {
    return repeated([](const Tensor& x) { return stack({x, x, x}, Dim("n")); }, x, scalar(1));
  });
  const Tensor y = f(tensor({1., 2.}, {a}, f64));
  ASSERT_EQ(y.rank(), 2);
  EXPECT_EQ(y.dims()[0].name(), "n");
  EXPECT_EQ(y.dims()[0].size(), 3);
  expect_values(y, {1, 2, 1, 2, 1, 2});
}

TEST_P(UnknownRankTest, AKnownRankIsRequiredByOtherInvariants) {
  const auto f = run([](Tensor x) {
    return while_loop([](Tensor x) { return any(x > 9.); },
                      [](Tensor x) { return repeated(doubled, x, scalar(0)); }, x);
  });
  if (is_eager())
    expect_values(f(tensor({1.}, f64)), {1});
  else
    EXPECT_NE(
        message_of<ShapeError>([&] { f(tensor({1.}, f64)); })
            .find("f64[1] going in, f64[...] coming out (its rank is known only when the "
                  "graph runs)\nReturn every leaf with the type it had on entry. ensure_shape "
                  "gives a tensor its shape."),
        std::string::npos);
}

/// Traces a function of a value of unknown rank, and returns the error.
template <class F>
std::string refusal(const F& f) {
  return message_of<TraceError>([&] {
    jit([&](Tensor x) { return f(repeated(doubled, x, scalar(1))); })(tensor({1., 2.}, f64));
  });
}

TEST(UnknownRank, OtherFunctionsRefuseIt) {
  EXPECT_EQ(
      refusal([](Tensor x) { return x + 1; })
          .find(
              "add: the rank of a tensor of type f64[...] is known only when the graph runs, "
              "because the body of a while_loop changes it; give it a shape with ensure_shape, or "
              "use it in print, stack, or as result of the loop"),
      0u);
  const std::pair<const char*, std::function<Tensor(Tensor)>> functions[] = {
      {"exp", [](Tensor x) { return exp(x); }},
      {"sum", [](Tensor x) { return sum(x); }},
      {"sum along an axis", [](Tensor x) { return sum(x, 0); }},
      {"argmax", [](Tensor x) { return argmax(x, 0); }},
      {"matmul", [](Tensor x) { return matmul(x, x); }},
      {"softmax", [](Tensor x) { return softmax(x, -1); }},
      {"reshape", [](Tensor x) { return reshape(x, {-1}); }},
      {"transpose",
       [](Tensor x) {
         return transpose(x, {1, 0});
       }},
      {"concat",
       [](Tensor x) {
         return concat({x, x}, 0);
       }},
      {"unstack", [](Tensor x) { return unstack(x, 0)[0]; }},
      {"slice", [](Tensor x) { return slice(x, 0, 0, 1); }},
      {"gather", [](Tensor x) { return gather(x, scalar(0), 0); }},
      {"set_at", [](Tensor x) { return set_at(x, 0, scalar(1., f64)); }},
      {"zeros_like", [](Tensor x) { return zeros_like(x); }},
      {"cast", [](Tensor x) { return cast(x, f32); }},
      {"where", [](Tensor x) { return where(scalar(true), x, x); }},
      {"sort", [](Tensor x) { return sort(x, 0); }},
      {"dropout", [](Tensor x) { return dropout(x, 0.5); }},
      {"check_numerics", [](Tensor x) { return check_numerics(x, "x"); }},
      {"rank", [](Tensor x) { return scalar(x.rank()); }},
      {"TensorArray",
       [](Tensor x) {
         return TensorArray(TensorType(f64, {2, 2})).push_back(x).stack();
       }},
      {"the state of a scan",
       [](Tensor x) {
         return fori_loop(
             0, 3, [](Tensor, Tensor s) { return s; }, x);
       }},
      {"outputs of a scan", [&](Tensor x) { return map([&](Tensor) { return x; }, range(3)); }}};
  for (const auto& [name, f] : functions)
    EXPECT_NE(refusal(f).find("the rank of a tensor of type"), std::string::npos) << name;
}

}  // namespace
}  // namespace reel
