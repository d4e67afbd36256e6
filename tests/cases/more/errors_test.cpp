// Errors after the tests of JAX (J) and Dr.Jit (D), with their whole text.
#include "reel/tests/modes.h"

namespace reel {
namespace {

struct Two {
  Tensor count, value;
};
struct Three {
  Tensor a, b, c;
};

class MoreErrors : public InEveryMode {
 protected:
  template <class E, class F, class... Args>
  std::string error_of(const F& f, const Args&... args) const {
    return message_of<E>([&] { run(f)(args...); });
  }
  template <class E, class S, class Body>
  std::string error_of_body(const Body& body, const S& start) const {
    return error_of<E>(
        [&](const S& start) {
          return while_loop([](const S&) { return scalar(1) < 2; }, body, start);
        },
        start);
  }
};
REEL_IN_EVERY_MODE(MoreErrors);

TEST_P(MoreErrors, J5_CondMustGiveABooleanScalar) {
  const auto with = [](const auto& cond) {
    return [=](const Tensor& x) {
      return while_loop(
          cond, [](const Tensor& x) { return x + 1.0; }, x);
    };
  };
  EXPECT_EQ(
      error_of<DTypeError>(with([](const Tensor& x) { return x; }), scalar(0.0)),
      "while_loop \"while\": cond must return a boolean scalar, got f32[]; compare, as in x < 10");
  EXPECT_EQ(error_of<ShapeError>(with([](const Tensor& x) {
                                   return stack({x < 1.0, x < 2.0});
                                 }),
                                 scalar(0.0)),
            "while_loop \"while\": cond must return a boolean scalar, got boolean[2]; reduce it "
            "with any or all, or use scan, whose entries end one by one");
  // Returning a pair does not compile: "cond returns bool, or a boolean scalar Tensor".
}

TEST_P(MoreErrors, J6_AMemberOfAnotherDtype) {
  EXPECT_EQ(error_of_body<DTypeError>(
                [](const Two& s) {
                  return Two{s.count + 1, s.value < 1.0};
                },
                Two{scalar(0), scalar(1.0)}),
            "while_loop \"while\": the state returned by the body differs from the state it was "
            "given\n  state.value: f32[] going in, boolean[] coming out (dtypes differ)\nReturn "
            "every leaf with the type it had on entry.");
}

TEST_P(MoreErrors, J7_AllMembersThatDifferAreListed) {
  EXPECT_EQ(
      error_of_body<DTypeError>(
          [](const Three& s) {
            return Three{cast(s.a, f32), s.b, reshape(cast(s.c, i32), {1, 1})};
          },
          Three{scalar(0), scalar(1.0), scalar(2.0)}),
      "while_loop \"while\": the state returned by the body differs from the state it was given\n  "
      "state.a: i32[] going in, f32[] coming out (dtypes differ)\n  state.c: f32[] going in, "
      "i32[1,1] coming out (dtypes differ)\nReturn every leaf with the type it had on entry.");
}

TEST_P(MoreErrors, J21_ALengthThatXsDoNotHave) {
  EXPECT_EQ(error_of<ShapeError>(
                [](const Tensor& x) {
                  return scan(Scan{.spatial_dim = 5,
                                   .initial = 0.0,
                                   .xs = x,
                                   .body =
                                       [](const Tensor& x, const Tensor& s) {
                                         return std::pair{s, s + x};
                                       }})
                      .ys;
                },
                zeros({10})),
            "scan \"scan\": spatial_dim has size 5, but xs have another size along their first "
            "axis\n  xs: f32[10]\nGive the size that they have, or leave spatial_dim out.");
}

TEST_P(MoreErrors, J22_XsOfDifferentLengths) {
  EXPECT_EQ(error_of<ShapeError>(
                [](const Two& xs) {
                  return scan(Scan{.initial = 0.0,
                                   .xs = xs,
                                   .body =
                                       [](const Two& x, const Tensor& s) {
                                         return std::pair{s, s + x.count * x.value};
                                       }})
                      .ys;
                },
                Two{zeros({3}), zeros({4})}),
            "scan \"scan\": xs differ in the size of their first axis\n  xs.count: f32[3]\n  "
            "xs.value: f32[4]\nPlain tensors are scanned along it: cut them to one length.");
}

TEST_P(MoreErrors, J23_NothingToScan) {
  EXPECT_EQ(error_of<ShapeError>(
                [](const Tensor& x) {
                  return scan(Scan{.initial = 0.0,
                                   .xs = x,
                                   .body =
                                       [](const Tensor& x, const Tensor& s) {
                                         return std::pair{s, s + x};
                                       }})
                      .ys;
                },
                scalar(1.0)),
            "scan \"scan\": these xs cannot be scanned along their first axis\n  xs: f32[], a "
            "scalar: it has no axis to scan\nGive spatial_dim, a dim that all of them have; values "
            "that are the same in every iteration can be captured.");
  EXPECT_EQ(error_of<ArgumentError>(
                [](const Tensor& x) {
                  return scan(Scan{.initial = x,
                                   .body =
                                       [](const Tensor& s) {
                                         return std::pair{s, s + 1.0};
                                       }})
                      .ys;
                },
                scalar(1.0)),
            "scan \"scan\": the number of iterations is unknown; give spatial_dim with a size, xs, "
            "or cond with cond_dims");
}

TEST_P(MoreErrors, D4_AStateThatChanges) {
  // Another dtype.
  EXPECT_EQ(error_of_body<DTypeError>([](const Tensor& s) { return cast(s, i32); }, zeros({2})),
            "while_loop \"while\": the state returned by the body differs from the state it was "
            "given\n  state: f32[2] going in, i32[2] coming out (dtypes differ)\nReturn every leaf "
            "with the type it had on entry.");
  // Another size.
  EXPECT_EQ(error_of_body<ShapeError>(
                [](const Tensor& s) {
                  return concat({s, s}, 0);
                },
                ones({2})),
            "while_loop \"while\": the state returned by the body differs from the state it was "
            "given\n  state: f32[2] going in, f32[4] coming out (dims differ)\nReturn every leaf "
            "with the type it had on entry. To let a size change, give a less specific shape in "
            "shape_invariants, as in PartialShape{unknown, 2}.");
  // Incompatible sizes.
  EXPECT_EQ(error_of_body<ShapeError>(
                [](const Two& s) {
                  return Two{reshape(s.count, {3, 2}), s.value};
                },
                Two{zeros({2, 3}), zeros({2})}),
            "while_loop \"while\": the state returned by the body differs from the state it was "
            "given\n  state.count: f32[2,3] going in, f32[3,2] coming out (dims differ)\nReturn "
            "every leaf with the type it had on entry. To let a size change, give a less specific "
            "shape in shape_invariants, as in PartialShape{unknown, 2}.");
  // Empty before.
  EXPECT_EQ(error_of_body<StructureError>(
                [](const Two& s) {
                  return Two{s.count, s.count};
                },
                Two{zeros({2}), {}}),
            "while_loop \"while\": the initial state has empty Tensors: state.value; give them "
            "values, or let them be std::optional<Tensor>");
  // Empty after.
  EXPECT_EQ(error_of_body<StructureError>(
                [](const Two& s) {
                  return Two{s.count, {}};
                },
                Two{zeros({2}), zeros({2})}),
            "while_loop \"while\": the state returned by the body differs from the state it was "
            "given\n  state.value: f32[2] going in, an empty Tensor coming out (structures "
            "differ)\nReturn every leaf with the type it had on entry.");
}

TEST_P(MoreErrors, D5_TheUsersExceptionComesOutAndTheNextLoopWorks) {
  struct Mine : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  for (const bool in_cond : {true, false}) {
    const auto failing = run([&](const Tensor& x) {
      return while_loop(
          [&](const Tensor& s) {
            if (in_cond) throw Mine("from cond");
            return s < 3.0;
          },
          [&](const Tensor& s) -> Tensor {
            if (!in_cond) throw Mine("from body");
            return s + 1.0;
          },
          x);
    });
    EXPECT_EQ(message_of<Mine>([&] { failing(scalar(0.0)); }), in_cond ? "from cond" : "from body");
    EXPECT_FALSE(is_tracing());
    // After the error, a tape that was open at the loop's start still works, and so does the next
    // loop.
    Tape tape;
    const Tensor w = scalar(2.0);
    tape.watch(w);
    EXPECT_THROW(failing(w), Mine);
    const Tensor y = run([](const Tensor& w) {
      return while_loop([](const Tensor& s) { return s < 9.0; },
                        [&](const Tensor& s) { return s * w; }, w);
    })(w);
    expect_values(y, {16});
    expect_values(tape.gradient(y, w), {32});
  }
}

}  // namespace
}  // namespace reel
