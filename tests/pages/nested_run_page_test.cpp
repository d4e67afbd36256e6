// Pages with recorded runs of loops in loops: their tokens, and which iterations are in flight.
#include <string>

#include "reel/tests/pages/page.h"

namespace reel {
namespace {

using NestedRunPageTest = PageFixture;

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

}  // namespace
}  // namespace reel
