// The page of a training step with an optimiser: the parts that it shows at once.
#include <cstdio>

#include "reel/tests/pages/page.h"

namespace reel {
namespace {

class TrainingPageTest : public PageFixture {
 protected:
  struct Training {
    Model model;
    Adam<Model> optimiser{model, {.clip_norm = 1}};
  };

  static auto update_step() {
    const Dim time("time", 5), batch("batch", 2), in("in", 3), hidden("hidden", 4), out("out", 2);
    const Training now{{LstmCell::init(in, hidden), Linear::init(hidden, out)}};
    const Tensor x = random_normal({time, batch, in});
    auto step = jit(
        [](Training t, const Tensor& x) {
          auto [value, gradient] = value_and_grad(loss)(t.model, x);
          t.optimiser.update(t.model, gradient);
          return std::pair{t, value};
        },
        {.name = "update step", .profile = true});
    for (int i = 0; i < 3; ++i) step(now, x);
    return step;
  }
};

TEST_F(TrainingPageTest, TheUpdateIsOneFoldedBoxAndTheWholeIsReadable) {
  const auto step = update_step();
  open(step.graph());
  EXPECT_EQ(ask("page.model.root.children.filter((n) => n.kind === 'box').map((n) => n.label)"),
            (nlohmann::json{"scan \"lstm\"", "the gradient of scan \"lstm\"", "update of Adam"}));
  EXPECT_EQ(ask("page.model.boxes.find((n) => n.role === 'update').isFolded"), true);
  // Moments are arguments and results of the update alone.
  EXPECT_EQ(ask("page.model.root.children.filter((n) => n.label.endsWith('of updates')).map((n) => "
                "n.label)"),
            (nlohmann::json{"12 arguments of updates", "17 results of updates"}));
  EXPECT_EQ(
      ask("page.model.nodes.find((n) => n.label === '12 arguments of updates').attributes[0]"),
      (nlohmann::json{"argument 0.optimiser.step", "i64[]"}));
  click("document.getElementById('fit')");
  EXPECT_GT(ask("page.viewport.scale"), 0.35);
  EXPECT_EQ(ask(kOverlaps), "");
  click("document.getElementById('unfold')");
  EXPECT_EQ(ask("page.model.boxes.some((b) => b.isFolded)"), false);
  EXPECT_EQ(ask(kOverlaps), "");
}

TEST_F(TrainingPageTest, ThePlanHasTheUpdateWithItsTime) {
  const auto step = update_step();
  open(step.graph());
  click("[...document.querySelectorAll('#views button')].find((b) => b.textContent === 'Plan')");
  const std::string box = "page.model.boxes.find((b) => b.label === 'update of Adam')";
  EXPECT_GT(ask(box + ".count.nanoseconds"), 0);
  EXPECT_EQ(ask(box + ".count.nanoseconds === " + box +
                ".children.reduce((sum, n) => sum + (n.count?.nanoseconds ?? 0), 0)"),
            true);
  EXPECT_EQ(ask(kOverlaps), "");
}

TEST_F(TrainingPageTest, ALaterUpdateOnTheSameLineIsABoxOfItsOwn) {
  const auto step = jit([](Tensor w) {
    Sgd<Tensor> sgd(w, {.learning_rate = 0.5});
    for (int i = 0; i < 2; ++i) sgd.update(w, exp(w));
    return w;
  });
  step(scalar(1.f));
  open(step.graph());
  EXPECT_EQ(ask("page.model.boxes.map((n) => n.label)"),
            (nlohmann::json{"update of Sgd", "update of Sgd"}));
  EXPECT_EQ(ask(kOverlaps), "");
}

/// A program that only waits until the page is loaded, as most programs that take pictures do.
TEST_F(TrainingPageTest, IsLoadedWhenItIsDrawn) {
  const auto step = update_step();
  step.graph().write_html(path);
  const std::string command =
      std::string(REEL_CHROMIUM) +
      " --headless --no-sandbox --disable-gpu --user-data-dir=" + (folder_ / "other").string() +
      " --dump-dom file://" + std::filesystem::absolute(path).string() + " 2>/dev/null";
  std::string page;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  char part[4096];
  for (std::size_t count; (count = std::fread(part, 1, sizeof part, pipe)) > 0;)
    page.append(part, count);
  EXPECT_EQ(::pclose(pipe), 0);
  EXPECT_NE(page.find("class=\"node box update\""), std::string::npos);
  EXPECT_NE(page.find("<p id=\"busy\" hidden=\"\">"), std::string::npos);
  EXPECT_EQ(page.find("<iframe"), std::string::npos);
}

}  // namespace
}  // namespace reel
