// Bodies that return a state of another type, as in RETURNN's rows 99 to 104: the type of the error
// and its whole text, the same in every mode.
#include <map>
#include <optional>
#include <vector>

#include "reel/tests/cases/returnn/errors.h"

namespace reel {
namespace {

using Map = std::map<std::string, Tensor>;
using Vector = std::vector<Tensor>;

struct Optional {
  Tensor step;
  std::optional<Tensor> extra;
};

using ReturnnStateErrors = ReturnnErrors;
REEL_IN_EVERY_MODE(ReturnnStateErrors);

TEST_P(ReturnnStateErrors, Case99_OtherKeysOrLength) {
  EXPECT_EQ(
      error_of_body<StructureError>(
          [](const Map& s) {
            return Map{{"a", s.at("a") + 1}, {"c", s.at("a")}};
          },
          Map{{"a", scalar(0)}, {"b", scalar(1)}}),
      "while_loop \"decode\": the state returned by the body differs from the state it was given\n "
      " state.b: i32[] going in, nothing coming out\n  state.c: nothing going in, i32[] coming "
      "out\nReturn every leaf with the type it had on entry. A container keeps its size and its "
      "keys from iteration to iteration; a list that grows can be a TensorArray.");
  EXPECT_EQ(error_of_body<StructureError>(
                [](const Map& s) {
                  return Map{{"a", s.at("a") + 1}};
                },
                Map{{"a", scalar(0)}, {"b", scalar(1)}}),
            "while_loop \"decode\": the state returned by the body differs from the state it was "
            "given\n  state.b: i32[] going in, nothing coming out\nReturn every leaf with the type "
            "it had on entry. A container keeps its size and its keys from iteration to iteration; "
            "a list that grows can be a TensorArray.");
  EXPECT_EQ(error_of_body<StructureError>(
                [](const Vector& s) {
                  return Vector{s[0], s[1], s[1]};
                },
                Vector{scalar(0), scalar(1)}),
            "while_loop \"decode\": the state returned by the body differs from the state it was "
            "given\n  state.2: nothing going in, i32[] coming out\nReturn every leaf with the type "
            "it had on entry. A container keeps its size and its keys from iteration to iteration; "
            "a list that grows can be a TensorArray.");
  // The message lists everything else that is wrong as well.
  EXPECT_EQ(error_of_body<StructureError>(
                [&](const std::pair<Vector, Layer>& s) {
                  return std::pair{Vector{cast(s.first[0], f32), s.first[0]},
                                   Layer{zeros({other}), s.second.c}};
                },
                std::pair{Vector{scalar(0)}, Layer{zeros({feature}), zeros({feature})}}),
            "while_loop \"decode\": the state returned by the body differs from the state it was "
            "given\n  state.0.0: i32[] going in, f32[] coming out (dtypes differ)\n  state.1.h: "
            "f32[feature=2] going in, f32[feature=2] coming out (dims differ: the two called "
            "feature are not one Dim)\n  state.0.1: nothing going in, i32[] coming out\nReturn "
            "every leaf with the type it had on entry. A container keeps its size and its keys "
            "from iteration to iteration; a list that grows can be a TensorArray.");
}

TEST_P(ReturnnStateErrors, ADimInPlaceOfAnotherOfItsSizeIsRenamed) {
  const Dim next("next", 2), wide("wide", 4);
  const auto message = [&](const Dim& returned) {
    return error_of_body<ShapeError>(
        [&](const Tensor&) {
          return zeros({batch, returned});
        },
        zeros({batch, feature}));
  };
  const std::string begin =
      "while_loop \"decode\": the state returned by the body differs from the state it was given\n"
      "  state: f32[batch=3,feature=2] going in, f32[batch=3,";
  const std::string end = ")\nReturn every leaf with the type it had on entry.";
  EXPECT_EQ(message(next),
            begin + "next=2] coming out (dims differ; rename it: rename(x, next, feature)" + end);
  EXPECT_EQ(message(wide), begin + "wide=4] coming out (dims differ" + end);
}

TEST_P(ReturnnStateErrors, Case99_AScanRefusesAListThatGrows) {
  EXPECT_EQ(error_of<StructureError>(
                [&](const Vector& s) {
                  return scan(Scan{.spatial_dim = time,
                                   .initial = s,
                                   .body =
                                       [](const Vector& s) {
                                         return std::pair{None{}, Vector{s[0], s[0]}};
                                       },
                                   .name = "encode"})
                      .state;
                },
                Vector{s0}),
            "scan \"encode\": the state returned by the body differs from the state it was given\n "
            " state.1: nothing going in, f32[batch=3] coming out\nReturn every leaf with the type "
            "it had on entry. A container keeps its size and its keys from iteration to iteration; "
            "a list that grows can be a TensorArray.");
}

// Case 100, another type of container, does not compile: "body returns a state of the type that it
// takes".

TEST_P(ReturnnStateErrors, Case101_TensorAndNothing) {
  EXPECT_EQ(error_of_body<StructureError>(
                [](const Optional& s) {
                  return Optional{s.step + 1, {}};
                },
                Optional{scalar(0), scalar(1.0)}),
            "while_loop \"decode\": the state returned by the body differs from the state it was "
            "given\n  state.extra: f32[] going in, nothing coming out\nReturn every leaf with the "
            "type it had on entry. A container keeps its size and its keys from iteration to "
            "iteration; a list that grows can be a TensorArray.");
  EXPECT_EQ(error_of_body<StructureError>(
                [](const Optional& s) {
                  return Optional{s.step + 1, s.step};
                },
                Optional{scalar(0), {}}),
            "while_loop \"decode\": the state returned by the body differs from the state it was "
            "given\n  state.extra: nothing going in, i32[] coming out\nReturn every leaf with the "
            "type it had on entry. A container keeps its size and its keys from iteration to "
            "iteration; a list that grows can be a TensorArray.");
  EXPECT_EQ(error_of_body<StructureError>(
                [](const Layer& s) {
                  return Layer{s.h + 1, {}};
                },
                Layer{scalar(0), scalar(1.0)}),
            "while_loop \"decode\": the state returned by the body differs from the state it was "
            "given\n  state.c: f32[] going in, an empty Tensor coming out (structures "
            "differ)\nReturn every leaf with the type it had on entry.");
  EXPECT_EQ(error_of_body<StructureError>([](const Layer& s) { return s; }, Layer{scalar(0), {}}),
            "while_loop \"decode\": the initial state has empty Tensors: state.c; give them "
            "values, or let them be std::optional<Tensor>");
}

TEST_P(ReturnnStateErrors, Case102_D16_ErrorsNameLeavesWhoseDimsChange) {
  EXPECT_EQ(
      error_of_body<ShapeError>(
          [&](const State& s) {
            return State{s.step + 1, {zeros({batch}), zeros({batch, other})}};
          },
          State{scalar(0), {scalar(0.0), zeros({batch, feature})}}),
      "while_loop \"decode\": the state returned by the body differs from the state it was given\n "
      " state.layer.h: f32[] going in, f32[batch=3] coming out (dims differ)\n  state.layer.c: "
      "f32[batch=3,feature=2] going in, f32[batch=3,feature=2] coming out (dims differ: the two "
      "called feature are not one Dim)\nReturn every leaf with the type it had on entry.");
  EXPECT_EQ(
      error_of<ShapeError>(
          [&](const Tensor& x, const Tensor& s) {
            return scan(Scan{.spatial_dim = x.dim("time"),
                             .initial = Layer{s, scalar(0.0)},
                             .xs = x,
                             .body =
                                 [&](const Tensor&, const Layer& s) {
                                   return std::pair{None{}, Layer{expand(s.h, {batch, beam}), s.h}};
                                 },
                             .name = "encode"})
                .state;
          },
          x, s0),
      "scan \"encode\": the state returned by the body differs from the state it was given\n  "
      "state.h: f32[batch=3] going in, f32[batch=3,beam=2] coming out (dims differ)\n  state.c: "
      "f32[] going in, f32[batch=3] coming out (dims differ)\nReturn every leaf with the type it "
      "had on entry.");
}

TEST_P(ReturnnStateErrors, Case103_D8_ErrorsNameLeavesWhoseDtypeChanges) {
  EXPECT_EQ(
      error_of_body<DTypeError>(
          [&](const State& s) {
            return State{cast(s.step, f32), {cast(s.layer.h, f64), s.layer.c}};
          },
          State{scalar(0), {scalar(0.0), zeros({batch, feature})}}),
      "while_loop \"decode\": the state returned by the body differs from the state it was given\n "
      " state.step: i32[] going in, f32[] coming out (dtypes differ)\n  state.layer.h: f32[] going "
      "in, f64[] coming out (dtypes differ)\nReturn every leaf with the type it had on entry.");
}

// Only eager mode can notice a difference in a later iteration, and names it.
TEST(ReturnnEagerStateErrors, Case103_LaterIterationsAreNamed) {
  EXPECT_EQ(message_of<DTypeError>([] {
              while_loop(
                  [](const Tensor& s) { return s < 5.0; },
                  [](const Tensor& s) { return s.item<float>() < 2 ? s + 1.0 : cast(s, f64); }, 0.0,
                  {.name = "decode"});
            }),
            "while_loop \"decode\": the state returned by the body differs from the state it was "
            "given\n  state: f32[] going in, f64[] coming out (dtypes differ)\nReturn every leaf "
            "with the type it had on entry.\nin iteration 2 of while_loop \"decode\"");
}

TEST_P(ReturnnStateErrors, Case104_TheConditionOfWhileLoop) {
  const auto with = [&](const auto& cond) {
    return [&](const Tensor& s) {
      return while_loop(cond, [](const Tensor& s) { return s + 1.0; }, s, {.name = "decode"});
    };
  };
  EXPECT_EQ(error_of<ShapeError>(with([](const Tensor& s) { return s < 3.0; }), s0),
            "while_loop \"decode\": cond must return a boolean scalar, got boolean[batch=3]; "
            "reduce it with any or all, or use scan, whose entries end one by one");
  EXPECT_EQ(
      error_of<DTypeError>(with([](const Tensor& s) { return sum(s); }), s0),
      "while_loop \"decode\": cond must return a boolean scalar, got f32[]; compare, as in x < 10");
  EXPECT_EQ(error_of<StructureError>(with([](const Tensor&) { return Tensor(); }), s0),
            "while_loop \"decode\": cond returned an empty Tensor");
}

}  // namespace
}  // namespace reel
