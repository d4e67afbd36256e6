// Bad input as in RETURNN's rows 107 to 122: the type of the error and its whole text, the same in
// every mode.
#include <map>
#include <optional>
#include <vector>

#include "reel/tests/cases/returnn/errors.h"

namespace reel {
namespace {

using Map = std::map<std::string, Tensor>;
using Vector = std::vector<Tensor>;

REEL_IN_EVERY_MODE(ReturnnErrors);

TEST_P(ReturnnErrors, Case107_AScanOfUnknownLengthIsRefused) {
  const auto body = [](const Tensor& s) { return std::pair{s, s + 1.0}; };
  const auto cond = [](const Tensor& s) { return s < 1.0; };
  EXPECT_EQ(error_of<ArgumentError>(
                [&](const Tensor& s) { return scan(Scan{.initial = s, .body = body}).state; }, s0),
            "scan \"scan\": the number of iterations is unknown; give spatial_dim with a size, xs, "
            "or cond with cond_dims");
  EXPECT_EQ(error_of<ArgumentError>(
                [&](const Tensor& s) {
                  return scan(Scan{.initial = s, .cond = cond, .body = body}).state;
                },
                s0),
            "scan \"scan\": cond returns boolean[batch=3], so cond_dims must name its dims; "
            "without cond_dims it is one condition for all: boolean[]");
  const auto body_of_x = [](const Tensor&, const Tensor& s) { return std::pair{s, s + 1.0}; };
  EXPECT_EQ(error_of<ArgumentError>(
                [&](const Tensor& x, const Tensor& s) {
                  return scan(Scan{.spatial_dim = Dim("out"),
                                   .cond_dims = {batch},
                                   .initial = s,
                                   .xs = x,
                                   .cond = cond,
                                   .body = body_of_x})
                      .state;
                },
                x, s0),
            "scan \"scan\": xs are given, so their spatial_dim must have a size, but out is "
            "undefined; take it from them, with x.dim(name)");
  EXPECT_EQ(error_of<ShapeError>(
                [&](const Tensor& x, const Tensor& s) {
                  return scan(Scan{.cond_dims = {batch},
                                   .initial = s,
                                   .xs = x,
                                   .cond = cond,
                                   .body = body_of_x})
                      .state;
                },
                x, s0),
            "scan \"scan\": these xs cannot be scanned along their first axis\n  xs: "
            "f32[batch=3,time[batch=3]], whose dims are named\nGive spatial_dim, a dim that all of "
            "them have; values that are the same in every iteration can be captured.");
}

TEST_P(ReturnnErrors, Case108_CondDimsWithoutACondition) {
  const auto body = [](const Tensor& s) { return std::pair{s, s + 1.0}; };
  EXPECT_EQ(
      error_of<ArgumentError>(
          [&](const Tensor& s) {
            return scan(Scan{.spatial_dim = time, .cond_dims = {batch}, .initial = s, .body = body})
                .state;
          },
          s0),
      "scan \"scan\": cond_dims is given, but no cond; give both, or neither");
  EXPECT_EQ(error_of<ArgumentError>(
                [&](const Tensor& s) {
                  return scan(Scan{.cond_dims = {batch},
                                   .initial = s,
                                   .cond = [](const Tensor& s) { return s < 1.0; },
                                   .body = body,
                                   .reverse = true})
                      .state;
                },
                s0),
            "scan \"scan\": reverse needs a known length");
  EXPECT_EQ(error_of<ShapeError>(
                [&](const Tensor& s) {
                  return scan(Scan{.cond_dims = {batch},
                                   .initial = s,
                                   .cond = [](const Tensor& s) { return s < 1.0; },
                                   .body = body,
                                   .max_seq_len = tensor({1, 2}, {beam})})
                      .state;
                },
                s0),
            "scan \"scan\": max_seq_len is i32[beam=2], but entries end by [batch=3]; give it dims "
            "of cond_dims, or none");
}

TEST_P(ReturnnErrors, Case109_TheConditionOfScan) {
  const auto with = [&](const auto& cond) {
    return [&](const Tensor& s) {
      return scan(Scan{.cond_dims = {batch},
                       .initial = s,
                       .cond = cond,
                       .body =
                           [](const Tensor& s) {
                             return std::pair{s, s + 0.4};
                           },
                       .name = "decode"})
          .state;
    };
  };
  EXPECT_EQ(error_of<ShapeError>(with([&](const Tensor& s) { return any(s < 1.0, batch); }), s0),
            "scan \"decode\": cond must return booleans over cond_dims [batch=3], got boolean[]; "
            "return one for every entry, or name the dims that it has in cond_dims");
  EXPECT_EQ(error_of<DTypeError>(with([](const Tensor& s) { return s; }), s0),
            "scan \"decode\": cond must return booleans over cond_dims [batch=3], got "
            "f32[batch=3]; compare, as in s < 10");
  EXPECT_EQ(error_of<StructureError>(with([](const Tensor&) { return Tensor(); }), s0),
            "scan \"decode\": cond returned an empty Tensor");
  if (!is_eager()) return;
  int calls = 0;
  EXPECT_EQ(
      error_of<ShapeError>(
          with([&](const Tensor& s) { return ++calls < 3 ? s < 1.0 : any(s < 1.0, batch); }), s0),
      "scan \"decode\": cond must return booleans over cond_dims [batch=3], got boolean[]; return "
      "one for every entry, or name the dims that it has in cond_dims\nin iteration 2 of scan "
      "\"decode\"");
}

TEST_P(ReturnnErrors, Case110_XsWithoutTheDim) {
  EXPECT_EQ(
      error_of<ShapeError>(
          [&](const Tensor& x, const Tensor& s) {
            return scan(Scan{.spatial_dim = x.dim("time"),
                             .initial = s,
                             .xs = Map{{"frames", x}, {"speaker", s}, {"weights", zeros({beam})}},
                             .body =
                                 [](const Map&, const Tensor& s) {
                                   return std::pair{s, s};
                                 },
                             .name = "encode"})
                .state;
          },
          x, s0),
      "scan \"encode\": these xs cannot be scanned along time[batch=3]\n  xs.speaker: "
      "f32[batch=3], which has no dim time[batch=3]\n  xs.weights: f32[beam=2], which has no dim "
      "time[batch=3]\nTake spatial_dim from an argument, with x.dim(\"time\"); values that are the "
      "same in every iteration can be captured.");
}

TEST_P(ReturnnErrors, Case111_YOfAnotherTypeThanTheTemplate) {
  const auto state = [](const Tensor& s) { return s; };
  const auto twice = [](const Tensor& s) { return std::pair{s, s}; };
  EXPECT_EQ(error_of_y<ShapeError>(TensorType(f32, {batch, beam}), state),
            "scan \"encode\": y of the body differs from the template ys\n  y: f32[batch=3] coming "
            "out, f32[batch=3,beam=2] wanted (dims differ)\nReturn y as ys says, or leave ys out: "
            "a template is not needed.");
  EXPECT_EQ(error_of_y<DTypeError>(TensorType(i32, {batch}), state),
            "scan \"encode\": y of the body differs from the template ys\n  y: f32[batch=3] coming "
            "out, i32[batch=3] wanted (dtypes differ)\nReturn y as ys says, or leave ys out: a "
            "template is not needed.");
  EXPECT_EQ(
      error_of_y<DTypeError>(std::pair{TensorType(f32, {batch, beam}), TensorType(i32, {batch})},
                             twice),
      "scan \"encode\": y of the body differs from the template ys\n  y.0: f32[batch=3] coming "
      "out, f32[batch=3,beam=2] wanted (dims differ)\n  y.1: f32[batch=3] coming out, i32[batch=3] "
      "wanted (dtypes differ)\nReturn y as ys says, or leave ys out: a template is not needed.");
  EXPECT_EQ(error_of_y<StructureError>(
                std::pair{TensorType(f32, {batch}), TensorType(f32, {batch})}, state),
            "scan \"encode\": y of the body differs from the template ys\n  y.0: nothing coming "
            "out, f32[batch=3] wanted\n  y.1: nothing coming out, f32[batch=3] wanted\n  y: "
            "f32[batch=3] coming out, nothing wanted\nReturn y as ys says, or leave ys out: a "
            "template is not needed.");
}

TEST(ReturnnEagerErrors, Case111_YOfAnotherTypeThanTheFirstIterationGave) {
  const auto error = [](const auto& y) {
    return [&] {
      int k = 0;
      scan(Scan{.initial = 0.0,
                .xs = zeros({3}),
                .body =
                    [&](const Tensor& x, const Tensor& s) {
                      return std::pair{y(k++, x), s + x};
                    },
                .name = "encode"});
    };
  };
  EXPECT_EQ(message_of<ShapeError>(
                error([](int k, const Tensor& x) { return k < 2 ? x : expand(x, {2}); })),
            "scan \"encode\": y of the body differs from y of the first iteration\n  y: f32[2] "
            "coming out, f32[] wanted (dims differ)\nReturn the same type of y in every "
            "iteration.\nin iteration 2 of scan \"encode\"");
  EXPECT_EQ(message_of<StructureError>(error([](int k, const Tensor& x) {
              return k ? Vector{x, x} : Vector{x};
            })),
            "scan \"encode\": y of the body differs from y of the first iteration\n  y.1: f32[] "
            "coming out, nothing wanted\nReturn the same type of y in every iteration.\nin "
            "iteration 1 of scan \"encode\"");
}

TEST_P(ReturnnErrors, Case112_D15_YAndNone) {
  const auto twice = [](const Tensor& s) { return std::pair{s, s}; };
  EXPECT_EQ(
      error_of_y<StructureError>(std::pair{TensorType(f32, {batch}), None{}}, twice),
      "scan \"encode\": y of the body differs from the template ys\n  y.1: f32[batch=3] coming "
      "out, None wanted\nReturn y as ys says, or leave ys out: a template is not needed.");
  EXPECT_EQ(
      error_of_y<StructureError>(TensorType(f32, {batch}), [](const Tensor&) { return None{}; }),
      "scan \"encode\": y of the body differs from the template ys\n  y: None coming out, "
      "f32[batch=3] wanted\nReturn y as ys says, or leave ys out: a template is not needed.");
  EXPECT_EQ(error_of_y<StructureError>(std::pair{None{}, TensorType(f32, {batch})},
                                       [](const Tensor& s) {
                                         return std::pair{s, None{}};
                                       }),
            "scan \"encode\": y of the body differs from the template ys\n  y.0: f32[batch=3] "
            "coming out, None wanted\n  y.1: None coming out, f32[batch=3] wanted\nReturn y as ys "
            "says, or leave ys out: a template is not needed.");
}

// Row 113 is tested as D13 in scan_unknown_test.cpp: it works.

TEST(ReturnnTracedErrors, Case117_D18_AConditionThatNeverEnds) {
  EXPECT_EQ(message_of<TraceError>([] {
              jit([](const Tensor& s) {
                return while_loop([](const Tensor&) { return true; },
                                  [](const Tensor& s) { return s + 1.0; }, s);
              })(scalar(0.0));
            }),
            "while_loop \"while\": cond is always true, so the traced loop would never end; return "
            "a tensor from cond, or give maximum_iterations");
  EXPECT_EQ(
      message_of<TraceError>([] {
        jit([](const Tensor& s) {
          return scan(Scan{.cond_dims = {},
                           .initial = s,
                           .cond = [](const Tensor&) { return true; },
                           .body =
                               [](const Tensor& s) {
                                 return std::pair{s, s + 1.0};
                               }})
              .state;
        })(scalar(0.0));
      }),
      "scan \"scan\": cond is always true, so the traced loop would never end; give max_seq_len");
}

TEST_P(ReturnnErrors, Case117_D18_AConditionThatIsFalseOrBounded) {
  const auto f = run([](const Tensor& s) {
    const auto grow = [](const Tensor& s) { return s + 1.0; };
    return std::pair{
        while_loop([](const Tensor&) { return false; }, grow, s),
        while_loop([](const Tensor&) { return true; }, grow, s, {.maximum_iterations = 3})};
  });
  const auto [none, three] = f(scalar(7.0));
  expect_values(none, {7});
  expect_values(three, {10});
}

TEST(ReturnnTracedErrors, Case118_D19_AValueThatSteersCpp) {
  static_assert(!std::is_constructible_v<bool, Tensor>, "a tensor is no C++ bool");
  EXPECT_EQ(
      message_of<TraceError>(
          [] { jit([](const Tensor& x) { return x.item<float>() > 0 ? x : -x; })(scalar(1.0)); }),
      "item: the value of a tensor of type f32[] is not known while tracing, so it cannot steer "
      "C++; use cond, while_loop, scan or where, or return it from the traced function");
  EXPECT_EQ(message_of<TraceError>([] {
              jit([](const Tensor& x) {
                return while_loop(
                    [](const Tensor& s) { return s < 3.0; },
                    [](const Tensor& s) { return s.item<float>() > 1 ? s * 2.0 : s + 1.0; }, x,
                    {.name = "decode"});
              })(scalar(1.0));
            }),
            "item: the value of a tensor of type f32[] is not known while tracing, so it cannot "
            "steer C++; use cond, while_loop, scan or where, or return it from the traced "
            "function\nin iteration 0 of while_loop \"decode\"");
  EXPECT_EQ(message_of<TraceError>([] {
              const Dim time("time", scalar(3));
              jit([](const Tensor& x) { return x * double(x.shape()[0]); })(zeros({time}));
            }),
            "shape: the size of dim time of f32[time] is not known while tracing; use "
            "dim.lengths(), or range(dim)");
}

TEST(ReturnnTracedErrors, Case119_AValueOfABodyOutside) {
  const auto leaking = [](const auto& use) {
    return [use](const Tensor& x) {
      Tensor leaked;
      const auto grow = [&](const Tensor& s) { return leaked = s + 1.0; };
      while_loop([](const Tensor& s) { return s < 3.0; }, grow, x, {.name = "decode"});
      return use(leaked, x);
    };
  };
  const auto error = [&](const auto& use) {
    return message_of<TraceError>([&] { jit(leaking(use))(scalar(0.0)); });
  };
  const auto leak = [](const std::string& reader, const std::string& place) {
    return reader + ": a value of type f32[] that add made in " + place +
           " is used outside of it; values leave a body only through its state or outputs, a "
           "branch "
           "or a traced function only through its result";
  };
  const std::string body = "the body of while_loop \"decode\"";
  EXPECT_EQ(error([](const Tensor& leaked, const Tensor&) { return leaked; }),
            leak("jit \"jit\"", body));
  EXPECT_EQ(error([](const Tensor& leaked, const Tensor& x) { return leaked * x; }),
            leak("mul", body));
  EXPECT_EQ(error([](const Tensor& leaked, const Tensor& x) {
              return cond(
                  x > 0.0, [&] { return leaked * x; }, [&] { return x; });
            }),
            leak("mul", body));
  EXPECT_EQ(error([](const Tensor& leaked, const Tensor& x) {
              return cond(
                  x > 0.0, [&] { return leaked; }, [&] { return x; });
            }),
            leak("the true branch of cond", body));
  EXPECT_EQ(error([](const Tensor& leaked, const Tensor& x) {
              return while_loop([](const Tensor& s) { return s < 3.0; },
                                [&](const Tensor& s) { return s + leaked; }, x, {.name = "second"});
            }),
            leak("add", body) + "\nin iteration 0 of while_loop \"second\"");
  // After the trace has ended, a tensor of it is an empty promise.
  Tensor leaked;
  jit([&](const Tensor& x) { return leaked = x + 1.0; })(scalar(1.0));
  EXPECT_EQ(message_of<TraceError>([&] { leaked + 1.0; }), leak("add", "jit \"jit\""));
  EXPECT_EQ(message_of<TraceError>([&] { leaked.item<float>(); }), leak("item", "jit \"jit\""));
}

TEST(ReturnnTracedErrors, Case119_AValueOfABranchOrCheckpointedFunctionOutside) {
  Tensor leaked;
  const auto in_branch = [&](const Tensor& x) {
    cond(
        x > 0.0, [&] { return leaked = x * 2.0; }, [&] { return x; });
    return exp(leaked);
  };
  const auto in_checkpoint = [&](const Tensor& x) {
    checkpoint([&](const Tensor& x) { return leaked = x * 2.0; })(x);
    return exp(leaked);
  };
  const auto leak = [](const std::string& place) {
    return "exp: a value of type f32[] that mul made in " + place +
           " is used outside of it; values leave a body only through its state or outputs, a "
           "branch "
           "or a traced function only through its result";
  };
  EXPECT_EQ(message_of<TraceError>([&] { jit(in_branch)(scalar(1.0)); }),
            leak("the true branch of cond"));
  EXPECT_EQ(message_of<TraceError>([&] { jit(in_checkpoint)(scalar(1.0)); }),
            leak("checkpoint(f)"));
}

TEST_P(ReturnnErrors, Case120_AnExceptionInABodyLeavesEverythingAsItWas) {
  struct Mine {
    int number;
  };
  bool throws = true;
  const auto walk = run([&](const Tensor& x) {
    const auto body = [&](const Tensor& x, const Tensor& s) {
      const Tensor next = s + x + random_uniform({});
      if (throws) throw Mine{42};
      return std::pair{next, next};
    };
    return scan(
               Scan{.spatial_dim = x.dim("time"), .initial = zeros({batch}), .xs = x, .body = body})
        .ys;
  });
  manual_seed(5);
  try {
    walk(x2(kNan));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Mine& mine) {
    EXPECT_EQ(mine.number, 42);  // the user's own type, unchanged
  }
  EXPECT_FALSE(is_tracing());
  throws = false;
  const Tensor after = walk(x2(kNan));
  manual_seed(5);
  expect_same_bits(walk(x2(kNan)), after);  // no random number was used up
}

TEST_P(ReturnnErrors, Case121_ThePredicateOfCond) {
  const auto choose = [](const Tensor& p) {
    return cond(
        p, [] { return scalar(1.0); }, [] { return scalar(2.0); });
  };
  EXPECT_EQ(error_of<ShapeError>(choose, s0 > 0.0),
            "cond: pred must be a boolean scalar, got boolean[batch=3]; reduce it with any or all, "
            "choose element by element with where, or let each row take its branch with vmap");
  EXPECT_EQ(error_of<DTypeError>(choose, scalar(1)),
            "cond: pred must be a boolean scalar, got i32[]; compare, as in x > 0");
  EXPECT_EQ(error_of<StructureError>(choose, Tensor()), "cond: pred is an empty Tensor");
}

TEST(ReturnnTracedErrors, Case122_D21_BranchesThatDiffer) {
  const auto error = [](auto type, const auto& yes, const auto& no) {
    return message_of<typename decltype(type)::type>([&] {
      jit([&](const Tensor& p) { return std::pair{cond(p, yes, no), p}; })(scalar(true));
    });
  };
  const Tensor one = scalar(1.0);
  EXPECT_EQ(error(
                std::type_identity<ShapeError>{},
                [&] {
                  return State{scalar(1), {zeros({2}), one}};
                },
                [&] {
                  return State{scalar(1), {zeros({3}), one}};
                }),
            "cond: the branches return different types\n  result.layer.h: f32[2] if true, f32[3] "
            "if false (dims differ)\nReturn the same type from both.");
  EXPECT_EQ(error(
                std::type_identity<DTypeError>{},
                [&] {
                  return State{scalar(1), {zeros({2}), one}};
                },
                [&] {
                  return State{one, {zeros({3}), one}};
                }),
            "cond: the branches return different types\n  result.step: i32[] if true, f32[] if "
            "false (dtypes differ)\n  result.layer.h: f32[2] if true, f32[3] if false (dims "
            "differ)\nReturn the same type from both.");
  EXPECT_EQ(error(
                std::type_identity<StructureError>{}, [&] { return Vector{one}; },
                [&] {
                  return Vector{one, scalar(1)};
                }),
            "cond: the branches return different types\n  result.1: nothing if true, i32[] if "
            "false\nReturn the same type from both.");
  EXPECT_EQ(error(
                std::type_identity<StructureError>{},
                [&] {
                  return Map{{"a", one}, {"b", one}};
                },
                [&] {
                  return Map{{"a", scalar(1)}, {"c", one}};
                }),
            "cond: the branches return different types\n  result.a: f32[] if true, i32[] if false "
            "(dtypes differ)\n  result.b: f32[] if true, nothing if false\n  result.c: nothing if "
            "true, f32[] if false\nReturn the same type from both.");
  EXPECT_EQ(error(
                std::type_identity<StructureError>{}, [&] { return std::optional{one}; },
                [&] { return std::optional<Tensor>{}; }),
            "cond: the branches return different types\n  result: f32[] if true, nothing if "
            "false\nReturn the same type from both.");
  EXPECT_EQ(
      error(
          std::type_identity<StructureError>{}, [&] { return one; }, [&] { return Tensor(); }),
      "cond: the false branch returns empty Tensors: result; give them values, or let them be "
      "std::optional<Tensor>");
  const auto with_empty_h = [&] { return State{one, {Tensor(), one}}; };
  const std::string text =
      "cond: the true branch returns empty Tensors: result.layer.h; give them values, or let them "
      "be std::optional<Tensor>";
  EXPECT_EQ(error(std::type_identity<StructureError>{}, with_empty_h, with_empty_h), text);
  EXPECT_EQ(message_of<StructureError>([&] { cond(scalar(true), with_empty_h, with_empty_h); }),
            text);
}

// D21: eager mode runs only the taken branch, and does not see the other one's type.
TEST(ReturnnEagerErrors, D21_OnlyTheTakenBranchIsSeen) {
  expect_values(cond(
                    scalar(true), [] { return zeros({2}); }, [] { return zeros({3}); }),
                {0, 0});
}

}  // namespace
}  // namespace reel
