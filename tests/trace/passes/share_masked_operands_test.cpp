// Products that read the masked form of an operand: graphs behind the pass, and results with and
// without it.
#include "reel/trace/passes/cleanup/share_masked_operands.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reel/core/graph/passes/merge_equal.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/products/products.h"
#include "reel/tests/trace/plan/planned.h"

namespace reel {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

class ShareMaskedOperandsTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(3); }

  const Dim batch{"batch", 3}, unit{"unit", 4}, keys{"keys", tensor({2, 4, 1}, {batch})},
      time{"time", tensor({3, 0, 5}, {batch})};
  const Tensor k = mask_padding(random_normal({batch, keys, unit}, f64), NAN),
               h = random_normal({batch, unit}, f64);

  Tensor scores(const Tensor& k, const Tensor& h) const { return matmul(k, h, unit); }
  Tensor hidden(const Tensor& scores, double number) const {
    return where(mask(keys), scores, number);
  }
};

/// Returns how many products of f's graph read a masked value, before and behind the pass.
template <class F, class... Args>
std::pair<int, int> reads(const F& f, const Args&... args) {
  const auto jitted = jit(f);
  jitted(args...);
  const auto count = [](const Graph& graph) {
    int result = 0;
    for (const OpRecord& product : graph.records)
      for (const OpRecord& other : graph.records)
        if (product.op == &dot_op && other.op == &where_op)
          for (const ValueId v : graph.inputs_of(product))
            result += v == graph.outputs_of(other)[0];
    return result;
  };
  const Ref<Graph> merged = merge_equal(jitted.graph()), shared = share_masked_operands(*merged);
  verify(*shared, "share_masked_operands");
  return {count(*merged), count(*shared)};
}
using Counts = std::pair<int, int>;

TEST_F(ShareMaskedOperandsTest, ScoresReadTheKeysThatTheWeightsSum) {
  // Weights and keys of the second product are masked; then the keys of the first one, too.
  const auto attend = [&](const Tensor& k, const Tensor& h) {
    return matmul(softmax(scores(k, h), keys), k, keys);
  };
  EXPECT_EQ(reads(attend, k, h), (Counts{2, 3}));
  expect_same_without({.simplify = false}, true, attend, k, h);
  expect_same_bits(jit(attend)(k, h), attend(k, h));
}

TEST_F(ShareMaskedOperandsTest, OperandsAreSharedOnlyIfTheSameMaskHidesTheProduct) {
  const auto of = [&](const std::function<std::pair<Tensor, Tensor>(const Tensor&)>& f) {
    return reads(f, k);
  };
  const Dim others("keys", tensor({4, 4, 1}, {batch}));
  const Counts shared{0, 1}, kept{0, 0};
  EXPECT_EQ(of([&](const Tensor& k) {
              return std::pair{hidden(scores(k, h), -kInf), hidden(k, 0)};
            }),
            shared);
  EXPECT_EQ(of([&](const Tensor& k) {
              const Tensor s = scores(k, h);  // hidden twice
              return std::pair{hidden(s, -kInf) + hidden(s, 5), hidden(k, 7)};
            }),
            shared);
  EXPECT_EQ(of([&](const Tensor& k) { return std::pair{scores(k, h), hidden(k, 0)}; }), kept);
  EXPECT_EQ(of([&](const Tensor& k) {
              const Tensor s = scores(k, h);  // read without a mask
              return std::pair{hidden(s, 0) + s, hidden(k, 0)};
            }),
            kept);
  EXPECT_EQ(of([&](const Tensor& k) {
              return std::pair{hidden(scores(k, h), 0), hidden(k, 0) + k};  // both forms are read
            }),
            kept);
  EXPECT_EQ(of([&](const Tensor& k) {
              // Another mask.
              return std::pair{where(hidden(scores(k, h), 0) > 0, scores(k, h), 0), hidden(k, 0)};
            }),
            kept);
  EXPECT_EQ(of([&](const Tensor& k) {
              const Tensor s = scores(k, h);  // the number behind the mask
              return std::pair{where(mask(keys), 1., s), hidden(k, 0)};
            }),
            kept);
}

TEST_F(ShareMaskedOperandsTest, OperandsAreSharedOnlyIfTheProductKeepsTheDimsOfTheMask) {
  const Tensor row_mask = tensor({true, false, true}, {batch});
  const auto f = [&](const Tensor& h) {
    const Tensor sums = matmul(h, random_normal({batch}, f64), batch);  // {unit}
    return std::pair{sums, where(row_mask, h, 0)};
  };
  EXPECT_EQ(reads(f, h), (Counts{0, 0}));
}

// A mask that is computed from the product comes too late.
TEST_F(ShareMaskedOperandsTest, OperandsAreNotSharedIfTheMaskNeedsTheProduct) {
  const auto f = [&](const Tensor& k, const Tensor& h) {
    const Tensor s = scores(k, h), is_large = s > 0;
    return std::pair{where(is_large, s, 0), where(is_large, k, 0)};
  };
  EXPECT_EQ(reads(f, k, h), (Counts{0, 0}));
}

// A loop then captures the masked keys only.
TEST_F(ShareMaskedOperandsTest, LoopsCaptureOneFormOfTheKeys) {
  const Tensor xs = random_normal({time, batch, unit}, f64);
  const auto attend = [&](const Tensor& k, const Tensor& xs) {
    const auto step = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(x + matmul(softmax(scores(k, h), keys), k, keys));
      return std::pair{next, next};
    };
    return scan(Scan{.spatial_dim = time, .initial = h, .xs = xs, .body = step}).ys;
  };
  const auto explained = [&](const Passes& passes) {
    const auto f = jit(attend, {.passes = passes});
    f(k, xs);
    return f.explain();
  };

  EXPECT_NE(explained({}).find("\n  captures: f64[batch=3,keys[batch=3],unit=4]\n"),
            std::string::npos);
  const auto loss = [&](const std::pair<Tensor, Tensor>& p) {
    return sum(square(attend(p.first, p.second)));
  };
  const auto slope = [&](const std::pair<Tensor, Tensor>& p) {
    const auto [dk, dxs] = grad(loss)(p);
    return sum(square(dk)) + sum(square(dxs));
  };
  const std::pair p{k, xs};
  expect_same_bits(mask_padding(jit(attend)(k, xs)), mask_padding(attend(k, xs)));
  for (const bool is_second : {false, true}) {
    const auto f = [&](const std::pair<Tensor, Tensor>& p) {
      const auto [dk, dxs] = is_second ? grad(slope)(p) : grad(loss)(p);
      return std::pair{mask_padding(dk), mask_padding(dxs)};
    };
    expect_same_without({.simplify = false}, true, f, p);
  }
}

}  // namespace
}  // namespace reel
