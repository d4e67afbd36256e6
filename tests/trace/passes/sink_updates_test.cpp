// Updates of arguments go behind readers of the arguments: graphs before and after the pass.
#include "reel/trace/passes/residuals/sink_updates.h"

#include <gtest/gtest.h>

#include "reel/tests/trace/plan/planned.h"

namespace reel {
namespace {

/// The ops of a recorded function, before and after the pass.
template <class F, class... Args>
std::pair<std::string, std::string> before_and_after(const F& f, const Args&... args) {
  const auto jitted = jit(f);
  jitted(args...);
  return {ops(jitted.graph()), ops(*sink_updates(jitted.graph()))};
}
Tensor x() { return ones({3}); }

TEST(SinkUpdatesTest, AnUpdateGoesBehindReadersOfItsArgument) {
  const auto [before, after] = before_and_after(
      [](const Tensor& w, const Tensor& g) {
        const Tensor next = w - g;
        return std::tuple{next, tanh(next), sum(w)};
      },
      x(), x());
  EXPECT_EQ(before, "sub tanh sum");
  EXPECT_EQ(after, "sum sub tanh");
}

TEST(SinkUpdatesTest, AnUpdateGoesBehindOpsThatMayFail) {
  const auto [before, after] = before_and_after(
      [](const Tensor& w, const Tensor& index) {
        return std::pair{w * 2.0, gather(range(7), index, 0)};
      },
      x(), tensor({1}, {1}, i32));
  EXPECT_EQ(before, "full mul range gather");
  EXPECT_EQ(after, "full range gather mul");
}

TEST(SinkUpdatesTest, AnUpdateStaysWhereNothingIsInItsWay) {
  const auto [before, after] = before_and_after(
      [](const Tensor& w, const Tensor& y) {
        return std::pair{w * 2.0, sum(tanh(y))};
      },
      x(), ones({2}));
  EXPECT_EQ(after, before);
}

TEST(SinkUpdatesTest, ReadersOfAnUpdateStayBehindIt) {
  const auto [before, after] = before_and_after(
      [](const Tensor& w, const Tensor& g) {
        const Tensor next = w - g;
        return std::pair{next, sum(w) + sum(next)};
      },
      x(), x());
  EXPECT_EQ(before, "sub sum sum add");
  EXPECT_EQ(after, "sum sub sum add");
}

TEST(SinkUpdatesTest, EffectsStayBeforeErrorsThatCameBehindThem) {
  const auto [before, after] = before_and_after(
      [](const Tensor& w, const Tensor& index) {
        const Tensor next = print(w * 2.0);
        return std::pair{next, gather(w, index, 0)};
      },
      x(), tensor({1}, {1}, i32));
  EXPECT_EQ(after, before);
}

TEST(SinkUpdatesTest, ReturnedArgumentIsNoUpdate) {
  const auto [before, after] = before_and_after(
      [](const Tensor& w) {
        const Tensor next = w * 2.0;
        return std::tuple{w, next, sum(w)};
      },
      x());
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace reel
