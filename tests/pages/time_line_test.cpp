// Time lines in the viewer that every Chromium has: the performance panel of its DevTools.
#include <fstream>
#include <iterator>
#include <map>

#include "reel/core/base/str.h"
#include "reel/reel.h"
#include "reel/tests/own_folder.h"
#include "reel/tests/pages/browser.h"

namespace reel {
namespace {

using nlohmann::json;

constexpr const char* kPanel = "devtools://devtools/bundled/devtools_app.html?panel=timeline";

/// A bar in a row of the viewer: its depth and its text.
struct Bar {
  int level;
  std::string title;
  double begin, length;  ///< milliseconds
};
/// A row with its name and its bars.
struct Track {
  std::string name;
  std::vector<Bar> bars;
};

class TimeLineTest : public InOwnFolder {
 protected:
  TimeLineTest() : InOwnFolder("run.json") {}
  void SetUp() override {
    InOwnFolder::SetUp();
    browser = std::make_unique<Browser>(folder_ / "profile");
    browser->open(kPanel, "document.body.innerText.length > 0");
    // The panel is internal to Chromium: a later version may have it elsewhere.
    const json known = browser->evaluate(R"((async () => {
      let why = '';
      for (let i = 0; i < 4000; ++i, await new Promise((done) => setTimeout(done, 50))) try {
        window.panel = (await import('./panels/timeline/timeline.js')).TimelinePanel.TimelinePanel.instance();
        if (panel.loadFromFile && panel.flameChart) return '';
        why = 'the panel has other members';
      } catch (error) { why = String(error); }
      return why;
    })())");
    if (known != "") GTEST_SKIP() << "no performance panel is known of this Chromium: " << known;
  }
  void TearDown() override {
    browser.reset();
    InOwnFolder::TearDown();
  }

  /// Returns the tracks of a run, unfolded, once the panel shows them.
  std::vector<Track> shown(const RunProfile& profile) {
    profile.write_chrome_trace(path);
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const json found = browser->evaluate(R"((async () => {
      await panel.loadFromFile(new File([)" +
                                         json(text).dump() + R"(], 'run.json'));
      const chart = panel.flameChart.mainDataProvider;
      for (let i = 0; i < 4000 && !chart.timelineData()?.groups?.length; ++i)
        await new Promise((done) => setTimeout(done, 50));
      const data = chart.timelineData();
      data.groups.forEach((group, at) => group.expanded || panel.flameChart.mainFlameChart.toggleGroupExpand(at));
      return {
        groups: data.groups.map((group) => [group.name, group.startLevel]),
        bars: Array.from(data.entryLevels, (level, i) =>
          [level, chart.entryTitle(i), data.entryStartTimes[i], data.entryTotalTimes[i]]),
      };
    })())");
    for (const std::string& complaint : browser->complaints()) {
      const json said = json::parse(complaint);
      const bool is_error = said.contains("exceptionDetails") ||
                            said.value("type", "") == "error" ||
                            (said.contains("entry") && said["entry"]["level"] == "error");
      EXPECT_FALSE(is_error)
          << complaint;  // others are the panel's own times and graphics warnings
    }
    std::vector<Track> tracks;
    std::vector<int> first_levels;
    for (const json& group : found["groups"]) {
      tracks.push_back({group[0], {}});
      first_levels.push_back(group[1]);
    }
    for (const json& bar : found["bars"]) {
      const auto after =
          std::upper_bound(first_levels.begin(), first_levels.end(), bar[0].get<int>());
      const auto track = static_cast<std::size_t>(after - first_levels.begin()) - 1;
      tracks[track].bars.push_back(
          {bar[0].get<int>() - first_levels[track], bar[1], bar[2], bar[3]});
    }
    return tracks;
  }

  std::unique_ptr<Browser> browser;
};

const Track* track_with(const std::vector<Track>& tracks, const std::string& title) {
  for (const Track& track : tracks)
    for (const Bar& bar : track.bars)
      if (bar.title == title) return &track;
  return nullptr;
}

/// Returns the number of bars with each depth and title.
std::map<std::pair<int, std::string>, int> counts(const Track& track) {
  std::map<std::pair<int, std::string>, int> result;
  for (const Bar& bar : track.bars) ++result[{bar.level, bar.title}];
  return result;
}

auto two_deep(const JitOptions& options) {
  auto f = jit(
      [](const Tensor& w) {
        const auto inner = [&](const Tensor&, const Tensor& s) { return tanh(matmul(s, w)); };
        const auto outer = [&](const Tensor&, const Tensor& s) {
          return fori_loop(0, 2, inner, s, {.name = "inner"}) * 0.5f;
        };
        return fori_loop(0, 3, outer, ones({32, 32}), {.name = "outer"});
      },
      options);
  for (int i = 0; i < 2; ++i) f(ones({32, 32}) * 1e-2f);
  return f;
}

TEST_F(TimeLineTest, APlansLoopsLieInEachOtherAsTheViewerShowsThem) {
  const auto tracks = shown(two_deep({.name = "f", .profile = true}).profile());
  const Track* track = track_with(tracks, "fori_loop \"outer\"");
  ASSERT_TRUE(track);
  EXPECT_TRUE(track->name.starts_with("thread 0")) << track->name;
  auto found = counts(*track);
  EXPECT_EQ((found[{0, "f"}]), 1);
  EXPECT_EQ((found[{1, "fori_loop \"outer\""}]), 1);
  for (int k = 0; k < 3; ++k) EXPECT_EQ((found[{2, str("iteration ", k)}]), 1) << k;
  EXPECT_EQ((found[{3, "fori_loop \"inner\""}]), 3);
  for (int k = 0; k < 2; ++k) EXPECT_EQ((found[{4, str("iteration ", k)}]), 3) << k;
  EXPECT_EQ((found[{5, "tanh"}]), 6);
}

TEST_F(TimeLineTest, IterationsByTokensHaveRowsAsManyAsAreInFlight) {
  for (const int at_once : {1, 4}) {
    const auto f = two_deep({.name = "f",
                             .executor = Executor::dataflow,
                             .profile = true,
                             .parallel_iterations = at_once});
    const auto tracks = shown(f.profile());
    const Track* track = track_with(tracks, "fori_loop \"outer\"");
    ASSERT_TRUE(track);
    EXPECT_TRUE(track->name.starts_with("fori_loop \"outer\"")) << track->name;
    int outer = 0, inner = 0, iterations = 0, ops = 0;
    for (const Track& one : tracks)
      for (const Bar& bar : one.bars) {
        EXPECT_GE(bar.length, 0);
        outer += bar.title == "fori_loop \"outer\"";
        inner += bar.title == "fori_loop \"inner\"";
        iterations += bar.title.starts_with("iteration ");
        ops += bar.title == "tanh";
      }
    EXPECT_EQ(outer, 1);
    EXPECT_EQ(inner, 3);
    EXPECT_EQ(iterations, 4 + 3 * 3);  // the last of each runs only the condition
    EXPECT_EQ(ops, 6);
    if (at_once > 1) continue;
    auto found = counts(*track);
    EXPECT_EQ((found[{0, "fori_loop \"outer\""}]), 1);
    EXPECT_EQ((found[{1, "iteration 3"}]), 1);
    EXPECT_EQ((found[{2, "fori_loop \"inner\""}]), 3);
    EXPECT_EQ((found[{3, "iteration 0.0"}] + found[{3, "iteration 2.2"}]), 2);
  }
}

}  // namespace
}  // namespace reel
