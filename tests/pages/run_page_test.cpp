// Pages with a recorded run: what the slider steps through.
#include <algorithm>
#include <regex>

#include "reel/frontend/pictures/write_html.h"
#include "reel/tests/check.h"
#include "reel/tests/pages/page.h"
#include "reel/tests/threads.h"
#include "reel/trace/executors/dataflow/run_recorder.h"

namespace reel {
namespace {

using RunPageTest = PageFixture;

/// The run of a lowered while_loop without loops in it, whose condition holds `steps` times; one
/// iteration after the other.
RecordedRun run_of(std::shared_ptr<const LoweredGraph> graph, int steps) {
  RecordedRun run;
  run.graph = graph;
  RunRecorder recorder(run, {});
  recorder.enter({0, -1, 0}, 0);
  recorder.enter({1, 0, 0}, 0);
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
  // A training step: a loop, its gradient, several iterations in flight.
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

  // After the last Merge of iteration 2: one iteration in flight, its token where it was put.
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

  // The condition is false in iteration 5: the body gets dead tokens.
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

  // In the end only the results hold tokens, and what the last iteration did not run is grey.
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
  // Counts as the description of this graph has them: five times through the body.
  EXPECT_EQ(ask("page.runBar.tokens.counts.get(" + node("NextIteration") + ")"),
            nlohmann::json::parse(R"({"live": 5, "dead": 1})"));
  EXPECT_EQ(ask("page.runBar.tokens.counts.get(" + node("Merge") + ").live"), 6);
}

/// What is wrong with a replay: nodes that fire without tokens at their inputs, or dead where those
/// are not; in the end, tokens that are no results.
constexpr const char* kReplay = R"((() => {
  const wrong = [], tokens = page.runBar.tokens;
  tokens.reset();
  for (const at of tokens.activations) {
    const kind = tokens.kind.get(at.node);
    const here = at.node.reads.map((edge) => {
      const tags = tokens.onEdge.get(edge) || new Map();
      return tags.get(`${at.instance} ${at.iteration}`) ?? tags.get(`${at.instance} ∀`);
    });
    const isReady = kind === 'Merge' ? here.some((dead) => dead !== undefined)
      : here.every((dead) => dead !== undefined);
    if (!isReady) wrong.push(`step ${tokens.at}: ${at.node.label} has no token`);
    else if (kind !== 'Merge' && here.some((dead) => dead) !== at.isDead) wrong.push(`step ${tokens.at}: ${at.node.label} is ${at.isDead ? '' : 'not '}dead`);
    tokens.goTo(tokens.at + 1);
  }
  for (const [edge, tags] of tokens.onEdge) for (const tag of tags.keys())
    if (edge.to.role !== 'result') wrong.push(`a token ${tag} stays between ${edge.from.label} and ${edge.to.label}`);
  return wrong.join('\n');
})())";

TEST_F(RunPageTest, AReplayOfNestedLoopsHasTokensForAllThatRunsAndLeavesNone) {
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
  // Flights say in which iteration of the loop around them they are.
  ask("page.runBar.goTo(0)");
  std::string flights;
  const int steps = ask("page.runBar.tokens.activations.length");
  for (int i = 0; i < steps; i += 20) {
    ask("page.runBar.goTo(" + std::to_string(i) + ")");
    flights += ask("document.querySelector('#run .frames').textContent").get<std::string>();
  }
  EXPECT_NE(flights.find(" in iteration 2 of "), std::string::npos) << flights.substr(0, 400);
  // What runs is in sight, or the box that hides it.
  settle();
  for (const char* follow : {"true", "false"}) {
    ask("page.foldAll(true)");
    ask("document.querySelector('#run .follow input').checked = " + std::string(follow));
    ask("page.runBar.goTo(" + std::to_string(steps / 4) + ")");
    settle();
    EXPECT_EQ(ask("page.drawing.groups.has(page.runBar.last().node)"),
              std::string(follow) == "true");
    EXPECT_EQ(ask("document.querySelectorAll('#scene .fired').length"), 1);
    EXPECT_EQ(ask("page.model.boxes.some((b) => b.isFolded)"), true);  // no more than it takes
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
  // After the slider, keys still do what they say.
  ask("document.querySelector('#run .slider').focus()");
  browser->press("/");
  EXPECT_EQ(ask("document.activeElement.id"), "query");
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
  ask(kSlowLayouts);
  for (const char* fold : {"true", "false"}) {
    ask("void (page.coming = page.foldAll(" + std::string(fold) + "))");
    ask("page.runBar.step(1)");
    EXPECT_EQ(ask("document.querySelectorAll('#scene .fired').length"), 1);
    ask("page.coming");
    settle();
    EXPECT_EQ(ask("document.querySelectorAll('#scene .fired').length"), 1);
  }
  // Another view is on its way.
  ask("void (page.coming = page.showView(page.views[0]))");
  ask("page.runBar.step(1)");
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
  EXPECT_EQ(fills(".control"), yellow);  // Enter, Merge, Switch, ...: whatever they took
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
  // A counter that leads: tokens of several iterations wait on an edge.
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

TEST_F(RunPageTest, IterationsBesideEachOtherAreAllNamed) {
  const Threads one(1);  // then the counter leads as far as it may
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
  const auto until = [&](const std::string& holds) {
    ask("(async () => { while (!(" + holds + ")) await new Promise(requestAnimationFrame); })()");
  };
  click(play);
  EXPECT_EQ(ask(play + ".textContent"), "❚❚");
  until("page.runBar.tokens.at >= 2");
  click(play);
  EXPECT_EQ(ask(play + ".textContent"), "▶");
  EXPECT_EQ(ask("page.runBar.timer"), nullptr);
  // At the end it stops by itself, and begins anew.
  const int steps = ask("page.runBar.tokens.activations.length");
  ask("page.runBar.goTo(" + std::to_string(steps - 1) + ")");
  click(play);
  until("page.runBar.tokens.at === " + std::to_string(steps));
  EXPECT_EQ(ask(play + ".textContent"), "▶");
  click(play);
  until("page.runBar.tokens.at <= 2");
  EXPECT_EQ(ask(play + ".textContent"), "❚❚");
}

TEST_F(RunPageTest, NodesThatPassTokensNameTheLineOfTheirLoop) {
  const auto f = jit(
      [](const Tensor& x) {
        return while_loop([](const Tensor& x) { return sum(x) < 9.f; },
                          [](const Tensor& x) { return x * 2.f; }, x, {.parallel_iterations = 4});
      },
      {.executor = Executor::dataflow, .profile = true, .parallel_iterations = 2});
  f(ones({2}));
  open(f.graph());
  ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
  for (const char* label : {"Enter", "Merge", "Switch", "while"}) {
    ask("page.goTo(" + node(label) + ")");
    settle();
    EXPECT_NE(details().find("run_page_test.cpp:"), std::string::npos) << details();
  }
  // And what they do.
  ask("page.goTo(" + node("Merge") + ")");
  EXPECT_NE(details().find("hands on the value that comes first"), std::string::npos) << details();
  // What a box says is what the run was allowed.
  ask("page.goTo(" + node("while") + ")");
  EXPECT_NE(details().find("at most 2 iterations at once"), std::string::npos) << details();
}

TEST_F(RunPageTest, EveryNodeOfALoopSaysWhatItDoes) {
  // A ragged scan and its gradient: slices, stacks, sums, entries that end.
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  const auto loss = [](const Tensor& w, const Tensor& x) {
    return sum(scan(Scan{.spatial_dim = x.dim("time"),
                         .initial = zeros({x.dim("batch")}),
                         .xs = x,
                         .body =
                             [&](const Tensor& x, const Tensor& s) {
                               const Tensor next = tanh(s * w + x);
                               return std::pair{next, next};
                             }})
                   .ys);
  };
  const auto f = jit(grad(loss), {.executor = Executor::dataflow, .profile = true});
  f(scalar(0.5f), ones({batch, time}));
  open(f.graph());
  ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
  const auto does = [&](const std::string& label) {
    return ask(node(label) + "?.attributes.find(([name]) => name === 'does')?.[1]");
  };
  EXPECT_EQ(does("in_bound"), "whether iteration k may run: k is less than the bound of the loop");
  EXPECT_EQ(does("slice"), "slice k of what the loop runs along");
  EXPECT_EQ(ask("page.model.nodes.filter((n) => n.attributes.some(([name, value]) => name === "
                "'does' && (!value || value === n.label))).map((n) => n.label)"),
            nlohmann::json::array());
  EXPECT_GT(ask("page.model.nodes.filter((n) => n.attributes.some(([name]) => name === "
                "'does')).length")
                .get<int>(),
            20);
}

TEST_F(RunPageTest, ACutRunSaysHowLongItWas) {
  const auto f = jit(
      [](const Tensor& x) {
        return fori_loop(
            0, 12'000, [](const Tensor&, const Tensor& x) { return tanh(x); }, x);
      },
      {.executor = Executor::dataflow, .profile = true});
  f(ones({2}));
  open(f.graph());
  ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
  const auto text_of = [&](const std::string& part) {
    return ask("document.querySelector('#run " + part + "').textContent").get<std::string>();
  };
  std::smatch found;
  const std::string start = text_of(".at");
  ASSERT_TRUE(std::regex_match(start, found, std::regex("step 0 of (\\d+)"))) << start;
  const int all = std::stoi(found[1]);
  EXPECT_GT(all, 40'000);
  EXPECT_EQ(ask("page.runBar.tokens.activations.length"), 20'001);  // and a step for the others
  ask("page.runBar.goTo(10000)");
  EXPECT_EQ(text_of(".at"), str("step 10000 of ", all));
  EXPECT_GE(ask("document.querySelectorAll('#run .flight').length"), 1);
  ask("page.runBar.goTo(10001)");
  EXPECT_EQ(text_of(".at"), str("step ", all - 10'000, " of ", all));
  EXPECT_EQ(text_of(".what"), str("The page has the first 10000 steps of this run and the last "
                                  "10000: the ",
                                  all - 20'000, " between them are left out."));
  // What is in flight there is known, and counts are those of the whole run.
  const auto flights =
      ask("[...document.querySelectorAll('#run .flight')].map((f) => "
          "Number(f.textContent))");
  ASSERT_GE(flights.size(), 1u);
  EXPECT_GT(flights[0], 2000);
  ask("page.runBar.goTo(1e9)");
  EXPECT_EQ(text_of(".at"), str("step ", all, " of ", all));
  EXPECT_EQ(ask("document.querySelectorAll('#run .flight').length"), 0);
  EXPECT_EQ(ask("page.runBar.tokens.counts.get(" + node("tanh") + ")"),
            nlohmann::json::parse(R"({"live": 12000, "dead": 1})"));
  EXPECT_EQ(ask("[...page.runBar.tokens.onEdge].filter(([e, t]) => t.size).map(([e]) => "
                "e.to.role)"),
            nlohmann::json({"result"}));
  ask("page.runBar.goTo(3)");  // and back
  EXPECT_EQ(text_of(".at"), str("step 3 of ", all));
}

TEST_F(RunPageTest, AFailedRunShowsWhereAndWhy) {
  const auto f = jit(
      [](const Tensor& x, const Tensor& n) {
        return while_loop([&](const Tensor& i, const Tensor&) { return i < n; },
                          [&](const Tensor& i, const Tensor& s) {
                            return std::tuple{i + 1, s + gather(x, i, 0)};
                          },
                          std::tuple{scalar(0), scalar(0.f)}, {.name = "decode"});
      },
      {.executor = Executor::dataflow, .profile = true});
  f(ones({4}), scalar(2));
  for (const int size : {3, 5'000}) {  // the page has all steps, and the last ones
    const std::string message = message_of<IndexError>([&] { f(ones({size}), scalar(size + 2)); });
    open(f.graph());
    ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
    settle();
    EXPECT_EQ(ask("document.querySelectorAll('#scene .failed').length"), 0);  // not yet
    const std::string failure = "document.querySelector('#run .failure')";
    EXPECT_EQ(ask(failure + ".textContent"),
              str("Failed here: gather, iteration ", size, " of decode\n", message));
    click(failure);
    EXPECT_EQ(ask("document.querySelector('#run .what').textContent"),
              str("gather, iteration ", size, " of decode: failed"));
    EXPECT_EQ(ask("[...document.querySelectorAll('#scene .failed')].map((g) => "
                  "page.model.nodes[Number(g.dataset.id)].label)"),
              nlohmann::json({"gather"}));
    EXPECT_EQ(ask("page.picked.label"), "gather");
    EXPECT_EQ(ask("page.runBar.tokens.counts.get(" + node("gather") + ").live"), size);
    ask("page.runBar.goTo(0)");
    EXPECT_EQ(ask("document.querySelectorAll('#scene .failed').length"), 0);
    // A run without an error says none.
    f(ones({4}), scalar(2));
    open(f.graph());
    ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
    EXPECT_EQ(ask(failure + ".hidden"), true);
  }
}

TEST_F(RunPageTest, AClickSaysHowOftenANodeHasFiredAndWhatItTook) {
  const auto f = jit(
      [](const Tensor& x) {
        return fori_loop(
            0, 4, [](const Tensor&, const Tensor& x) { return tanh(x); }, x);
      },
      {.executor = Executor::dataflow, .profile = true});
  f(ones({2}));
  open(f.graph());
  ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
  ask("page.goTo(" + node("tanh") + ")");
  const std::string fired = "document.querySelector('#details .activations').textContent";
  EXPECT_EQ(ask(fired), "0 up to this step");
  ask("page.runBar.goTo(1e9)");
  EXPECT_EQ(ask(fired), "4 up to this step, and 1 dead");
  const std::string text = details();
  EXPECT_NE(text.find(" in 4 calls, "), std::string::npos) << text;
}

}  // namespace
}  // namespace reel
