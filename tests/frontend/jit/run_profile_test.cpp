// profile() of plans and of dataflow runs: counts, the costliest ops, and a time line.
#include "reel/frontend/run_profile.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "reel/frontend/pictures/lowered_picture.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"
#include "reel/tests/threads.h"
#include "reel/trace/executors/dataflow/run_dataflow.h"

namespace reel {
namespace {

using nlohmann::json;

class RunProfileTest : public InOwnFolder {
 protected:
  RunProfileTest() : InOwnFolder("run.json") {}

  /// Returns a scan of five iterations in which no op leaves the loop, after three runs.
  static auto profiled() {
    auto f = jit(
        [](const Tensor& x, const Tensor& w) {
          const auto body = [&](const Tensor& x, const Tensor& h) {
            const Tensor next = tanh(matmul(h, w) + x);
            return std::pair{next, next};
          };
          return scan(Scan{.initial = zeros({4, 4}), .xs = x, .body = body, .name = "rnn"}).ys;
        },
        {.name = "f", .profile = true});
    for (int i = 0; i < 3; ++i) f(ones({5, 4, 4}), ones({4, 4}));
    return f;
  }
  json written(const RunProfile& profile) const {
    profile.write_chrome_trace(path);
    return json::parse(std::ifstream(path));
  }
  static std::vector<json> spans(const json& trace, const std::string& name) {
    std::vector<json> result;
    for (const json& event : trace["traceEvents"])
      if (event["ph"] == "X" && event["name"].get<std::string>().starts_with(name))
        result.push_back(event);
    return result;
  }
};

TEST_F(RunProfileTest, TheSummaryNamesLoopsAndTheirOps) {
  const Threads one(1);
  const std::string text = profiled().profile().summary();
  EXPECT_TRUE(std::regex_search(text, std::regex("^f: .* a run, the mean of 2\n"))) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("% +1  scan \"rnn\", 5 iterations"))) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("% +5  .*dot.* -> f32\\[4,4\\], in scan \"rnn\"")))
      << text;
  // The costliest line comes first.
  EXPECT_LT(text.find("scan \"rnn\", 5 iterations"), text.find("in scan \"rnn\"")) << text;
}

/// Returns the lines of a summary that have a share of the time.
std::vector<std::string> timed_lines(const std::string& summary) {
  std::vector<std::string> result;
  std::istringstream lines(summary);
  for (std::string line; std::getline(lines, line);)
    if (line.find(" %") != std::string::npos) result.push_back(line);
  return result;
}

/// Returns the percents in front of " %".
double share_of(const std::string& line) {
  const std::size_t end = line.find(" %"), begin = line.rfind(' ', end - 1);
  return std::stod(line.substr(begin, end - begin));
}

TEST_F(RunProfileTest, TheLinesOfARunAddUpToIt) {
  for (const int threads : {1, 2}) {
    const Threads scope(threads);
    const std::string text = profiled().profile().summary();
    double outside = 0, inside = 0, loop = 0;
    for (const std::string& line : timed_lines(text)) {
      (line.find(", in ") == std::string::npos ? outside : inside) += share_of(line);
      if (line.find("scan \"rnn\", 5 iterations") != std::string::npos) loop = share_of(line);
    }
    EXPECT_NEAR(outside, 100, 5) << text;
    EXPECT_LE(inside, loop + 5) << text;
    EXPECT_NE(text.find("hand-over between the ops, in scan \"rnn\""), std::string::npos) << text;
  }
}

TEST_F(RunProfileTest, ARunThatFailedIsNotOneThatRan) {
  for (const Executor executor : {Executor::plan, Executor::dataflow}) {
    const auto f = jit(
        [](const Tensor& x, const Tensor& i) {
          return fori_loop(
              0, 3, [&](const Tensor& k, const Tensor& s) { return s + gather(x, i + k, 0); },
              scalar(0.f));
        },
        {.name = "f", .executor = executor, .profile = true});
    EXPECT_THROW(f(ones({4}), scalar(3)), IndexError);
    EXPECT_EQ(f.profile().summary(), "f: no run has finished\n");
    f(ones({4}), scalar(1));
    EXPECT_TRUE(std::regex_search(f.profile().summary(), std::regex("^f: .* a run, the ")));
  }
}

TEST_F(RunProfileTest, TheSummaryOfADataflowRunHasItsLoopsAndLinesOfCode) {
  const auto f = jit(
      [](const Tensor& x, const Tensor& w) {
        const auto body = [&](const Tensor& x, const Tensor& h) {
          const Tensor next = tanh(matmul(h, w) + x);
          return std::pair{next, next};
        };
        return scan(Scan{.initial = zeros({4, 4}), .xs = x, .body = body, .name = "rnn"}).ys;
      },
      {.name = "f", .executor = Executor::dataflow, .profile = true, .parallel_iterations = 4});
  for (int i = 0; i < 3; ++i) f(ones({5, 4, 4}), ones({4, 4}));
  const std::string text = f.profile().summary();
  EXPECT_TRUE(std::regex_search(text, std::regex("^f: .* a run, the last one\n"))) << text;
  // The loop comes first, because nothing takes longer, and names its line.
  const auto lines = timed_lines(text);
  ASSERT_EQ(lines.size(), 10u) << text;
  EXPECT_TRUE(std::regex_search(
      lines[0], std::regex("% +1  scan \"rnn\", 5 iterations, at most 4 at once  \\(.+\\)$")))
      << text;
  EXPECT_TRUE(
      std::regex_search(text, std::regex("% +5  .*dot.* -> f32\\[4,4\\], in scan \"rnn\"  \\(")))
      << text;
  // The remaining ones are counted.
  const Picture picture = picture_of(*last_recorded_run(f.graph())).picture;
  const auto ran =
      std::count_if(picture.nodes.begin(), picture.nodes.end(), [](const PictureNode& node) {
        return node.count && node.count->calls > 0 && node.role != PictureNode::Role::argument;
      });
  EXPECT_GT(ran, 20);
  EXPECT_TRUE(text.find(str("\nand ", ran - 10, " more\n")) != std::string::npos) << text;
}

TEST_F(RunProfileTest, LoopsInLoopsTakeNoLongerThanTheRun) {
  const auto f = jit(
      [](const Tensor& x) {
        const auto inner = [](const Tensor&, const Tensor& x) { return tanh(matmul(x, x)); };
        const auto outer = [&](const Tensor&, const Tensor& x) {
          return fori_loop(0, 10, inner, x * 0.5f, {.name = "inner"});
        };
        return fori_loop(0, 10, outer, x, {.name = "outer"});
      },
      {.name = "f", .executor = Executor::dataflow, .profile = true});
  f(ones({16, 16}));
  const std::string text = f.profile().summary();
  for (const std::string& line : timed_lines(text)) {
    const std::size_t end = line.find(" %"), begin = line.rfind(' ', end - 1);
    EXPECT_LE(std::stod(line.substr(begin, end - begin)), 100.0) << text;
  }
  // The bound counts executions that ran, without the last iteration of dead tokens.
  const std::regex outer(" +1  fori_loop \"outer\", 10 iterations, at most 10 at once  "),
      inner(
          " +10  fori_loop \"inner\", 100 iterations, at most 10 at once, in fori_loop \"outer\" "
          " ");
  EXPECT_TRUE(std::regex_search(text, outer)) << text;
  EXPECT_TRUE(std::regex_search(text, inner)) << text;
}

TEST_F(RunProfileTest, ALoopInABranchThatIsNotTakenHasNotRun) {
  const auto f = jit(
      [](const Tensor& p, const Tensor& x) {
        const auto below = [](const Tensor& i) { return i < 10; };
        const auto loop = [&] {
          return while_loop(below, [](const Tensor& i) { return i + 4; }, x, {.name = "never"});
        };
        return cond(p > 0, loop, [&] { return x * 2; });
      },
      {.name = "f", .executor = Executor::dataflow, .profile = true});
  f(scalar(0), scalar(3));
  EXPECT_EQ(f.profile().summary().find("never"), std::string::npos) << f.profile().summary();
  EXPECT_EQ(spans(written(f.profile()), "while_loop").size(), 0u);
  EXPECT_EQ(spans(written(f.profile()), "iteration").size(), 0u);
  for (const PictureNode& node : picture_of(*last_recorded_run(f.graph())).picture.nodes)
    if (node.label == "never") {
      EXPECT_FALSE(node.count);
    }
  f(scalar(1), scalar(3));
  EXPECT_NE(f.profile().summary().find(" 1  while_loop \"never\", 2 iterations, "),
            std::string::npos);
  EXPECT_EQ(spans(written(f.profile()), "iteration").size(), 3u);  // the last: condition only
}

TEST_F(RunProfileTest, TheSummaryCountsSpansThatTheTimeLineLeavesOut) {
  const auto run = [](Executor executor, int steps) {
    const auto f = jit(
        [=](const Tensor& x) {
          return fori_loop(
              0, steps, [](const Tensor&, const Tensor& x) { return tanh(x); }, x);
        },
        {.name = "f", .executor = executor, .profile = true});
    f(ones({2}));
    return f.profile().summary();
  };
  const std::regex left_out("\nthe time line omits [0-9]+ spans; the times above include them\n");
  for (const Executor executor : {Executor::plan, Executor::dataflow}) {
    EXPECT_FALSE(std::regex_search(run(executor, 5), left_out));
    const std::string text = run(executor, 40'000);
    EXPECT_TRUE(std::regex_search(text, left_out)) << text;
  }
}

TEST_F(RunProfileTest, TheSummaryNamesTheTenCostliestAndCountsTheOthers) {
  const auto f = jit(
      [](const Tensor& x, const Tensor& w) {
        Tensor y = x;
        for (int i = 0; i < 12; ++i) y = matmul(y, w);
        return y;
      },
      {.name = "f", .profile = true});
  for (int i = 0; i < 2; ++i) f(ones({4, 4}), ones({4, 4}));
  const std::string text = f.profile().summary();
  auto lines = timed_lines(text);
  ASSERT_EQ(lines.size(), 11u) << text;
  lines.pop_back();  // the share of the others
  // Shares decrease.
  std::vector<double> shares;
  for (const std::string& line : lines) shares.push_back(share_of(line));
  EXPECT_TRUE(std::is_sorted(shares.rbegin(), shares.rend())) << text;
  EXPECT_TRUE(std::regex_search(
      text, std::regex("\nand [2-9] more, with [0-9.]+ % besides the lines above\n")))
      << text;
}

TEST_F(RunProfileTest, IterationsLieInTheirLoopAndOpsInTheirIteration) {
  const Threads one(1);
  const json trace = written(profiled().profile());
  const auto runs = spans(trace, "f"), loops = spans(trace, "scan"),
             iterations = spans(trace, "iteration");
  ASSERT_EQ(runs.size(), 1u + spans(trace, "fused").size() + spans(trace, "full").size());
  ASSERT_EQ(loops.size(), 1u);
  ASSERT_EQ(iterations.size(), 5u);  // of the last run only
  const auto lies_in = [](const json& inner, const json& outer) {
    const double begin = inner["ts"], end = begin + inner["dur"].get<double>();
    const double from = outer["ts"], to = from + outer["dur"].get<double>();
    return inner["tid"] == outer["tid"] && from <= begin + 1e-6 && end <= to + 1e-6;
  };
  for (const json& iteration : iterations) {
    EXPECT_TRUE(lies_in(iteration, loops[0]));
    int ops = 0;
    for (const json& event : trace["traceEvents"])
      ops += event["ph"] == "X" && event["cat"] != "iteration" && event["cat"] != "run" &&
             event["cat"] != "loop" && lies_in(event, iteration);
    EXPECT_GE(ops, 1);
  }
  // One after the other.
  for (std::size_t i = 1; i < iterations.size(); ++i)
    EXPECT_GE(iterations[i]["ts"].get<double>() + 1e-6,
              iterations[i - 1]["ts"].get<double>() + iterations[i - 1]["dur"].get<double>());
}

TEST_F(RunProfileTest, ALoopInsideOfAnotherCountsItsIterationsAnew) {
  const Threads one(1);
  auto f = jit(
      [](const Tensor& w) {
        const auto inner = [&](Tensor, Tensor s) { return tanh(matmul(s, w)); };
        const auto outer = [&](Tensor, Tensor s) { return fori_loop(0, 3, inner, s) * 0.5; };
        return fori_loop(0, 4, outer, ones({4, 4}));
      },
      {.name = "f", .profile = true});
  for (int i = 0; i < 3; ++i) f(ones({4, 4}));
  const json trace = written(f.profile());
  std::map<std::string, int> names;
  for (const json& event : spans(trace, "iteration")) ++names[event["name"]];
  const std::map<std::string, int> expected{
      {"iteration 0", 5}, {"iteration 1", 5}, {"iteration 2", 5}, {"iteration 3", 1}};
  EXPECT_EQ(names, expected);
}

TEST_F(RunProfileTest, ALongLoopLeavesOutLateSpans) {
  const Threads one(1);
  auto f = jit(
      [](const Tensor& x) {
        // A body that is not one fused op runs iteration by iteration.
        const auto body = [](const Tensor&, const Tensor& x) { return 0.5f * cumsum(x, 0); };
        return fori_loop(0, 20000, body, x);
      },
      {.profile = true});
  f(ones({2}));
  f(ones({2}));
  const json trace = written(f.profile());
  EXPECT_EQ(spans(trace, "fori_loop").size(), 1u);
  EXPECT_LE(spans(trace, "iteration").size(), 16384u);
  EXPECT_GT(trace["otherData"]["spans left out"], 3600);
}

TEST_F(RunProfileTest, UnderATapeTheGradientIsThereToo) {
  const auto f = jit([](const Tensor& x) { return sum(tanh(x)); }, {.name = "f", .profile = true});
  grad(f)(ones({3}));
  const std::string text = f.profile().summary();
  EXPECT_NE(text.find("f, under a tape: "), std::string::npos) << text;
  EXPECT_NE(text.find("f, its gradient: "), std::string::npos) << text;
}

TEST_F(RunProfileTest, ACallThatTheInterpreterDidSaysSo) {
  const auto f = jit(
      [](const Tensor& x, const Tensor& k) {
        const auto body = [&](const Tensor& x, const Tensor& h) {
          return std::pair{gather(ones({4}) * 2.f, k, 0) * x, h + x};
        };
        return sum(
            scan(Scan{.spatial_dim = x.dim("time"), .initial = scalar(0.f), .xs = x, .body = body})
                .ys);
      },
      {.name = "f", .profile = true});
  f(ones({Dim("time", scalar(0))}), scalar(9));
  const std::string why =
      "run op by op, by the interpreter, because its plan failed: gather: index "
      "9 is out of range";
  EXPECT_NE(f.profile().summary().find("f: " + why), std::string::npos) << f.profile().summary();
  f(ones({Dim("time", scalar(2))}), scalar(1));
  EXPECT_EQ(f.profile().summary().find("failed"), std::string::npos) << f.profile().summary();
}

TEST_F(RunProfileTest, GradientsInRowsAndWholeOnesAreThereBoth) {
  const auto f = jit(
      [](const EmbeddingTable& t) {
        return sum(gather(t, tensor({0, 1})));
      },
      {.name = "f", .profile = true});
  const EmbeddingTable table(ones({4, 2}));
  grad([&](const Tensor& whole) { return f(EmbeddingTable(whole)); })(table.dense());
  grad(f)(table);
  const std::string text = f.profile().summary();
  EXPECT_NE(text.find("f, its gradient: "), std::string::npos) << text;
  EXPECT_NE(text.find("f, its gradient in rows: "), std::string::npos) << text;
}

TEST_F(RunProfileTest, UnderTwoTapesEveryGraphThatRanIsThere) {
  for (const Executor executor : {Executor::plan, Executor::dataflow}) {
    const auto f = jit([](const Tensor& x) { return sum(sin(x) * x); },
                       {.name = "f", .executor = executor, .profile = true});
    const auto first = [&](const Tensor& x) { return sum(grad(f)(x)); };
    grad(first)(ones({3}));
    const std::string text = f.profile().summary();
    EXPECT_NE(text.find("f, under a tape, under a tape: "), std::string::npos) << text;
    EXPECT_NE(text.find("f, its gradient, under a tape: "), std::string::npos) << text;
    EXPECT_NE(text.find("f, its gradient, its gradient: "), std::string::npos) << text;
    EXPECT_GT(spans(written(f.profile()), "f, its gradient, its gradient").size(), 0u);
    EXPECT_EQ(f.explain().find("no run has finished"), std::string::npos);
  }
}

TEST_F(RunProfileTest, TheSummarySaysOfWhichLoopAConditionIsAndWhereABranch) {
  const auto f = jit(
      [](const Tensor& x) {
        const auto until = [&](const char* name, float end) {
          return [=](const Tensor& x) {
            // Far costlier than everything else, because only ten lines are shown.
            const auto cond = [=](const Tensor& i) {
              return sum(cumsum(expand(i, {4000}), 0)) < 8e6f * end;
            };
            return while_loop(cond, [](const Tensor& i) { return i + 1.f; }, x, {.name = name});
          };
        };
        const Tensor y = until("second", 8.5f)(until("first", 4.5f)(x));
        const auto body = [](const Tensor& i, const Tensor& v) {
          return cond(
              i % 2 == 0, [&] { return cumsum(v, 0); }, [&] { return v; });
        };
        return fori_loop(0, 3, body, expand(y, {4000}), {.name = "outer"});
      },
      {.name = "f", .profile = true});
  for (int i = 0; i < 2; ++i) f(scalar(0.f));
  const std::string text = f.profile().summary();
  for (const char* place :
       {", in condition of while_loop \"first\"", ", in condition of while_loop \"second\"",
        ", in if true of cond in fori_loop \"outer\""})
    EXPECT_NE(text.find(place), std::string::npos) << place << " in\n" << text;
}

TEST_F(RunProfileTest, BlocksOfRowsHaveThreadsOfTheirOwn) {
  const Threads two(2);
  const Dim time("time", 6), batch("batch", 64), in("in", 32), hidden("hidden", 80);
  const LstmCell cell = LstmCell::init(in, hidden);
  const auto f = jit(
      [](const LstmCell& cell, const Tensor& x) {
        const auto body = [&](const Tensor& x, const LstmCell::State& s) { return cell(x, s); };
        return scan(Scan{.spatial_dim = x.dim("time"),
                         .initial = cell.initial_state({x.dim("batch")}),
                         .xs = x,
                         .body = body,
                         .name = "lstm"})
            .ys;
      },
      {.name = "f", .profile = true});
  const Tensor x = random_normal({time, batch, in});
  f(cell, x);
  f(cell, x);
  const json trace = written(f.profile());
  EXPECT_EQ(spans(trace, "scan \"lstm\"").size(), 1u);
  EXPECT_GT(spans(trace, "iteration").size(), 6u);  // six of each block
}

// In a dataflow run, a loop that only waits for another one must not count as the costliest.
TEST_F(RunProfileTest, ALoopThatWaitsForAnotherTakesLittle) {
  const auto f = jit(
      [](const Tensor& w) {
        const auto costly = [&](const Tensor&, const Tensor& h) { return tanh(matmul(h, w)); };
        const auto cheap = [](const Tensor&, const Tensor& h) { return h + 1.; };
        const Tensor h = fori_loop(0, 20, costly, w, {.name = "costly"});
        return fori_loop(0, 20, cheap, sum(h), {.name = "cheap\nand small"});
      },
      {.name = "f", .executor = Executor::dataflow, .profile = true});
  f(full({128, 128}, 0.01, f64));
  const std::string summary = f.profile().summary();
  // A line break in the name must not split the line.
  EXPECT_NE(summary.find("  fori_loop \"cheap and small\", "), std::string::npos) << summary;
  EXPECT_EQ(summary.find("argument"), std::string::npos) << summary;
  // The cheap loop's counter starts while the costly loop runs. A loop's time is the time of its
  // nodes.
  const auto run = last_recorded_run(f.graph());
  std::vector<std::int64_t> of_nodes(run->graph->frames.size(), 0);
  for (std::size_t i = 0; i < run->graph->nodes.size(); ++i)
    of_nodes[static_cast<std::size_t>(run->graph->nodes[i].frame)] +=
        run->node_totals[i].nanoseconds;
  ASSERT_EQ(of_nodes.size(), 3u);
  for (const std::size_t loop : {1, 2}) {
    EXPECT_GT(run->frame_totals[loop].nanoseconds, 0);
    EXPECT_LE(run->frame_totals[loop].nanoseconds, of_nodes[loop]);
  }
}

TEST_F(RunProfileTest, WithoutTimesThereIsNothingToSay) {
  const auto plain = jit([](const Tensor& x) { return x; }, {.name = "f"});
  plain(ones({2}));
  EXPECT_EQ(message_of<ArgumentError>([&] { plain.profile(); }),
            "jit \"f\": nothing has been timed; give it JitOptions{.profile = true}");
  const auto early = jit([](const Tensor& x) { return x; }, {.name = "f", .profile = true});
  EXPECT_EQ(message_of<ArgumentError>([&] { early.profile(); }),
            "jit \"f\": there is no graph before the first call");
}

TEST_F(RunProfileTest, AFileThatCannotBeWrittenIsAnError) {
  const RunProfile profile = profiled().profile();
  EXPECT_EQ(message_of<IoError>([&] { profile.write_chrome_trace("no/such/folder/run.json"); }),
            "write_chrome_trace: cannot write no/such/folder/run.json: No such file or directory");
}

}  // namespace
}  // namespace reel
