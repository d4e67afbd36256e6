// tests/pages/page.h — PageFixture, which opens pages of graphs in a real browser.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "reel/reel.h"
#include "reel/tests/count_to_ten.h"
#include "reel/tests/own_folder.h"
#include "reel/tests/pages/browser.h"

namespace reel {

/// Lists shapes that overlap, leave their box or are crossed by an edge, and texts that overlap
/// other shapes. Gives an empty text if there are none.
inline constexpr const char* kOverlaps = R"((() => {
  const wrong = [];
  page.drawing.cull({ x: -1e9, x2: 1e9, y: -1e9, y2: 1e9 });
  const chips = [...page.drawing.chips].map(([edge, group]) => [{ kind: 'chip', label: edge.from.label, id: -2, parent: edge.box }, group]);
  const owners = new Map([...page.drawing.groups, ...chips].map(([node, group]) => [group, node]));
  const nodes = [...owners].map(([group, node]) => {
    const r = group.querySelector(':scope > .shape').getBoundingClientRect();
    return { node, group, x: r.left, y: r.top, x2: r.right, y2: r.bottom };
  });
  const isIn = (inner, outer) => { for (let n = inner.parent; n; n = n.parent) if (n === outer) return true; return false; };
  const slack = 0.4 * page.viewport.scale + 0.1;
  const meet = (a, b) => a.x + slack < b.x2 && b.x + slack < a.x2 && a.y + slack < b.y2 && b.y + slack < a.y2;
  const name = (a) => `${a.node.kind} ${a.node.label} (${a.node.id})`;
  for (const [i, a] of nodes.entries()) for (const [j, b] of nodes.entries()) {
    if (i === j) continue;
    if (isIn(a.node, b.node)) {
      if (a.x < b.x - slack || a.x2 > b.x2 + slack || a.y < b.y - slack || a.y2 > b.y2 + slack) wrong.push(`${name(a)} leaves ${name(b)}`);
    } else if (i < j && meet(a, b) && !isIn(b.node, a.node)) wrong.push(`${name(a)} lies over ${name(b)}`);
  }
  const texts = [...document.querySelectorAll('#scene text')].filter((text) => text.closest('.node, .chip')).map((text) => {
    const r = text.getBoundingClientRect();
    return { text, node: owners.get(text.closest('.node, .chip')), x: r.left, y: r.top, x2: r.right, y2: r.bottom };
  }).filter((t) => t.x2 > t.x);
  for (const t of texts) for (const b of nodes) {
    if (b.node === t.node || !meet(t, b)) continue;
    if (!isIn(t.node, b.node)) wrong.push(`the text ${t.text.textContent} lies over ${name(b)}`);
  }
  texts.forEach((a, i) => texts.slice(i + 1).forEach((b) => {
    if (meet(a, b)) wrong.push(`the texts ${a.text.textContent} and ${b.text.textContent} lie over each other`);
  }));
  for (const [edge, parts] of page.drawing.lines) for (const { line, points, isStub } of parts) {
    if (isStub) continue;
    const m = line.getScreenCTM();
    const at = points.map((p) => ({ x: p.x * m.a + m.e, y: p.y * m.d + m.f }));
    for (let i = 1; i < at.length; ++i) {
      const s = { x: Math.min(at[i - 1].x, at[i].x), x2: Math.max(at[i - 1].x, at[i].x), y: Math.min(at[i - 1].y, at[i].y), y2: Math.max(at[i - 1].y, at[i].y) };
      for (const b of nodes) {
        if (b.node === edge.from || b.node === edge.to || b.node === edge.from.parent || b.node === edge.to.parent) continue;
        if (b.node === edge.box || isIn(edge.box, b.node)) continue;
        if (s.x + slack < b.x2 && b.x + slack < s.x2 + 2 * slack && s.y + slack < b.y2 && b.y + slack < s.y2 + 2 * slack)
          wrong.push(`the edge from ${edge.from.label} to ${edge.to.label} crosses ${name(b)}`);
      }
    }
  }
  return [...new Set(wrong)].slice(0, 20).join('\n');
})())";

/// Counts the pairs of tokens that overlap.
inline constexpr const char* kTokensOverEachOther = R"((() => {
  const all = [...document.querySelectorAll('#scene .token')].map((token) => token.getBoundingClientRect());
  let count = 0;
  all.forEach((a, i) => all.slice(i + 1).forEach((b) => {
    if (a.x + 1 < b.right && b.x + 1 < a.right && a.y + 1 < b.bottom && b.y + 1 < a.bottom) ++count;
  }));
  return count;
})())";

/// Lists the faults of a replay: nodes that fire without a token at an input, nodes that are dead
/// although their inputs are not, and tokens left in the end that are not results.
inline constexpr const char* kReplay = R"((() => {
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

/// Defines hold(count): layouts do not begin while at most `count` changes of the page are not
/// done. At first it holds all layouts; hold(0) holds none.
inline constexpr const char* kHeldLayouts = R"((() => {
  const layout = Elk.prototype.layout, waiting = [];
  let most = Infinity;
  window.hold = (count) => {
    most = count;
    waiting.splice(0).forEach((look) => look());
  };
  Elk.prototype.layout = async function (graph) {
    while (page.changes <= most) await new Promise((look) => waiting.push(look));
    return layout.call(this, graph);
  };
})())";

class PageFixture : public InOwnFolder {
 protected:
  PageFixture() : InOwnFolder("graph.html") {}
  void SetUp() override {
    InOwnFolder::SetUp();
    browser = std::make_unique<Browser>(folder_ / "profile");
  }
  void TearDown() override {
    EXPECT_EQ(browser->complaints(), std::vector<std::string>());
    for (const std::string& address : browser->requests())
      EXPECT_TRUE(address.starts_with("file://") || address.starts_with("blob:") ||
                  address.starts_with("data:") || address == "about:blank")
          << address;
    browser.reset();
    InOwnFolder::TearDown();
  }

  void open(const Graph& graph) {
    graph.write_html(path);
    browser->open(path);
  }
  nlohmann::json ask(const std::string& expression) { return browser->evaluate(expression); }
  /// Clicks on the centre of the element that a selector or an expression gives. Before that, the
  /// page draws: a moved picture has its new place only from the next frame on.
  void click(const std::string& element, int count = 1) {
    settle();
    const auto at = ask("(() => { const r = (" + element +
                        ").getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / "
                        "2]; })()");
    browser->click(at[0], at[1], count);
    settle();
  }
  /// Waits until everything that was begun is laid out and drawn.
  void settle() {
    ask("(async () => { for (let i = 0; i < 3; ++i) await new Promise(requestAnimationFrame); "
        "while (!page.busy.hidden) await new Promise((done) => setTimeout(done, 20)); "
        "await new Promise(requestAnimationFrame); })()");
  }
  /// Returns an expression of the node with this label.
  static std::string node(const std::string& label) {
    return "page.model.nodes.find((n) => n.label === '" + label + "')";
  }
  std::string details() { return ask("document.getElementById('details').innerText"); }

  std::unique_ptr<Browser> browser;

  // The graphs that the pages show.
  struct Model {
    LstmCell cell;
    Linear out;
  };
  static Tensor loss(const Model& model, const Tensor& x) {
    const auto body = [&](const Tensor& x, const LstmCell::State& state) {
      const auto [y, next] = model.cell(x, state);
      return std::pair{model.out(y), next};
    };
    return mean(square(scan(Scan{.spatial_dim = x.dim("time"),
                                 .initial = model.cell.initial_state({x.dim("batch")}),
                                 .xs = x,
                                 .body = body,
                                 .name = "lstm"})
                           .ys));
  }
  static auto training_step(bool profile = false) {
    const Dim time("time", 5), batch("batch", 2), in("in", 3), hidden("hidden", 4), out("out", 2);
    const Model model{LstmCell::init(in, hidden), Linear::init(hidden, out)};
    const Tensor x = random_normal({time, batch, in});
    auto step = jit(value_and_grad(loss), {.name = "training step", .profile = profile});
    for (int i = 0; i < 3; ++i) step(model, x);
    return step;
  }
  static auto count_to_ten() { return reel::count_to_ten("count to ten"); }
  static auto nested() {
    auto f = jit(
        [](const Tensor& x) {
          const auto outer = [](const Tensor& i, const Tensor& x) {
            const auto inner = [&](const Tensor& j, const Tensor& y) {
              return tanh(y) + cast(i * j, f32);
            };
            const Tensor y = fori_loop(0, 3, inner, x);
            return cond(
                sum(y) > 0.f, [&] { return y * 2.f; }, [&] { return y - x; });
          };
          return fori_loop(0, 5, outer, x);
        },
        {.name = "nested"});
    f(ones({3}));
    return f;
  }
};

}  // namespace reel
