// Loops whose entries finish one by one, if some numbers of rows cannot be planned: batches give
// way to row blocks, and these to the whole loop. Memory that runs out ends the call, and no later
// one.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/threads.h"
#include "reel/tests/trace/plan/ragged_loops.h"
#include "reel/tests/trace/plan/resized_plan.h"

namespace reel {
namespace {

/// Throws for numbers of rows that the test refuses.
std::function<void(std::int64_t rows)> refuse;

/// Returns x. Types with refused numbers of rows do not fit it.
const Op limited_op{
    .name = "limited",
    .type =
        [](TypeArgs& a) {
          const Dim& rows = a.in[0].dims()[0];
          if (refuse && rows.has_size()) refuse(rows.size());
          a.out.push_back(a.in[0]);
        },
    .kernel =
        [](KernelArgs& a) {
          const Tensor& x = a.input(0);
          std::memcpy(a.make().data<void>(), x.data<void>(),
                      static_cast<std::size_t>(x.type().bytes()));
        },
    .vjp = [](Vjp& at) { at.add(0, at.cotangent()); },
    .axes = same_axes,
    .fails = never_fails,
};

/// Sixteen rows on three threads: three batches of five or six rows, or four blocks of four.
class FailedPlansOfRowsTest : public RaggedLoopsTest {
 protected:
  static constexpr int kRows = 16;

  FailedPlansOfRowsTest() : RaggedLoopsTest(96, 0.1) {}
  ~FailedPlansOfRowsTest() override { refuse = {}; }

  /// Refuses numbers of rows. Error: of the failure.
  template <class Error>
  static void refuse_if(std::function<bool(std::int64_t rows)> is_refused) {
    refuse = [is_refused = std::move(is_refused)](std::int64_t rows) {
      if (is_refused(rows)) throw Error("limited: too many rows");
    };
  }
  static bool are_of_batches(std::int64_t rows) { return rows > 4 && rows < kRows; }
  static bool are_cut(std::int64_t rows) { return rows < kRows; }

  Tensor rows(int longest) const {
    std::vector<int> lengths;
    for (int row = 0; row < kRows; ++row) lengths.push_back(1 + (row * 7) % longest);
    lengths[3] = longest;
    return batch(lengths);
  }
  Tensor expected(const Tensor& x) const {
    const auto before = std::exchange(refuse, {});
    const Tensor result = jit(f)(x);
    refuse = before;
    return result;
  }

  enum class Form { batches, blocks, whole };
  /// Expects that the last run of the plan had this form.
  static void expect_form(const ResizedPlan& run, Form form) {
    ASSERT_EQ(run.loops().size(), 1u);
    const LoopPlan& loop = *run.loops()[0];
    EXPECT_TRUE(PlanView::is_planned(loop));
    EXPECT_EQ(PlanView::batches(loop), form == Form::batches ? 3u : 0u);
    EXPECT_EQ(loop.blocks(), form == Form::whole ? 0u : 4u);
    for (const auto& block : PlanView::blocks(loop))
      EXPECT_TRUE(form == Form::batches || block) << "a block has no plan";
    EXPECT_TRUE(form != Form::whole || PlanView::whole(loop).body);
  }

  const Threads three_{3};
  const ResizedPlan::Function f = [this](const Tensor& x) {
    const auto limited = [](const Tensor& h) { return bind(limited_op, {h}); };
    return mask_padding(attended(x, x, limited));
  };
};

TEST_F(FailedPlansOfRowsTest, RowBlocksRunIfBatchesHaveNoPlan) {
  ResizedPlan run(f);
  refuse_if<ShapeError>(are_of_batches);
  for (const int longest : {30, 31, 24}) {
    const Tensor x = rows(longest);
    expect_same_bits(run(x), expected(x));
    expect_form(run, Form::blocks);
    EXPECT_FALSE(PlanView::whole(*run.loops()[0]).body);
  }
}

TEST_F(FailedPlansOfRowsTest, TheWholeRunsIfRowBlocksHaveNoPlan) {
  ResizedPlan run(f);
  refuse_if<ShapeError>(are_cut);
  for (const int longest : {30, 31, 24}) {
    const Tensor x = rows(longest);
    expect_same_bits(run(x), expected(x));
    expect_form(run, Form::whole);
  }
}

// Batches that are planned for other lengths are planned again only when they run.
TEST_F(FailedPlansOfRowsTest, BatchesOfALaterRunGiveWay) {
  ResizedPlan run(f);
  const auto expect_run = [&](int longest, Form form) {
    SCOPED_TRACE(longest);
    const Tensor x = rows(longest);
    expect_same_bits(run(x), expected(x));
    expect_form(run, form);
  };
  expect_run(30, Form::batches);
  refuse_if<ShapeError>(are_of_batches);
  expect_run(31, Form::blocks);
  refuse = {};
  expect_run(32, Form::batches);
  refuse_if<ShapeError>(are_cut);
  expect_run(33, Form::whole);
  refuse = {};
  expect_run(34, Form::batches);
}

TEST_F(FailedPlansOfRowsTest, MemoryThatRunsOutEndsOneCallOnly) {
  ResizedPlan run(f);
  run(rows(20));  // records the function
  for (const auto is_refused : {are_of_batches, are_cut})
    for (const int longest : {30, 31}) {
      const Tensor x = rows(longest);
      refuse_if<MemoryError>(is_refused);
      EXPECT_THROW(run(x), MemoryError);
      refuse = {};
      expect_same_bits(run(x), expected(x));
      expect_form(run, Form::batches);
    }
}

// A function finds the plan of equal sizes again, and plans its loops in the next call.
TEST_F(FailedPlansOfRowsTest, TheSameCallSucceedsOnceThereIsMemory) {
  const auto traced = jit(f);
  const Tensor x = rows(30), y = rows(30);
  refuse_if<MemoryError>(
      [count = 0](std::int64_t rows) mutable { return are_of_batches(rows) && ++count > 1; });
  EXPECT_THROW(traced(x), MemoryError);
  EXPECT_THROW(traced(x), MemoryError);
  refuse = {};
  expect_same_bits(traced(x), expected(x));
  expect_same_bits(traced(y), expected(y));
  EXPECT_NE(traced.explain().find("as shrinking batches"), std::string::npos) << traced.explain();
}

}  // namespace
}  // namespace reel
