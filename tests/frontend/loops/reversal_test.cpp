// Gradients that were wrong once. Each case was found by comparing eager mode, traces and jitted
// functions under a tape, and failed before its fix.
#include "reel/tests/frontend/loops/reversal.h"

namespace reel {
namespace {

TEST_F(ReversalTest, GradientsAgreeIfEntriesFinishInTheReverseOfAReverseLoop) {
  for (const bool backwards : {false, true})
    expect_all_forms_agree(
        [&](const In& in) {
          auto [ys, last, dim] = scan(Scan{
              .spatial_dim = time,
              .initial = in[1],
              .xs = in[0],
              .body =
                  [&](Tensor x, Tensor s) {
                    Tensor next = tanh(s * in[2] + x);
                    return std::pair{next * x, next};
                  },
              .reverse = backwards,
          });
          return sum(square(ys)) + sum(last * in[1]);
        },
        {x, s0, w});
}

TEST_F(ReversalTest, BodyThatCouplesEntries) {
  expect_all_forms_agree(
      [&](const In& in) {
        auto [ys, last, dim] = scan(Scan{
            .spatial_dim = in[0].dim("time"),
            .initial = in[1],
            .xs = in[0],
            .body =
                [&](Tensor x, Tensor s) {
                  return std::pair{s * x, s + mean(x, batch)};
                },
        });
        return sum(square(ys)) + sum(last) * 0.5;
      },
      {x, s0});
}

TEST_F(ReversalTest, GradientsAgreeIfAConditionFinishesEntries) {
  expect_all_forms_agree(
      [&](const In& in) {
        auto [ys, last, dim] = scan(Scan{
            .cond_dims = {batch},
            .initial = in[0],
            .cond = [](Tensor s) { return s < 1.0; },
            .body =
                [&](Tensor s) {
                  return std::pair{s * in[1], s * in[1] + 0.3};
                },
        });
        return sum(square(ys)) + sum(square(last));
      },
      {s0, w});
}

TEST_F(ReversalTest, KnownLengthWithACondition) {
  expect_all_forms_agree(
      [&](const In& in) {
        auto [ys, last, dim] = scan(Scan{
            .spatial_dim = time,
            .cond_dims = {batch},
            .initial = in[1],
            .xs = in[0],
            .cond = [](Tensor s) { return s < 1.1; },
            .body =
                [&](Tensor x, Tensor s) {
                  return std::pair{s * x, s + square(x) * in[2]};
                },
        });
        return sum(square(ys)) + sum(square(last));
      },
      {x, s0, w});
}

TEST_F(ReversalTest, RaggedScanInsideARaggedScan) {
  const Dim inner("inner", tensor({1, 3, 2}, {batch}));
  const Tensor table = tensor({.3, kNan, kNan, .2, -.4, .6, .9, .1, kNan}, {batch, inner}, f64);
  expect_all_forms_agree(
      [&](const In& in) {
        auto [ys, last, dim] = scan(Scan{
            .spatial_dim = time,
            .initial = in[1],
            .xs = in[0],
            .body =
                [&](Tensor x, Tensor s) {
                  auto [zs, z, unused] = scan(Scan{
                      .spatial_dim = inner,
                      .initial = s,
                      .xs = in[2],
                      .body =
                          [&](Tensor t, Tensor s) {
                            return std::pair{s * t, tanh(s + t * x)};
                          },
                  });
                  return std::pair{sum(zs, inner), z};
                },
        });
        return sum(square(ys)) + sum(last);
      },
      {x, s0, table});
}

TEST_F(ReversalTest, ScanOfUnknownLengthInsideAScan) {
  expect_all_forms_agree(
      [&](const In& in) {
        const auto inner = [&](const Tensor& x, const Tensor& s) {
          return scan(Scan{
              .cond_dims = {batch},
              .initial = s,
              .cond = [](const Tensor& q) { return q < 1.0; },
              .body =
                  [&](const Tensor& q) {
                    return std::pair{q * x, q * in[2] + 0.3 + abs(x)};
                  },
              .max_seq_len = 5,
          });
        };
        auto [ys, last, dim] = scan(Scan{
            .spatial_dim = time,
            .initial = in[1],
            .xs = in[0],
            .body =
                [&](const Tensor& x, const Tensor& s) {
                  auto [qs, q, steps] = inner(x, s);
                  return std::pair{sum(qs, steps), q - 0.8};
                },
        });
        return sum(square(ys)) + sum(last);
      },
      {x, s0, scalar(.8, f64)});
}

TEST_F(ReversalTest, ArraysOfScan) {
  expect_all_forms_agree(
      [&](const In& in) {
        auto [ys, last, dim] = scan(Scan{
            .spatial_dim = time,
            .initial = in[1],
            .xs = in[0],
            .body =
                [](Tensor x, Tensor s) {
                  return std::pair{std::tuple{s * x, x}, s + x};
                },
            .return_tensor_arrays = std::true_type{},
        });
        const TensorArray p = std::get<0>(ys), q = std::get<1>(ys);
        return sum(p[-1] * q[0] + p[1]) + sum(square(p[1])) + sum(last);
      },
      {x, s0});
}

TEST_F(ReversalTest, ElementThatIsReadIsTheTensorThatWasPushed) {
  expect_all_forms_agree(
      [](const In& in) {
        const TensorArray array = TensorArray({f64, {}}).push_back(in[0]).push_back(in[0] * in[0]);
        return square(array[1]) + array[0] * 3.0;
      },
      {w});
}

TEST_F(ReversalTest, ResultThatIsAnArgumentOrStandsTwice) {
  const auto f = jit([](Tensor x) {
    const Tensor y = x * 2.0;
    return std::tuple{y, y, x};
  });
  Tape tape;
  const Tensor v = scalar(3.0);
  tape.watch(v);
  const auto [p, q, r] = f(v);
  expect_values(tape.gradient(p * p + q * 3.0 + r * v, v), {36});
}

TEST_F(ReversalTest, LoopWithoutBackPropStaysConstantUnderATape) {
  const auto f = jit([](Tensor v) {
    return while_loop([](Tensor v) { return v < 8; }, [](Tensor v) { return v * v; }, v,
                      {.back_prop = false}) *
           v;
  });
  expect_values(grad(f)(scalar(2.0)), {16});
}

TEST_F(ReversalTest, GradientsAgreeIfCapturedPaddingIsLongerThanARunningEntry) {
  const Dim enc("enc", tensor({2, 3, 1}, {batch}));
  const Tensor memory = tensor({.5, .6, kNan, .1, .2, .3, .9, kNan, kNan}, {batch, enc}, f64);
  expect_all_forms_agree(
      [&](const In& in) {
        auto [ys, last, dim] = scan(Scan{
            .spatial_dim = time,
            .initial = in[1],
            .xs = in[0],
            .body =
                [&](Tensor x, Tensor s) {
                  const Tensor attention = softmax(in[2] * s, enc);
                  const Tensor next = sum(attention * in[2], enc) * x + s;
                  return std::pair{next, next};
                },
        });
        return sum(square(ys)) + sum(last);
      },
      {x, s0, memory});
}

TEST_F(ReversalTest, TapeOpenedOutsideATracedBodyIsRefusedInside) {
  const auto f = jit([](Tensor v) {
    Tape tape;
    tape.watch(v);
    return while_loop([](Tensor y) { return y < 8; },
                      [&](Tensor y) { return y + tape.gradient(y * v, v); }, v);
  });
  EXPECT_EQ(message_of<TraceError>([&] { f(scalar(2.0)); }),
            "Tape: gradient is asked for a value of a body or branch that is being recorded, but "
            "the tape was opened outside "
            "it; open the tape inside, or use grad\nin iteration 0 of while_loop \"while\"");
}

}  // namespace
}  // namespace reel
