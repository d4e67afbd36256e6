// Pages in a real browser: they open without other files, nothing overlaps, and folding, searching
// and clicking work.
#include "reel/tests/pages/page.h"

namespace reel {
namespace {

using PageTest = PageFixture;

TEST_F(PageTest, NothingLiesOverAnythingElse) {
  const auto count = count_to_ten();
  const auto loops = nested();
  const auto step = training_step();
  for (const Graph* graph : {&count.graph(), &loops.graph(), &step.graph()}) {
    open(*graph);
    const int views = ask("page.views.length");
    for (const char* fold : {"true", "false"})
      for (int view = 0; view < views; ++view) {
        ask("page.showView(page.views[" + std::to_string(view) + "])");
        ask("page.foldAll(" + std::string(fold) + ")");
        settle();
        EXPECT_EQ(ask(kOverlaps), "") << graph->name << ", view " << view << ", folded " << fold;
      }
  }
}

TEST_F(PageTest, TheTestOfOverlapsSeesThem) {
  open(count_to_ten().graph());
  ASSERT_EQ(ask(kOverlaps), "");
  ask("page.drawing.groups.get(" + node("less") + ").setAttribute('transform', 'translate(2 4)')");
  EXPECT_NE(ask(kOverlaps), "");
}

TEST_F(PageTest, ABoxFoldsAndUnfoldsInPlace) {
  open(nested().graph());
  const int all = ask("page.drawing.groups.size");
  const std::string box =
      "page.model.boxes.find((b) => b.role === 'loop' && b.parent === page.model.root)";
  const std::string place = "[...Object.values((({x, y}) => ({x, y}))(page.drawing.groups.get(" +
                            box + ").getBoundingClientRect()))].map(Math.round)";
  const auto before = ask(place);
  const std::string toggle =
      "page.drawing.groups.get(" + box + ").querySelector(':scope > .toggle')";
  click(toggle);
  EXPECT_EQ(ask(box + ".isFolded"), true);
  EXPECT_LT(ask("page.drawing.groups.size"), 6);
  EXPECT_EQ(ask(place), before);
  EXPECT_EQ(ask(kOverlaps), "");
  click(toggle);
  EXPECT_EQ(ask("page.drawing.groups.size"), all);
  EXPECT_EQ(ask(place), before);
}

TEST_F(PageTest, SearchUnfoldsTheGroupsOfItsHits) {
  open(nested().graph());
  ask("page.foldAll(true)");
  settle();
  ASSERT_EQ(ask("page.drawing.groups.has(" + node("tanh") + ")"), false);
  browser->press("/");
  browser->type("tanh");
  settle();
  EXPECT_EQ(ask("page.search.found.map((n) => n.label)"), nlohmann::json({"tanh"}));
  browser->press("Enter");
  settle();
  EXPECT_EQ(ask("page.drawing.groups.has(" + node("tanh") + ")"), true);
  EXPECT_EQ(ask("page.picked.label"), "tanh");
  // In the middle of the visible part.
  const auto at =
      ask("(() => { const r = page.drawing.groups.get(" + node("tanh") +
          ").getBoundingClientRect(), c = page.canvas.getBoundingClientRect(); "
          "return [r.x + r.width / 2 - c.x - c.width / 2, r.y - c.y - c.height / 2]; })()");
  EXPECT_LT(std::abs(at[0].get<double>()), 60);
  EXPECT_LT(std::abs(at[1].get<double>()), 60);
  EXPECT_EQ(ask(kOverlaps), "");
}

TEST_F(PageTest, SearchKnowsTypesAndHasNoHitForNonsense) {
  open(nested().graph());
  EXPECT_EQ(ask("page.model.find('boolean[]').length > 0"), true);
  EXPECT_EQ(ask("page.model.find('f32[3] tanh').map((n) => n.label)"), nlohmann::json({"tanh"}));
  EXPECT_EQ(ask("page.model.find('<script>').length"), 0);
  EXPECT_EQ(ask("page.model.find('   ').length"), 0);
}

TEST_F(PageTest, SearchKnowsAttributesAndLinesOfCode) {
  open(nested().graph());
  EXPECT_EQ(ask("page.model.find('ends by the length of its slices').map((n) => n.label)"),
            nlohmann::json({"fori_loop", "fori_loop"}));
  // Searches for the line of an op, as its details show it.
  browser->press("/");
  browser->type(ask(node("tanh") + ".source.split(' ')[0]").get<std::string>());
  settle();
  EXPECT_TRUE(ask("document.getElementById('query').value").get<std::string>().find("page.h:") !=
              std::string::npos);
  EXPECT_EQ(ask("page.search.found.includes(" + node("tanh") + ")"), true);
  EXPECT_EQ(ask("page.search.found.length < page.model.nodes.length / 2"), true);
}

TEST_F(PageTest, AClickDuringALayoutIsOnTheShownView) {
  open(training_step().graph());
  settle();
  ask(kHeldLayouts);
  ask("void (page.coming = page.showView(page.views[2]))");
  const std::string shown = "page.drawing.beginning()";
  const std::string label = ask(shown + ".label");
  const auto at = ask("(() => { const r = page.drawing.groups.get(" + shown +
                      ").querySelector('.shape').getBoundingClientRect(); "
                      "return [r.x + r.width / 2, r.y + r.height / 2]; })()");
  browser->click(at[0], at[1]);
  ASSERT_EQ(ask("page.busy.hidden"), false);
  EXPECT_EQ(ask("document.querySelector('#details h2').textContent"), label);
  EXPECT_EQ(ask("page.picked === " + shown), true);
  EXPECT_EQ(ask("page.model.nodes.includes(page.picked)"), true);
  ask("hold(0)");
  ask("page.coming");
  EXPECT_EQ(ask("page.view === page.views[2] && page.drawing.model === page.model"), true);
  EXPECT_EQ(ask("page.picked"), nullptr);
}

TEST_F(PageTest, ButtonsDoNoHarmWhileALayoutIsUnderWay) {
  open(nested().graph());
  ask(kHeldLayouts);
  ask("void (page.coming = [page.foldAll(false), page.foldAll(true), page.foldAll(false)])");
  for (const int i : {0, 1}) {
    ask("hold(" + std::to_string(2 - i) + ")");  // all changes behind this one
    ask("page.coming[" + std::to_string(i) + "]");
    EXPECT_EQ(ask("page.busy.hidden"), false) << i;
  }
  ask("hold(0)");
  ask("page.coming[2]");
  EXPECT_EQ(ask("page.busy.hidden"), true);
  EXPECT_EQ(ask("page.drawing.groups.has(" + node("tanh") + ")"), true);
  // Again before there is a picture, with a view requested before the first one is ready.
  ask("(() => { const element = (id) => document.getElementById(id); "
      "element('views').replaceChildren(); element('scene').replaceChildren(); "
      "window.page = new Page(JSON.parse(element('data').textContent)); "
      "element('fit').click(); "
      "for (const key of ['0', 'Escape', 'ArrowRight']) "
      "window.dispatchEvent(new KeyboardEvent('keydown', { key })); "
      "page.foldAll(true); return page.showView(page.views[1]); })()");
  ask("page.ready");
  EXPECT_EQ(ask("page.view === page.views[1] && page.drawing.model === page.model"), true);
}

TEST_F(PageTest, EdgesShowTheirKindAndType) {
  open(nested().graph());
  // Two loops with a value each.
  EXPECT_EQ(ask("page.model.edges.filter((e) => e.kind === 'back').length"), 2);
  EXPECT_EQ(ask("document.querySelectorAll('#scene .edge.back').length"), 2);
  EXPECT_EQ(ask("getComputedStyle(document.querySelector('#scene .edge.back')).strokeDasharray"),
            "none");
  EXPECT_NE(ask("getComputedStyle(document.querySelector('#scene .edge.capture')).strokeDasharray"),
            "none");
  const auto without_type = [&] {  // edges without a type at their origin
    return ask(
        "[...page.drawing.lines.keys()].filter((e) => { const from = e.from.isOnBorder && "
        "e.from.parent !== e.box ? e.from.parent : e.from; return e.kind !== 'order' && "
        "e.from.types[e.output] && !page.drawing.chips.has(e) && !from.isOnBorder && "
        "!from.typePlaces.some((t) => t.type === e.from.types[e.output] && t.text.length > 3); })"
        ".map((e) => e.from.label + ' -> ' + e.to.label)");
  };
  EXPECT_EQ(without_type(), nlohmann::json::array());
  ask("page.foldAll(true)");
  EXPECT_EQ(without_type(), nlohmann::json::array());
  ask("page.foldAll(false)");
  // Every value shows its type at its origin.
  EXPECT_EQ(
      ask("[...page.drawing.groups].filter(([n, g]) => n.kind === 'op' && "
          "![...g.querySelectorAll('.type')].some((t) => t.textContent === n.types[0])).length"),
      0);
}

TEST_F(PageTest, AClickShowsTheDetailsOfANode) {
  open(training_step(true).graph());
  ask("page.goTo(page.model.nodes.find((n) => n.label === 'dot'))");
  settle();
  click(
      "page.drawing.groups.get(page.model.nodes.find((n) => n.label === 'dot'))"
      ".querySelector('.shape')");
  const std::string text = details();
  for (const char* part : {"dot", "Type", "f32[batch=2,gate=16]", "Attributes", "Source",
                           "page_test.cpp:", "Reads", "Read by"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  browser->press("Escape");
  EXPECT_EQ(ask("document.getElementById('details').hidden"), true);
}

TEST_F(PageTest, AProfiledPlanShowsTimesAndCounts) {
  open(training_step(true).graph());
  ask("page.showView(page.views[1])");
  const auto loop = ask("page.model.boxes.find((b) => b.role === 'loop').count");
  EXPECT_EQ(loop["calls"], 2);  // without the first of three runs, which made the plan
  EXPECT_GT(loop["nanoseconds"], 0);
  ask("page.goTo(page.model.boxes.find((b) => b.role === 'loop'))");
  settle();
  EXPECT_NE(details().find("in 2 calls"), std::string::npos) << details();
  EXPECT_EQ(ask("page.views[0].model.nodes.filter((n) => n.count).length"), 0);
}

TEST_F(PageTest, GradientsNameTheLineOfTheForwardOp) {
  open(training_step().graph());
  // The cotangent's product with the square in loss() must name the test's line, not the library's.
  EXPECT_EQ(ask("page.model.nodes.filter((n) => n.kind === 'op' && !n.source.includes("
                "'page_test.cpp:')).map((n) => n.label)"),
            nlohmann::json::array());
}

TEST_F(PageTest, NamesCannotBecomePartsOfThePage) {
  auto f = jit([](const Tensor& x) { return tanh(x); },
               {.name = "</script><script>alert(1)</script> & \"quotes\" \xff"});
  f(ones({2}));
  open(f.graph());
  EXPECT_EQ(ask("document.querySelectorAll('script').length"), 4);
  EXPECT_NE(ask("document.title").get<std::string>().find("</script><script>alert(1)"),
            std::string::npos);
}

TEST_F(PageTest, AGraphWithoutOpsIsAPictureToo) {
  auto f = jit([](const Tensor& x) { return x; }, {.name = "nothing"});
  f(ones({2}));
  open(f.graph());
  EXPECT_EQ(ask("page.drawing.groups.size"), 2);
  EXPECT_EQ(ask(kOverlaps), "");
}

TEST_F(PageTest, AGraphOfNothingSaysSo) {
  auto f = jit([](const std::vector<Tensor>& x) { return x; }, {.name = ""});
  f(std::vector<Tensor>{});
  open(f.graph());
  EXPECT_EQ(ask("document.getElementById('empty').hidden"), false);
  EXPECT_NE(ask("document.getElementById('title').textContent"), "");
}

}  // namespace
}  // namespace reel
