// A TensorArray cannot be stacked over iterations or rows: an error names it and the repair.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

using Pair = std::pair<TensorArray, Tensor>;

TensorArray three_numbers() { return TensorArray::unstack(tensor({1., 2., 3.}), 0); }

/// Calls f eagerly, and in a trace. Expects a StructureError with these words.
void expect_refusal(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                    const std::string& words) {
  const auto traced = jit(f);
  for (const auto& run : {f, std::function<Tensor(const Tensor&)>(traced)}) {
    const std::string message = message_of<StructureError>([&] { run(x); });
    EXPECT_NE(message.find(words), std::string::npos) << message;
  }
}

TEST(ArraysAsYsTest, ScansAndMapsRefuseThem) {
  const auto written = [a = three_numbers()](const Tensor& x) { return Pair{a.write(1, x), x}; };
  const std::string words = " is a TensorArray (list of f32[]), which cannot be stacked";
  expect_refusal([&](const Tensor& x) { return map(written, x).second; }, tensor({1., 10.}), words);
  expect_refusal([&](const Tensor& x) { return map(written, x).second; }, zeros({0}), words);
  const auto scanned = [&](const Tensor& x) {
    return scan(Scan{.initial = scalar(0.),
                     .xs = x,
                     .body =
                         [&](const Tensor& x, const Tensor& s) {
                           return std::pair{written(x), s + x};
                         }})
        .state;
  };
  expect_refusal(scanned, tensor({1., 10.}), words);
}

TEST(ArraysAsYsTest, VmapRefusesThemAsResults) {
  const auto written = [a = three_numbers()](const Tensor& x) { return Pair{a.write(1, x), x}; };
  const auto passed = [a = three_numbers()](const Tensor& x) { return Pair{a, x}; };
  const std::string words = "is a TensorArray (list of f32[]), which ";
  const Dim rows("rows", 2);
  const Tensor plain = tensor({1., 10.}), named = tensor({1., 10.}, {rows});
  expect_refusal([&](const Tensor& x) { return vmap(written)(x).second; }, plain, words);
  expect_refusal([&](const Tensor& x) { return vmap(passed)(x).second; }, plain, words);
  expect_refusal([&](const Tensor& x) { return vmap(written, rows)(x).second; }, named, words);
  expect_refusal([&](const Tensor& x) { return vmap(written, Dims{rows})(x).second; }, named,
                 words);
  expect_refusal([&](const Tensor& x) { return vmap(vmap(written))(x).second; }, ones({2, 2}),
                 words);
}

TEST(ArraysAsYsTest, JacobiansByThemAreRefused) {
  const auto f = [](const Pair& p) { return p.first.read(1) * p.second * ones({2}); };
  expect_refusal(
      [&](const Tensor& x) {
        return jacobian(f)(Pair{three_numbers(), x}).second;
      },
      scalar(2.), "jacobian: an argument is a TensorArray (list of f32[]); pass its stack()");
  expect_refusal(
      [&](const Tensor& x) {
        return jacfwd(f)(Pair{three_numbers(), x}).second;
      },
      scalar(2.), "jacfwd: an argument is a TensorArray (list of f32[]); pass its stack()");
}

}  // namespace
}  // namespace reel
