// Structs under vmap: leaves of integers and booleans, ragged leaves, and leaves that some rows
// share have the results and derivatives of map, at several levels.
#include <functional>

#include "reel/tests/modes.h"

namespace reel {
namespace {

struct Row {
  Tensor x, k, m, w;
};
struct Pair {
  Tensor y, n;
};
using Function = std::function<Tensor(const Row&)>;
using Trees = std::function<Row(const Row&)>;
struct NamedFunction {
  const char* name;
  Function f;
};

/// Functions of x: {time, feature}, an integer k, booleans m: {time}, and weights w: {feature}.
std::vector<NamedFunction> functions() {
  const auto time_of = [](const Row& in) { return in.x.dim("time"); };
  const auto feature_of = [](const Row& in) { return in.x.dim("feature"); };
  return {
      {"gather", [=](const Row& in) { return gather(in.x, in.k, feature_of(in)); }},
      {"set_at", [=](const Row& in) { return set_at(in.x, in.k, sum(in.w), feature_of(in)); }},
      {"where", [](const Row& in) { return where(in.m, sin(in.x), square(in.x)); }},
      {"one_hot", [=](const Row& in) { return in.x * cast(one_hot(in.k, feature_of(in)), f64); }},
      {"loop",
       [](const Row& in) {
         return fori_loop(
             0, in.k + 1,
             [&](const Tensor& i, const Tensor& s) { return sin(s) * in.w + cast(i, f64); }, in.x);
       }},
      {"cond",
       [](const Row& in) {
         return cond(
             in.k > 0, [&] { return in.x * in.w; }, [&] { return cos(in.x); });
       }},
      {"scan",
       [=](const Row& in) {
         return scan(Scan{.spatial_dim = time_of(in),
                          .initial = in.w,
                          .xs = in.x,
                          .body =
                              [&](const Tensor& x, const Tensor& s) {
                                const Tensor next = tanh(s + x * in.w);
                                return std::pair{next, next};
                              }})
             .ys;
       }},
      {"mean", [=](const Row& in) { return mean(in.x * cast(in.k, f64), time_of(in)) + in.w; }},
      {"softmax", [=](const Row& in) { return softmax(in.x, time_of(in)) * in.w; }},
      {"sort", [=](const Row& in) { return sort(in.x, time_of(in)) + cumsum(in.x, time_of(in)); }},
      {"pack", [=](const Row& in) { return pack(in.x, in.m, time_of(in)); }},
      {"pool",
       [=](const Row& in) { return mean_pool(in.x, time_of(in), {.size = 2, .stride = 2}); }},
  };
}

class VmapStructsTest : public InEveryMode {
 protected:
  /// Returns a function of all rows along two dims. w lacks the outer one: its rows share it.
  template <class R>
  std::function<R(const Row&)> at_once(const std::function<R(const Row&)>& f) const {
    const std::function<R(const Row&)> inner = vmap(f, in_);
    return vmap(inner, out_);
  }
  template <class R>
  std::function<R(const Row&)> mapped(const std::function<R(const Row&)>& f) const {
    return [this, f](const Row& in) -> R {
      struct Own {
        Tensor x, k, m;
      };
      const auto of_outer = [&](const Own& own) -> R {
        return map(f, Row{own.x, own.k, own.m, in.w}, {.spatial_dim = in_});
      };
      return map(of_outer, Own{in.x, in.k, in.m}, {.spatial_dim = out_});
    };
  }
  template <class R>
  void expect_as_map(const std::function<R(const Row&)>& f, const Row& in) const {
    const std::function<R(const Row&)> all = at_once(f), each = mapped(f);
    const TreeLeaves actual = flatten(run(all)(in)), expected = flatten(each(in));
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const Tensor &a = actual[i].tensor, &b = expected[i].tensor;
      EXPECT_EQ(str(a.type()), str(b.type()));
      expect_all_close(cast(mask_padding(a), f64), cast(mask_padding(b), f64), 1e-9);
    }
  }
  void expect_derivatives_of_map(const Dim& time) const {
    manual_seed(3);
    const Row in{random_normal({out_, time, in_, feature_}, f64),
                 tensor({{0, 1, 1}, {1, 0, 1}}, {out_, in_}),
                 random_normal({in_, out_, time}, f64) > 0., random_normal({in_, feature_}, f64)};
    for (const NamedFunction& function : functions()) {
      SCOPED_TRACE(function.name);
      const Function f = function.f;
      const Function loss = [f](const Row& in) -> Tensor { return sum(square(f(in))); };
      const auto of_x = [](const Function& f, const Row& in) {
        return [f, in](const Tensor& x) -> Tensor { return f({x, in.k, in.m, in.w}); };
      };
      expect_as_map<Tensor>(f, in);
      expect_as_map<Row>([loss](const Row& in) -> Row { return grad(loss)(in); }, in);
      expect_as_map<Tensor>(
          [=](const Row& in) -> Tensor { return jvp(of_x(f, in), in.x, cos(in.x)).second; }, in);
      expect_as_map<Tensor>(
          [=](const Row& in) -> Tensor { return hvp(of_x(loss, in), in.x, cos(in.x)); }, in);
      const Function all = at_once(f), each = mapped(f);
      const Row actual = run(Trees([all](const Row& in) -> Row {
        return grad([all](const Row& in) -> Tensor { return sum(square(all(in))); })(in);
      }))(in);
      const Row expected =
          grad([each](const Row& in) -> Tensor { return sum(square(each(in))); })(in);
      expect_all_close(mask_padding(actual.x), mask_padding(expected.x), 1e-9);
      expect_all_close(actual.w, expected.w, 1e-9);
    }
  }

  const Dim out_{"outer", 2}, in_{"inner", 3}, feature_{"feature", 2};
};
REEL_IN_EVERY_MODE(VmapStructsTest);

TEST_P(VmapStructsTest, LeavesOfOneSizeHaveTheDerivativesOfMap) {
  expect_derivatives_of_map(Dim("time", 3));
}

TEST_P(VmapStructsTest, RaggedLeavesHaveTheDerivativesOfMap) {
  expect_derivatives_of_map(Dim("time", tensor({3, 2}, {out_})));
  expect_derivatives_of_map(Dim("time", tensor({{3, 2, 1}, {1, 0, 3}}, {out_, in_})));
}

TEST_P(VmapStructsTest, IntegersOfThreeLevelsAreThoseOfMap) {
  const auto f = [](const Pair& p) {
    return Pair{p.y * cast(p.n, f64), p.n % 3 + cast(p.y > 0., i32)};
  };
  const auto twice = [&](const Pair& p) { return vmap(f)(p); };
  const auto thrice = [&](const Pair& p) { return vmap(twice)(p); };
  const auto all = [&](const Pair& p) { return vmap(thrice)(p); };
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{2, 1, 3}, {2, 0, 3}, {0, 2, 1}}) {
    const std::int64_t count = sizes[0] * sizes[1] * sizes[2];
    const Tensor n = reshape(cast(range(count), i32), sizes), y = sin(cast(n, f64));
    const Pair actual = run(all)(Pair{y, n});
    EXPECT_EQ(actual.n.type(), n.type());
    EXPECT_EQ(values_of(actual.n), values_of(n % 3 + cast(y > 0., i32)));
    expect_all_close(actual.y, y * cast(n, f64), 1e-12);
  }
}

// A Dim among the leaves is one of each row: it has the lengths of the row.
TEST_P(VmapStructsTest, ADimAmongTheLeavesHasTheLengthsOfTheRow) {
  struct Word {
    Tensor x;
    Dim time;
  };
  const Dim time("time", tensor({3, 0}, {out_}));
  const Tensor x = ones({out_, time}, f64);
  const auto f = [](const Tensor& x) {
    const Dim longer = x.dim("time") + 1;
    return Word{pad(x, x.dim("time"), 1, 0, 5., longer), longer};
  };
  const auto all = run([&](const Tensor& x) { return vmap(f, out_)(x); });
  const Word word = all(x);
  EXPECT_EQ(values_of(word.time.lengths()), (std::vector<double>{4, 1}));
  expect_values(sum(word.x, word.time), {8, 5});
}

}  // namespace
}  // namespace reel
