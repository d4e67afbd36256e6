// vmap in vmap: rows of all levels run at once, or in one loop, and equal those of nested map.
#include <string>

#include "reel/tests/frontend/transforms/nested_rows.h"

namespace reel {
namespace {

struct NamedFunction {
  const char* name;
  Function f;
  int loops;  ///< at any level
};

/// Functions of a vector of four positive numbers, with ops that have no form for all rows.
const std::vector<NamedFunction>& functions() {
  static const auto& all = *new std::vector<NamedFunction>{
      {"set_at", [](const Tensor& x) -> Tensor { return set_at(x, argmax(x, 0), sum(x), Axis(0)); },
       2},
      {"set_slice",
       [](const Tensor& x) -> Tensor { return set_slice(x, 1, slice(x, 0, 0, 2), Axis(0)); }, 1},
      {"norm", [](const Tensor& x) -> Tensor { return x / global_norm(x); }, 1},
      {"checks",
       [](const Tensor& x) -> Tensor {
         assert_that(x > 0., "positive");
         return check_numerics(log(x), "logarithm");
       },
       2},
      {"array",
       [](const Tensor& x) -> Tensor {
         const TensorArray array = TensorArray::unstack(x, 0).write(1, sum(x));
         return array.stack() * x;
       },
       1},
      {"cond",
       [](const Tensor& x) -> Tensor {
         return cond(
             sum(x) > 6., [&] { return x * x; }, [&] { return sin(x); });
       },
       0},
      {"normal", [](const Tensor& x) -> Tensor { return x * random_normal({4}, f64); }, 0},
      {"draws",
       [](const Tensor& x) -> Tensor {
         const Tensor y = dropout(x, .5) + truncated_normal({4}, 0, 1, f64);
         return y * random_uniform({}, 1, 2, f64) + cast(random_integers({4}, 0, 9), f64);
       },
       0},
  };
  return all;
}

/// Returns [sizes..., 4] positive numbers.
Tensor rows_of(const std::vector<std::int64_t>& sizes) { return sines(sizes, 4) + 1.5; }

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t result = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++result;
  return result;
}

class NestedVmapTest : public NestedRows {};

TEST_P(NestedVmapTest, RowsOfAllLevelsAreThoseOfMap) {
  for (const NamedFunction& function : functions()) {
    SCOPED_TRACE(function.name);
    expect_as_map(function.f, rows_of({3}), 1);
    expect_as_map(function.f, rows_of({2, 3}), 2);
    expect_as_map(function.f, rows_of({2, 1, 3}), 3);
  }
}

TEST_P(NestedVmapTest, GradientsOfAllLevelsAreThoseOfMap) {
  for (const NamedFunction& function : functions()) {
    SCOPED_TRACE(function.name);
    const Function f = function.f;
    const Function slope = grad([f](const Tensor& x) -> Tensor { return sum(square(f(x))); });
    manual_seed(5);
    const Tensor expected = nested_map(slope, 2)(rows_of({2, 3}));
    manual_seed(5);
    expect_all_close(run(nested(slope, 2))(rows_of({2, 3})), expected, 1e-12);
    const Function of_all =
        grad([f](const Tensor& x) -> Tensor { return sum(square(nested(f, 2)(x))); });
    const Function of_map =
        grad([f](const Tensor& x) -> Tensor { return sum(square(nested_map(f, 2)(x))); });
    manual_seed(5);
    const Tensor expected_of_all = of_map(rows_of({2, 3}));
    manual_seed(5);
    expect_all_close(run(of_all)(rows_of({2, 3})), expected_of_all, 1e-12);
  }
}

TEST_P(NestedVmapTest, SecondDerivativesOfAllLevelsAreThoseOfMap) {
  for (const NamedFunction& function : functions()) {
    SCOPED_TRACE(function.name);
    const Function f = function.f;
    const Function curvature = [f](const Tensor& x) -> Tensor {
      return hvp([f](const Tensor& x) -> Tensor { return sum(square(f(x)) * x); }, x, cos(x));
    };
    const Function tangent = [f](const Tensor& x) -> Tensor { return jvp(f, x, cos(x)).second; };
    for (const Function& derivative : {curvature, tangent}) {
      manual_seed(5);
      const Tensor expected = nested_map(derivative, 2)(rows_of({2, 2}));
      manual_seed(5);
      expect_all_close(run(nested(derivative, 2))(rows_of({2, 2})), expected, 1e-10);
    }
  }
}

TEST_P(NestedVmapTest, NamedRowsAreThoseOfMap) {
  const Dim outer("outer", 2), inner("inner", 3), feature("feature", 4);
  const Tensor x = reshape(rows_of({2, 3}), Dims{outer, inner, feature});
  const Function named[] = {
      [&](const Tensor& x) -> Tensor { return x * random_normal({feature}, f64); },
      [&](const Tensor& x) -> Tensor { return dropout(x, .5) + random_uniform({}, 0, 1, f64); },
      [&](const Tensor& x) -> Tensor { return set_at(x, argmax(x, feature), sum(x), feature); },
      [&](const Tensor& x) -> Tensor { return x / global_norm(x); },
      [&](const Tensor& x) -> Tensor { return check_numerics(x, "x"); },
  };
  for (const Function& f : named) {
    const auto apply = [&](const auto& over_rows) {
      manual_seed(5);
      return over_rows();
    };
    const Tensor expected = apply([&] {
      const auto of_inner = [&](const Tensor& x) -> Tensor {
        return map(f, x, {.spatial_dim = inner});
      };
      return map(of_inner, x, {.spatial_dim = outer});
    });
    const Function at_once = [&](const Tensor& x) -> Tensor {
      const Function of_inner = [&](const Tensor& x) -> Tensor { return vmap(f, inner)(x); };
      return vmap(of_inner, outer)(x);
    };
    expect_all_close(apply([&] { return run(at_once)(x); }), expected, 1e-12);
  }
}

TEST_P(NestedVmapTest, RowsInLoopsThatEndAloneAreThoseOfMap) {
  const Function f = [](const Tensor& x) -> Tensor {
    const auto body = [&](const Tensor& i, const Tensor& s) {
      const Tensor y = set_at(s, i, global_norm(s), Axis(0));
      return std::tuple{i + 1, y + random_normal({4}, f64) * check_numerics(x, "x")};
    };
    return std::get<1>(
        while_loop([&](const Tensor& i,
                       const Tensor&) { return logical_and(i < 4, cast(i, f64) < x[0] * 2.); },
                   body, std::tuple{scalar(0), x}));
  };
  expect_as_map(f, rows_of({4}), 1);
  expect_as_map(f, rows_of({2, 3}), 2);
}

TEST_P(NestedVmapTest, CapturesOfOuterRowsReachInnerRows) {
  const Function f = [](const Tensor& x) -> Tensor {
    const Function inner = [&](const Tensor& y) -> Tensor {
      const TensorArray array = TensorArray::unstack(x * y, 0).write(0, y[1]);
      return array.stack() + global_norm(x) * random_normal({}, f64);
    };
    return vmap(inner)(stack({x, cos(x)}));
  };
  manual_seed(5);
  const Tensor expected = map(f, rows_of({3}));
  manual_seed(5);
  expect_all_close(run(Function(vmap(f)))(rows_of({3})), expected, 1e-12);
}

TEST_P(NestedVmapTest, SizesOfArraysInAMapUnderVmapAreKnownBehindTheRun) {
  const Function f = [](const Tensor& x) -> Tensor {
    const Function inner = [&](const Tensor& y) -> Tensor {
      return TensorArray::unstack(x, 0).write(1, y).stack();
    };
    return vmap(inner)(x);
  };
  const Function mapped = [&](const Tensor& x) -> Tensor { return map(f, x); };
  const Tensor x = rows_of({2, 3}), actual = run(Function(vmap(mapped)))(x);
  EXPECT_EQ(actual.type(), TensorType(f64, {2, 3, 4, 4}));
  expect_same_bits(actual, nested_map(f, 2)(x));
}

TEST_P(NestedVmapTest, EmptyRowsOfAllLevelsHaveTheirTypes) {
  for (const NamedFunction& function : functions()) {
    SCOPED_TRACE(function.name);
    if (std::string(function.name) == "array") continue;  // its size is known after a run
    for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{0, 3}, {2, 0}})
      EXPECT_EQ(run(nested(function.f, 2))(rows_of(sizes)).type(), rows_of(sizes).type());
  }
}

TEST_P(NestedVmapTest, ACaptureMayHaveTheDimOfALoopOverIt) {
  const Dim outer("outer", 2), inner("inner", 3);
  const Function f = [&](const Tensor& x) -> Tensor {
    const Function element = [&](const Tensor& y) -> Tensor {
      return TensorArray::unstack(x, inner).write(0, y)[1] * y;
    };
    return map(element, x, {.spatial_dim = inner});
  };
  const Tensor x = cast(reshape(range(6), Dims{outer, inner}), f64);
  expect_values(run(vmap(f, outer))(x), {0, 1, 2, 12, 16, 20});
}

REEL_IN_EVERY_MODE(NestedVmapTest);

TEST(NestedVmapTest, SevenLevelsHaveTheLoopsOfOne) {
  for (const NamedFunction& function : functions()) {
    SCOPED_TRACE(function.name);
    int calls = 0;
    const Function counted = [&](const Tensor& x) -> Tensor {
      ++calls;
      return function.f(x);
    };
    std::size_t records_of_one_level = 0;
    for (const int levels : {1, 4, 7}) {
      calls = 0;
      std::vector<std::int64_t> sizes(static_cast<std::size_t>(levels), 1);
      sizes[0] = 2;
      const auto traced = jit(nested(counted, levels), {.executor = Executor::interpreter});
      traced(rows_of(sizes));
      EXPECT_LE(calls, 2) << levels << " levels";
      const std::string graph = str(traced.graph());
      EXPECT_EQ(count(graph, " = loop("), static_cast<std::size_t>(function.loops)) << graph;
      const std::size_t records = count(graph, "\n");
      if (levels == 1) records_of_one_level = records;
      EXPECT_LE(records, 3 * records_of_one_level + 30) << graph;
    }
  }
}

TEST(NestedVmapTest, LargeCapturesAreNotRepeated) {
  const auto loops = [](std::int64_t size) {
    const Function f = [](const Tensor& x) -> Tensor {
      const Function inner = [&](const Tensor& y) -> Tensor {
        return TensorArray::unstack(x, 0).write(0, y)[1] * y;
      };
      return vmap(inner)(ones({3}, f64));
    };
    const auto traced = jit(Function(vmap(f)), {.executor = Executor::interpreter});
    expect_values(traced(ones({2, size}, f64)), {1, 1, 1, 1, 1, 1});
    return count(str(traced.graph()), " = loop(");
  };
  EXPECT_EQ(loops(4), 1u);
  EXPECT_EQ(loops(20000), 2u);
}

TEST(NestedVmapTest, LargeSlicesThatAllRowsShareAreNotRepeated) {
  const auto loops = [](std::int64_t size) {
    const Function f = [&](const Tensor& x) -> Tensor {
      const Function inner = [&](const Tensor& y) -> Tensor {
        return TensorArray::unstack(y, 0).write(0, x)[0];
      };
      return vmap(inner)(ones({3, size}, f64));
    };
    const auto traced = jit(Function(vmap(f)), {.executor = Executor::interpreter});
    expect_values(traced(tensor({5., 7.}, f64)), {5, 5, 5, 7, 7, 7});
    return count(str(traced.graph()), " = loop(");
  };
  EXPECT_EQ(loops(4), 1u);
  EXPECT_EQ(loops(20000), 2u);
}

TEST(NestedVmapTest, ErrorsNameTheRowThatFails) {
  const Function f = [](const Tensor& x) -> Tensor {
    assert_that(x < 3., "small", {x});
    return x;
  };
  const Tensor x = tensor({{1., 2.}, {5., 1.}, {4., 4.}}, f64);
  EXPECT_EQ(message_of<AssertionError>([&] { vmap(f)(x); }),
            "assert_that: small\nfalse at [0]\nvalue 0: f64[2] [5. 1.]\n"
            "in iteration 1 of vmap \"assert_that\"");
  EXPECT_EQ(message_of<AssertionError>([&] {
              nested(f, 2)(stack({zeros_like(x), x}));
            }),
            "assert_that: small\nfalse at [0]\nvalue 0: f64[2] [5. 1.]\n"
            "in iteration 4 of vmap \"assert_that\"");
}

}  // namespace
}  // namespace reel
