// Dot files, as Graphviz reads them.
#include <cstdlib>
#include <map>
#include <regex>
#include <sstream>

#include "reel/frontend/pictures/picture.h"
#include "reel/reel.h"
#include "reel/tests/count_to_ten.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

#ifdef REEL_DOT

class DotTest : public InOwnFolder {
 protected:
  DotTest() : InOwnFolder("graph.dot") {}

  /// Returns the text as dot reads it, in dot's plain format. Expects no complaint of dot.
  std::string read_by_dot(const std::string& text) const {
    write(path, text);
    const std::string plain = (folder_ / "plain").string(), errors = (folder_ / "err").string();
    const std::string command =
        std::string(REEL_DOT) + " -Tplain -o " + plain + " " + path + " 2> " + errors;
    EXPECT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(bytes_of(errors), "");
    return bytes_of(plain);
  }

  void expect_all_drawn(const Graph& graph) const {
    const Picture picture = picture_of(graph);
    std::map<std::string, int> expected, found;
    for (std::size_t i = 0; i < picture.nodes.size(); ++i)
      if (picture.nodes[i].kind != PictureNode::Kind::box) ++expected["n" + std::to_string(i)];
    for (const PictureEdge& edge : picture.edges)
      ++expected["n" + std::to_string(edge.from) + " n" + std::to_string(edge.to)];
    std::istringstream lines(read_by_dot(graph.to_dot()));
    for (std::string line; std::getline(lines, line);) {
      std::smatch match;
      if (std::regex_search(line, match, std::regex("^node (n\\d+) ")) ||
          std::regex_search(line, match, std::regex("^edge (n\\d+ n\\d+) ")))
        ++found[match[1]];
    }
    EXPECT_EQ(found, expected);
  }
};

TEST_F(DotTest, EveryNodeAndEdgeIsDrawn) {
  expect_all_drawn(count_to_ten("count to ten").graph());
  struct Model {
    LstmCell cell;
    Linear out;
  };
  const auto loss = [](const Model& model, const Tensor& x) {
    const auto body = [&](const Tensor& x, const LstmCell::State& state) {
      const auto [y, next] = model.cell(x, state);
      return std::pair{model.out(y), next};
    };
    const Tensor y = scan(Scan{.spatial_dim = x.dim("time"),
                               .initial = model.cell.initial_state({x.dim("batch")}),
                               .xs = x,
                               .body = body})
                         .ys;
    return cond(
        sum(y) > 0.f, [&] { return mean(square(y)); }, [&] { return sum(y); });
  };
  const Dim time("time", 5), batch("batch", 2), in("in", 3), hidden("hidden", 4), out("out", 2);
  const Model model{LstmCell::init(in, hidden), Linear::init(hidden, out)};
  const auto step = jit(value_and_grad(loss), {.name = "training step"});
  step(model, random_normal({time, batch, in}));
  expect_all_drawn(step.graph());
}

TEST_F(DotTest, NamesOfAnyCharactersAreDrawn) {
  using namespace std::string_literals;
  for (const std::string& name :
       {"\"quotes\" and \\backslashes\\"s, "ends in \\"s, "two\nlines"s,
        "<b>no tags</b> &amp; none"s, "{braces|and pipes}"s, "\\N \\G \\l"s, "no UTF-8: \xff"s,
        "größe × ∀"s, "\xff\xfe bad \xc3"s, "\xed\xa0\x80 a surrogate"s, "a\0NUL"s,
        "a\abell, an\x1b escape"s}) {
    auto f = jit([](const Tensor& x) { return tanh(x); }, {.name = name});
    f(ones({2}));
    expect_all_drawn(f.graph());
  }
  // Quotes and backslashes in a label stay.
  Picture picture;
  picture.add({PictureNode::Kind::op, -1, PictureNode::Role::plain, "a \"b\" \\N c"});
  EXPECT_NE(read_by_dot(dot_of(picture)).find(R"("a \"b\" \\N c")"), std::string::npos)
      << read_by_dot(dot_of(picture));
}

#endif

}  // namespace
}  // namespace reel
