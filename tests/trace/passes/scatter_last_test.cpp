// Scattered numbers that are added to a difference: graphs behind the pass, and the same bits.
#include "reel/trace/passes/fusion/scatter_last.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "reel/tests/trace/plan/planned.h"

namespace reel {
namespace {

/// Expects the same bits of value and gradient from plans with and without the pass, and from the
/// interpreter.
template <class F>
void expect_same_gradient(const F& loss, const Tensor& logits) {
  const auto function = value_and_grad(loss);
  expect_same_without({.fuse_pointwise = false}, true, function, logits);
  const auto interpreted = jit(function, {.executor = Executor::interpreter})(logits);
  const auto planned = jit(function, {.executor = Executor::plan})(logits);
  expect_same_bits(planned.first, interpreted.first);
  expect_same_bits(mask_padding(planned.second), mask_padding(interpreted.second));
}

class ScatterLastTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(5); }

  const Dim batch{"batch", 6}, word{"word", 11};
  const Tensor logits = random_normal({batch, word}),
               targets = tensor({3, 0, 10, 3, 7, 1}, {batch});
};

TEST_F(ScatterLastTest, GradientOfCrossEntropyHasNeitherZerosNorTheirSum) {
  const auto gradient = grad([&](const Tensor& x) { return cross_entropy(x, targets, word); });
  const std::string before =
      ops_behind([](const Graph& graph) { return Ref<Graph>(new Graph(graph)); }, gradient, logits);
  EXPECT_EQ(before.substr(before.find("scatter_add")), "scatter_add sum exp mul sub");
  const std::string behind = ops_behind(scatter_last, gradient, logits);
  EXPECT_EQ(behind.substr(behind.find("spread")), "spread full add exp mul full sub scatter_add");
}

TEST_F(ScatterLastTest, BitsStayForNamedAndPlainAxesAndBothDtypes) {
  for (const DType dtype : {f32, f64}) {
    const Tensor x = cast(logits, dtype);
    expect_same_gradient([&](const Tensor& x) { return cross_entropy(x, targets, word); }, x);
    const Tensor plain = random_normal({4, 3, 9}, dtype),
                 at = cast(random_uniform({4, 3}, 0., 9.), i64);
    expect_same_gradient([&](const Tensor& x) { return cross_entropy(x, at, -1); }, plain);
  }
}

TEST_F(ScatterLastTest, BitsStayForOptionsOfTheLoss) {
  const Tensor weights = random_uniform({word}, 0.5, 2.);
  for (const CrossEntropyOptions& options :
       {CrossEntropyOptions{.ignore = 3}, CrossEntropyOptions{.class_weights = weights},
        CrossEntropyOptions{.label_smoothing = 0.1},
        CrossEntropyOptions{.reduction = LossReduction::sum}})
    expect_same_gradient([&](const Tensor& x) { return cross_entropy(x, targets, word, options); },
                         logits);
}

TEST_F(ScatterLastTest, BitsStayForExtremeLogits) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const Tensor x = tensor({{0., -kInf, 1e30}, {-kInf, -kInf, -kInf}, {-200., 0., 200.}}, f32);
  const Tensor at = tensor({0, 1, 2});
  expect_same_gradient([&](const Tensor& x) { return cross_entropy(x, at, 1); }, x);
  const Tensor one = random_normal({3, 1});
  expect_same_gradient([&](const Tensor& x) { return cross_entropy(x, zeros({3}, i32), 1); }, one);
}

TEST_F(ScatterLastTest, PaddingDoesNotCount) {
  const Dim time("time", tensor({3, 0, 5, 1, 2, 4}, {batch}));
  const Tensor x = mask_padding(random_normal({batch, time, word}), NAN);
  const Tensor at = mask_padding(cast(random_uniform({batch, time}, 0., 11.), i32), -77);
  const auto loss = [&](const Tensor& x) { return cross_entropy(x, at, word); };
  expect_same_gradient(loss, x);
  const Tensor gradient = mask_padding(jit(grad(loss))(x));
  EXPECT_TRUE(std::isfinite(sum(abs(gradient)).item<float>()));
}

TEST_F(ScatterLastTest, SecondDerivativesHaveTheSameBits) {
  const auto norm = [&](const Tensor& x) {
    return sum(square(grad([&](const Tensor& x) { return cross_entropy(x, targets, word); })(x)));
  };
  expect_same_gradient(norm, logits);
}

TEST_F(ScatterLastTest, TensorsWithOtherReadersStay) {
  const Tensor g = random_normal({batch});
  const auto scattered = [&] { return scatter_add(zeros({batch, word}), targets, g, word); };
  const auto has_zeros = [](const std::string& ops) {
    return ops.find("scatter_add") < ops.find("sub");
  };
  EXPECT_FALSE(has_zeros(ops_behind(
      scatter_last, [&](const Tensor& x) { return scattered() - x; }, logits)));
  EXPECT_TRUE(has_zeros(ops_behind(
      scatter_last, [&](const Tensor& x) { return x - scattered(); }, logits)));
  EXPECT_TRUE(has_zeros(ops_behind(
      scatter_last,
      [&](const Tensor& x) {
        const Tensor u = scattered();
        return std::pair{u - x, u};
      },
      logits)));
  EXPECT_TRUE(has_zeros(ops_behind(
      scatter_last,
      [&](const Tensor& x) {
        const Tensor u = scattered();
        return u - x * print(sum(u, word));
      },
      logits)));
}

// Two numbers of one position are added to zeros first, which rounds otherwise.
TEST_F(ScatterLastTest, SeveralNumbersOfOneRowStay) {
  const Dim pick("pick", 2);
  const Tensor at = tensor({4, 4}, {pick});
  const Tensor g = random_normal({batch, pick});
  const auto f = [&](const Tensor& x) {
    return scatter_add(zeros({batch, word}), at, g, word) - x;
  };
  const std::string ops = ops_behind(scatter_last, f, logits);
  EXPECT_LT(ops.find("scatter_add"), ops.find("sub"));
  expect_same_without({.fuse_pointwise = false}, true, f, logits);
}

TEST_F(ScatterLastTest, BodiesOfLoopsAndMissingIndices) {
  const Dim time("time", 3);
  const Tensor xs = random_normal({time, batch, word});
  const auto total = [&](const Tensor& xs) {
    return scan(Scan{.spatial_dim = time,
                     .initial = zeros({}),
                     .xs = xs,
                     .body =
                         [&](const Tensor& x, const Tensor& sum) {
                           const Tensor next = sum + cross_entropy(x * (1. + sum), targets, word);
                           return std::pair{next, next};
                         }})
        .state;
  };
  expect_same_gradient(total, xs);
  const Tensor outside = tensor({3, 0, 11, 3, 7, 1}, {batch});
  const auto f = jit([&](const Tensor& x) {
    return scatter_add(zeros({batch, word}), outside, ones({batch}), word) - x;
  });
  EXPECT_THROW(f(logits), IndexError);
}

// ---- Memory of the plan -------------------------------------------------------------------------

/// Returns the bytes of the memory for values, as explain() writes them.
template <class F, class... Args>
std::string memory_of_values(const F& f, const Args&... args) {
  const auto jitted = jit(f, {.executor = Executor::plan});
  jitted(args...);
  const std::string text = jitted.explain();
  const std::size_t begin = text.find("in ", text.find("  values: ")) + 3;
  return text.substr(begin, text.find(" of memory", begin) - begin);
}

// 256 x 1024 floats are one MiB.
TEST(OperandsInPlaceTest, LossOverAVocabularyHasOneCopyOfTheLogits) {
  manual_seed(1);
  const Dim batch("batch", 256), word("word", 1024), width("width", 8);
  const std::pair at{random_normal({batch, width}), random_normal({width, word})};
  const Tensor targets = cast(random_uniform({batch}, 0., 1024.), i32);
  const auto loss = [&](const std::pair<Tensor, Tensor>& at) {
    return cross_entropy(matmul(at.first, at.second, width), targets, word);
  };
  EXPECT_EQ(memory_of_values(value_and_grad(loss), at).substr(0, 2), "1.");
  expect_same_without({.reuse_memory = false}, true, value_and_grad(loss), at);
}

TEST(OperandsInPlaceTest, OperandsThatAreReadLaterStay) {
  manual_seed(1);
  const Tensor x = random_normal({64, 64}), w = random_normal({64, 64});
  const auto read_later = [](const Tensor& x, const Tensor& w) {
    const Tensor y = matmul(x, w);
    const Tensor p = log_softmax(y, 1);
    return matmul(p, w) + matmul(y, p);
  };
  expect_same_without({.reuse_memory = false}, true, read_later, x, w);
  const auto viewed = [](const Tensor& x, const Tensor& w) {
    const Tensor y = matmul(x, w);
    const Tensor rows = reshape(y, {32, 128});
    const Tensor p = softmax(y, 0);
    return matmul(matmul(p, w), reshape(rows, {64, 64}));
  };
  expect_same_without({.reuse_memory = false}, true, viewed, x, w);
  const auto updated = [](const Tensor& x, const Tensor& w) {
    const Tensor y = matmul(x, w);
    const Tensor z = scatter_add(y, tensor({3, 3, 5}), ones({3, 64}), 0);
    return matmul(z, y) + matmul(tanh(z) * z, w);
  };
  expect_same_without({.reuse_memory = false}, true, updated, x, w);
}

TEST(OperandsInPlaceTest, EagerResultReplacesATemporary) {
  manual_seed(1);
  for (const Tensor& x :
       {random_normal({7, 300}), random_normal({7, 5}), random_normal({300, 7, 3})})
    for (int axis = 0; axis < x.rank(); ++axis) {
      const Tensor y = x + 1;
      expect_same_bits(softmax(x + 1, axis), softmax(y, axis));
      expect_same_bits(log_softmax(x + 1, axis), log_softmax(y, axis));
    }
}

}  // namespace
}  // namespace reel
