// Calls as the tables of docs/coming_from/ write them: they compile, and return what the pages say.
#include <cmath>
#include <limits>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

using Rows = std::vector<std::vector<float>>;

TEST(ComingFromReturnnTest, EqualExpressionsAreEqualDims) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch})),
      other("other", tensor({1, 2}, {batch}));
  EXPECT_EQ(time + 1, time + 1);
  EXPECT_EQ(ceildiv(time, 2), ceildiv(time, 2));
  expect_values((time - other).lengths(), {2, 0});
  EXPECT_EQ(message_of<ArgumentError>([&] { (time / other).lengths(); }),
            "Dim time/other: 1 is no multiple of 2; to round, divide by a number");
}

TEST(ComingFromReturnnTest, SlicesAndSpreadsTakeTheirDims) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch})), window("window", 2);
  const Tensor x = tensor({{1., 2., 3.}, {4., 0., 0.}}, {batch, time});
  expect_values(slice(x, time, tensor({1, 0}, {batch}), window), {2, 3, 4, 0});
  const Tensor a = tensor({1., 2.}, {batch}), b = tensor({3., 4.}, {window});
  auto [p, q] = spread(a, b);
  expect_values(p + q, {4, 5, 5, 6});
  expect_values(matmul(a, b, Dims{}), {3, 4, 6, 8});
}

TEST(ComingFromReturnnTest, LossesOfEntriesAreOptions) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch})), vocab("vocab", 4);
  const Dim label_time("label_time", 1);
  const Tensor logits = zeros({batch, time, vocab}), labels = ones({batch, label_time}, i32);
  const Tensor each =
      cross_entropy(logits, ones({batch, time}, i32), vocab, {.reduction = LossReduction::none});
  expect_values(each, {std::log(4.), std::log(4.), std::log(4.), std::log(4.), 0, 0}, 1e-6);
  expect_values(0 - ctc_log_likelihood(logits, labels, {time, label_time, vocab}),
                {std::log(64. / 6), std::log(4.)}, 1e-6);
}

TEST(ComingFromPytorchTest, CallsWithAxesAndOptionsCompile) {
  EXPECT_EQ(tensor({{1., 2.}}).dtype(), f32);
  EXPECT_EQ(range(3).dtype(), i32);
  const Tensor x = reshape(range(12, f32), {3, 4});
  EXPECT_EQ(str(expand(x, Dim(1)).type()), "f32[1,3,4]");
  EXPECT_EQ(str(reshape(x, {2, -1}).type()), "f32[2,6]");
  EXPECT_EQ(str(sum(x, 1, Keep::yes).type()), "f32[3,1]");
  expect_values(transpose(x, {1, 0}), {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
  expect_values(set_at(x, 1, zeros({4})), {0, 1, 2, 3, 0, 0, 0, 0, 8, 9, 10, 11});
  expect_values(variance(tensor({1., 3.})), {1});
  const Dim in("in", 4), out("out", 3);
  EXPECT_EQ(Linear::init(in, out, {.weight = he_normal}).weight.type().numel(), 12);
}

TEST(ComingFromPytorchTest, ElementsWithEqualIndicesAreReduced) {
  const Dim time("time", 4), to("to", 2);
  const Tensor x = tensor({1., 2., 3., 4.}, {time}), i = tensor({0, 0, 1, 0}, {time}),
               counts = tensor({0, 2, 0, 1}, {time});
  expect_values(scatter(x, i, {time}, to, {.by = ScatterBy::mean}), {7. / 3, 3}, 1e-6);
  expect_values(repeat(x, counts, time), {2, 2, 4});
}

TEST(ComingFromPytorchTest, RowsOfDifferentLengthsAreOneTensor) {
  const Dim batch("batch"), time("time");
  const Rows rows{{1, 2}, {3}};
  EXPECT_EQ(rows_of(ragged(rows, {batch, time})), rows);
}

TEST(ComingFromJaxTest, FunctionsOfFunctionsTakeTheirArgumentsInTheOrderOfThePage) {
  const auto f = [](const Tensor& x, const Tensor& s) { return std::pair{x, s + x}; };
  expect_values(scan(Scan{.initial = scalar(0.), .xs = tensor({1., 2., 3.}), .body = f}).state,
                {6});
  const Dim batch("batch", 2), beam("beam", 3);
  const auto twice = [](const Tensor& x) { return x * 2; };
  expect_values(vmap(twice, Dims{batch, beam})(ones({batch, beam})), {2, 2, 2, 2, 2, 2});
  expect_values(cond(
                    scalar(true), twice, [](const Tensor& x) { return -x; }, scalar(5.)),
                {10});
  expect_values(switch_case(
                    scalar(9), [] { return scalar(1.); }, [] { return scalar(2.); }),
                {2});
  const auto jitted = jit(twice, {.profile = true});
  jitted(scalar(1.));
  EXPECT_NE(str(jitted.graph()).find("mul"), std::string::npos);
}

TEST(ComingFromJaxTest, UpdatesReturnTensors) {
  expect_values(set_at(zeros({3}), 1, scalar(5.)), {0, 5, 0});
  expect_values(scatter_add(zeros({3}), tensor({0, 0}), ones({2}), 0), {2, 0, 0});
  const Tensor g = scalar(std::numeric_limits<float>::quiet_NaN());
  expect_values(where_nested(isfinite(global_norm(g)), scalar(1.), scalar(2.)), {2});
  expect_values(random_integers({3}, tensor({1, 2, 3}), tensor({2, 3, 4})), {1, 2, 3});
}

TEST(ComingFromTensorflowTest, MembersOfATupleAreArgumentsOfALoop) {
  const auto [i, s] = while_loop([](const Tensor& i, const Tensor&) { return i < 3; },
                                 [](const Tensor& i, const Tensor& s) {
                                   return std::tuple{i + 1, s * 2.};
                                 },
                                 std::tuple{scalar(0), scalar(1.)});
  expect_values(s, {8});
  expect_values(i, {3});
}

TEST(ComingFromTensorflowTest, PaddingOfAStrideIsGivenByNumbers) {
  const Tensor x = reshape(tensor({1., 2., 3., 4., 5.}), {1, 5, 1});
  expect_values(conv(x, ones({2, 1, 1}), 1, {.stride = 2, .padding = WindowPadding{0, 1}}),
                {3, 7, 5});
}

}  // namespace
}  // namespace reel
