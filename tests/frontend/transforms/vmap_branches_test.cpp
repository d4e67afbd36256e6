// Branches of conds under vmap that only the rows that take them compute; compared with map, which
// runs f row by row.
#include <functional>

#include "reel/frontend/transforms/branch_cost.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using Function = std::function<Tensor(const Tensor&)>;  // one type, so that the file compiles fast
using Apply = std::function<Tensor(const Function&, const Tensor&)>;
using Program = std::function<Tensor(const Apply&, const Tensor&)>;

Tensor total(const Tensor& y) { return sum(square(mask_padding(y))); }
Function slope(const Function& f) {
  return grad([f](const Tensor& x) -> Tensor { return total(f(x)); });
}

class VmapBranchesTest : public InEveryMode {
 protected:
  /// Expects the values and the first two gradients of a program to be the same with vmap as with
  /// map. The program must be smooth near x.
  void expect_as_map(const Program& program, const Tensor& x, const std::optional<Dim>& dim = {}) {
    const Function at_once = [&](const Tensor& x) -> Tensor {
      return program([&](const Function& f, const Tensor& x) -> Tensor { return vmap(f, dim)(x); },
                     x);
    };
    const Function one_by_one = [&](const Tensor& x) -> Tensor {
      return program([&](const Function& f,
                         const Tensor& x) -> Tensor { return map(f, x, {.spatial_dim = dim}); },
                     x);
    };
    const auto value = [&](const Function& f) {
      manual_seed(7);
      return mask_padding(f(x));
    };
    const auto here = [&](const Function& f) -> Function { return run(f); };
    const Tensor expected = value(one_by_one), actual = value(here(at_once));
    EXPECT_EQ(actual.type(), expected.type());
    expect_all_close(actual, expected);
    expect_all_close(value(here(slope(at_once))), value(slope(one_by_one)), 1e-9);
    expect_all_close(value(here(slope(slope(at_once)))), value(slope(slope(one_by_one))), 1e-8);
  }
  /// Overload for a function of one row.
  void expect_as_map(const Function& f, const Tensor& x, const std::optional<Dim>& dim = {}) {
    expect_as_map([&](const Apply& apply, const Tensor& x) -> Tensor { return apply(f, x); }, x,
                  dim);
  }

  VmapBranchesTest() { manual_seed(3); }

  /// Returns rows; only the first `positive` rows have a positive sum.
  Tensor rows(int positive) const {
    Tensor sign = where(range(batch_) < positive, 1.0, -1.0);
    return (random_uniform({batch_, in_}, 0.2, 1.0, f64)) * cast(sign, f64);
  }

  const TakenRowsScope always_{TakenRowsRule::always};
  const Dim batch_{"batch", 5}, in_{"in", 3}, out_{"out", 2};
};

TEST_P(VmapBranchesTest, RowsTakeBranchesWithProducts) {
  for (const int positive : {0, 2, 5}) {
    const Tensor x = rows(positive);
    const auto program = [&](const Apply& apply, const Tensor& x) {
      const Tensor w = tanh(expand(sum(x, batch_), {in_, out_})) * 0.5 + 0.1;  // one for all rows
      return apply(
          [&](const Tensor& row) {
            return cond(
                sum(row) > 0.0, [&] { return tanh(matmul(row, w, in_)); },
                [&] { return square(matmul(sin(row), w, in_)) + sum(w, in_); });
          },
          x);
    };
    expect_as_map(program, x, batch_);
  }
}

TEST_P(VmapBranchesTest, PlainRowsTakeBranches) {
  const Tensor v = random_normal({4, 3}, f64);
  for (const int positive : {0, 2, 5}) {
    const Tensor x = reshape(rows(positive), std::vector<std::int64_t>{5, 3});
    const auto program = [&](const Apply& apply, const Tensor& x) {
      const Tensor w = tanh(matmul(v, transpose(x, {1, 0})));  // [4, 5]
      return apply(
          [&](const Tensor& row) {
            return cond(
                sum(row) > 0.0,
                [&] {
                  const Tensor h = tanh(matmul(v, row));  // [4]
                  return reshape(concat({matmul(h, w), row, zeros({2}, f64)}, 0), {5, 2});
                },
                [&] {
                  return reshape(concat({row, softmax(v[0] * row, 0), ones({4}, f64)}, 0), {5, 2});
                });
          },
          x);
    };
    expect_as_map(program, x);
  }
}

TEST_P(VmapBranchesTest, BranchesHaveLoops) {
  const Tensor named = rows(2), plain = reshape(named, std::vector<std::int64_t>{5, 3});
  const auto counted = [](const Tensor& x) {
    return cond(
        sum(x) > 0.0,
        [&] {
          return fori_loop(
              0, 3,
              [&](const Tensor& i, const Tensor& s) { return s * 0.5 + tanh(x) * cast(i, f64); },
              x);
        },
        [&] { return x * 2.0; });
  };
  const auto until = [](const Tensor& x) {
    return cond(
        sum(x) > 0.0, [&] { return x * x; },
        [&] {
          return while_loop([](const Tensor& s) { return sum(square(s)) > 0.1; },
                            [&](const Tensor& s) { return s * 0.7 + 0.01 * sin(x); }, x);
        });
  };
  const auto scanned = [](const Tensor& x) {
    return cond(
        sum(x) > 0.0,
        [&] {
          return sum(scan(Scan{.initial = zeros({}, f64),
                               .xs = x,
                               .body =
                                   [](const Tensor& x, const Tensor& s) {
                                     const Tensor next = tanh(s + x);
                                     return std::pair{next * next, next};
                                   }})
                         .ys);
        },
        [&] { return sum(x) * 0.5; });
  };
  for (const Function& f : {Function(counted), Function(until)}) {
    expect_as_map(f, named, batch_);
    expect_as_map(f, plain);
  }
  expect_as_map(scanned, plain);
  expect_as_map(
      [&](const Tensor& x) {
        return cond(
            sum(x) > 0.0,
            [&] {
              return scan(Scan{.spatial_dim = in_,
                               .initial = zeros({}, f64),
                               .xs = x,
                               .body =
                                   [](const Tensor& x, const Tensor& s) {
                                     const Tensor next = tanh(s + x);
                                     return std::pair{next * next, next};
                                   },
                               .checkpoint = Checkpoint::every(2)})
                  .ys;
            },
            [&] { return sin(x); });
      },
      named, batch_);
}

TEST_P(VmapBranchesTest, BranchesNest) {
  const Tensor named = rows(3), plain = reshape(named, std::vector<std::int64_t>{5, 3});
  const auto nested = [](const Tensor& x) {
    return cond(
        sum(x) > 0.0,
        [&] {
          return cond(
              sum(x) > 1.8, [&] { return tanh(x) * sum(x); }, [&] { return x * x; });
        },
        [&] {
          return cond(
              sum(x) < -1.8, [&] { return sin(x); }, [&] { return x * 0.5; });
        });
  };
  const auto cases = [](const Tensor& x) {
    return switch_case(
        cast(floor(sum(x)), i32) + 1, [&] { return tanh(x) * sum(x); }, [&] { return x * x; },
        [&] { return sin(x) * x; });
  };
  for (const Function& f : {Function(nested), Function(cases)}) {
    expect_as_map(f, named, batch_);
    expect_as_map(f, plain);
  }
}

TEST_P(VmapBranchesTest, RowsOfRows) {
  const Tensor x = rows(3), y = random_normal({out_}, f64);
  expect_as_map(
      [&](const Tensor& row) {
        return vmap(
            [&](const Tensor& number) {
              return cond(
                  sum(row) * number > 0.0, [&] { return sum(tanh(row * number)); },
                  [&] { return number * number * sum(row); });
            },
            out_)(y);
      },
      x, batch_);
  expect_as_map(
      [&](const Tensor& row) {
        return cond(
            sum(row) > 0.0,
            [&] {
              return vmap(
                  [&](const Tensor& number) {
                    return cond(
                        number > 0.5, [&] { return sin(number) * sum(row); },
                        [&] { return number * number; });
                  },
                  in_)(row);
            },
            [&] { return row * row; });
      },
      x, batch_);
}

TEST_P(VmapBranchesTest, RaggedRowsTakeTheirLengthsAlong) {
  const Dim time("time", tensor({3, 0, 1, 2, 3}, {batch_}));
  const Tensor x = random_normal({batch_, time, in_}, f64);
  expect_as_map(
      [&](const Tensor& x) {
        const Dim time = x.dim("time");
        return cond(
            time.lengths() > 1, [&] { return softmax(x, time) * sum(x, time); },
            [&] { return tanh(x); });
      },
      x, batch_);
  expect_as_map(
      [&](const Tensor& x) {
        const Dim time = x.dim("time");
        return cond(
            sum(x) > 0.0,
            [&] {
              const auto [ys, last, dim] = scan(Scan{.spatial_dim = time,
                                                     .initial = zeros({in_}, f64),
                                                     .xs = x,
                                                     .body = [](const Tensor& x, const Tensor& s) {
                                                       const Tensor next = tanh(s + x);
                                                       return std::pair{next * next, next};
                                                     }});
              return last + sum(ys, dim);
            },
            [&] { return sum(square(x), time); });
      },
      x, batch_);
}

TEST_P(VmapBranchesTest, EveryTakenRowHasItsOwnRandomNumbers) {
  const Tensor named = rows(3), plain = reshape(named, std::vector<std::int64_t>{5, 3});
  expect_as_map(
      [&](const Tensor& x) {
        return cond(
            sum(x) > 0.0, [&] { return x * random_normal({in_}, f64); },
            [&] { return dropout(x, 0.5) * sum(x); });
      },
      named, batch_);
  expect_as_map(
      [&](const Tensor& x) {
        return cond(
            sum(x) > 0.0, [&] { return x * random_normal({3}, f64); },
            [&] { return dropout(x, 0.5) * sum(x); });
      },
      plain);
}

TEST_P(VmapBranchesTest, OpsWithoutAFormForRowsRunForTakenRows) {
  const Tensor named = rows(3), plain = reshape(named, std::vector<std::int64_t>{5, 3});
  expect_as_map(
      [&](const Tensor& x) {
        return cond(
            sum(x) > 0.0, [&] { return sort(x, in_) * cumsum(x, in_); },
            [&] { return reverse(x, in_); });
      },
      named, batch_);
  expect_as_map(
      [](const Tensor& x) {
        return cond(
            sum(x) > 0.0, [&] { return sort(x, 0) * cumsum(x, 0); },
            [&] { return x * x[argmax(x, 0)]; });
      },
      plain);
}

TEST_P(VmapBranchesTest, GradientsCheckpointsAndCustomGradientsInside) {
  const Tensor x = reshape(rows(3), std::vector<std::int64_t>{5, 3}),
               w = random_normal({3, 3}, f64);
  const auto custom = custom_vjp(
      [](const Tensor& x) {
        return std::pair{exp(x), x};
      },
      [](const Tensor& x, const Tensor& g) { return g * x * 2.0; });
  expect_as_map(
      [&](const Tensor& x) {
        return cond(
            sum(x) > 0.0,
            [&] {
              return grad(
                  [&](const Tensor& y) -> Tensor { return sum(square(tanh(matmul(w, y)))); })(x);
            },
            [&] { return custom(x) * x; });
      },
      x);
  expect_as_map(
      [&](const Tensor& x) {
        return cond(
            sum(x) > 0.0,
            [&] { return checkpoint([&](const Tensor& x) { return tanh(matmul(w, x)); })(x); },
            [&] { return x * x; });
      },
      x);
}

TEST_P(VmapBranchesTest, TangentsAreThoseOfTheBranchTaken) {
  const Tensor x = rows(2), direction = random_normal({batch_, in_}, f64);
  const auto row = [&](const Tensor& x) {
    return cond(
        sum(x) > 0.0, [&] { return tanh(x) * sum(x); }, [&] { return x * x * x; });
  };
  const Function f = [&](const Tensor&x) -> Tensor { return vmap(row, batch_)(x); },
                 g = [&](const Tensor&x) -> Tensor { return map(row, x, {.spatial_dim = batch_}); };
  const auto tangent = [&](const Function& f) -> Function {
    return [&, f](const Tensor& x) -> Tensor { return jvp(f, x, direction).second; };
  };
  expect_all_close(run(tangent(f))(x), tangent(g)(x), 1e-12);
}

TEST_P(VmapBranchesTest, RowsThatDoNotTakeABranchCauseNoNan) {
  // The other rows would take the root and the logarithm of negative numbers.
  const Tensor x = rows(2);
  expect_as_map(
      [&](const Tensor& x) {
        return cond(
            sum(x) > 0.0, [&] { return sqrt(x) * log(x); }, [&] { return sqrt(-x); });
      },
      x, batch_);
  const Tensor nan =
      where(expand(range(batch_) < 2, {batch_, in_}), x, std::numeric_limits<double>::quiet_NaN());
  const auto loss = [&](const Tensor& w) -> Tensor {
    return sum(vmap(
        [&](const Tensor& x) {
          return cond(
              isnan(sum(x)), [&] { return sum(w); }, [&] { return sum(w * tanh(x) * w); });
        },
        batch_)(nan));
  };
  const Tensor w = random_normal({in_}, f64);
  EXPECT_TRUE(all(isfinite(run(grad(loss))(w))).item<bool>());
  EXPECT_TRUE(all(isfinite(run(grad(
                      [&](const Tensor& w) -> Tensor { return sum(square(grad(loss)(w))); }))(w)))
                  .item<bool>());
}

TEST_P(VmapBranchesTest, BranchesInLoopsWithFinishedRowsAgreeWithMap) {
  const Dim time("time", tensor({3, 1, 0, 2, 3}, {batch_}));
  const Tensor x = random_normal({batch_, time, in_}, f64);
  expect_as_map(
      [&](const Apply& apply, const Tensor& x) {
        return scan(Scan{.spatial_dim = time,
                         .initial = zeros({batch_, in_}, f64),
                         .xs = x,
                         .body =
                             [&](const Tensor& x, const Tensor& s) {
                               const Tensor next = apply(
                                   [&](const Tensor& row) {
                                     return cond(
                                         sum(row) > 0.0, [&] { return sin(row) * 0.7; },
                                         [&] { return row * row * 0.3; });
                                   },
                                   x + s);
                               return std::pair{next, transpose(next, {batch_, in_})};
                             }})
            .ys;
      },
      x, batch_);
  expect_as_map(
      [&](const Tensor& x) {
        return while_loop([](const Tensor& s) { return sum(square(s)) > 0.1; },
                          [](const Tensor& s) {
                            return cond(
                                sum(s) > 0.0, [&] { return sin(s) * 0.7; },
                                [&] { return s * 0.5; });
                          },
                          x);
      },
      rows(3), batch_);
}

TEST_P(VmapBranchesTest, BranchesOverNoRowsGiveEmptyResults) {
  const Dim none("none", 0);
  const Tensor x = zeros({none, in_}, f64);
  const auto row = [&](const Tensor& x) {
    return cond(
        sum(x) > 0.0, [&] { return tanh(x) * sum(x); }, [&] { return x * x; });
  };
  const Function f = [&](const Tensor& x) -> Tensor { return vmap(row, x.dim("none"))(x); };
  EXPECT_EQ(run(f)(x).type(), x.type());
  EXPECT_EQ(run(slope(f))(x).type(), x.type());
}

TEST_P(VmapBranchesTest, OneTraceServesAllNumbersOfRows) {
  const auto row = [](const Tensor& x) {
    return cond(
        sum(x) > 0.0, [&] { return tanh(x) * sum(x); }, [&] { return x * x; });
  };
  const Function f = [&](const Tensor& x) -> Tensor { return vmap(row, x.dim("batch"))(x); };
  const auto here = run(slope(f));
  for (const int positive : {0, 1, 3, 5}) {
    const Tensor x = rows(positive);
    expect_all_close(here(x), slope([&](const Tensor& x) -> Tensor {
                       return map(row, x, {.spatial_dim = batch_});
                     })(x));
  }
  EXPECT_EQ(here.trace_count(), 1);
}

TEST_P(VmapBranchesTest, ArraysOfRowsAreStillComputedForAllRows) {
  const Tensor x = reshape(rows(3), std::vector<std::int64_t>{5, 3});
  expect_as_map(
      [](const Tensor& x) {
        return cond(
            sum(x) > 0.0,
            [&] {
              return scan(Scan{.initial = zeros({}, f64),
                               .xs = x,
                               .body =
                                   [](const Tensor& x, const Tensor& s) {
                                     const Tensor next = tanh(s + x);
                                     return std::pair{next * next, next};
                                   },
                               .return_tensor_arrays = std::true_type{}})
                  .ys.stack();
            },
            [&] { return x * x; });
      },
      x);
}

TEST_P(VmapBranchesTest, OnlyTakenRowsCauseEffects) {
  const auto row = [](const Tensor& x) {
    return cond(
        x > 0.0, [&] { return print(check_numerics(sqrt(x), "root"), "root"); },
        [&] {
          assert_that(x > -5.0, "x is above -5");
          return x;
        });
  };
  const Function f = [&](const Tensor& x) -> Tensor { return vmap(row, x.dim("batch"))(x); };
  const auto here = run(f);
  testing::internal::CaptureStdout();
  here(tensor({4.0, -2.0, 9.0, -1.0, 16.0}, {batch_}, f64));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "root: f64[taken=3] [2. 3. 4.]\n");
  testing::internal::CaptureStdout();
  EXPECT_THROW(here(tensor({4.0, -2.0, 9.0, -6.0, 16.0}, {batch_}, f64)), AssertionError);
  testing::internal::GetCapturedStdout();
}

REEL_IN_EVERY_MODE(VmapBranchesTest);

}  // namespace
}  // namespace reel
