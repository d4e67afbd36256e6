// The bytes in explain()'s text are those that a plan allocates: of its values, carries and sums,
// and of the plans inside its loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>

#include "reel/core/base/quantities.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/threads.h"
#include "reel/tests/trace/plan/ragged_loops.h"
#include "reel/tests/trace/plan/resized_plan.h"
#include "reel/trace/executors/plan/base/held_memory.h"
#include "reel/trace/executors/plan/explain/explain.h"

namespace reel {
namespace {

/// Bytes that a text gives, which rounds them.
struct RoundedBytes {
  double least = 0, most = 0;
};

/// Returns the bytes behind `words` in a text, such as 5.1 MiB.
RoundedBytes bytes_behind(std::string_view words, const std::string& text) {
  const std::size_t at = text.find(words);
  if (at == std::string::npos) {
    ADD_FAILURE() << words << " is not in\n" << text;
    return {};
  }
  const char *const begin = text.data() + at + words.size(), *const end = text.data() + text.size();
  double number = 0;
  const char* unit = std::from_chars(begin, end, number).ptr;
  const bool has_places = std::string_view(begin, unit).find('.') != std::string_view::npos;
  constexpr std::string_view kUnits[] = {" B", " KiB", " MiB"};
  double factor = 1;
  const auto found = std::find_if(std::begin(kUnits), std::end(kUnits), [&](std::string_view of) {
    if (std::string_view(unit, end).starts_with(of)) return true;
    factor *= 1024;
    return false;
  });
  EXPECT_NE(found, std::end(kUnits)) << text;
  const double rounding = factor == 1 ? 0 : has_places ? 0.05 : 0.5;
  return {(number - rounding) * factor, (number + rounding) * factor};
}

/// Returns the bytes that explain() gives for the memory of a plan, of its loops and branches, and
/// of the plans inside these.
RoundedBytes explained_bytes(const std::string& text) {
  RoundedBytes sum;
  for (const char* words :
       {"B, in ", "carries of loops, two buffers each, and sums: ", "values inside loops: "}) {
    const RoundedBytes bytes = bytes_behind(words, text);
    sum.least += bytes.least;
    sum.most += bytes.most;
  }
  return sum;
}

/// Returns the bytes of plans' memory, with the residuals in it.
std::int64_t bytes_of_plans() { return memory().buffers.current + memory().saved.current; }

class ExplainedBytesTest : public RaggedLoopsTest {
 protected:
  explicit ExplainedBytesTest(std::int64_t size = 96) : RaggedLoopsTest(size, 0.1) {}

  /// Expects that the text of the plan of f(x) gives the bytes that the plan holds, and that
  /// `holds` is true for a loop of it. Returns the bytes of the text.
  static RoundedBytes expect_told(const ResizedPlan::Function& f, const Tensor& x,
                                  const std::function<bool(const LoopPlan&)>& holds = {},
                                  const Passes& passes = {}) {
    free_held_plan_memory();
    const std::int64_t before = bytes_of_plans();
    ResizedPlan run(f, passes);
    run(x);
    const auto held = static_cast<double>(bytes_of_plans() - before);
    const std::string text = explain(run.plan(), "");
    const RoundedBytes told = explained_bytes(text);
    EXPECT_LE(told.least, held) << text;
    EXPECT_GE(told.most, held) << text;
    const auto loops = run.loops();
    EXPECT_TRUE(!holds || std::ranges::any_of(loops, [&](const LoopPlan* loop) {
      return holds(*loop);
    })) << text;
    return told;
  }

  /// A batch whose loops run in row blocks.
  Tensor rows_of_blocks() const {
    return random_normal({Dim("time", 20), Dim("batch", 64), feature});
  }
};

TEST_F(ExplainedBytesTest, BatchesAndRowBlocksHoldTheirOwn) {
  const Tensor x = batch({8, 30, 2, 30, 17, 5, 5, 21, 1, 3, 12, 29, 4, 7, 9, 11});
  for (const int count : {1, 2, 3}) {
    const Threads these(count);
    expect_told([this](const Tensor& x) { return attended(x, x); }, x);
    expect_told([this](const Tensor& x) { return attended(x, x); }, batch({7, 5, 6}));
  }
}

TEST_F(ExplainedBytesTest, BlocksThatRunAsOneAreCounted) {
  const auto f = [this](const Tensor& x) { return recurrent(x); };
  for (const int count : {1, 2}) {
    const Threads these(count);
    expect_told(f, rows_of_blocks(), [&](const LoopPlan& loop) {
      return loop.blocks() > 1 && PlanView::runs_joined(loop) == (count == 1);
    });
  }
}

/// Plans so small that a text rounds less than their sums.
class ExplainedSumsTest : public ExplainedBytesTest {
 protected:
  ExplainedSumsTest() : ExplainedBytesTest(8) {}
};

// The gradient of a factor is a sum over the rows in each iteration: row blocks have one each, in
// their own memory or, if they run as one, in one tensor.
TEST_F(ExplainedSumsTest, SumsOverRowsAreCounted) {
  const auto f = [this](const Tensor& x) -> Tensor {
    const auto loss = [&](const Tensor& factor) -> Tensor {
      return mean(square(scanned(x, [&](const Tensor& x_t, const Tensor& h) {
        return tanh(multiplied(h, u) + rename(x_t, feature, hidden)) * factor;
      })));
    };
    return grad(loss)(ones({hidden}));
  };
  const Tensor x = random_normal({Dim("time", 2), Dim("batch", 32), feature});
  const Passes passes{.batch_over_time = false, .block_rows = 1};  // sums stay in the loop
  for (const int count : {1, 2}) {
    SCOPED_TRACE(count);
    const Threads these(count);
    std::int64_t sums = 0;
    const auto has_sums = [&](const LoopPlan& loop) {
      sums = std::max(sums, PlanView::sum_bytes(loop));
      return PlanView::runs_joined(loop) == (count == 1) && PlanView::sum_bytes(loop) > 0;
    };
    const RoundedBytes told = expect_told(f, x, has_sums, passes);
    EXPECT_LT(told.most - told.least, static_cast<double>(sums));
  }
}

// The last chunk is shorter, and has a plan of its own.
TEST_F(ExplainedBytesTest, ShorterChunksHoldTheirOwn) {
  const auto f = [this](const Tensor& x) {
    const auto body = [&](const Tensor& x_t, const Tensor& h) {
      const Tensor from = rename(matmul(x_t, rename(u, hidden, feature), feature), next, hidden);
      const Tensor y = tanh(multiplied(h, u) + from);
      return std::pair{y, exp(y * 0.5)};
    };
    return scan(
               Scan{
                   .spatial_dim = x.dim("time"), .initial = zeros({hidden}), .xs = x, .body = body})
        .ys;
  };
  for (const std::int64_t steps : {1024, 1000})
    expect_told(f, random_normal({Dim("time", steps), feature}), [&](const LoopPlan& loop) {
      return static_cast<bool>(PlanView::whole(loop).rest) == (steps == 1000);
    });
}

TEST_F(ExplainedBytesTest, BranchesHoldTheirOwn) {
  const auto f = [this](const Tensor& x) {
    return cond(
        sum(x) > 1e9, [&] { return attended(x, x); }, [&] { return attended(x * 0.5, x); });
  };
  expect_told(f, batch({4, 9, 2, 1}));
}

// Shorter entries need fewer batches: the others keep their plans, and so their memory.
TEST_F(ExplainedBytesTest, BatchesThatACallDoesNotNeedCount) {
  const auto f = [this](const Tensor& x) { return attended(x, x); };
  const auto loops_of = [](const ResizedPlan& run) {
    std::size_t count = 0;
    for (const LoopPlan* const loop : run.loops())
      PlanView::each_planned(*loop,
                             [&](const PlannedLoop& of) { count += of.memory.is_defined(); });
    return count;
  };
  const Threads one(1);
  std::vector<int> lengths(33, 3);
  ResizedPlan run(f);
  lengths[0] = 120;
  run(batch(lengths));
  const std::size_t batches = PlanView::batches(*run.loops()[0]), held = loops_of(run);
  lengths[0] = 9;
  run(batch(lengths));
  ASSERT_LT(PlanView::batches(*run.loops()[0]), batches);
  EXPECT_GE(loops_of(run), held);
}

}  // namespace
}  // namespace reel
