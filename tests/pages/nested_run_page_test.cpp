// Pages with recorded runs of nested loops: their tokens, and the iterations in flight.
#include <algorithm>
#include <regex>
#include <set>

#include "reel/core/base/str.h"
#include "reel/tests/pages/page.h"

namespace reel {
namespace {

using NestedRunPageTest = PageFixture;

/// Loops nested three deep, with `steps` iterations each.
Tensor three_deep(const Tensor& x, int steps, int depth = 3) {
  if (!depth) return tanh(x) + 1.f;
  return fori_loop(
      0, steps,
      [=](const Tensor& i, const Tensor& x) {
        return three_deep(x * 2.f, steps, depth - 1) + cast(i, f32) * x;
      },
      x);
}

TEST_F(NestedRunPageTest, AReplayOfNestedLoopsHasTokensForAllThatRunsAndLeavesNone) {
  const auto loss = [](const Tensor& x) {
    const auto outer = [](const Tensor& i, const Tensor& x) {
      const auto inner = [&](const Tensor& j, const Tensor& y) {
        return tanh(y) + cast(i * j, f32);
      };
      const Tensor y = fori_loop(0, 3, inner, x);
      return cond(
          sum(y) > 0.f, [&] { return fori_loop(0, 2, inner, y); }, [&] { return y - x; });
    };
    return sum(fori_loop(0, 4, outer, x));
  };
  const auto f =
      jit(value_and_grad(loss),
          {.name = std::string(300, 'n'), .executor = Executor::dataflow, .profile = true});
  f(tensor({0.5f, -3.f, 1.f}));
  open(f.graph());
  ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
  EXPECT_EQ(ask(kReplay), "");
  // An inner iteration in flight names the iteration of the loop around it.
  ask("page.runBar.goTo(0)");
  std::string flights;
  const int steps = ask("page.runBar.tokens.activations.length");
  for (int i = 0; i < steps; i += 20) {
    ask("page.runBar.goTo(" + std::to_string(i) + ")");
    flights += ask("document.querySelector('#run .frames').textContent").get<std::string>();
  }
  EXPECT_NE(flights.find(" in iteration 2 of "), std::string::npos) << flights.substr(0, 400);
  // The running node is visible, or the box that hides it.
  settle();
  for (const char* follow : {"true", "false"}) {
    ask("page.foldAll(true)");
    ask("document.querySelector('#run .follow input').checked = " + std::string(follow));
    ask("page.runBar.goTo(" + std::to_string(steps / 4) + ")");
    settle();
    EXPECT_EQ(ask("page.drawing.groups.has(page.runBar.last().node)"),
              std::string(follow) == "true");
    EXPECT_EQ(ask("document.querySelectorAll('#scene .fired').length"), 1);
    EXPECT_EQ(ask("page.model.boxes.some((b) => b.isFolded)"), true);  // no more than necessary
  }
  ask("document.querySelector('#run .follow input').checked = true");
  for (const char* fold : {"false", "true"}) {
    ask("page.foldAll(" + std::string(fold) + ")");
    for (const int i : {steps / 3, steps / 2}) {
      ask("page.runBar.goTo(" + std::to_string(i) + ")");
      settle();
      EXPECT_EQ(ask("document.querySelectorAll('#scene .fired').length"), 1);
      EXPECT_EQ(ask("(() => { const r = document.querySelector('#scene .fired')"
                    ".getBoundingClientRect(), c = page.canvas.getBoundingClientRect(); return "
                    "r.x < c.right && r.right > c.x && r.y < c.bottom && r.bottom > c.y; })()"),
                true)
          << fold << i;
    }
  }
  // A long name leaves room for the buttons.
  EXPECT_EQ(ask("document.getElementById('fit').getBoundingClientRect().right <= innerWidth"),
            true);
  EXPECT_EQ(ask("document.getElementById('bar').getBoundingClientRect().height < 60"), true);
  // Keys still work after the slider had the focus.
  ask("document.querySelector('#run .slider').focus()");
  browser->press("/");
  EXPECT_EQ(ask("document.activeElement.id"), "query");
}

TEST_F(NestedRunPageTest, ManyExecutionsOfALoopLeaveRoomForThePicture) {
  const auto f = jit([](const Tensor& x) { return three_deep(x, 10); },
                     {.executor = Executor::dataflow, .profile = true});
  f(ones({2}));
  open(f.graph());
  ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
  ask("document.querySelector('#run .follow input').checked = false");
  const int steps = ask("page.runBar.tokens.activations.length");
  std::set<std::string> texts;
  for (int i = 0; i < steps; i += steps / 100) {
    ask("page.runBar.goTo(" + std::to_string(i) + ")");
    EXPECT_LE(ask("document.getElementById('run').getBoundingClientRect().height").get<double>(),
              180)
        << "after step " << i;
    EXPECT_LE(ask("document.querySelectorAll('#run .frames > span').length").get<int>(), 3);
    texts.insert(ask("document.querySelector('#run .frames').textContent"));
  }
  // The bar shows each loop's execution around the last step, with its place in all outer loops.
  const auto holds = [&](const char* text) {
    return std::any_of(texts.begin(), texts.end(),
                       [&](const std::string& t) { return t.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(holds(" more executions of it"));
  ask("page.runBar.goTo(page.runBar.tokens.activations.findIndex((at) => at && !at.isDead && "
      "at.node.label === 'tanh' && at.iteration > 3) + 1)");
  const std::string what = ask("document.querySelector('#run .what').textContent");
  std::smatch at;
  ASSERT_TRUE(std::regex_match(
      what, at,
      std::regex("tanh, iteration (\\d+)\\.(\\d+)\\.\\d+ of fori_loop/fori_loop/fori_loop")))
      << what;
  const std::string frames = ask("document.querySelector('#run .frames').textContent");
  EXPECT_NE(frames.find(str("fori_loop/fori_loop/fori_loop in iteration ", at[2].str(),
                            " of fori_loop/fori_loop in iteration ", at[1].str(),
                            " of fori_loop, in flight: ")),
            std::string::npos)
      << frames;
}

TEST_F(NestedRunPageTest, TokensOfLoopsInLoopsSayTheIterationsAroundThem) {
  const auto f = jit([](const Tensor& x) { return three_deep(x, 3, 2); },
                     {.executor = Executor::dataflow, .profile = true});
  f(ones({2}));
  open(f.graph());
  ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
  ask("page.foldAll(false)");
  settle();
  std::set<std::string> titles;
  const int steps = ask("page.runBar.tokens.activations.length");
  for (int i = 0; i < steps; i += 2) {
    ask("page.runBar.goTo(" + std::to_string(i) + ")");
    EXPECT_EQ(ask(kTokensOverEachOther), 0) << "after step " << i;
    for (const auto& title : ask("[...document.querySelectorAll('#scene .token title')].map((t) => "
                                 "t.textContent)"))
      titles.insert(title.get<std::string>());
  }
  for (const char* title :
       {"token", "token of iteration 1", "token of iteration 2.1", "token of iteration 0.∀"})
    EXPECT_TRUE(titles.count(title)) << title << " is not in " << nlohmann::json(titles);
}

TEST_F(NestedRunPageTest, TokensOfARaggedScanInALoopDoNotLieOverEachOther) {
  const Dim batch("batch", 2), time("time", tensor({4, 2}, {batch})), in("in", 3),
      hidden("hidden", 4);
  const LstmCell cell = LstmCell::init(in, hidden);
  const auto f = jit(
      [&](const LstmCell& cell, const Tensor& x) {
        const Dim time = x.dim("time");
        const auto outer = [&](const Tensor& i, const Tensor& sums) {
          const auto body = [&](const Tensor& x, const LstmCell::State& state) {
            const auto [y, next] = cell(x, state);
            const auto inner = [&](const Tensor& k, const Tensor& v) {
              return cond(
                  k % 2 == 0, [&] { return tanh(v) * 2.f; }, [&] { return v + cast(i, f32); });
            };
            return std::pair{fori_loop(0, 2, inner, y), next};
          };
          const auto run = scan(Scan{.spatial_dim = time,
                                     .initial = cell.initial_state({x.dim("batch")}),
                                     .xs = x,
                                     .body = body});
          return sums + sum(run.ys, time);
        };
        return fori_loop(0, 3, outer, zeros({x.dim("batch"), hidden}));
      },
      {.executor = Executor::dataflow, .profile = true});
  f(cell, random_normal({batch, time, in}));
  open(f.graph());
  ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
  ask("page.foldAll(false)");
  settle();
  const int steps = ask("page.runBar.tokens.activations.length");
  for (int i = 0; i < steps; i += steps / 150) {
    ask("page.runBar.goTo(" + std::to_string(i) + ")");
    EXPECT_EQ(ask(kTokensOverEachOther), 0) << "after step " << i;
  }
}

}  // namespace
}  // namespace reel
