// Arguments that a step updates and reads besides, before or after: the update is in place.
#include <gtest/gtest.h>

#include <functional>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using Read = std::function<Tensor(const Tensor& w, const Tensor& g)>;
struct ReadCase {
  const char* name;
  Read read;
};
const ReadCase kReads[] = {
    {"Sum", [](const Tensor& w, const Tensor&) { return sum(w); }},
    {"SumOfRows", [](const Tensor& w, const Tensor&) { return sum(w, 1); }},
    {"SumOfColumns", [](const Tensor& w, const Tensor&) { return sum(w, 0); }},
    {"Mean", [](const Tensor& w, const Tensor&) { return mean(w); }},
    {"Max", [](const Tensor& w, const Tensor&) { return max(w, 1); }},
    {"Argmax", [](const Tensor& w, const Tensor&) { return argmax(w, 1); }},
    {"Norm", [](const Tensor& w, const Tensor&) { return global_norm(w); }},
    {"NormOfBoth",
     [](const Tensor& w, const Tensor& g) {
       return global_norm(std::vector<Tensor>{w, g});
     }},
    {"WeightDecay",
     [](const Tensor& w, const Tensor&) { return 0.01 * sum(square(w)) + sum(abs(w)); }},
    {"ProductWithTheGradient", [](const Tensor& w, const Tensor& g) { return sum(w * g); }},
    {"Tanh", [](const Tensor& w, const Tensor&) { return tanh(w); }},
    {"Square", [](const Tensor& w, const Tensor&) { return square(w); }},
    {"Log", [](const Tensor& w, const Tensor&) { return log(w); }},
    {"Transpose",
     [](const Tensor& w, const Tensor&) {
       return tanh(transpose(w, {1, 0}));
     }},
    {"SliceOfColumns", [](const Tensor& w, const Tensor&) { return tanh(slice(w, 1, 3, 9)); }},
    {"SliceOfRows", [](const Tensor& w, const Tensor&) { return tanh(slice(w, 0, 1, 3)); }},
    {"PartOfASplit", [](const Tensor& w, const Tensor&) { return tanh(split(w, 1, 2)[1]); }},
    {"Reshape", [](const Tensor& w, const Tensor&) { return tanh(reshape(w, {-1})); }},
    {"Product",
     [](const Tensor& w, const Tensor& g) {
       return matmul(w, transpose(g, {1, 0}));
     }},
    {"Softmax", [](const Tensor& w, const Tensor&) { return softmax(w, 1); }},
    {"SeveralReads",
     [](const Tensor& w, const Tensor&) {
       return sum(w) + global_norm(w) + sum(sum(w, 1)) + max(w);
     }},
};

class JitUpdatesTest : public ::testing::TestWithParam<ReadCase> {};
INSTANTIATE_TEST_SUITE_P(Reads, JitUpdatesTest, ::testing::ValuesIn(kReads),
                         [](const auto& info) { return info.param.name; });

/// A step of momentum that reads its parameter besides.
auto step_of(const Read& read, bool is_before) {
  return [read, is_before](Tensor w, Tensor m, const Tensor& g) {
    const Tensor old = w;
    Tensor result;
    if (is_before) result = read(old, g);
    m = m * 0.9 + g;
    w = w - m * 0.1;
    if (!is_before) result = read(old, g);
    return std::tuple{w, m, result};
  };
}

TEST_P(JitUpdatesTest, AreInPlace) {
  for (const std::int64_t columns : {300, 3000})  // rows that are summed by a fused op, and longer
    for (const bool is_before : {true, false}) {
      const auto step = jit(step_of(GetParam().read, is_before));
      const Dims dims{4, columns};
      Tensor w = ones(dims) * 0.5, m = zeros(dims);
      const Tensor g = reshape(cast(range(4 * columns), f32), {4, columns}) / 1e4;
      std::tie(w, m, std::ignore) = step(std::move(w), std::move(m), g);
      const void *const of_w = w.data<void>(), *const of_m = m.data<void>();
      const auto expected = step_of(GetParam().read, is_before)(w + 0.0, m + 0.0, g);
      Tensor result;
      std::tie(w, m, result) = step(std::move(w), std::move(m), g);
      EXPECT_EQ(w.data<void>(), of_w) << columns << is_before << step.explain();
      EXPECT_EQ(m.data<void>(), of_m) << columns << is_before << step.explain();
      EXPECT_EQ(w.to_vector<float>(), std::get<0>(expected).to_vector<float>());
      expect_all_close(result, std::get<2>(expected), 1e-5);
    }
}

}  // namespace
}  // namespace reel
