// Saved functions have their values when they are loaded: eagerly and traced. save_onnx itself
// runs ONNX's checker and its inference of types.
#include <algorithm>
#include <filesystem>
#include <set>

#include "reel/tests/check.h"
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

using Values = std::map<std::string, Tensor>;

/// Calls check for each case. Fails if a case was not saved, or if its check throws.
template <class Check>
void for_each_case(const Check& check) {
  for (const SavedCase& saved : all_saved_cases()) {
    if (!saved.failure.empty()) {
      ADD_FAILURE() << saved.name << ": " << saved.failure;
      continue;
    }
    try {
      check(saved);
    } catch (const std::exception& error) {
      ADD_FAILURE() << saved.name << ": " << error.what();
    }
  }
}

TEST(SavedFunctionsTest, HaveTheirValuesWhenTheyAreLoaded) {
  for_each_case([](const SavedCase& saved) {
    expect_outputs(saved, load_onnx_bytes(saved.bytes)(saved.inputs), "loaded");
  });
}

class SavedFunctionsInTraces : public ::testing::TestWithParam<Executor> {};

TEST_P(SavedFunctionsInTraces, HaveTheirValues) {
  for_each_case([](const SavedCase& saved) {
    const OnnxModel model = load_onnx_bytes(saved.bytes);
    const auto traced =
        jit([&](const Values& inputs) { return model(inputs); }, {.executor = GetParam()});
    expect_outputs(saved, traced(saved.inputs), "traced");
  });
}
INSTANTIATE_TEST_SUITE_P(Executors, SavedFunctionsInTraces,
                         ::testing::Values(Executor::plan, Executor::interpreter,
                                           Executor::dataflow));

/// Each op of these functions is one node, which is the same op when it is loaded.
TEST(SavedFunctionsTest, HaveTheirBitsIfTheNodesAreTheSameOps) {
  manual_seed(5);
  const Tensor w = random_normal({3, 3}), xs = random_normal({7, 3}), v = random_normal({3});
  const auto ops = [&](const Tensor& xs) {
    return std::tuple{softmax(xs, {1}),
                      exp(xs) / (1 + square(xs)),
                      log_softmax(xs, {0}),
                      matmul(tanh(xs), w),
                      cumsum(sin(xs), 0),
                      max(xs, {1}) - min(xs, {1}),
                      where(xs > 0, sqrt(abs(xs)), sigmoid(xs)),
                      sum(xs, {0}) * mean(xs, {0})};
  };
  const auto loop = [&](const Tensor& xs) {
    const auto body = [&](const Tensor& x, const Tensor& s) {
      const Tensor next = tanh(x + matmul(s, w)) * 0.5 + s;
      return std::pair{next * x, next};
    };
    auto [ys, state, dim] = scan(Scan{.initial = v, .xs = xs, .body = body});
    return std::pair{ys, state};
  };
  const auto expect_bits = [&](const auto& f) {
    const OnnxModel model = load_onnx_bytes(onnx_bytes(f, xs));
    const auto outputs = model({{"x", xs}});
    const std::vector<std::string> names = model.output_names();
    std::size_t next = 0;
    for (const TreeLeaf& leaf : flatten(f(xs)))
      expect_same_bits(outputs.at(names.at(next++)), leaf.tensor);
    EXPECT_EQ(next, names.size());
  };
  expect_bits(ops);
  expect_bits(loop);
}

/// ONNX's Gather counts negative positions from the end.
TEST(SavedFunctionsTest, ReadNoElementFromTheEndIfOnlyPositionsFromZeroAreInRange) {
  manual_seed(6);
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch})), vocab("vocab", 4);
  const Embedding table = Embedding::init(vocab, Dim("feature", 2));
  const SparseEmbedding rows = SparseEmbedding::init(vocab, Dim("feature", 2));
  const Tensor logits = random_normal({batch, time, vocab});
  const auto in_padding = [&](std::int32_t p) {
    return std::vector<std::int32_t>{1, 3, 0, 2, p, p};
  };
  const Tensor symbols = tensor(in_padding(0), {batch, time}), lengths = time.lengths();
  const auto expect_range = [&](const auto& f, const std::string& text) {
    const OnnxModel model = load_onnx_bytes(onnx_bytes(f, symbols, {.arguments = {"symbols"}}));
    const auto call = [&](const std::vector<std::int32_t>& values) {
      return model({{"symbols", tensor(values, {2, 3})}, {"time_lengths", tensor({3, 1})}})
          .begin()
          ->second;
    };
    expect_same_bits(call(in_padding(-1)), call(in_padding(0)));
    EXPECT_EQ(message_of<Error>([&] { call({1, -1, 0, 2, 0, 0}); }), text);
  };
  const std::string gathered =
      "gather: index 4 at [0,1] of i64[2,3] is out of range for axis 0 of f32[4,2], which has "
      "size 4\nin node Gather (Gather)";
  expect_range([&](const Tensor& s) { return sum(table(s), {time}); }, gathered);
  expect_range([&](const Tensor& s) { return sum(rows(s), {time}); }, gathered);
  expect_range([&](const Tensor& s) { return cross_entropy(logits, s, vocab); },
               "assert_that: an index is within an axis of 4\nfalse at [0, 1, 0]\nvalue 0: "
               "i64[2,3,1]\n[[[1]\n  [4]\n  [0]]\n\n [[2]\n  [0]\n  [0]]]\nin node "
               "GatherElements (GatherElements)");
}

TEST(SavedFunctionsTest, HaveTheirValuesWhenTheyAreSavedAgain) {
  for_each_case([](const SavedCase& saved) {
    const OnnxModel model = load_onnx_bytes(saved.bytes);
    const auto f = [&](const Values& inputs) { return model(inputs); };
    const OnnxModel again =
        load_onnx_bytes(onnx_bytes(f, std::tuple{saved.inputs}, {.arguments = {""}}));
    expect_outputs(saved, again(saved.inputs), "saved again");
  });
}

// ---- Examples -----------------------------------------------------------------------------------

/// Returns true if a case of this name was saved. A comma and a remark may follow the name.
bool has_case(const std::string& name) {
  const std::vector<SavedCase>& cases = all_saved_cases();
  return std::any_of(cases.begin(), cases.end(), [&](const SavedCase& saved) {
    return saved.failure.empty() && (saved.name == name || saved.name.starts_with(name + ','));
  });
}

TEST(SavedExamplesTest, EveryModelAndTrainingStepIsSaved) {
  const std::set<std::string> left_out{"onnx_info"},  // reads models
      without_model{"long_text"},                     // its step runs the model
      without_step{"beam_search", "greedy",           // read a trained model
                   "first_steps"};                    // its case has the gradient
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(REEL_EXAMPLES)) {
    const std::string name = entry.path().stem().string();
    if (!entry.is_directory() && entry.path().extension() != ".cpp") continue;
    if (left_out.count(name)) continue;
    ++count;
    EXPECT_TRUE(without_model.count(name) || has_case(name)) << name;
    EXPECT_TRUE(without_step.count(name) || has_case("a step of " + name) ||
                has_case("the gradient of " + name))
        << name;
  }
  EXPECT_GT(count, 20);
}

}  // namespace
}  // namespace reel
