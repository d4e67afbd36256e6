// vmap over the entries of several dims, compared with nested calls of map.
#include <functional>
#include <sstream>

#include "reel/frontend/transforms/branch_cost.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using Function = std::function<Tensor(const Tensor&)>;  // one type, so that the file compiles fast

class VmapEntriesTest : public InEveryMode {
 protected:
  /// Expects the values and the first two gradients of nested maps. f must be smooth near x.
  void expect_as_maps(const Function& f, const Tensor& x, const Dim& outer, const Dim& inner) {
    const Function at_once = [=](const Tensor& x) -> Tensor {
      return vmap(f, Dims{outer, inner})(x);
    };
    const Function one_by_one = [=](const Tensor& x) -> Tensor {
      const auto row = [&](const Tensor& row) {
        return map(f, row, {.spatial_dim = row.dim(inner.name())});
      };
      return map(row, x, {.spatial_dim = outer});
    };
    const auto slope = [](const Function& f) -> Function {
      return grad([f](const Tensor& x) -> Tensor { return sum(square(mask_padding(f(x)))); });
    };
    const auto here = [&](const Function& f) -> Function { return run(f); };
    const auto expect = [&](const Function& actual, const Function& expected, double tolerance) {
      expect_all_close(mask_padding(here(actual)(x)), mask_padding(expected(x)), tolerance);
    };
    expect(at_once, one_by_one, 1e-12);
    expect(slope(at_once), slope(one_by_one), 1e-9);
    expect(slope(slope(at_once)), slope(slope(one_by_one)), 1e-8);
  }

  VmapEntriesTest() { manual_seed(3); }

  const Dim batch_{"batch", 3}, beam_{"beam", 2}, in_{"in", 3}, out_{"out", 2};
  const Tensor w_ = random_normal({in_, out_}, f64);
};

TEST_P(VmapEntriesTest, EveryEntryIsARow) {
  const Tensor x = random_normal({batch_, in_, beam_}, f64);
  expect_as_maps([&](const Tensor& x) { return tanh(matmul(x, w_, in_)); }, x, batch_, beam_);
  expect_as_maps(
      [](const Tensor& x) {
        return while_loop([](const Tensor& s) { return sum(square(s)) > 0.1; },
                          [&](const Tensor& s) { return s * 0.7 + 0.01 * sin(x); }, x);
      },
      x, beam_, batch_);
}

TEST_P(VmapEntriesTest, BranchesArePackedAlongAllDims) {
  const TakenRowsScope always(TakenRowsRule::always);
  const Tensor x = random_normal({batch_, beam_, in_}, f64);
  const Function f = [&](const Tensor& x) {
    return cond(
        sum(x) > 0.0, [&] { return tanh(matmul(x, w_, in_)); },
        [&] { return square(matmul(x, w_, in_)); });
  };
  expect_as_maps(f, x, batch_, beam_);
  const auto jitted = jit(vmap(f, Dims{batch_, beam_}));
  jitted(x);
  std::ostringstream text;
  text << jitted.graph();
  EXPECT_NE(text.str().find("f64[taken,in=3]"), std::string::npos) << text.str();
}

TEST_P(VmapEntriesTest, EntriesOfARaggedDimHaveNoPadding) {
  const Dim time("time", tensor({3, 0, 1}, {batch_}));
  const Tensor x = random_normal({batch_, time, in_}, f64);
  for (const bool packs : {false, true}) {
    const TakenRowsScope rule(packs ? TakenRowsRule::always : TakenRowsRule::never);
    expect_as_maps(
        [&](const Tensor& x) {
          return cond(
              sum(x) > 0.0, [&] { return tanh(matmul(x, w_, in_)); },
              [&] { return square(matmul(x, w_, in_)); });
        },
        x, batch_, time);
  }
}

TEST_P(VmapEntriesTest, RaggedRowsHaveTheLengthOfTheirEntry) {
  const Dim letters("letters", tensor({{2, 0}, {1, 3}, {0, 1}}, {batch_, beam_}));
  const Tensor x = random_normal({batch_, beam_, letters}, f64);
  expect_as_maps([](const Tensor& x) { return sum(tanh(x), x.dim("letters")); }, x, batch_, beam_);
  const Dim words("words", tensor({2, 3, 0}, {batch_}));
  const Tensor y = random_normal({batch_, beam_, words}, f64);
  expect_as_maps([](const Tensor& x) { return sum(tanh(x), x.dim("words")); }, y, batch_, beam_);
}

TEST_P(VmapEntriesTest, ArgumentsThatLackADimAreRepeated) {
  const Tensor x = random_normal({batch_, in_}, f64), scale = random_normal({beam_}, f64);
  const auto f = [&](const Tensor& x, const Tensor& scale) { return tanh(x) * scale; };
  const Tensor y = run(vmap(f, Dims{batch_, beam_}))(x, scale);
  EXPECT_EQ(y.dims(), (Dims{batch_, beam_, in_}));
  expect_all_close(y, tanh(x) * expand(scale, {batch_, beam_, in_}));
}

REEL_IN_EVERY_MODE(VmapEntriesTest);

TEST(VmapEntriesErrorTest, NamesTheDims) {
  const Dim batch("batch", 2), beam("beam", 3);
  const auto same = [](const Tensor& x) { return x; };
  EXPECT_EQ(message_of<ShapeError>([&] {
              vmap(same, Dims{batch, beam})(zeros({4}));
            }),
            "vmap: no argument has one of the dims [batch=2,beam=3]; give the dims of the entries, "
            "with x.dim(name)");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              vmap(same, Dims{batch, 3})(zeros({batch}));
            }),
            "vmap: [batch=2,3] has a plain size; give named dims");
  EXPECT_EQ(message_of<ArgumentError>([&] { vmap(same, Dims{})(zeros({batch})); }),
            "vmap: there are no dims; give the dims of the entries");
}

}  // namespace
}  // namespace reel
