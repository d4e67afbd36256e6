// Functions that refuse two Dims of one name all say so in the same words.
#include <functional>
#include <string>
#include <vector>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

const std::string kHint =
    "the two called batch are not one Dim: use one Dim for both, as x.dim(\"batch\") gives it";
const std::string kReason = "the two called batch are not one Dim";

struct Refusal {
  std::string function;  ///< the message begins with it
  std::function<void(const Dim& a, const Dim& b, const Dim& k)> call;
  std::string text = kHint;
};

std::vector<Refusal> refusals() {
  const auto linear = [](const Tensor& x) { return x * 2.0; };
  return {
      {"add", [](auto& a, auto& b, auto&) { zeros({a}) + zeros({b}); }},
      {"where", [](auto& a, auto& b, auto&) { where(zeros({a}) > 0, zeros({b}), zeros({a})); }},
      {"matmul",
       [](auto& a, auto& b, auto& k) {
         matmul(zeros({a, k}), zeros({b}), a);
       }},
      {"sum", [](auto& a, auto& b, auto&) { sum(zeros({a}), b); }},
      {"slice", [](auto& a, auto& b, auto&) { slice(zeros({a}), b, 0, 1); }},
      {"expand",
       [](auto& a, auto& b, auto& k) {
         expand(zeros({a}), {b, k});
       }},
      {"concat",
       [](auto& a, auto& b, auto& k) {
         concat({zeros({a, k}), zeros({b, k})}, k);
       }},
      {"cum_concat",
       [](auto& a, auto& b, auto& k) {
         cum_concat(zeros({b}), zeros({a, k}), k);
       }},
      {"scatter_add",
       [](auto& a, auto& b, auto& k) {
         scatter_add(zeros({a, k}), zeros({a}, i32), zeros({b}), k);
       }},
      {"ensure_shape",
       [](auto& a, auto& b, auto&) { ensure_shape(zeros({a}), PartialShape(Dims{b})); }},
      {"stack",
       [](auto& a, auto& b, auto&) {
         stack({zeros({a}), zeros({b})});
       }},
      {"pack",
       [](auto& a, auto& b, auto& k) {
         pack(zeros({a, k}), zeros({b}) > 0);
       }},
      {"cross_entropy",
       [](auto& a, auto& b, auto& k) {
         cross_entropy(zeros({a, k}), zeros({b}, i32), k);
       }},
      {"cross_entropy",
       [](auto& a, auto& b, auto& k) {
         cross_entropy(zeros({a, k}), zeros({b, k}), k);
       }},
      {"binary_cross_entropy",
       [](auto& a, auto& b, auto&) { binary_cross_entropy(zeros({a}), zeros({b})); }},
      {"mean_squared_error",
       [](auto& a, auto& b, auto&) { mean_squared_error(zeros({a}), zeros({b})); }},
      {"vjp", [=](auto& a, auto& b, auto&) { vjp(linear, zeros({a})).second(zeros({b})); }},
      {"Adam",
       [](auto& a, auto& b, auto&) {
         Tensor weight = zeros({a});
         Adam adam(weight);
         adam.update(weight, zeros({b}));
       }},
      {"jvp", [=](auto& a, auto& b, auto&) { jvp(linear, zeros({a}), zeros({b})); }, kReason},
      {"while_loop \"while\"",
       [](auto& a, auto& b, auto&) {
         while_loop([](const Tensor&) { return true; }, [&](const Tensor&) { return zeros({b}); },
                    zeros({a}));
       },
       kReason},
      {"cond",
       [](auto& a, auto& b, auto&) {
         jit([&](const Tensor& p) {
           return cond(
               p, [&] { return zeros({a}); }, [&] { return zeros({b}); });
         })(scalar(true));
       },
       kReason},
      {"TensorArray push_back",
       [](auto& a, auto& b, auto&) { TensorArray(TensorType(f32, {a})).push_back(zeros({b})); },
       kReason},
  };
}

TEST(SameNameTest, EveryFunctionSaysThatTheDimsAreTwo) {
  const Dim a("batch", 2), b("batch", 2), k("classes", 3);
  for (const Refusal& at : refusals()) {
    const std::string message = message_of<Error>([&] { return at.call(a, b, k), 0; });
    EXPECT_TRUE(message.starts_with(at.function + ": ")) << message;
    EXPECT_NE(message.find(at.text), std::string::npos) << message;
  }
}

TEST(SameNameTest, DimsOfOtherNamesGetNoHint) {
  const Dim a("batch", 2), other("time", 2);
  EXPECT_EQ(message_of<ShapeError>([&] { return mean_squared_error(zeros({a}), zeros({other})); }),
            "mean_squared_error: targets must have the dims of predictions: f32[batch=2], targets "
            "f32[time=2]");
}

// A conv makes a dim of the old one's name; programs then name the old one.
TEST(SameNameTest, DimComputedFromTheOneThatATensorLacksIsTheOneToPass) {
  const Dim time("time", 5), taps("taps", 3);
  const Tensor y = conv(ones({time}), ones({taps}), time, {.taps = {taps}});
  EXPECT_EQ(message_of<ShapeError>([&] { return sum(y, time); }),
            "sum: f32[time-2=3] has no dim time=5; pass x.dim(\"time\"), which is time-2=3");
  EXPECT_EQ(message_of<ShapeError>([&] { return sum(ones({time}), time - 2); }),
            "sum: f32[time=5] has no dim time-2=3; pass x.dim(\"time\"), which is time=5");
  const std::string of_conv =
      message_of<ShapeError>([&] { return conv(y, ones({taps}), time, {.taps = {taps}}); });
  EXPECT_TRUE(of_conv.ends_with("; pass x.dim(\"time\"), which is time-2=3")) << of_conv;
}

TEST(SameNameTest, TwoDimsOfOneAreNotTwoOfOneName) {
  const Dim time("time", 5);
  const auto hint_of = [&](const Dim& a, const Dim& b) {
    const std::string message = message_of<ShapeError>([&] { return ones({a}) + ones({b}); });
    return message.substr(message.rfind(';'));
  };
  EXPECT_EQ(hint_of(time - 2, time - 3),
            "; time-3=2 and time-2=3 are computed from one Dim: pad or slice one tensor to the dim "
            "of the other");
  EXPECT_EQ(hint_of(time, time * 2), "; time*2=10 is computed from time=5");
  EXPECT_EQ(hint_of(time, time - 2),
            "; time-2=3 is computed from time=5: pad or slice one tensor to the dim of the other");
}

}  // namespace
}  // namespace reel
