// Pages with a recorded run: the steps of the slider.
#include <algorithm>
#include <regex>

#include "reel/core/base/str.h"
#include "reel/frontend/pictures/write_html.h"
#include "reel/tests/check.h"
#include "reel/tests/pages/page.h"
#include "reel/tests/threads.h"
#include "reel/trace/executors/dataflow/run_recorder.h"

namespace reel {
namespace {

using RunPageTest = PageFixture;

/// Returns a run of a lowered while_loop without inner loops. The condition holds `steps` times;
/// iterations run one after the other.
RecordedRun run_of(std::shared_ptr<const LoweredGraph> graph, int steps) {
  RecordedRun run;
  run.graph = graph;
  RunRecorder recorder(run, {});
  recorder.enter({0, -1, 0});
  recorder.enter({1, 0, 0});
  std::vector<std::uint8_t> is_done(graph->nodes.size(), 0);
  const auto fire = [&](std::size_t i, int instance, int k, bool is_dead, int taken) {
    recorder.note({static_cast<int>(i), instance, k, is_dead, taken});
    is_done[i] = 1;
  };
  const auto fire_outside = [&] {
    for (bool has_changed = true; has_changed;) {
      has_changed = false;
      for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
        const LoweredNode& node = graph->nodes[i];
        if (node.frame != 0 || is_done[i]) continue;
        const bool is_ready = std::all_of(
            node.inputs.begin(), node.inputs.end(),
            [&](const LoweredPort& port) { return is_done[static_cast<std::size_t>(port.node)]; });
        if (is_ready) fire(i, 0, 0, false, -1), has_changed = true;
      }
    }
  };
  fire_outside();
  for (int k = 0; k <= steps; ++k) {
    recorder.iteration(1, k, true, 0);
    bool is_body = false;
    for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
      const LoweredNode& node = graph->nodes[i];
      if (node.frame != 1) continue;
      const bool is_last = k == steps;
      if (node.kind == LoweredKind::exit)
        fire(i, 1, k, !is_last, -1);
      else if (node.kind == LoweredKind::merge)
        fire(i, 1, k, false, k > 0);
      else if (node.kind == LoweredKind::switch_)
        fire(i, 1, k, false, !is_last), is_body = true;
      else
        fire(i, 1, k, is_last && is_body, -1);
    }
    recorder.iteration(1, k, false, 0);
  }
  fire_outside();
  recorder.finish();
  return run;
}

TEST_F(RunPageTest, ARunOfTheExecutorIsSteppedThrough) {
  // A training step: a loop and its gradient, with several iterations in flight.
  const Dim time("time", 4), batch("batch", 2), in("in", 3), hidden("hidden", 4), out("out", 2);
  const Model model{LstmCell::init(in, hidden), Linear::init(hidden, out)};
  const auto step = jit(value_and_grad(loss), {.executor = Executor::dataflow, .profile = true});
  step(model, random_normal({time, batch, in}));
  step.graph().write_html(path);
  browser->open(path);
  ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
  settle();
  EXPECT_EQ(ask("document.getElementById('run').hidden"), false);
  ask("page.runBar.goTo(1e9)");
  const std::string at = ask("document.querySelector('#run .at').textContent");
  ASSERT_TRUE(std::regex_match(at, std::regex("step (\\d+) of \\1"))) << at;
  const int steps = std::stoi(at.substr(at.rfind(' ')));
  EXPECT_GT(steps, 100);
  int most_in_flight = 0;
  for (int i = 0; i <= steps; i += std::max(steps / 40, 1)) {
    ask("page.runBar.goTo(" + std::to_string(i) + ")");
    const int flights = ask("document.querySelectorAll('#run .flight').length");
    most_in_flight = std::max(most_in_flight, flights);
  }
  EXPECT_GT(most_in_flight, 0);
}

TEST_F(RunPageTest, ARecordedRunIsSteppedThrough) {
  const auto f = count_to_ten();
  const auto lowered = std::make_shared<LoweredGraph>(lower(GraphRef(new Graph(f.graph()))));
  const RecordedRun run = run_of(lowered, 5);  // 1, 3, 5, 7, 9
  write_html(f.graph(), &run, path);
  browser->open(path);
  EXPECT_EQ(ask("document.getElementById('run').hidden"), true);  // the structured graph has none
  ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
  settle();
  EXPECT_EQ(ask("document.getElementById('run').hidden"), false);
  EXPECT_EQ(ask("document.querySelector('#run .at').textContent"),
            "step 0 of " + std::to_string(run.activations.size()));
  EXPECT_EQ(ask("document.querySelectorAll('#scene .token').length"), 0);

  click("document.querySelector('#run .next')");
  EXPECT_EQ(ask("page.runBar.tokens.at"), 1);
  EXPECT_GE(ask("document.querySelectorAll('#scene .token').length"), 1);
  browser->press("ArrowLeft");
  EXPECT_EQ(ask("page.runBar.tokens.at"), 0);

  // After the last Merge of iteration 2, one iteration is in flight, with its token on the Merge's
  // edge.
  std::size_t step = 0;
  while (!(lowered->nodes[static_cast<std::size_t>(run.activations[step].node)].kind ==
               LoweredKind::merge &&
           run.activations[step].iteration == 2))
    ++step;
  ask("page.runBar.goTo(" + std::to_string(step + 1) + ")");
  EXPECT_EQ(ask("[...document.querySelectorAll('#run .flight')].map((f) => f.textContent)"),
            nlohmann::json({"2"}));
  EXPECT_EQ(ask("document.querySelector('#run .what').textContent.startsWith('Merge')"), true);
  EXPECT_EQ(
      ask("[...page.runBar.tokens.onEdge].filter(([e, t]) => e.from.label.startsWith('Merge') "
          "&& t.size).map(([e, t]) => [...t])[0]"),
      nlohmann::json::parse(R"([["1 2", false]])"));
  EXPECT_EQ(ask("document.querySelectorAll('#scene .fired').length"), 1);

  // The condition is false in iteration 5, so the body gets dead tokens.
  while (!(lowered->nodes[static_cast<std::size_t>(run.activations[step].node)].kind ==
               LoweredKind::switch_ &&
           run.activations[step].iteration == 5))
    ++step;
  const std::string dead_tokens =
      "[...document.querySelectorAll('#scene .token.dead title')].map((t) => t.textContent)";
  ask("page.runBar.goTo(" + std::to_string(step) + ")");
  EXPECT_EQ(ask(dead_tokens), nlohmann::json::array());
  ask("page.runBar.goTo(" + std::to_string(step + 1) + ")");
  EXPECT_EQ(ask(dead_tokens), nlohmann::json({"dead token of iteration 5"}));
  EXPECT_EQ(ask("getComputedStyle(document.querySelector('#scene .token.dead rect')).fill"),
            "rgb(170, 178, 189)");

  // In the end only the results hold tokens, and nodes that the last iteration did not run are
  // grey.
  ask("page.runBar.goTo(1e9)");
  EXPECT_EQ(ask("[...page.runBar.tokens.onEdge].filter(([e, t]) => t.size).map(([e]) => "
                "e.to.label).sort()"),
            nlohmann::json({"result 0", "result 1"}));
  const auto dead =
      ask("[...document.querySelectorAll('#scene .dead.node')].map((g) => "
          "page.model.nodes[Number(g.dataset.id)].label)");
  EXPECT_NE(std::find(dead.begin(), dead.end(), "NextIteration"), dead.end()) << dead;
  EXPECT_EQ(std::find(dead.begin(), dead.end(), "Exit"), dead.end()) << dead;
  EXPECT_EQ(ask(kOverlaps), "");
  // Counts as in the description of this graph: five times through the body.
  EXPECT_EQ(ask("page.runBar.tokens.counts.get(" + node("NextIteration") + ")"),
            nlohmann::json::parse(R"({"live": 5, "dead": 1})"));
  EXPECT_EQ(ask("page.runBar.tokens.counts.get(" + node("Merge") + ").live"), 6);
}

TEST_F(RunPageTest, StepsDoNoHarmWhileALayoutIsUnderWay) {
  const auto f = jit(
      [](const Tensor& x) {
        return fori_loop(
            0, 4, [](const Tensor&, const Tensor& x) { return tanh(x); }, x);
      },
      {.executor = Executor::dataflow, .profile = true});
  f(ones({2}));
  open(f.graph());
  ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
  ask("page.runBar.goTo(5)");
  settle();
  ask(kHeldLayouts);
  for (const char* fold : {"true", "false"}) {
    ask("hold(Infinity)");
    ask("void (page.coming = page.foldAll(" + std::string(fold) + "))");
    ask("page.runBar.step(1)");
    EXPECT_EQ(ask("document.querySelectorAll('#scene .fired').length"), 1);
    ask("hold(0)");
    ask("page.coming");
    settle();
    EXPECT_EQ(ask("document.querySelectorAll('#scene .fired').length"), 1);
  }
  // Another view is being loaded.
  ask("hold(Infinity)");
  ask("void (page.coming = page.showView(page.views[0]))");
  ask("page.runBar.step(1)");
  ask("hold(0)");
  ask("page.coming");
  EXPECT_EQ(ask("page.view === page.views[0]"), true);
}

TEST_F(RunPageTest, DeadNodesOfATimedRunAreGreyAndNodesThatPassTokensYellow) {
  const auto f = jit(
      [](const Tensor& x) {
        return fori_loop(
            0, 4, [](const Tensor&, const Tensor& x) { return matmul(x, x); }, x);
      },
      {.executor = Executor::dataflow, .profile = true});
  f(ones({192, 192}) * 1e-3f);
  open(f.graph());
  ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
  ask("page.foldAll(false)");
  settle();
  const auto fills = [&](const std::string& nodes) {
    return ask("[...new Set([...document.querySelectorAll('#scene " + nodes +
               " > .shape')].map((s) => getComputedStyle(s).fill))]");
  };
  const nlohmann::json yellow{"rgb(253, 246, 220)"}, grey{"rgb(228, 231, 235)"};
  EXPECT_EQ(fills(".control"), yellow);  // Enter, Merge, Switch, ...: even if costly
  const nlohmann::json hot = fills(".warm");
  EXPECT_GE(hot.size(), 1u);  // a product
  EXPECT_NE(hot[0], "rgb(255, 255, 255)");
  ask("page.runBar.goTo(1e9)");  // the last iteration runs nothing
  EXPECT_EQ(fills(".dead.node"), grey);
  EXPECT_EQ(fills(".dead.warm"), grey);
  EXPECT_EQ(ask("[...document.querySelectorAll('#scene .dead > .share')].every((s) => "
                "getComputedStyle(s).display === 'none')"),
            true);
}

TEST_F(RunPageTest, TokensDoNotLieOverEachOther) {
  // The counter runs ahead, so that tokens of several iterations wait on an edge.
  const auto f = jit(
      [](const Tensor& x) {
        const auto body = [](const Tensor& i, const Tensor& x) {
          return matmul(x, x) + cast(i, f32);
        };
        return fori_loop(0, 12, body, x);
      },
      {.executor = Executor::dataflow, .profile = true});
  f(ones({192, 192}) * 1e-3f);
  open(f.graph());
  ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
  ask("page.foldAll(false)");
  const int steps = ask("page.runBar.tokens.activations.length");
  int most = 0;
  for (int i = 0; i < steps; i += 3) {
    ask("page.runBar.goTo(" + std::to_string(i) + ")");
    most = std::max(most, ask("Math.max(0, ...[...page.runBar.tokens.onEdge.values()].map((t) => "
                              "t.size))")
                              .get<int>());
    EXPECT_EQ(ask(kTokensOverEachOther), 0) << "after step " << i;
  }
  EXPECT_GT(most, 2);
}

TEST_F(RunPageTest, ACallUnderATapeHasSlidersForItAndItsGradient) {
  const auto f = jit(
      [](const Tensor& x) {
        return sum(fori_loop(
            0, 4, [](const Tensor&, const Tensor& x) { return tanh(x); }, x));
      },
      {.name = "f", .executor = Executor::dataflow, .profile = true});
  grad(f)(ones({3}));
  open(f.graph());
  EXPECT_EQ(ask("page.views.map((v) => v.title)"),
            nlohmann::json({"Graph", "Dataflow, under a tape", "Dataflow, its gradient"}));
  for (const int view : {1, 2}) {
    ask("page.showView(page.views[" + std::to_string(view) + "])");
    settle();
    EXPECT_EQ(ask("document.getElementById('run').hidden"), false);
    EXPECT_EQ(ask(kReplay), "");
  }
}

TEST_F(RunPageTest, ALongNameOfALoopLeavesThePictureReadable) {
  const std::string name = "begin" + std::string(3000, 'n') + "end";
  const auto f = jit(
      [&](const Tensor& x) {
        return fori_loop(0, 3, [](const Tensor&, const Tensor& x) { return tanh(x); }, x,
                         {.name = name});
      },
      {.executor = Executor::dataflow, .profile = true});
  f(ones({2}));
  open(f.graph());
  for (const char* view : {"Graph", "Dataflow"}) {
    ask("page.showView(page.views.find((v) => v.title === '" + std::string(view) + "'))");
    settle();
    ask("page.fit()");
    EXPECT_GT(ask("page.viewport.scale").get<double>(), 0.5) << view;
    click("document.querySelector('#scene .box > .title').parentNode.querySelector('.title')");
    ask("page.pick(page.model.boxes[0])");
    EXPECT_NE(details().find(name), std::string::npos);  // in full there
  }
  ask("page.runBar.goTo(20)");
  EXPECT_LT(ask("document.getElementById('run').getBoundingClientRect().height").get<double>(),
            180);
  EXPECT_EQ(ask(kOverlaps), "");
}

TEST_F(RunPageTest, IterationsBesideEachOtherAreAllNamed) {
  const Threads one(1);  // then the counter leads by as much as allowed
  const auto f = jit(
      [](const Tensor& x) {
        const auto body = [](const Tensor& i, const Tensor& x) {
          return matmul(x, x) + cast(i, f32);
        };
        return fori_loop(0, 12, body, x);
      },
      {.executor = Executor::dataflow, .profile = true, .parallel_iterations = 4});
  f(ones({192, 192}) * 1e-3f);
  open(f.graph());
  ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
  nlohmann::json most = nlohmann::json::array();
  const int steps = ask("page.runBar.tokens.activations.length");
  for (int i = 0; i < steps; ++i) {
    ask("page.runBar.goTo(" + std::to_string(i) + ")");
    const auto flights =
        ask("[...document.querySelectorAll('#run .flight')].map((f) => f.textContent)");
    if (flights.size() > most.size()) most = flights;
  }
  EXPECT_EQ(most, nlohmann::json({"0", "1", "2", "3"}));
}

TEST_F(RunPageTest, PlayGoesOnByItselfUntilItIsStoppedOrAtTheEnd) {
  const auto f = jit(
      [](const Tensor& x) {
        return fori_loop(
            0, 4, [](const Tensor&, const Tensor& x) { return tanh(x); }, x);
      },
      {.executor = Executor::dataflow, .profile = true});
  f(ones({2}));
  open(f.graph());
  ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
  const std::string play = "document.querySelector('#run .play')";
  // A clock of the test: the page's own may tick many times between two lines.
  ask("void (window.setInterval = (action) => { window.tick = action; return 1; })");
  click(play);
  EXPECT_EQ(ask(play + ".textContent"), "❚❚");
  ask("tick(), tick()");
  EXPECT_EQ(ask("page.runBar.tokens.at"), 2);
  click(play);
  EXPECT_EQ(ask(play + ".textContent"), "▶");
  EXPECT_EQ(ask("page.runBar.timer"), nullptr);
  // Playing stops at the end, and starts again from the beginning.
  const int steps = ask("page.runBar.tokens.activations.length");
  ask("page.runBar.goTo(" + std::to_string(steps - 1) + ")");
  click(play);
  ask("tick()");
  EXPECT_EQ(ask("page.runBar.tokens.at"), steps);
  EXPECT_EQ(ask(play + ".textContent"), "▶");
  click(play);
  EXPECT_EQ(ask("page.runBar.tokens.at"), 0);
  ask("tick()");
  EXPECT_EQ(ask("page.runBar.tokens.at"), 1);
  EXPECT_EQ(ask(play + ".textContent"), "❚❚");
}

}  // namespace
}  // namespace reel
