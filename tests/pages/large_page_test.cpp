// Pages of thousands of ops, also in loops: the work to open and move them, and legibility.
#include <iostream>

#include "reel/tests/pages/page.h"

namespace reel {
namespace {

/// Layers of twenty ops each, with edges that skip some.
Tensor many_ops(Tensor x, int count) {
  std::vector<Tensor> last(20, x);
  for (int i = 0; i < count; ++i) {
    Tensor& at = last[static_cast<std::size_t>(i % 20)];
    const Tensor& other = last[static_cast<std::size_t>((i * 7 + i / 20) % 20)];
    at = i % 3 ? tanh(at) : at + other * at;
  }
  Tensor sum = last[0];
  for (const Tensor& tensor : last) sum = sum + tensor;
  return sum;
}

/// Returns a chain of ops that all read x.
Tensor reads_all_along(const Tensor& x, int count) {
  Tensor y = x;
  for (int i = 0; i < count; ++i) y = i % 2 ? tanh(y) : y + x;
  return y;
}

/// Adds the squares of all parameters, and updates each parameter by the sum.
Tensors step_by_sum(const Tensors& parameters) {
  Tensor sum_of_all = scalar(0.f);
  for (const Tensor& p : parameters) sum_of_all = sum_of_all + sum(p * p);
  Tensors result;
  for (const Tensor& p : parameters) result.push_back(p - sum_of_all * p);
  return result;
}

class LargePageTest : public PageFixture {
 protected:
  using Work = Browser::Work;

  /// Returns the work of an expression, up to the second frame behind it, when the first one is
  /// painted.
  Work work_of(const std::string& action) {
    const Work before = browser->work();
    ask("(async () => { await (" + action +
        "); for (let i = 0; i < 2; ++i) await new Promise(requestAnimationFrame); })()");
    return browser->work() - before;
  }
  /// Returns the work of a frame in which the picture is dragged or magnified.
  Work work_of_moving() {
    constexpr int kFrames = 40;
    const Work all = work_of(
        "(async () => { for (let i = 0; i < " + std::to_string(kFrames) +
        "; ++i) { if (i % 2) page.viewport.move(i, 9); else page.viewport.zoom(i % 4 ? 1.15 : 0.9, "
        "600, 400); await new Promise(requestAnimationFrame); } })()");
    return {all.blocks / kFrames, all.layouts / kFrames};
  }
  /// Opens the page, moves it and clicks, and expects little work for each.
  void expect_fluid(const Graph& graph) {
    ASSERT_GT(graph.records.size(), 1950u);
    graph.write_html(path);
    const Work before = browser->work();
    browser->open(path);
    const Work to_open = browser->work() - before;
    EXPECT_EQ(ask("page.drawing.groups.size > 1950"), true);
    const Work to_move = work_of_moving();
    // A click shows the details at once.
    const Work to_pick = work_of("page.pick(page.model.nodes[900])");
    EXPECT_EQ(ask(kOverlaps), "");
    // The bounds are twice the measured work.
    expect_less("opened", to_open, {1.0e6, 30});
    expect_less("a frame of moving", to_move, {36e3, 4});
    expect_less("a click", to_pick, {34e3, 8});
  }
  static void expect_less(const char* what, const Work& work, const Work& most) {
    std::cout << what << ": " << work.blocks << " blocks, " << work.layouts << " layouts\n";
    EXPECT_LT(work.blocks, most.blocks) << what;
    EXPECT_LT(work.layouts, most.layouts) << what;
  }
};

TEST_F(LargePageTest, LayersThatSkip) {
  auto f = jit([](const Tensor& x) { return many_ops(x, 1500); },
               {.name = "many", .executor = Executor::interpreter});
  f(ones({2}));
  expect_fluid(f.graph());
}

TEST_F(LargePageTest, AValueThatIsReadAllAlong) {
  auto f = jit([](const Tensor& x) { return reads_all_along(x, 2000); },
               {.name = "read all along", .executor = Executor::interpreter});
  f(ones({2}));
  expect_fluid(f.graph());
}

TEST_F(LargePageTest, AStepOfManyParametersByASum) {
  auto f = jit(step_by_sum, {.name = "a step", .executor = Executor::interpreter});
  f(Tensors(400, ones({2})));
  expect_fluid(f.graph());
}

TEST_F(LargePageTest, TheGradientOfALongWay) {
  auto f = jit(grad([](const Tensor& x) { return sum(reads_all_along(x, 1000)); }),
               {.name = "gradient", .executor = Executor::interpreter});
  f(ones({2}));
  expect_fluid(f.graph());
}

/// Loops in sequence, each with an inner one.
Tensor many_loops(Tensor x, int loops, int ops) {
  const auto inner = [&](const Tensor& i, const Tensor& y) {
    return many_ops(y + cast(i, f32), ops);
  };
  const auto outer = [&](const Tensor&, const Tensor& y) {
    return many_ops(fori_loop(0, 2, inner, y), ops);
  };
  for (int i = 0; i < loops; ++i) x = fori_loop(0, 2, outer, x);
  return x;
}

TEST_F(LargePageTest, ARunOfManyLoops) {
  const auto f = jit([](const Tensor& x) { return many_loops(x, 16, 24); },
                     {.name = "loops", .executor = Executor::dataflow, .profile = true});
  f(ones({2}));
  open(f.graph());
  const Work to_view = work_of("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
  const Work to_unfold = work_of("page.foldAll(false)");
  const int nodes = ask("page.drawing.groups.size");
  EXPECT_GT(nodes, 1950);
  EXPECT_EQ(ask(kOverlaps), "");
  const Work to_fit = work_of("page.fit()"), to_move = work_of_moving();
  const std::string box = "page.model.boxes[page.model.boxes.length / 2]";
  const Work to_fold = work_of("page.toggle(" + box + ")");
  EXPECT_EQ(ask(box + ".isFolded"), true);
  ask("page.toggle(" + box + ")");
  EXPECT_EQ(ask(box + ".isFolded"), false);
  ask("page.foldAll(false)");  // at a readable scale
  // Twenty steps, with a frame each, while many iterations are in flight.
  const int steps = ask("page.runBar.tokens.activations.length");
  ask("page.runBar.goTo(" + std::to_string(steps / 2) + ")");
  settle();
  const Work to_step = work_of(
      "(async () => { for (let i = 0; i < 20; ++i) { page.runBar.step(1); await new "
      "Promise(requestAnimationFrame); } })()");
  for (int i = 0; i < steps; i += steps / 40) {
    ask("page.runBar.goTo(" + std::to_string(i) + ")");
    EXPECT_EQ(ask(kTokensOverEachOther), 0) << "after step " << i;
  }
  EXPECT_GT(ask("page.viewport.scale").get<double>(), 0.5);  // tokens that could be seen
  std::cout << nodes << " nodes, " << steps << " steps\n";
  // The bounds are twice the measured work. Unfolding takes 35,000 blocks, or 73,000 if the browser
  // paints the page in between, which happens on a busy machine.
  expect_less("shown", to_view, {150e3, 16});
  expect_less("unfolded", to_unfold, {150e3, 12});
  expect_less("fitted", to_fit, {100, 5});
  expect_less("a frame of moving", to_move, {70, 4});
  expect_less("one folded", to_fold, {13e3, 8});
  expect_less("20 steps", to_step, {380e3, 80});
}

TEST_F(LargePageTest, AValueThatIsReadFarAwayStandsBesideItsReader) {
  auto f = jit([](const Tensor& x) { return reads_all_along(x, 60); }, {.name = "chips"});
  f(ones({2}));
  open(f.graph());
  EXPECT_EQ(ask(kOverlaps), "");
  EXPECT_EQ(ask("page.model.nodes[0].readers.length"), 31);
  EXPECT_EQ(ask("page.drawing.chips.size"), 29);  // two lines are drawn
  EXPECT_EQ(ask("[...new Set([...page.drawing.chips.values()].map((c) => "
                "c.querySelector('text').textContent))]"),
            nlohmann::json({"↑ " + ask("page.model.nodes[0].label").get<std::string>()}));
  EXPECT_EQ(ask("page.model.edges.filter((e) => !page.drawing.lines.has(e)).length"), 0);
  // A click leads to the origin of the value.
  ask("page.goTo(page.model.nodes[40])");
  click("[...page.drawing.chips].find(([e]) => e.to.id > 40)[1]");
  EXPECT_EQ(ask("page.picked === page.model.nodes[0]"), true);
  const auto at = ask("page.drawing.groups.get(page.picked).getBoundingClientRect().y");
  EXPECT_GT(at, 0);
  EXPECT_LT(at, 900);
}

TEST_F(LargePageTest, ALargePictureOpensReadableAtItsBeginning) {
  auto f = jit([](const Tensor& x) { return reads_all_along(x, 300); }, {.name = "long"});
  f(ones({2}));
  open(f.graph());
  settle();
  const std::string in_sight =
      "(() => { const r = page.drawing.groups.get(page.model.nodes[0]).getBoundingClientRect(), c "
      "= page.canvas.getBoundingClientRect(); return r.x >= c.x && r.right <= c.right && r.y >= "
      "c.y && r.bottom <= c.bottom; })()";
  EXPECT_GE(ask("page.viewport.scale").get<double>(), 0.8);
  EXPECT_EQ(ask(in_sight), true);
  ask("page.fit()");
  settle();
  EXPECT_LT(ask("page.viewport.scale").get<double>(), 0.2);
}

}  // namespace
}  // namespace reel
