// Shape invariants of while_loop, after TensorFlow's rule.
#include "reel/tests/modes.h"

namespace reel {
namespace {

using TensorFlowShapes = InEveryMode;
REEL_IN_EVERY_MODE(TensorFlowShapes);

const std::string kDiffers =
    "while_loop \"while\": the state returned by the body differs from the state it was given\n";
const std::string kAdvice =
    "\nReturn every leaf with the type it had on entry. To let a size change, give a less specific "
    "shape in shape_invariants, as in PartialShape{unknown, 2}.";

const std::string kGiveAnInvariant =
    "Give an invariant that allows the initial value: unknown for a size that changes, "
    "std::nullopt for the value's own shape.";

/// Counts to n, and applies `body` to the other part of the state. `static_type` gets the type that
/// body saw last, `result_type` the type after the loop.
template <class Body>
struct Growing {
  Body body;
  int iterations;
  std::optional<PartialShape> invariant;
  std::string* static_type = nullptr;
  std::string* result_type = nullptr;

  template <class Value>
  Value operator()(const Value& start) const {
    const auto [i, last] =
        while_loop([n = iterations](Tensor i, const Value&) { return i < n; },
                   [&](Tensor i, const Value& m) {
                     if (static_type) *static_type = type_of(m);
                     return std::tuple{i + 1, body(m)};
                   },
                   std::tuple{scalar(0), start}, {.shape_invariants = {std::nullopt, invariant}});
    if (result_type) *result_type = type_of(last);
    return last;
  }
  static std::string type_of(const Tensor& x) { return str(x.type()); }
  static std::string type_of(const TensorArray& a) { return str(a.element_type()); }
};
template <class Body>
Growing(Body, int, std::optional<PartialShape>) -> Growing<Body>;
template <class Body>
Growing(Body, int, std::optional<PartialShape>, std::string*) -> Growing<Body>;
template <class Body>
Growing(Body, int, std::optional<PartialShape>, std::string*, std::string*) -> Growing<Body>;

const auto doubled = [](const Tensor& m) { return concat({m, m}, 0); };

TEST_P(TensorFlowShapes, V09_AMatrixDoublesTenTimes) {
  const Tensor m = run(Growing{doubled, 10, PartialShape{unknown, 2}})(ones({2, 2}));
  EXPECT_EQ(str(m.type()), "f32[2048,2]");
  expect_values(sum(m), {4096});
}

TEST_P(TensorFlowShapes, P01_StaticShapeIsTheInvariant) {
  std::string inside, behind;
  const Tensor m =
      run(Growing{doubled, 2, PartialShape{unknown, 2}, &inside, &behind})(ones({2, 2}));
  EXPECT_EQ(str(m.type()), "f32[8,2]");
  EXPECT_EQ(inside, is_eager() ? "f32[4,2]" : "f32[?,2]");
  EXPECT_EQ(behind, is_eager() ? "f32[8,2]" : "f32[?,2]");
}

TEST_P(TensorFlowShapes, P02_ShapeThatChangesWithoutAnInvariant) {
  EXPECT_EQ(message_of<ShapeError>([&] {
              run(Growing{doubled, 2, std::nullopt})(ones({2, 2}));
            }),
            kDiffers + "  state.1: f32[2,2] going in, f32[4,2] coming out (dims differ)" + kAdvice);
}

TEST_P(TensorFlowShapes, P03_InvariantThatTheInitialValueDoesNotFit) {
  const auto same = [](const Tensor& x) { return x; };
  EXPECT_EQ(message_of<ShapeError>([&] {
              run(Growing{same, 2, PartialShape{5}})(ones({2}));
            }),
            "while_loop \"while\": initial values do not match their shape invariant\n  state.1: "
            "f32[2], shape invariant [5]\n" +
                kGiveAnInvariant);
  EXPECT_EQ(message_of<ShapeError>([&] {
              run(Growing{same, 2, PartialShape{unknown}})(ones({2, 2}));
            }),
            "while_loop \"while\": initial values do not match their shape invariant\n  state.1: "
            "f32[2,2], shape invariant [?]\n" +
                kGiveAnInvariant);
}

// The documentation's examples: compared with [11, 17], [11, ?] is more general and [11, 21]
// incompatible.
TEST_P(TensorFlowShapes, DocumentedShapesThatAnInvariantForbids) {
  const auto wider = [](const Tensor& m) { return concat({m, ones({11, 4})}, 1); };
  for (const auto& invariant : {std::optional<PartialShape>(), {PartialShape{11, 17}}})
    EXPECT_EQ(
        message_of<ShapeError>([&] {
          run(Growing{wider, 2, invariant})(ones({11, 17}));
        }),
        kDiffers + "  state.1: f32[11,17] going in, f32[11,21] coming out (" +
            (invariant ? "its shape invariant [11,17] does not allow that)" : "dims differ)") +
            kAdvice);
}

TEST(TracedTensorFlowShapes, MoreGeneralIsAnErrorUntilTheBodyEnsuresTheShape) {
  // A run would find 17 columns, which the trace does not know.
  const auto columns = [](const Tensor& m) {
    return while_loop([](Tensor m) { return sum(m) < 0.0; }, [](Tensor m) { return m; }, m,
                      {.shape_invariants = {PartialShape{11, unknown}}});
  };
  for (const auto& invariant : {std::optional<PartialShape>(), {PartialShape{11, 17}}})
    EXPECT_EQ(message_of<ShapeError>([&] {
                jit(Growing{columns, 2, invariant})(ones({11, 17}));
              }),
              kDiffers + "  state.1: f32[11,17] going in, f32[11,?] coming out (more general" +
                  (invariant ? " than its shape invariant [11,17])" : ")") + kAdvice +
                  " A size that stays the same can be given with ensure_shape.");
  const auto ensured = [&](const Tensor& m) {
    return ensure_shape(columns(m) + 1.0, PartialShape{unknown, 17});
  };
  std::string behind;
  const Tensor m = jit(Growing{ensured, 2, std::nullopt, nullptr, &behind})(zeros({11, 17}));
  EXPECT_EQ(behind, "f32[11,17]");
  expect_values(mean(m), {2});
}

TEST(TracedTensorFlowShapes, AnInitialValueOfWhichTheTraceKnowsLess) {
  const auto loop = [](bool ensures) {
    return jit([=](Tensor m) {
      const Tensor grown = Growing{doubled, 2, PartialShape{unknown}}(m);
      return Growing{[](const Tensor& m) { return m * 2.0; }, 1,
                     PartialShape{4}}(ensures ? ensure_shape(grown, PartialShape{4}) : grown);
    });
  };
  EXPECT_EQ(message_of<ShapeError>([&] { loop(false)(ones({1})); }),
            "while_loop \"while\": initial values do not match their shape invariant\n  state.1: "
            "f32[?], shape invariant [4]\n" +
                kGiveAnInvariant +
                " A size that a trace does not know can be given with ensure_shape.");
  expect_values(loop(true)(ones({1})), {2, 2, 2, 2});
}

TEST_P(TensorFlowShapes, EnsureShapeIsCheckedWhenTheLoopRuns) {
  const auto wrong = [](const Tensor& m) { return ensure_shape(doubled(m), PartialShape{2, 2}); };
  EXPECT_EQ(message_of<ShapeError>([&] {
              run(Growing{wrong, 3, PartialShape{unknown, 2}})(ones({1, 2}));
            }),
            "ensure_shape: f32[4,2] does not have the shape [2,2]; give a shape that every x has, "
            "with unknown for sizes that may differ: ensure_shape checks x and does not change "
            "it\nin iteration 1 of while_loop \"while\"");
}

TEST_P(TensorFlowShapes, EverySizeIsComparedInEveryIteration) {
  // The first iteration keeps two columns, the second has three.
  const auto later = run([](Tensor m) {
    const auto [i, last] = while_loop(
        [](Tensor i, Tensor) { return i < 2; },
        [](Tensor i, Tensor m) {
          return std::tuple{i + 1, reshape(concat({m, m, m}, 0), {-1, 2})};
        },
        std::tuple{scalar(0), m}, {.shape_invariants = {PartialShape{}, PartialShape{unknown, 2}}});
    return last;
  });
  EXPECT_EQ(str(later(ones({1, 2})).type()), "f32[9,2]");
  int calls = 0;
  const auto breaks = [&](Tensor m) { return ++calls == 2 ? ones({3, 3}) : m; };
  if (is_eager()) {
    EXPECT_EQ(message_of<ShapeError>([&] {
                run(Growing{breaks, 4, PartialShape{unknown, 2}})(ones({1, 2}));
              }),
              kDiffers +
                  "  state.1: f32[1,2] going in, f32[3,3] coming out (its shape invariant [?,2] "
                  "does not allow that)" +
                  kAdvice + "\nin iteration 1 of while_loop \"while\"");
    EXPECT_EQ(calls, 2);
  }
}

// P05: a rank that differs from the invariant's, or is unknown, is an error, unless the body
// ensures the right shape.
TEST_P(TensorFlowShapes, P05_AnotherRankThanTheInvariants) {
  const auto flat = [](const Tensor& m) { return reshape(m, {-1}); };
  EXPECT_EQ(message_of<ShapeError>([&] {
              run(Growing{flat, 2, PartialShape{unknown, 2}})(ones({2, 2}));
            }),
            kDiffers + "  state.1: f32[2,2] going in, f32[" + (is_eager() ? "4" : "?") +
                "] coming out (its shape invariant [?,2] does not allow that)\n"
                "Return every leaf with the type it had on entry.");
  const auto ensured = [&](const Tensor& m) {
    return ensure_shape(reshape(flat(m), {-1, 2}), PartialShape{unknown, 2});
  };
  expect_values(run(Growing{ensured, 2, PartialShape{unknown, 2}})(ones({2, 2})), {1, 1, 1, 1});
}

// P06
TEST_P(TensorFlowShapes, P06_UnknownRankAllowsAnyShape) {
  const PartialShape any = PartialShape::unknown_rank();
  std::string inside, behind;
  const Tensor grown = run(Growing{doubled, 3, any, &inside, &behind})(ones({1, 2}));
  EXPECT_EQ(str(grown.type()), "f32[8,2]");
  EXPECT_EQ(inside, is_eager() ? "f32[4,2]" : "f32[?,?]");
  EXPECT_EQ(behind, is_eager() ? "f32[8,2]" : "f32[?,?]");
  const auto deeper = [](const Tensor& m) { return stack({m, m}, 0); };
  const Tensor deep = run(Growing{deeper, 3, any, &inside, &behind})(tensor({1.f, 2.f}));
  expect_values(deep, {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2});
  EXPECT_EQ(str(deep.type()), "f32[2,2,2,2]");
  EXPECT_EQ(inside, is_eager() ? "f32[2,2,2]" : "f32[...]");
  EXPECT_EQ(behind, is_eager() ? "f32[2,2,2,2]" : "f32[...]");
}

TEST(TracedTensorFlowShapes, P07_TheNumberOfInvariantsIsTheNumberOfTensors) {
  const auto loop = [](std::vector<std::optional<PartialShape>> invariants) {
    return [=](Tensor x) {
      return while_loop([](Tensor i, Tensor) { return i < 2; },
                        [](Tensor i, Tensor x) {
                          return std::tuple{i + 1, x};
                        },
                        std::tuple{scalar(0), x}, {.shape_invariants = invariants});
    };
  };
  const std::string message =
      "while_loop \"while\": shape_invariants has 1 entries, but the state has 2 tensors; give one "
      "entry per tensor, std::nullopt for the default";
  EXPECT_EQ(message_of<ArgumentError>([&] { loop({PartialShape{}})(ones({2})); }), message);
  EXPECT_EQ(message_of<ArgumentError>([&] { jit(loop({PartialShape{}}))(ones({2})); }), message);
  expect_values(std::get<1>(loop({std::nullopt, std::nullopt})(ones({2}))), {1, 1});
}

// Z06: a loop without iterations, with a body that would return a more specific shape.
TEST_P(TensorFlowShapes, P10_Z06_StaticResultIsTheInvariant) {
  const auto loop = [&](std::optional<PartialShape> invariant, std::string& seen, bool is_fixed) {
    return run([=, &seen](Tensor r) {
      const auto body = [](Tensor) { return tensor({1}); };
      const WhileOptions options{.shape_invariants = {invariant}};
      const Tensor last = is_fixed
                              ? while_loop([](Tensor) { return false; }, body, r, options)
                              : while_loop([](Tensor r) { return any(r < 0); }, body, r, options);
      seen = str(last.type());
      return last;
    });
  };
  for (const bool is_fixed : {true, false})
    for (const auto& invariant : {PartialShape{unknown}, PartialShape::unknown_rank()}) {
      std::string seen;
      const Tensor last = loop(invariant, seen, is_fixed)(tensor({1, 2}));
      expect_values(last, {1, 2});
      EXPECT_EQ(str(last.type()), "i32[2]");
      EXPECT_EQ(seen, is_eager() ? "i32[2]" : "i32[?]");
    }
}

TEST_P(TensorFlowShapes, MoreSpecificBodiesDoNotNarrowTheResult) {
  std::string behind;
  const auto one = [](const Tensor&) { return ones({1}); };
  const Tensor x = run(Growing{one, 2, PartialShape{unknown}, nullptr, &behind})(ones({3}));
  EXPECT_EQ(str(x.type()), "f32[1]");
  EXPECT_EQ(behind, is_eager() ? "f32[1]" : "f32[?]");
}

TEST_P(TensorFlowShapes, P11_InvariantOfATensorArrayIsItsElementsShape) {
  const auto push = [](const TensorArray& a) { return a.push_back(scalar(1.0)); };
  const auto loop = [&](std::optional<PartialShape> invariant) {
    return run([=](Tensor x) {
      const TensorArray start = TensorArray({f32, {}}, {.size = 10}).write(0, x);
      return Growing{push, 2, invariant}(start).stack();
    });
  };
  for (const auto& invariant : {std::optional<PartialShape>(), {PartialShape{}}})
    expect_values(loop(invariant)(scalar(3.0)), {3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1});
  EXPECT_EQ(message_of<ShapeError>([&] { loop(PartialShape{10})(scalar(3.0)); }),
            "while_loop \"while\": initial values do not match their shape invariant\n  state.1: "
            "list of f32[], shape invariant [10]\n" +
                kGiveAnInvariant);
}

TEST_P(TensorFlowShapes, InvariantLetsElementsOfATensorArrayDiffer) {
  // The array's elements have two entries at first; the loop writes others.
  std::string inside, behind;
  const auto push = [](const TensorArray& a) { return a.push_back(concat({a[-1], ones({1})}, 0)); };
  const auto loss = [&](Tensor x) {
    const TensorArray start = TensorArray({f32, {2}}).push_back(x);
    const TensorArray all = Growing{push, 3, PartialShape{unknown}, &inside, &behind}(start);
    return sum(square(all[0])) + sum(square(all[3]));
  };
  expect_values(run(loss)(tensor({1., 2.})), {5 + 5 + 3});
  EXPECT_EQ(inside, "f32[?]");
  EXPECT_EQ(behind, "f32[?]");
  expect_values(run(grad(loss))(tensor({1., 2.})), {4, 8});
  expect_values(run(grad([&](Tensor x) { return sum(grad(loss)(x)); }))(tensor({1., 2.})), {4, 4});
}

TEST_P(TensorFlowShapes, ABodyMayReturnATensorArrayOfMoreSpecificElements) {
  const auto fresh = [](const TensorArray& a) {
    return TensorArray({f32, {3}}).push_back(ones({3}) * cast(a.size(), f32));
  };
  const auto f = run([&](Tensor x) {
    const TensorArray start = TensorArray({f32, {unknown}}).push_back(x).push_back(x);
    return Growing{fresh, 2, std::nullopt}(start).push_back(x)[0];  // of other elements again
  });
  expect_values(f(ones({5})), {1, 1, 1});
}

// P12: sizes from constants around the loop are static in the body.
TEST_P(TensorFlowShapes, P12_ShapesFromOutsideStayStaticInTheBody) {
  std::string seen;
  const Tensor outer = zeros({3, 4});
  const auto f = run([&](Tensor x) {
    return while_loop(
        [](Tensor x) { return sum(x) < 60.0; },
        [&](Tensor x) {
          const Tensor reshaped = reshape(x, {5, outer.type().sizes()[0], outer.type().sizes()[1]});
          seen = str((reshaped + outer).type());
          return reshape(reshaped + 1.0, {60});
        },
        x);
  });
  expect_values(sum(f(zeros({60}))), {60});
  EXPECT_EQ(seen, "f32[5,3,4]");
}

TEST_P(TensorFlowShapes, Z05_NoElementsToMapOrScan) {
  const auto scanned = run([](Tensor start) {
    return scan(Scan{.initial = start,
                     .xs = range(0),
                     .body =
                         [](Tensor x, Tensor s) {
                           const Tensor next = s + cast(x, f32);
                           return std::pair{next, next};
                         }})
        .ys;
  });
  EXPECT_EQ(str(scanned(ones({2, 4})).type()), "f32[0,2,4]");
  const auto mapped = run([](Tensor start) {
    return scan(Scan{.xs = start, .body = [](Tensor) { return zeros({3, 2}); }}).ys;
  });
  EXPECT_EQ(str(mapped(zeros({0})).type()), "f32[0,3,2]");
}

}  // namespace
}  // namespace reel
