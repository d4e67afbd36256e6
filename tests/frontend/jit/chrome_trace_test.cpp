// Chrome traces as their viewers read them: the nesting of spans in a row, and the numbers of
// iterations.
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "reel/frontend/pictures/chrome_trace.h"
#include "reel/reel.h"
#include "reel/tests/own_folder.h"
#include "reel/tests/threads.h"

namespace reel {
namespace {

using nlohmann::json;

class ChromeTraceTest : public InOwnFolder {
 protected:
  ChromeTraceTest() : InOwnFolder("run.json") {}

  json written(const RunProfile& profile) const {
    profile.write_chrome_trace(path);
    return json::parse(std::ifstream(path));
  }
};

/// A span of a row, in nanoseconds.
struct Span {
  std::string name, category;
  std::int64_t begin, end;
  int depth;  ///< the number of spans around it
};
using Row = std::pair<int, int>;  ///< process, thread

std::int64_t nanoseconds(const json& microseconds) {
  const double exact = microseconds.get<double>() * 1000;
  EXPECT_LT(std::abs(exact - std::round(exact)), 1e-2);
  return std::llround(exact);
}

/// Returns the spans of each row, in the file's order and stacked as a viewer stacks them. Fails if
/// a span begins inside another and ends outside of it.
std::map<Row, std::vector<Span>> stacked(const json& trace) {
  std::map<Row, std::vector<Span>> rows;
  std::map<Row, std::vector<std::int64_t>> open;  // ends of the open spans
  std::map<Row, std::vector<double>> exact_ends;
  std::map<Row, std::int64_t> last;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const Row row{event["pid"], event["tid"]};
    const std::int64_t begin = nanoseconds(event["ts"]), end = begin + nanoseconds(event["dur"]);
    // Viewers add begin and duration as doubles; a span that ends where another begins must not lie
    // inside it.
    const double exact_begin = event["ts"], exact_end = exact_begin + event["dur"].get<double>();
    auto& exact = exact_ends[row];
    while (!exact.empty() && exact.back() <= exact_begin) exact.pop_back();
    if (!exact.empty()) {
      EXPECT_LE(exact_end, exact.back()) << event;
    }
    exact.push_back(exact_end);
    EXPECT_GE(begin, last[row]) << "not in order: " << event;
    EXPECT_GE(end, begin) << event;
    last[row] = begin;
    auto& stack = open[row];
    while (!stack.empty() && stack.back() <= begin) stack.pop_back();
    if (!stack.empty()) {
      EXPECT_LE(end, stack.back()) << event;
    }
    rows[row].push_back({event["name"], event["cat"], begin, end, static_cast<int>(stack.size())});
    stack.push_back(end);
  }
  return rows;
}

/// Returns the names of the rows that are not threads.
std::map<Row, std::string> row_names(const json& trace) {
  std::map<Row, std::string> names;
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "M" && event["name"] == "thread_name")
      names[{event["pid"], event["tid"]}] = event["args"]["name"];
  return names;
}

Tensor nested(const Tensor& x) {
  const auto outer = [](const Tensor& i, const Tensor& x) {
    const auto inner = [&](const Tensor& j, const Tensor& y) { return tanh(y) + cast(i * j, f32); };
    const Tensor y = fori_loop(0, 3, inner, x);
    return cond(
        sum(y) > 0.f, [&] { return fori_loop(0, 2, inner, y); }, [&] { return y - x; });
  };
  return sum(fori_loop(0, 4, outer, x));
}

struct Lstm {
  Dim time{"time", 6}, batch{"batch", 64}, in{"in", 32}, hidden{"hidden", 80};
  LstmCell cell = LstmCell::init(in, hidden);
  Tensor x = random_normal({time, batch, in});

  static Tensor loss(const LstmCell& cell, const Tensor& x) {
    const auto body = [&](const Tensor& x, const LstmCell::State& s) { return cell(x, s); };
    return sum(scan(Scan{.spatial_dim = x.dim("time"),
                         .initial = cell.initial_state({x.dim("batch")}),
                         .xs = x,
                         .body = body,
                         .name = "lstm"})
                   .ys);
  }
};

// If the begin has finer steps than the duration, no rounded sum of both need equal the end.
TEST(ChromeTraceNumbersTest, EverySpanEndsWhereTheNextOneBeginsToTheBit) {
  std::mt19937 generator(1);
  std::uniform_int_distribution<std::int64_t> early(0, 4000), late(8000, 16000);
  Picture picture;
  picture.name = "f";
  for (unsigned row = 0; row < 5000; ++row) {
    const std::int64_t border = late(generator);
    picture.spans.push_back({.node = -1, .row = row, .begin = early(generator), .end = border});
    picture.spans.push_back({.node = -1, .row = row, .begin = border, .end = border + 1});
  }
  const json trace = json::parse(chrome_trace_of({picture}));
  std::map<unsigned, double> ends;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"];
    const auto [end, is_first] = ends.try_emplace(event["tid"], begin + event["dur"].get<double>());
    if (!is_first) {
      ASSERT_EQ(begin, end->second);
    }
  }
  EXPECT_EQ(ends.size(), 5000u);
}

TEST_F(ChromeTraceTest, SpansLieInEachOtherOrApart) {
  const Threads two(2);
  const Lstm lstm;
  for (const Executor executor : {Executor::plan, Executor::dataflow}) {
    const auto f = jit(nested, {.name = "f", .executor = executor, .profile = true});
    const auto g = jit(value_and_grad(Lstm::loss), {.executor = executor, .profile = true});
    for (int i = 0; i < 2; ++i) {
      f(ones({3}));
      grad(f)(ones({3}));
      g(lstm.cell, lstm.x);
    }
    for (const RunProfile& profile : {f.profile(), g.profile()}) {
      const auto rows = stacked(written(profile));
      int deepest = 0;
      for (const auto& [row, spans] : rows)
        for (const Span& span : spans) deepest = std::max(deepest, span.depth);
      EXPECT_GE(deepest, executor == Executor::plan ? 3 : 1);
    }
  }
}

TEST_F(ChromeTraceTest, BlocksOfRowsCountTheirIterationsEach) {
  const Threads two(2);
  const Lstm lstm;
  const auto f = jit(Lstm::loss, {.name = "f", .profile = true});
  for (int i = 0; i < 2; ++i) f(lstm.cell, lstm.x);
  std::map<std::string, int> names;
  for (const auto& [row, spans] : stacked(written(f.profile())))
    for (const Span& span : spans)
      if (span.category == "iteration") ++names[span.name];
  ASSERT_GE(names["iteration 0"], 2);  // row blocks
  EXPECT_EQ(names.size(), 6u);
  for (const auto& [name, count] : names) EXPECT_EQ(count, names["iteration 0"]) << name;
}

TEST_F(ChromeTraceTest, ALoopInsideOfALoopOfBlocksCountsItsIterationsAnew) {
  const Threads two(2);
  const auto f = jit(
      [](const Tensor& x, const Tensor& w) {
        const auto body = [&](const Tensor& x, const Tensor& h) {
          const auto inner = [&](const Tensor&, const Tensor& y) { return tanh(matmul(y, w) + x); };
          const Tensor next = fori_loop(0, 3, inner, h);
          return std::pair{next, next};
        };
        return scan(Scan{.initial = zeros({64, 64}), .xs = x, .body = body, .name = "outer"}).ys;
      },
      {.name = "f", .profile = true});
  for (int i = 0; i < 2; ++i) f(ones({5, 64, 64}), ones({64, 64}));
  std::map<std::string, int> names;
  for (const auto& [row, spans] : stacked(written(f.profile())))
    for (const Span& span : spans)
      if (span.category == "iteration") ++names[span.name];
  const int blocks = names["iteration 4"];
  EXPECT_GE(blocks, 1);
  const std::map<std::string, int> expected{{"iteration 0", 6 * blocks},
                                            {"iteration 1", 6 * blocks},
                                            {"iteration 2", 6 * blocks},
                                            {"iteration 3", blocks},
                                            {"iteration 4", blocks}};
  EXPECT_EQ(names, expected);
}

TEST_F(ChromeTraceTest, ADataflowRunShowsIterationsBesideEachOther) {
  const auto f = jit(
      [](const Tensor& x) {
        return fori_loop(
            0, 12, [](const Tensor& i, const Tensor& x) { return matmul(x, x) + cast(i, f32); }, x);
      },
      {.name = "f", .executor = Executor::dataflow, .profile = true, .parallel_iterations = 4});
  f(ones({192, 192}) * 1e-3f);
  const json trace = written(f.profile());
  const auto rows = stacked(trace);
  const auto names = row_names(trace);
  std::vector<Span> iterations;
  int loops = 0, rows_of_iterations = 0;
  for (const auto& [row, spans] : rows) {
    const bool has_the_loop = names.at(row) == "fori_loop";
    const bool has_more = names.at(row) == "fori_loop, more in flight";
    rows_of_iterations += has_the_loop || has_more;
    for (const Span& span : spans) {
      if (span.category == "frame") ++loops;
      if (span.category != "iteration") continue;
      EXPECT_TRUE(has_the_loop || has_more) << span.name;
      EXPECT_EQ(span.depth, has_the_loop ? 1 : 0);
      iterations.push_back(span);
    }
  }
  EXPECT_EQ(loops, 1);
  EXPECT_EQ(iterations.size(), 13u);  // in the last one the condition ends the loop
  // The counter runs ahead of the products, within the bound.
  EXPECT_GE(rows_of_iterations, 2);
  EXPECT_LE(rows_of_iterations, 4);
  std::map<std::string, int> counts;
  for (const Span& span : iterations) ++counts[span.name];
  for (int k = 0; k <= 12; ++k) EXPECT_EQ(counts["iteration " + std::to_string(k)], 1) << k;
  // Ops lie on thread rows and name their iteration.
  std::set<std::string> of;
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["name"] == "dot") {
      EXPECT_EQ(event["args"]["of"], "fori_loop");
      of.insert(event["args"]["iteration"]);
    }
  EXPECT_EQ(of.size(), 12u);
  EXPECT_TRUE(of.contains("0") && of.contains("11"));
}

/// Returns the paths of spans, such as "outer > iteration 1 > inner", with their numbers.
std::map<std::string, int> nesting(const json& trace) {
  std::map<std::string, int> result;
  for (const auto& [row, spans] : stacked(trace)) {
    std::vector<std::string> around;
    for (const Span& span : spans) {
      around.resize(static_cast<std::size_t>(span.depth));
      around.push_back(span.name);
      std::string path;
      for (const std::string& name : around) path += (path.empty() ? "" : " > ") + name;
      if (span.category == "iteration" || span.category == "frame") ++result[path];
    }
  }
  return result;
}

TEST_F(ChromeTraceTest, LoopsInLoopsByTokensLieInTheirIterations) {
  const auto two_deep = [](const Tensor& w) {
    const auto inner = [&](const Tensor&, const Tensor& s) { return tanh(matmul(s, w)); };
    const auto outer = [&](const Tensor&, const Tensor& s) {
      return fori_loop(0, 2, inner, s, {.name = "inner"}) * 0.5f;
    };
    return fori_loop(0, 3, outer, ones({32, 32}), {.name = "outer"});
  };
  const std::string outer = "fori_loop \"outer\"", inner = "fori_loop \"inner\"";
  for (const int at_once : {1, 2, 10}) {
    const auto f =
        jit(two_deep,
            {.executor = Executor::dataflow, .profile = true, .parallel_iterations = at_once});
    f(ones({32, 32}) * 1e-2f);
    const auto paths = nesting(written(f.profile()));
    // Every run of the inner loop lies in an iteration of the outer one, in any row.
    int inside = 0, iterations = 0;
    for (const auto& [path, count] : paths) {
      if (path.ends_with(inner)) {
        EXPECT_NE(path.find("iteration "), std::string::npos) << path;
        inside += count;
      }
      const std::size_t last = path.rfind("iteration ");
      iterations +=
          last != std::string::npos && path.find(" > ", last) == std::string::npos ? count : 0;
    }
    EXPECT_EQ(inside, 3);
    EXPECT_EQ(iterations, 4 + 3 * 3);  // the last iteration of each runs only the condition
    if (at_once > 1) continue;
    std::map<std::string, int> expected{{outer, 1}, {outer + " > iteration 3", 1}};
    for (const std::string k : {"0", "1", "2"}) {
      const std::string around = outer + " > iteration " + k;
      expected[around] = expected[around + " > " + inner] = 1;
      for (const std::string j : {"0", "1", "2"})
        expected[around + " > " + inner + " > iteration " + k + '.' + j] = 1;
    }
    EXPECT_EQ(paths, expected);
  }
}

// Two loops of an iteration that run at the same time cannot share a row.
TEST_F(ChromeTraceTest, LoopsBesideEachOtherInAnIterationHaveRowsEach) {
  const Threads two(2);
  const auto f = jit(
      [](const Tensor& x) {
        const auto inner = [](const Tensor&, const Tensor& s) { return tanh(matmul(s, s)); };
        const auto outer = [&](const Tensor&, const Tensor& s) {
          return fori_loop(0, 3, inner, s, {.name = "a"}) +
                 fori_loop(0, 3, inner, s * 0.5f, {.name = "b"});
        };
        return fori_loop(0, 4, outer, x, {.name = "outer"});
      },
      {.executor = Executor::dataflow, .profile = true});
  f(ones({64, 64}) * 1e-2f);
  int loops = 0;
  for (const auto& [path, count] : nesting(written(f.profile())))  // fails if spans overlap
    loops += path.ends_with("\"a\"") || path.ends_with("\"b\"") ? count : 0;
  EXPECT_EQ(loops, 8);
}

TEST_F(ChromeTraceTest, AnOpOfALoopInALoopSaysTheIterationsOfBoth) {
  const auto f = jit(nested, {.executor = Executor::dataflow, .profile = true});
  f(ones({3}));
  std::set<std::string> of;
  const json trace = written(f.profile());
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["name"] == "tanh") of.insert(event["args"]["iteration"]);
  EXPECT_TRUE(of.contains("0.0") && of.contains("3.2")) << of.size();
}

}  // namespace
}  // namespace reel
