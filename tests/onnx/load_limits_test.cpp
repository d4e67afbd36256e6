// LoadOnnxOptions: nodes, bytes of values and axes of models from strangers.
#include "reel/core/runtime/allocation_limit.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/onnx/model_text.h"

namespace reel {
namespace {

/// Returns a model that doubles its input so often by Concat.
std::string doublings(int count, const std::string& before = "") {
  std::string text = "g (float[n] x) => (float[m] y) " + before + " { v0 = Identity(x) ";
  for (int i = 0; i < count; ++i)
    text += str("v", i + 1, " = Concat <axis = 0> (v", i, ", v", i, ") ");
  return model_bytes(text + str("y = Identity(v", count, ") }"));
}

std::string first_line(const std::string& message) { return message.substr(0, message.find('\n')); }

TEST(LoadOnnxLimitsTest, FortyFiveDoublingsAreStoppedByDefault) {
  const OnnxModel model = load_onnx_bytes(doublings(45));
  EXPECT_EQ(message_of<OnnxError>([&] {
              model({{"x", tensor({1., 2.})}});
            }).substr(0, 84),
            "Concat: the values of the call take more bytes than LoadOnnxOptions::max_bytes, whic");
}

TEST(LoadOnnxLimitsTest, ValuesOfAllNodesTogetherCount) {
  // 8, 16, ..., 1024 bytes make 2040.
  const std::map<std::string, Tensor> inputs{{"x", tensor({1.F})}};
  const OnnxModel fits = load_onnx_bytes(doublings(8), {.max_bytes = 2040});
  EXPECT_EQ(fits(inputs).at("y").numel(), 256);
  const OnnxModel exceeds = load_onnx_bytes(doublings(8), {.max_bytes = 2039});
  EXPECT_EQ(message_of<OnnxError>([&] { exceeds(inputs); }),
            "Concat: the values of the call take more bytes than LoadOnnxOptions::max_bytes, which "
            "is 2039\nin node of v8 (Concat)");
  EXPECT_THROW(exceeds(inputs), OnnxError);  // nothing of the first call counts
}

TEST(LoadOnnxLimitsTest, ALargeValueIsRefusedBeforeItIsMade) {
  reset_peak_memory();
  const std::int64_t before = memory().all.peak;
  const OnnxModel model =
      load_onnx_bytes(model_bytes("g (int64[1] n) => (float[m] y) { y = ConstantOfShape(n) }"),
                      {.max_bytes = std::int64_t{1} << 30});
  EXPECT_EQ(first_line(message_of<OnnxError>([&] {
              model({{"n", tensor(std::vector<std::int64_t>{std::int64_t{1} << 33})}});
            })),
            "ConstantOfShape: the values of the call take more bytes than "
            "LoadOnnxOptions::max_bytes, which is 1073741824");
  EXPECT_LT(memory().all.peak - before, std::int64_t{1} << 20);
}

TEST(LoadOnnxLimitsTest, ConstantsOfATraceCount) {
  const OnnxModel model =
      load_onnx_bytes(model_bytes("g (float[2] x) => (float[m] y) <int64[1] n = {1000}> {\n"
                                  "  c = ConstantOfShape(n)\n  d = Concat <axis = 0> (c, c)\n"
                                  "  s = ReduceSum <keepdims = 0> (d)\n  y = Add(x, s) }"),
                      {.max_bytes = 8'000});
  const auto f = jit([&](const Tensor& x) { return model({{"x", x}}).at("y"); });
  EXPECT_EQ(first_line(message_of<OnnxError>([&] {
              f(tensor({1.F, 2.F}));
            })),
            "Concat: the values of the call take more bytes than LoadOnnxOptions::max_bytes, which "
            "is 8000");
}

TEST(LoadOnnxLimitsTest, ValuesOfABodyCountUntilItsIterationEnds) {
  const auto model = [](std::int64_t max_bytes) {
    return load_onnx_bytes(model_bytes(R"(g (int64 n, float[100] x) => (float[100] y) {
          go = Constant <value = bool {1}> ()
          y = Loop (n, go, x) <body = b (int64 i, bool c, float[100] s) => (bool d, float[100] t) {
            d = Identity(c)
            u = Add(s, s)
            t = Sub(u, x)
          }>
        })"),
                           {.max_bytes = max_bytes});
  };
  const std::map<std::string, Tensor> inputs{{"n", scalar(100, i64)}, {"x", ones({100})}};
  expect_values(model(2'000)(inputs).at("y"), std::vector<double>(100, 1.));
  EXPECT_THROW(model(500)(inputs), OnnxError);
}

TEST(LoadOnnxLimitsTest, NodesAreLimitedWithThoseOfGraphsInNodes) {
  EXPECT_NO_THROW(load_onnx_bytes(doublings(3), {.max_nodes = 5}));
  EXPECT_EQ(message_of<OnnxError>([] { load_onnx_bytes(doublings(4), {.max_nodes = 5}); }),
            "the model has more nodes than LoadOnnxOptions::max_nodes, which is 5; those of "
            "functions count at each call. Node of y (Identity) is beyond it\n"
            "in load_onnx of the data");
}

TEST(LoadOnnxLimitsTest, AxesOfInitializersAndInputsAreLimited) {
  const std::string model = model_bytes(
      "g (float[1, 1, 1] x) => (float[1, 1, 1] y) <float[1, 1] w = {1}> {\n"
      "  y = Add(x, w) }");
  EXPECT_EQ(first_line(message_of<OnnxError>([&] { load_onnx_bytes(model, {.max_rank = 2}); })),
            "x has 3 axes, more than LoadOnnxOptions::max_rank, which is 2");
  EXPECT_NO_THROW(load_onnx_bytes(model, {.max_rank = 3}));
}

TEST(LoadOnnxLimitsTest, AxesOfValuesAreLimited) {
  const OnnxModel model = load_onnx_bytes(
      model_bytes("g (float[1] x, int64[k] axes) => (float[1] y) { y = Unsqueeze(x, axes) }"));
  const auto with_axes = [&](std::int64_t count) {
    return model({{"x", tensor({1.F})}, {"axes", range(count, i64)}}).at("y");
  };
  EXPECT_EQ(with_axes(63).rank(), 64);
  EXPECT_EQ(message_of<OnnxError>([&] { with_axes(100'000); }),
            "Unsqueeze: a tensor has 100001 axes, more than LoadOnnxOptions::max_rank, which is 64"
            "\nin node of y (Unsqueeze)");
}

TEST(AllocationLimitTest, EndsWithItsLifetime) {
  {
    const AllocationLimit limit(std::int64_t{1} << 29);
    const AllocationLimit smaller(1000);
    EXPECT_THROW(zeros({std::int64_t{1} << 28}, f32), AllocationLimitError);
  }
  EXPECT_NO_THROW(AllocationLimit::check(std::int64_t{1} << 40));
}

TEST(LoadOnnxLimitsTest, ALoopOverSequencesEndsWhenAStopIsRequested) {
  const OnnxModel model = model_of(R"(
    g (float[2] x, int64 trips) => (int64 count) <bool yes = {1}> {
      none = SequenceEmpty()
      all = Loop <body = b (int64 i, bool go, seq(float[2]) rows)
                      => (bool next_go, seq(float[2]) more) {
        next_go = Identity(go)
        more = SequenceInsert(rows, x)
      }> (trips, yes, none)
      count = SequenceLength(all)
    })");
  const auto count = [&](std::int64_t trips) {
    return model({{"x", tensor({1., 2.})}, {"trips", scalar(trips, i64)}}).at("count");
  };
  EXPECT_EQ(count(3).item<std::int64_t>(), 3);
  std::stop_source source;
  const CancellationScope scope(source.get_token());
  source.request_stop();
  EXPECT_THROW(count(std::int64_t{1} << 62), CancelledError);
}

}  // namespace
}  // namespace reel
