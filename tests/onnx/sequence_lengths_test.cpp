// Nodes with an input sequence_lens run along a ragged dim.
#include <nlohmann/json.hpp>

#include <fstream>

#include "reel/core/base/str.h"
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"
#include "reel/tests/onnx/model_text.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

/// Sizes of the tensors below: in, units and gates of a cell.
constexpr int kIn = 2, kUnits = 3;

struct CellOfOnnx {
  const char* op;
  int gates;
  bool has_c;
};
constexpr CellOfOnnx kCells[] = {{"RNN", 1, false}, {"GRU", 3, false}, {"LSTM", 4, true}};

/// Returns a model of the op: x, lengths -> y, h (c), in f64 with any number of steps and entries.
OnnxModel cell_model(const CellOfOnnx& cell, const std::string& direction, bool has_lengths) {
  const int directions = direction == "bidirectional" ? 2 : 1;
  const auto weights = [](const std::string& name, std::vector<int> sizes) {
    std::string numbers;
    int count = 1;
    for (const int size : sizes) count *= size;
    for (int i = 0; i < count; ++i) numbers += str(i ? ", " : "", std::sin(0.7 * i + sizes[1]));
    return str("double[", join(sizes, ", "), "] ", name, " = {", numbers, "}");
  };
  const int rows = cell.gates * kUnits;
  return model_of(str(
      "g (double[t, b, 2] x, int32[b] lengths) => (double[t, d, b, 3] y, ", "double[d, b, 3] h",
      cell.has_c ? ", double[d, b, 3] c" : "", ") <", weights("w", {directions, rows, kIn}), ", ",
      weights("r", {directions, rows, kUnits}), ", ", weights("bias", {directions, 2 * rows}),
      "> { y, h", cell.has_c ? ", c" : "", " = ", cell.op, " <hidden_size = 3, direction = \"",
      direction, "\"> (x, w, r, bias", has_lengths ? ", lengths" : "", ") }"));
}

/// Returns x: f64[steps, entries, kIn], with NaN behind each entry's end.
Tensor padded(std::int64_t steps, const std::vector<std::int64_t>& lengths) {
  manual_seed(7);
  const auto entries = static_cast<std::int64_t>(lengths.size());
  const Dim t("t", scalar(steps)), b("b", scalar(entries)), in("in", kIn);
  const Tensor x = random_normal({t, b, in}, f64);
  const Tensor position = range(t, i64), length = tensor(lengths, {b}, i64);
  return where(expand(position, {t, b}) < expand(length, {t, b}), x,
               std::numeric_limits<double>::quiet_NaN());
}
Tensor lengths_of(const std::vector<std::int64_t>& lengths) {
  return tensor(lengths, {Dim("b", scalar(static_cast<std::int64_t>(lengths.size())))}, i32);
}

class SequenceLengthsTest : public InEveryMode {};
REEL_IN_EVERY_MODE(SequenceLengthsTest);

/// Each entry has the results that it has alone, cut to its length.
TEST_P(SequenceLengthsTest, OneTraceServesAllLengths) {
  for (const CellOfOnnx& cell : kCells)
    for (const char* const direction : {"forward", "reverse", "bidirectional"}) {
      const OnnxModel model = cell_model(cell, direction, true),
                      alone = cell_model(cell, direction, false);
      const auto f = run([&](const Tensor& x, const Tensor& lengths) {
        return model({{"x", x}, {"lengths", lengths}});
      });
      for (const auto& [steps, lengths] :
           {std::pair<int, std::vector<std::int64_t>>{5, {3, 0, 4}}, {4, {1, 4}}, {2, {0, 0}}}) {
        const Tensor x = padded(steps, lengths);
        const auto made = f(x, lengths_of(lengths));
        for (std::size_t i = 0; i < lengths.size(); ++i) {
          const auto entry = static_cast<std::int64_t>(i);
          const auto part = [&](const Tensor& of, int axis) {
            return slice(of, axis, entry, entry + 1);
          };
          const Tensor y = part(made.at("y"), 2);
          expect_all_close(slice(y, 0, lengths[i]), zeros_like(slice(y, 0, lengths[i])), 0);
          if (!lengths[i]) {
            expect_all_close(part(made.at("h"), 1), zeros_like(part(made.at("h"), 1)), 0);
            continue;
          }
          const Tensor plain = reshape(x, {steps, static_cast<std::int64_t>(lengths.size()), kIn});
          const auto expected = alone({{"x", slice(part(plain, 1), 0, 0, lengths[i])},
                                       {"lengths", tensor({static_cast<int>(lengths[i])})}});
          expect_all_close(slice(y, 0, 0, lengths[i]), expected.at("y"), 1e-12);
          for (const char* const state : {"h", "c"})
            if (expected.count(state))
              expect_all_close(part(made.at(state), 1), expected.at(state), 1e-12);
        }
      }
      EXPECT_EQ(f.trace_count(), 1) << cell.op << ' ' << direction;
    }
}

TEST_P(SequenceLengthsTest, GradientsAreDerivatives) {
  for (const CellOfOnnx& cell : kCells) {
    const OnnxModel model = cell_model(cell, "bidirectional", true);
    const Tensor lengths = lengths_of({3, 0, 1});
    const auto loss = [](const OnnxModel& model, const Tensor& x, const Tensor& lengths) {
      const auto made = model({{"x", x}, {"lengths", lengths}});
      return sum(sin(made.at("y"))) + sum(square(made.at("h")));
    };
    const Tensor x = zeros_like(padded(4, {3, 0, 1})) + 0.3;
    const auto gradients = run([&](const OnnxModel& model, const Tensor& x, const Tensor& lengths) {
      return grad([&](const OnnxModel& model, const Tensor& x) { return loss(model, x, lengths); })(
          model, x);
    })(model, x, lengths);
    expect_gradient_of([&](const OnnxModel& m) { return loss(m, x, lengths); }, model, gradients);
  }
}

TEST_P(SequenceLengthsTest, PaddingHasNoGradient) {
  const OnnxModel model = cell_model(kCells[2], "bidirectional", true);
  const std::vector<std::int64_t> lengths{3, 0, 1};
  const Tensor x = padded(4, lengths);
  const Tensor gradient = run([&](const Tensor& x, const Tensor& lengths) {
    return grad([&](const Tensor& x) {
      return sum(square(model({{"x", x}, {"lengths", lengths}}).at("y")));
    })(x);
  })(x, lengths_of(lengths));
  const std::vector<double> values = values_of(gradient), elements = values_of(x);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(std::isfinite(values[i])) << i;
    EXPECT_EQ(values[i] == 0, std::isnan(elements[i])) << i;
  }
}

TEST_P(SequenceLengthsTest, LengthsAreCutToTheStepsOfX) {
  const OnnxModel model = cell_model(kCells[0], "reverse", true);
  const auto f = run([&](const Tensor& x, const Tensor& lengths) {
    return model({{"x", x}, {"lengths", lengths}}).at("y");
  });
  const Tensor x = padded(3, {3, 3});
  expect_same_bits(f(x, lengths_of({7, -2})), f(x, lengths_of({3, 0})));
}

/// X + Y: both still have the same axes in a trace.
TEST_P(SequenceLengthsTest, ResultsHaveTheAxesOfX) {
  const OnnxModel model = model_of(R"(
    g (float[t, b, 1] x, int32[b] lengths) => (float[t, b, 1] sum)
    <float[1, 1, 1] w = {1}, float[1, 1, 1] r = {1}, int64[1] direction = {1}> {
      y = RNN <hidden_size = 1, activations = ["Relu"]> (x, w, r, , lengths)
      one = Squeeze(y, direction)
      sum = Add(x, one)
    })");
  const auto f = run([&](const Tensor& x, const Tensor& lengths) {
    return model({{"x", x}, {"lengths", lengths}}).at("sum");
  });
  const Dim t("t", scalar(3)), b("b", scalar(2));
  const Tensor x = tensor({1., 2., 3., 4., 5., 6.}, {t, b, Dim("in", 1)});
  expect_values(f(x, lengths_of({2, 3})), {2, 4, 7, 10, 5, 18});
}

/// Returns the number of iterations of all loops in a run.
int iterations_of(const RunProfile& profile, const std::string& path) {
  profile.write_chrome_trace(path);
  const auto trace = nlohmann::json::parse(std::ifstream(path));
  int count = 0;
  for (const auto& event : trace["traceEvents"])
    count += event.value("cat", std::string()) == "iteration";
  return count;
}

class SequenceLengthsProfileTest : public InOwnFolder {
 protected:
  SequenceLengthsProfileTest() : InOwnFolder("run.json") {}
};

TEST_F(SequenceLengthsProfileTest, StepsBehindTheLongestEntryAreNotComputed) {
  const OnnxModel model = cell_model(kCells[1], "bidirectional", true);
  const auto f = jit(
      [&](const Tensor& x, const Tensor& lengths) {
        return model({{"x", x}, {"lengths", lengths}}).at("y");
      },
      {.passes = {.chunk_loops = false}, .profile = true});
  f(padded(50, {2, 0, 3}), lengths_of({2, 0, 3}));
  EXPECT_EQ(iterations_of(f.profile(), path), 6);  // three in each direction
}

}  // namespace
}  // namespace reel
