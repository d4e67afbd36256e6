// A page's texts on a recorded run: details of clicked nodes, shortened records, and failed runs.
#include <regex>

#include "reel/core/base/str.h"
#include "reel/tests/check.h"
#include "reel/tests/pages/page.h"

namespace reel {
namespace {

using RunDetailsTest = PageFixture;

TEST_F(RunDetailsTest, NodesThatPassTokensNameTheLineOfTheirLoop) {
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
    EXPECT_NE(details().find("run_details_test.cpp:"), std::string::npos) << details();
  }
  // The details explain these nodes.
  ask("page.goTo(" + node("Merge") + ")");
  EXPECT_NE(details().find("forwards the first value that arrives"), std::string::npos)
      << details();
  // The details of a box give the run's bound.
  ask("page.goTo(" + node("while") + ")");
  EXPECT_NE(details().find("3 iterations, at most 2 at once"), std::string::npos) << details();
}

TEST_F(RunDetailsTest, EveryNodeOfALoopHasAnExplanation) {
  // A ragged scan and its gradient: slices, stacks, sums, entries that finish.
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
  EXPECT_EQ(does("slice"), "slice k of a sequence");
  EXPECT_EQ(ask("page.model.nodes.filter((n) => n.attributes.some(([name, value]) => name === "
                "'does' && (!value || value === n.label))).map((n) => n.label)"),
            nlohmann::json::array());
  EXPECT_GT(ask("page.model.nodes.filter((n) => n.attributes.some(([name]) => name === "
                "'does')).length")
                .get<int>(),
            20);
}

TEST_F(RunDetailsTest, ACutRunSaysHowLongItWas) {
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
                                  all - 20'000, " between them are omitted."));
  // The iterations in flight are known after the gap, and counts are of the whole run.
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

TEST_F(RunDetailsTest, AFailedRunShowsWhereAndWhy) {
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
  for (const int size : {3, 5'000}) {  // the page has all steps, and only the last ones
    std::string message;
    try {
      f(ones({size}), scalar(size + 2));
    } catch (const IndexError& error) {
      message = error.what();  // with the line of this file
    }
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
    // A run without an error shows none.
    f(ones({4}), scalar(2));
    open(f.graph());
    ask("page.showView(page.views.find((v) => v.title === 'Dataflow'))");
    EXPECT_EQ(ask(failure + ".hidden"), true);
  }
}

TEST_F(RunDetailsTest, AClickShowsRunsAndTimeOfANode) {
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
