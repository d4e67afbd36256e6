// explain() of a function with several traces: the argument that differs, and the repair.
#include "reel/tests/check.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

/// Returns the lines of explain() about traces.
template <class F>
std::string traces_of(const F& jitted) {
  std::string result;
  std::istringstream lines(jitted.explain());
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("traces: ")) result += line + '\n';
  return result;
}

const std::string kAsTensor = " Pass what changes from call to call as a Tensor: scalar(x).\n";
const std::string kByValue =
    " Each value needs a trace; JitOptions::max_traces bounds how many are kept.\n";

class TraceCausesTest : public ::testing::TestWithParam<Executor> {
 protected:
  JitOptions options() const { return {.executor = GetParam()}; }
};

TEST_P(TraceCausesTest, NameANumberThatIsAnArgument) {
  const auto step = jit([](const Tensor& w, double rate) { return w - w * rate; }, options());
  const Tensor w = ones({2});
  step(w, 0.5);
  step(w, 0.5);
  EXPECT_EQ(traces_of(step), "");
  step(w, 0.25);
  step(w, 0.125);
  step(w, 0.5);
  EXPECT_TRUE(step.explain().starts_with(
      "jit \"jit\", recorded for 3 kinds of arguments; as of the last call:\n"
      "traces: argument 1 had 3 values in 3 traces (0.5, 0.25, 0.125)." +
      kAsTensor))
      << step.explain();
  for (int i = 0; i < 3; ++i) step(w, 1. + i);
  EXPECT_EQ(traces_of(step),
            "traces: argument 1 had 6 values in 6 traces (0.5, 0.25, 0.125, ..., 3)." + kAsTensor);
}

TEST_P(TraceCausesTest, CutLongTexts) {
  const auto f = jit([](const Tensor& x, const std::string&) { return x; }, options());
  f(ones({2}), std::string(99, 'a'));
  f(ones({2}), std::string("two\nlines"));
  EXPECT_EQ(traces_of(f), "traces: argument 1 had 2 values in 2 traces (" + std::string(40, 'a') +
                              "..., two lines)." + kByValue);
}

enum class Reduction { none, mean };
struct Schedule {
  float rate;
  std::int64_t step;
  bool is_warm;
  Reduction reduction;
  std::string name;
  std::size_t constant;
};
struct Settings {
  Tensor w;
  Schedule schedule;
};

TEST_P(TraceCausesTest, NameFieldsOfStructs) {
  const auto step = jit([](const Tensor& x, const Settings& s) { return x * s.w; }, options());
  const Tensor x = ones({2});
  step(x, Settings{x, {0.5f, 1, true, Reduction::none, "a", 7}});
  step(x, Settings{x, {0.25f, 2, true, Reduction::none, "a", 7}});
  EXPECT_EQ(traces_of(step),
            "traces: argument 1.schedule.rate had 2 values in 2 traces (0.5, 0.25)." + kAsTensor +
                "traces: argument 1.schedule.step had 2 values in 2 traces (1, 2)." + kAsTensor);
  step(x, Settings{x, {0.5f, 1, false, Reduction::mean, "b", 7}});
  EXPECT_EQ(traces_of(step),
            "traces: argument 1.schedule.rate had 2 values in 3 traces (0.5, 0.25)." + kAsTensor +
                "traces: argument 1.schedule.step had 2 values in 3 traces (1, 2)." + kAsTensor +
                "traces: argument 1.schedule.is_warm had 2 values in 3 traces (1, 0)." + kByValue +
                "traces: argument 1.schedule.reduction had 2 values in 3 traces (0, 1)." +
                kAsTensor + "traces: argument 1.schedule.name had 2 values in 3 traces (a, b)." +
                kByValue);
}

TEST_P(TraceCausesTest, NameSizes) {
  const auto total =
      jit([](const Tensor& x, const Tensor& w) { return sum(x) * sum(w); }, options());
  for (const int size : {5, 6, 7}) total(ones({Dim("time", size), Dim("in", 2)}), ones({3}));
  EXPECT_EQ(traces_of(total),
            "traces: the size of dim time had 3 values in 3 traces (5, 6, 7). One trace serves all "
            "sizes with JitOptions{.dynamic = {Dim(\"time\")}}.\n");
  const auto plain =
      jit([](const Tensor& x, const Tensor& w) { return sum(x) * sum(w); }, options());
  for (const int size : {5, 6}) plain(ones({3}), ones({2, size}));
  EXPECT_EQ(traces_of(plain),
            "traces: the size of axis 1 of argument 1 had 2 values in 2 traces (5, 6). One trace "
            "serves all sizes with JitOptions{.any_length = {{1, 1}}}.\n");
}

TEST_P(TraceCausesTest, NameTypes) {
  const auto total = jit([](const Tensor& x) { return sum(x); }, options());
  total(ones({2}, f32));
  total(ones({2}, i64));
  EXPECT_EQ(traces_of(total),
            "traces: the dtype of argument 0 had 2 values in 2 traces (f32, i64). Cast it before "
            "the call.\n");
  total(ones({2, 1}, f32));
  EXPECT_EQ(traces_of(total),
            "traces: the dtype of argument 0 had 2 values in 2 traces (f32, i64). Cast it before "
            "the call.\n"
            "traces: the arguments had 2 structures: C++ types, ranks, or names and sharing of "
            "dims\n");
  const auto generic = jit([](const Tensor& x, auto n) { return x * n; }, options());
  generic(ones({2}), 1);
  generic(ones({2}), 1.5);
  EXPECT_EQ(traces_of(generic),
            "traces: the arguments had 2 structures: C++ types, ranks, or names and sharing of "
            "dims\n");
}

TEST_P(TraceCausesTest, NameContainers) {
  const auto total = jit(
      [](const std::vector<Tensor>& all) {
        Tensor result = scalar(0.);
        for (const Tensor& x : all) result = result + sum(x);
        return result;
      },
      options());
  for (const std::size_t count : {2, 1, 3}) total(std::vector<Tensor>(count, ones({2})));
  const std::string text = traces_of(total);
  EXPECT_EQ(text,
            "traces: argument 0 had 3 values in 3 traces (of size 2, of size 1, of size 3). Stack "
            "the elements into one Tensor.\n");
}

TEST_P(TraceCausesTest, AreRememberedBeyondDroppedTraces) {
  JitOptions bounded = options();
  bounded.max_traces = 1;
  const auto step = jit([](const Tensor& w, double rate) { return w * rate; }, bounded);
  for (int i = 0; i < 4; ++i) step(ones({2}), 0.5 * (i % 2));
  EXPECT_EQ(traces_of(step), "traces: argument 1 had 2 values in 4 traces (0, 0.5)." + kAsTensor);
}

TEST_P(TraceCausesTest, AreFewLines) {
  const auto total = jit(
      [](const std::map<std::string, Tensor>& model) {
        Tensor result = scalar(0.);
        for (const auto& [name, x] : model) result = result + sum(x);
        return result;
      },
      options());
  for (const int size : {2, 3}) {
    std::map<std::string, Tensor> model;
    for (int i = 0; i < 10; ++i)
      model.emplace(std::string(1, static_cast<char>('a' + i)), ones({size}));
    total(model);
  }
  const std::string text = traces_of(total);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 9) << text;
  EXPECT_NE(text.find("traces: the size of axis 0 of argument 0.a had 2 values"), std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("traces: 2 more properties differ\n")) << text;
}

INSTANTIATE_TEST_SUITE_P(Executors, TraceCausesTest,
                         ::testing::Values(Executor::interpreter, Executor::plan,
                                           Executor::dataflow),
                         [](const auto& info) {
                           return std::string(info.param == Executor::interpreter ? "Interpreter"
                                              : info.param == Executor::plan      ? "Plan"
                                                                                  : "Dataflow");
                         });

}  // namespace
}  // namespace reel
