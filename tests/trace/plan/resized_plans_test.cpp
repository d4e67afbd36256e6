// Plans that are made from a plan for other sizes: they have the bits of new ones.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/trace/plan/ragged_loops.h"

namespace reel {
namespace {

/// Functions of a ragged batch {time, batch, feature} and its lengths, with all kinds of plans
/// inside.
class ResizedPlansTest : public RaggedLoopsTest {
 protected:
  using Function = std::function<Tensors(const Tensor& x)>;

  ResizedPlansTest() : RaggedLoopsTest(20, 0.2) {}

  const Tensor w = random_normal({feature, hidden}) * 0.2;

  /// Returns batches of the same number of rows, with lengths that repeat now and then.
  std::vector<Tensor> batches(int rows, int count) const {
    std::mt19937 draw(7);
    std::vector<Tensor> result;
    std::vector<std::vector<int>> drawn;
    for (int i = 0; i < count; ++i) {
      std::vector<int> lengths;
      if (i % 5 == 4)
        lengths = drawn[draw() % drawn.size()];
      else
        for (int row = 0; row < rows; ++row) lengths.push_back(static_cast<int>(draw() % 40));
      drawn.push_back(lengths);
      result.push_back(batch(lengths));
    }
    result.push_back(batch(std::vector<int>(static_cast<std::size_t>(rows), 0)));
    return result;
  }

  Tensor states(const Tensor& x, const Tensor& u) const {
    return scanned(x, [&](const Tensor& x_t, const Tensor& h) {
      return tanh(matmul(x_t, w, feature) + multiplied(h, u));
    });
  }

  /// Returns the gradients of a loss with respect to x and u.
  std::pair<Tensor, Tensor> gradients(const Tensor& x) const {
    const auto loss = [this](const std::pair<Tensor, Tensor>& of) -> Tensor {
      return mean(square(states(of.first, of.second)));
    };
    return grad(loss)(std::pair{x, u});
  }

  /// Calls one jitted function with all batches, and a new one with each.
  void expect_bits_of_new_plans(const Function& f, int rows, const JitOptions& options = {}) const {
    const auto traced = jit(f, options);
    for (const Tensor& x : batches(rows, 24)) {
      const Tensors made = traced(x), expected = jit(f, options)(x);
      ASSERT_EQ(made.size(), expected.size());
      for (std::size_t k = 0; k < made.size(); ++k) expect_same_bits(made[k], expected[k]);
    }
  }
};

TEST_F(ResizedPlansTest, StatesAndGradientsOfARaggedLoop) {
  const auto f = [this](const Tensor& x) {
    const auto [dx, du] = gradients(x);
    return Tensors{mask_padding(states(x, u)), mask_padding(dx), du};
  };
  for (const int rows : {1, 3, 12, 64}) expect_bits_of_new_plans(f, rows);
}

// The types of the body contain the longest length: each number of rows has a plan to resize.
TEST_F(ResizedPlansTest, BodiesThatAttendToTheWholeBatch) {
  const auto f = [&](const Tensor& x) {
    const auto loss = [&](const std::pair<Tensor, Tensor>& of) -> Tensor {
      return mean(square(attended(of.first, of.second)));
    };
    const auto [dx, dmemory] = grad(loss)(std::pair{x, x * 0.5});
    return Tensors{mask_padding(attended(x, x)), mask_padding(dx), mask_padding(dmemory)};
  };
  for (const int rows : {3, 12, 33}) expect_bits_of_new_plans(f, rows);
}

// Captures of more than 256 KiB are read by several batches of rows: longer entries make more.
TEST_F(ResizedPlansTest, AnotherNumberOfBatchesHasTheBitsOfNewPlans) {
  const Dim wide("wide", 160);
  const Tensor v = random_normal({feature, wide}) * 0.1, q = random_normal({hidden, wide}) * 0.1;
  const auto attended = [&](const Tensor& x, const Tensor& memory) {
    const Dim time = memory.dim("time");
    return scanned(x, [&](const Tensor& x_t, const Tensor& h) {
      const Tensor query = matmul(h + rename(x_t, feature, hidden), q, hidden);
      const Tensor read = matmul(memory, softmax(matmul(memory, query, wide), time), time);
      return tanh(matmul(read, q, wide) + h * 0.5);
    });
  };
  const auto f = [&](const Tensor& x) {
    const auto loss = [&](const std::pair<Tensor, Tensor>& of) -> Tensor {
      return mean(square(attended(of.first, of.second)));
    };
    const Tensor memory = matmul(x, v, feature);
    const auto [dx, dmemory] = grad(loss)(std::pair{x, memory});
    return Tensors{mask_padding(attended(x, memory)), mask_padding(dx), mask_padding(dmemory)};
  };
  expect_bits_of_new_plans(f, 33);
}

TEST_F(ResizedPlansTest, LoopsInChunks) {
  const auto f = [this](const Tensor& x) {
    const auto [dx, du] = gradients(x);
    return Tensors{mask_padding(dx), du};
  };
  for (const int steps : {1, 4, 7})
    expect_bits_of_new_plans(f, 8, {.passes = {.chunk_steps = steps}});
}

TEST_F(ResizedPlansTest, BranchesAndLoopsInLoops) {
  const auto f = [this](const Tensor& x) {
    const Dim time = x.dim("time");
    const Tensor total = sum(x);
    const Tensor taken = cond(
        total > 0., [&] { return sum(square(states(x, u))); },
        [&] { return sum(states(x * 2., u)); });
    const auto body = [&](const Tensor& row, const Tensor& sum_so_far) {
      const auto [i, s] =
          while_loop([](const Tensor& i, const Tensor&) { return i < 3; },
                     [&](const Tensor& i, const Tensor& s) {
                       return std::pair{i + 1, s + sum(row * cast(i, f32), feature)};
                     },
                     std::pair{scalar(0), sum_so_far});
      return std::pair{s, s};
    };
    const auto loops =
        scan(Scan{.spatial_dim = time, .initial = zeros({x.dim("batch")}), .xs = x, .body = body});
    return Tensors{taken, mask_padding(loops.ys), loops.state};
  };
  for (const int rows : {2, 16}) expect_bits_of_new_plans(f, rows);
}

TEST_F(ResizedPlansTest, ElementsAndReductionsWithoutLoops) {
  const auto f = [this](const Tensor& x) {
    const Dim time = x.dim("time");
    const Tensor y = softmax(matmul(x, w, feature) * 0.5 + 1., hidden);
    return Tensors{mask_padding(y * tanh(y)), sum(y, {time}), logsumexp(mask_padding(y), time)};
  };
  for (const int rows : {1, 9}) expect_bits_of_new_plans(f, rows);
}

// Explained texts count plans; their times differ from run to run.
TEST_F(ResizedPlansTest, OnePlanServesNewLengths) {
  const auto f = jit([this](const Tensor& x) { return states(x, u); });
  for (int length = 1; length <= 30; ++length) f(batch({length, 1}));
  EXPECT_NE(f.explain().find("plans for other sizes: 1 made in "), std::string::npos)
      << f.explain();
  EXPECT_NE(f.explain().find(", 29 resized in "), std::string::npos) << f.explain();
}

TEST_F(ResizedPlansTest, SizesThatRecurKeepTheirPlans) {
  const auto f = jit([this](const Tensor& x) { return states(x, u); });
  for (int turn = 0; turn < 10; ++turn)
    for (const int length : {5, 9, 14}) f(batch({length, 1}));
  // The first occurrence of each size resizes, the second one makes a plan that stays.
  EXPECT_NE(f.explain().find("plans for other sizes: 3 made in "), std::string::npos)
      << f.explain();
  EXPECT_NE(f.explain().find(", 2 resized in "), std::string::npos) << f.explain();
}

/// Returns the number of kept plans that an explained text tells.
int kept_plans(const std::string& text) {
  const std::string word = "bound to other dims in ";
  const std::size_t begin = text.find("; ", text.find(word));
  return begin == std::string::npos ? 0 : std::stoi(text.substr(begin + 2));
}

TEST_F(ResizedPlansTest, ManySizesThatRecurOftenKeepTheirPlans) {
  const auto f = jit([this](const Tensor& x) { return states(x, u); });
  const auto expect_kept = [&](int turns, int at_least, int at_most) {
    for (int turn = 0; turn < turns; ++turn)
      for (int length = 1; length <= 20; ++length) f(batch({length, 1}));
    const int kept = kept_plans(f.explain());
    EXPECT_GE(kept, at_least) << f.explain();
    EXPECT_LE(kept, at_most) << f.explain();
  };
  expect_kept(3, 1, 1);  // to make a plan takes longer than to resize one a few times
  expect_kept(20, 15, 20);
}

TEST_F(ResizedPlansTest, KeptPlansAreBoundedByBytes) {
  const Dim wide("wide", 1 << 20);
  const auto f = jit([&](const Tensor& x) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor order = reverse(h, wide);  // a plan holds 20 MiB
      return std::pair{sum(reverse(order * 0.5, wide), wide), order + x};
    };
    return scan(Scan{.spatial_dim = x.dim("time"), .initial = zeros({wide}), .xs = x, .body = body})
        .ys;
  });
  const std::int64_t before = memory().all.current;
  for (int turn = 0; turn < 3; ++turn)
    for (int length = 1; length <= 7; ++length) f(ones({Dim("time", scalar(length))}));
  EXPECT_GE(kept_plans(f.explain()), 2) << f.explain();
  EXPECT_LE(kept_plans(f.explain()), 3) << f.explain();
  EXPECT_LE(memory().all.current - before, std::int64_t{80} << 20);
}

TEST_F(ResizedPlansTest, ProfilesBeginAnewWithEachPlan) {
  const auto f = jit([this](const Tensor& x) { return states(x, u); }, {.profile = true});
  for (int length = 1; length <= 4; ++length) f(batch({length, 1}));
  EXPECT_NE(f.explain().find("a call, the first one, which plans the loops"), std::string::npos)
      << f.explain();
}

}  // namespace
}  // namespace reel
