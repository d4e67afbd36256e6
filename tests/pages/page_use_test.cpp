// Pages under fast users, in small windows and in searches: listeners and their leftovers.
#include "reel/tests/pages/page.h"

namespace reel {
namespace {

using PageUseTest = PageFixture;

TEST_F(PageUseTest, NodesBehindTheDetailsAreShownWhenTheyClose) {
  open(training_step().graph());
  // A node to the right, where the details will cover it.
  ask("(() => { page.pick(page.model.nodes[0]); const place = page.drawing.placeOf(" + node("dot") +
      "); page.viewport.x = 1250 - place.x * page.viewport.scale; page.viewport.move(0, 200 - "
      "page.viewport.y - place.y * page.viewport.scale); })()");
  settle();
  const std::string is_shown =
      "getComputedStyle(page.drawing.groups.get(" + node("dot") + ")).display !== 'none'";
  ASSERT_EQ(ask(is_shown), false);
  browser->press("Escape");
  settle();
  EXPECT_EQ(ask(is_shown), true);
}

TEST_F(PageUseTest, ClickedNodeStaysBesideTheDetails) {
  open(training_step().graph());
  ask("(() => { const place = page.drawing.placeOf(" + node("dot") +
      "); page.viewport.x = 1250 - place.x * page.viewport.scale; page.viewport.move(0, 400 - "
      "page.viewport.y - place.y * page.viewport.scale); })()");
  settle();
  const std::string group = "page.drawing.groups.get(" + node("dot") + ")";
  click(group + ".querySelector('.shape')");
  ASSERT_EQ(ask("page.picked.label"), "dot");
  EXPECT_EQ(ask(group + ".getBoundingClientRect().right <= "
                        "document.getElementById('details').getBoundingClientRect().left"),
            true);
}

TEST_F(PageUseTest, ADoubleClickFoldsOnce) {
  open(nested().graph());
  ask("(() => { window.toggles = 0; const toggle = page.toggle; "
      "page.toggle = (box) => { ++toggles; return toggle.call(page, box); }; })()");
  const std::string box =
      "page.drawing.groups.get(page.model.boxes.find((b) => b.role === 'loop' && b.parent === "
      "page.model.root))";
  click(box + ".querySelector(':scope > .toggle')", 2);  // on the arrow
  EXPECT_EQ(ask("toggles"), 1);
  click(box + ".querySelector(':scope > .title')", 2);
  EXPECT_EQ(ask("toggles"), 2);
  EXPECT_EQ(ask("page.model.boxes.some((b) => b.isFolded)"), false);
}

TEST_F(PageUseTest, HitsAreSeenWhileTheFieldHasTheKeysOnly) {
  open(training_step().graph());
  browser->press("/");
  browser->type("f32");
  const std::string hidden = "document.getElementById('hits').hidden";
  EXPECT_EQ(ask(hidden), false);
  click(
      "[...document.querySelectorAll('#views button')].find((b) => b.textContent === "
      "'Dataflow')");
  ASSERT_EQ(ask("page.view.title"), "Dataflow");
  EXPECT_EQ(ask(hidden), true);
  EXPECT_EQ(ask("page.search.found.length > 0 && page.search.found.every((n) => "
                "page.model.nodes[n.id] === n)"),
            true);
  // A clicked hit is selected.
  browser->press("/");
  EXPECT_EQ(ask(hidden), false);
  const std::string first = ask("page.search.found[0].label");
  click("document.querySelector('#hits li')");
  EXPECT_EQ(ask("page.picked.label"), first);
  EXPECT_EQ(ask(hidden), true);
}

TEST_F(PageUseTest, TheHitThatArrowsGoToIsInSight) {
  open(training_step().graph());
  browser->press("/");
  browser->type("f32");
  const std::string is_in_sight =
      "(() => { const r = document.querySelector('#hits [aria-selected]').getBoundingClientRect(), "
      "list = document.getElementById('hits').getBoundingClientRect(); "
      "return r.top >= list.top && r.bottom <= list.bottom; })()";
  for (int i = 0; i < 20; ++i) browser->press("ArrowDown");
  settle();
  EXPECT_EQ(ask("page.search.at"), 19);
  EXPECT_EQ(ask(is_in_sight), true);
  for (int i = 0; i < 19; ++i) browser->press("ArrowUp");
  settle();
  EXPECT_EQ(ask("page.search.at"), 0);
  EXPECT_EQ(ask(is_in_sight), true);
  // The last hit comes before the first.
  browser->press("ArrowUp");
  settle();
  EXPECT_EQ(ask("page.search.at === page.search.found.length - 1"), true);
  EXPECT_EQ(ask("page.picked === page.search.found.at(-1)"), true);
}

TEST_F(PageUseTest, ALayoutThatFailsSaysSoAndChangesNothing) {
  open(nested().graph());
  const int all = ask("page.drawing.groups.size");
  ask("(() => { window.layout = Elk.prototype.layout; "
      "Elk.prototype.layout = () => Promise.reject(new Error('out of memory')); })()");
  const std::string problem = "document.getElementById('problem')";
  ask("page.foldAll(true)");
  EXPECT_EQ(ask(problem + ".textContent"), "This could not be laid out: out of memory");
  EXPECT_EQ(ask(problem + ".hidden"), false);
  EXPECT_EQ(ask("page.model.boxes.some((b) => b.isFolded)"), false);
  // A view that cannot be shown leaves the present one.
  ask("page.showView(page.views.at(-1))");
  EXPECT_EQ(ask("page.view === page.views[0] && page.wanted === page.views[0]"), true);
  EXPECT_EQ(ask("document.querySelector('#views [aria-selected=true]').textContent"), "Graph");
  EXPECT_EQ(browser->take_complaints().size(), 2u);

  ask("(() => { Elk.prototype.layout = layout; })()");
  ask("page.foldAll(true)");
  EXPECT_EQ(ask(problem + ".hidden"), true);
  EXPECT_LT(ask("page.drawing.groups.size"), all);
}

TEST_F(PageUseTest, ADragThatEndsOutsideOfTheWindowEnds) {
  open(nested().graph());
  ask("(() => { const send = (target, type, clientX, buttons) => target.dispatchEvent(new "
      "PointerEvent(type, { clientX, clientY: 300, buttons, button: 0, isPrimary: true, bubbles: "
      "true })); "
      "send(page.canvas, 'pointerdown', 300, 1); send(window, 'pointermove', 340, 1); "
      "window.dragged = page.viewport.x; send(window, 'pointermove', 500, 0); })()");
  EXPECT_EQ(ask("page.viewport.x === dragged"), true);
  EXPECT_EQ(ask("page.viewport.drag"), nullptr);
}

TEST_F(PageUseTest, TheCornerNamesBoxesWhoseTitlesAreOutOfSight) {
  open(nested().graph());
  ask("page.viewport.fit(page.drawing.size)");
  settle();
  const std::string names =
      "[...document.querySelectorAll('#where a')].map((link) => link.textContent)";
  EXPECT_EQ(ask(names), nlohmann::json::array());
  // tanh is in the middle, magnified so that all titles are outside of the window.
  ask("page.viewport.scale = 4");
  ask("page.viewport.centre(page.drawing.placeOf(" + node("tanh") + "))");
  settle();
  EXPECT_EQ(ask(names), nlohmann::json({"fori_loop", "fori_loop"}));
  click("document.querySelector('#where a')");
  EXPECT_EQ(ask("page.picked.role === 'loop' && page.picked.parent === page.model.root"), true);
}

TEST_F(PageUseTest, TheWheelMovesSidewaysWithShiftAndMagnifiesByTwoFingers) {
  open(nested().graph());
  settle();
  const auto wheel = [&](const std::string& how) {
    return ask(
        "(() => { const { x, scale } = page.viewport; page.canvas.dispatchEvent(new "
        "WheelEvent('wheel', { " +
        how +
        ", clientX: 400, clientY: 300, cancelable: true })); "
        "return [page.viewport.x - x, page.viewport.scale / scale]; })()");
  };
  EXPECT_EQ(wheel("shiftKey: true, deltaX: 50"), nlohmann::json({-50, 1}));
  EXPECT_EQ(wheel("shiftKey: true, deltaY: 50"), nlohmann::json({-50, 1}));
  EXPECT_LT(wheel("deltaY: 100")[1].get<double>(), 0.9);
  // Two fingers give steps of a few pixels.
  EXPECT_GT(wheel("ctrlKey: true, deltaY: -5")[1].get<double>(), 1.04);
}

}  // namespace
}  // namespace reel
