// Pictures as data: dot files, the contents of boxes, lowered graphs, lines of code.
#include <fstream>
#include <map>

#include "reel/core/base/source_lines.h"
#include "reel/frontend/pictures/lowered_picture.h"
#include "reel/frontend/pictures/picture.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/count_to_ten.h"
#include "reel/tests/own_folder.h"
#include "reel/trace/executors/dataflow/run_dataflow.h"
#include "reel/trace/run_plan.h"

namespace reel {
namespace {

using Kind = PictureNode::Kind;
using Role = PictureNode::Role;

auto count_to_ten() { return reel::count_to_ten("count \"to\" ten"); }

// Symbols as abi::__cxa_demangle writes them.
TEST(ShortNameTest, IsThatOfTheFunctionAlone) {
  EXPECT_EQ(short_name("loss(Model const&)"), "loss");
  EXPECT_EQ(short_name("float* mine::loss<std::pair<int, long (*)(int)> >(Model const&)"),
            "mine::loss");
  EXPECT_EQ(short_name("decltype(auto) reel::detail::unpacked<Lambda>(Lambda&&)"),
            "reel::detail::unpacked");
  EXPECT_EQ(short_name("decltype ((declval<F>)((f)(1))) run<F>(F&&)"), "run");
  EXPECT_EQ(short_name("(anonymous namespace)::loss(int)"), "loss");
  EXPECT_EQ(short_name("main::{lambda(auto:1)#1}::operator()(int) const"), "");
  EXPECT_EQ(short_name("Model::operator()(int) const"), "Model::operator()");
  EXPECT_EQ(short_name("main"), "main");
  EXPECT_EQ(short_name("f(int)::Local::run() const"), "f::Local::run");
  EXPECT_EQ(short_name("loss(int)::{lambda(int)#1}::operator()(int) const"), "loss");
  EXPECT_EQ(short_name("bool ns::operator< <int>(A<int> const&, A<int> const&)"), "ns::operator<");
  EXPECT_EQ(short_name("ns::A::operator bool() const"), "ns::A::operator bool");
}

TEST(PictureTest, TheWholeDotFileOfASmallLoop) {
  EXPECT_EQ(count_to_ten().graph().to_dot(), R"(digraph "count \"to\" ten" {
  graph [fontname="sans-serif", fontsize=11, compound=true]
  node [fontname="sans-serif", fontsize=10, shape=box, style=rounded, height=0.3]
  edge [fontname="monospace", fontsize=8, color="#7b8a9c", arrowsize=0.6]
  n0 [label="argument 0", shape=ellipse, style=solid, color="#7b8a9c"]
  n1 [label="argument 1", shape=ellipse, style=solid, color="#7b8a9c"]
  subgraph cluster_2 {
    label="while_loop \"while\""; style=rounded; color="#2563a8"
    n3 [label="carry 0", shape=ellipse, style=solid, color="#c2570c"]
    n4 [label="capture 0", shape=ellipse, style=dashed, color="#7b8a9c"]
    subgraph cluster_5 {
      label="condition"; style=rounded; color="#7b8a9c"
      n6 [label="carry 0", shape=ellipse, style=solid, color="#c2570c"]
      n7 [label="capture 0", shape=ellipse, style=dashed, color="#7b8a9c"]
      n8 [label="less"]
      n9 [label="result", shape=ellipse, style=solid, color="#7b8a9c"]
    }
    n10 [label="2", color="#7b8a9c"]
    n11 [label="add"]
    n12 [label="carry 0", shape=ellipse, style=solid, color="#c2570c"]
  }
  n13 [label="3", color="#7b8a9c"]
  n14 [label="add"]
  n15 [label="4", color="#7b8a9c"]
  n16 [label="add"]
  n17 [label="result 0", shape=ellipse, style=solid, color="#7b8a9c"]
  n18 [label="result 1", shape=ellipse, style=solid, color="#7b8a9c"]
  n0 -> n3 [label=" i32[]", style=solid]
  n1 -> n4 [label=" i32[]", style=dashed]
  n3 -> n6 [label=" i32[]", style=solid]
  n4 -> n7 [label=" i32[]", style=dashed]
  n6 -> n8 [label=" i32[]", style=solid]
  n7 -> n8 [label=" i32[]", style=dashed]
  n8 -> n9 [label=" boolean[]", style=solid]
  n3 -> n11 [label=" i32[]", style=solid]
  n10 -> n11 [label=" i32[]", style=solid]
  n11 -> n12 [label=" i32[]", style=solid]
  n12 -> n3 [label=" i32[]", style=bold, color="#c2570c", constraint=false]
  n12 -> n14 [label=" i32[]", style=solid]
  n13 -> n14 [label=" i32[]", style=solid]
  n1 -> n16 [label=" i32[]", style=solid]
  n15 -> n16 [label=" i32[]", style=solid]
  n14 -> n17 [label=" i32[]", style=solid]
  n16 -> n18 [label=" i32[]", style=solid]
}
)");
}

/// Returns the number of nodes with each label, without the numbers behind labels.
std::map<std::string, int> labels(const Picture& picture) {
  std::map<std::string, int> result;
  for (const PictureNode& node : picture.nodes)
    ++result[node.label.substr(0, node.label.find_first_of("_ "))];
  return result;
}

TEST(PictureTest, ALoweredLoopHasTheNodesOfTensorFlow) {
  const auto f = count_to_ten();
  const LoweredPicture lowered = picture_of(lower(GraphRef(new Graph(f.graph()))));
  auto count = labels(lowered.picture);
  EXPECT_EQ(count["Merge"], count["Switch"]);
  EXPECT_EQ(count["Merge"], count["NextIteration"]);
  EXPECT_EQ(count["LoopCond"], 1);
  EXPECT_GE(count["Merge"], 1);
  int back = 0;
  for (const PictureEdge& edge : lowered.picture.edges) {
    const PictureNode& from = lowered.picture.nodes[static_cast<std::size_t>(edge.from)];
    const PictureNode& to = lowered.picture.nodes[static_cast<std::size_t>(edge.to)];
    if (edge.kind != PictureEdge::Kind::back) continue;
    ++back;
    EXPECT_TRUE(from.label.starts_with("NextIteration")) << from.label;
    EXPECT_TRUE(to.label.starts_with("Merge")) << to.label;
  }
  EXPECT_EQ(back, count["Merge"]);
  // Enter and Exit stand on the border of their frame.
  const int box = lowered.frames.at(1);
  for (const PictureNode& node : lowered.picture.nodes) {
    if (node.label.starts_with("Enter")) {
      EXPECT_EQ(node.kind, Kind::input);
      EXPECT_EQ(node.parent, box);
    }
    if (node.label.starts_with("Exit")) {
      EXPECT_EQ(node.kind, Kind::output);
      EXPECT_EQ(node.parent, box);
    }
  }
}

/// Expects that every edge joins nodes in its box, or on a border in it.
void expect_sound(const Picture& picture) {
  const auto parent = [&](int i) { return picture.nodes[static_cast<std::size_t>(i)].parent; };
  for (const PictureEdge& edge : picture.edges) {
    for (const int end : {edge.from, edge.to}) {
      ASSERT_GE(end, 0);
      ASSERT_LT(end, static_cast<int>(picture.nodes.size()));
      const PictureNode& node = picture.nodes[static_cast<std::size_t>(end)];
      const bool is_inside = node.parent == edge.box;
      const bool is_on_border = (node.kind == Kind::input || node.kind == Kind::output) &&
                                node.parent >= 0 && parent(node.parent) == edge.box;
      EXPECT_TRUE(is_inside || is_on_border)
          << node.label << ", from " << edge.from << " to " << edge.to << " in " << edge.box;
    }
  }
  for (std::size_t i = 0; i < picture.nodes.size(); ++i)
    EXPECT_LT(picture.nodes[i].parent, static_cast<int>(i));
}

TEST(PictureTest, PicturesOfGradientsAreSound) {
  const auto f = jit(value_and_grad([](const Tensor& x) {
                       const auto outer = [](const Tensor& i, const Tensor& x) {
                         const auto inner = [&](const Tensor& j, const Tensor& y) {
                           return tanh(y) + cast(i * j, f32);
                         };
                         const Tensor y = fori_loop(0, 3, inner, x);
                         return cond(
                             sum(y) > 0.f, [&] { return y * 2.f; }, [&] { return y - x; });
                       };
                       return sum(fori_loop(0, 5, outer, x));
                     }),
                     {.profile = true});
  f(ones({3}));
  f(ones({3}));
  expect_sound(picture_of(f.graph()));
  expect_sound(picture_of(lower(GraphRef(new Graph(f.graph())))).picture);
}

TEST(PictureTest, ALoopOfABoundSaysHowLongItIs) {
  const auto f = jit([](const Tensor& x) {
    return fori_loop(
        0, 3, [](const Tensor&, const Tensor& x) { return tanh(x); }, x);
  });
  f(ones({2}));
  int boxes = 0;
  for (const PictureNode& node : picture_of(f.graph()).nodes) {
    if (node.role != Role::loop) continue;
    ++boxes;
    EXPECT_EQ(node.label, "fori_loop");
    EXPECT_EQ(node.note, "3 iterations");
    EXPECT_EQ(node.attributes.at(1), (std::pair<std::string, std::string>{"ends by", "a bound"}));
  }
  EXPECT_EQ(boxes, 1);
}

TEST(PictureTest, ALoopInChunksShowsItsStepsInsteadOfItsChunks) {
  const Tensor x = ones({200, 2, 4}), w = full({4, 4}, 0.1);
  const auto f =
      jit(grad([&](const Tensor& w) {
            const auto body = [&](const Tensor& x, const Tensor& h) {
              return std::pair{None{}, tanh(matmul(h, w) + x)};
            };
            return sum(scan(Scan{.initial = zeros({2, 4}), .xs = x, .body = body}).state);
          }),
          {.name = "f", .profile = true});
  for (int i = 0; i < 2; ++i) f(w);
  const std::string summary = f.profile().summary();
  EXPECT_NE(summary.find(", 200 iterations in chunks"), std::string::npos) << summary;
  EXPECT_EQ(summary.find("200 chunks"), std::string::npos) << summary;
}

TEST(PictureTest, ValuesOfALoweredGradientHaveTypes) {
  const auto f = jit(grad([](const Tensor& x) {
    return sum(fori_loop(
        0, 3, [](const Tensor&, const Tensor& x) { return tanh(x); }, x));
  }));
  f(ones({2}));
  for (const PictureNode& node : picture_of(lower(GraphRef(new Graph(f.graph())))).picture.nodes)
    for (const std::string& type : node.types)
      EXPECT_FALSE(type.empty() || type.ends_with(": ")) << node.label;
}

/// A recorded loop that counts from 0 to 5. own, of_caller: the bounds on iterations in flight that
/// the loop and its caller set.
auto counter_run_with(int own, int of_caller) {
  const auto f = jit(
      [=](const Tensor& i) {
        return while_loop([](const Tensor& i) { return i < 5; },
                          [](const Tensor& i) { return i + 1; }, i, {.parallel_iterations = own});
      },
      {.executor = Executor::dataflow, .profile = true, .parallel_iterations = of_caller});
  f(scalar(0));
  return last_recorded_run(f.graph());
}

TEST(PictureTest, ABoxSaysHowManyIterationsRanAndHowManyAtOnce) {
  const auto note = [](int own, int of_caller) {
    const LoweredPicture drawn = picture_of(*counter_run_with(own, of_caller));
    return drawn.picture.nodes.at(static_cast<std::size_t>(drawn.frames.at(1))).note;
  };
  EXPECT_EQ(note(4, 0), "5 iterations, at most 4 at once");
  EXPECT_EQ(note(4, 7), "5 iterations, at most 7 at once");
  EXPECT_EQ(note(4, 1), "5 iterations, at most 1 at once");
}

TEST(PictureTest, NodesOfALoweredLoopComeFromItsLine) {
  const auto f = count_to_ten();
  std::string source;
  for (const PictureNode& node : picture_of(f.graph()).nodes)
    if (node.role == Role::loop) source = node.source;
  ASSERT_NE(source, "");
  int frames = 0, passing = 0;
  for (const PictureNode& node : picture_of(lower(GraphRef(new Graph(f.graph())))).picture.nodes) {
    const bool is_end = node.parent < 0 && (node.kind == Kind::input || node.kind == Kind::output);
    EXPECT_EQ(node.source.empty(), is_end) << node.label;
    if (node.role != Role::frame && node.role != Role::control) continue;
    EXPECT_EQ(node.source, source) << node.label;
    ++(node.role == Role::frame ? frames : passing);
  }
  EXPECT_EQ(frames, 1);
  EXPECT_GE(passing, 6);  // Enter, Merge, LoopCond, Switch, NextIteration, Exit
}

TEST(PictureTest, DimsAreNotArguments) {
  const Dim time("time", 3);
  const auto f = jit([](const Tensor& x) { return tanh(x); });
  f(ones({time}));
  std::vector<std::string> ends;
  for (const PictureNode& node : picture_of(f.graph()).nodes)
    if (node.kind != Kind::op) ends.push_back(node.label);
  EXPECT_EQ(ends, (std::vector<std::string>{"argument 0", "result"}));
}

/// Returns the labels of a picture's inputs and outputs.
std::vector<std::string> labels_of_ends(const Picture& picture) {
  std::vector<std::string> result;
  for (const PictureNode& node : picture.nodes)
    if (node.parent < 0 && (node.kind == Kind::input || node.kind == Kind::output))
      result.push_back(node.label);
  return result;
}

TEST(PictureTest, ArgumentsAndResultsHaveThePathsOfTheirLeaves) {
  struct Model {
    struct {
      Tensor weight, bias;
    } cell;
    std::map<std::string, Tensor> tables;
  };
  const Tensor captured = ones({2});
  const auto f = [&](const Model& model, const Tensor& x) {
    const Tensor y = model.cell.weight * x + model.cell.bias + captured;
    return std::pair{y * model.tables.at("words"), model};
  };
  const Model model{{ones({2}), ones({2})}, {{"words", ones({2})}}};
  const std::vector<std::string> expected{"argument 0.cell.weight",
                                          "argument 0.cell.bias",
                                          "argument 0.tables.words",
                                          "argument 1",
                                          "capture 0",  // a tensor from outside has no name
                                          "result 0",
                                          "result 1.cell.weight",
                                          "result 1.cell.bias",
                                          "result 1.tables.words"};
  for (const Executor executor : {Executor::plan, Executor::dataflow}) {
    const auto traced = jit(f, {.executor = executor, .profile = true});
    traced(model, ones({2}));
    EXPECT_EQ(labels_of_ends(picture_of(traced.graph())), expected);
    // The plan's graph and the recorded run have them too.
    if (const Planned planned = planned_graph(traced.graph()); planned.graph) {
      EXPECT_EQ(labels_of_ends(picture_of(*planned.graph, planned.profile)), expected);
    }
    if (const auto run = last_recorded_run(traced.graph())) {
      EXPECT_EQ(labels_of_ends(picture_of(*run).picture), expected);
    }
  }
}

TEST(PictureTest, AStreamOfRandomNumbersIsNoArgument) {
  const auto f = jit([](const Tensor& x) { return x + random_normal({2}); });
  f(ones({2}));
  EXPECT_EQ(labels_of_ends(picture_of(f.graph())),
            (std::vector<std::string>{"argument 0", "random stream", "result"}));
}

class WriteHtmlTest : public InOwnFolder {
 protected:
  WriteHtmlTest() : InOwnFolder("graph.html") {}
};

TEST_F(WriteHtmlTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_EQ(
      message_of<IoError>([] { count_to_ten().graph().write_html("no/such/folder/graph.html"); }),
      "write_html: cannot write no/such/folder/graph.html: No such file or directory");
}

TEST_F(WriteHtmlTest, APageNamesTheLicenceOfItsLibrary) {
  count_to_ten().graph().write_html(path);
  const std::string page = bytes_of(path);
  EXPECT_NE(page.find("Eclipse Public License 2.0"), std::string::npos);
}

/// Returns the places where a page would load something else: the text behind keywords that load,
/// except data and parts of the page itself.
std::vector<std::string> loads(const std::string& page) {
  std::vector<std::string> result;
  for (const std::string word : {"src=", "href=", "url(", "@import", "fetch(", "importScripts("})
    for (std::size_t at = page.find(word); at != std::string::npos; at = page.find(word, at + 1)) {
      const std::string behind = page.substr(at + word.size(), 40);
      if (!behind.starts_with("\"data:") && !behind.starts_with("#"))
        result.push_back(word + behind);
    }
  return result;
}

TEST_F(WriteHtmlTest, APageLoadsNothing) {
  count_to_ten().graph().write_html(path);
  EXPECT_EQ(loads(bytes_of(path)), std::vector<std::string>{});
  EXPECT_EQ(loads("<script src=\"http://x\"></script><img src=a.png><link href=\"/b.css\">").size(),
            3u);
}

TEST(SourceTest, EagerCodeKeepsNone) {
  Tape tape;
  tape.watch(ones({2}));
  tanh(ones({2}));
  EXPECT_EQ(detail::open_source, kNoSource);
}

TEST(SourceTest, AScopeNamesTheSourceOfRecords) {
  const SourceId here = source_here();
  EXPECT_NE(here, kNoSource);
  EXPECT_FALSE(addresses_of(here).empty());
  {
    const SourceScope scope(here);
    EXPECT_EQ(source_here(), here);
    const SourceScope no_scope(kNoSource);
    EXPECT_EQ(source_here(), here);
  }
  EXPECT_EQ(detail::open_source, kNoSource);
  EXPECT_TRUE(addresses_of(kNoSource).empty());
  EXPECT_TRUE(addresses_of(1'000'000'000).empty());
}

TEST(SourceTest, PassesKeepWhereOpsComeFrom) {
  const auto f = jit(value_and_grad([](const Tensor& w, const Tensor& x) {
                       const auto body = [&](const Tensor& x, const Tensor& h) {
                         const Tensor next = tanh(matmul(h, w) + x);
                         return std::pair{next, next};
                       };
                       return sum(scan(Scan{.initial = zeros({4, 4}), .xs = x, .body = body}).ys);
                     }),
                     {.profile = true});
  for (int i = 0; i < 2; ++i) f(ones({4, 4}), ones({50, 4, 4}));
  const std::string summary = f.profile().summary();
  // Every op and loop of the plan that took time names its line.
  std::istringstream lines(summary);
  int ops = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto has = [&](const char* text) { return line.find(text) != std::string::npos; };
    if (!has(" %") || has("between the ops") || has("before and after the ops") || has(" besides "))
      continue;
    ++ops;
    EXPECT_NE(line.find('('), std::string::npos) << line;
  }
  EXPECT_GE(ops, 4) << summary;
}

}  // namespace
}  // namespace reel
