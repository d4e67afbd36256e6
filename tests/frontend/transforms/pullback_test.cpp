// Pullbacks of vjp, called in bodies, branches and traces inside the trace in which they were made:
// values, first and second derivatives.
#include <functional>
#include <utility>
#include <vector>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"
#include "reel/tests/occurrences.h"

namespace reel {
namespace {

using In = std::vector<Tensor>;
using Pullback = std::function<Tensor(const Tensor&)>;
/// (x, w) -> y, all of three elements.
using Function = std::function<Tensor(const Tensor& x, const Tensor& w)>;
/// (pullback, cotangents) -> the sum over i of (i + 1) times the pullback of cotangent i.
using Place = std::function<Tensor(const Pullback& pull, const Tensor& cotangents)>;

Tensor weighted(const Tensor& i, const Tensor& x) { return cast(i + 1, f64) * x; }
Tensor nothing() { return zeros({3}, f64); }

/// The reference: three calls outside of any body.
Tensor in_place(const Pullback& pull, const Tensor& cotangents) {
  Tensor total = nothing();
  for (int i = 0; i < 3; ++i)
    total = total + weighted(scalar(i), pull(gather(cotangents, scalar(i), 0)));
  return total;
}

Place in_fori_loop(const ForiOptions& options) {
  return [options](const Pullback& pull, const Tensor& cotangents) {
    const auto body = [&](const Tensor& i, const Tensor& total) {
      return total + weighted(i, pull(gather(cotangents, i, 0)));
    };
    return fori_loop(0, 3, body, nothing(), options);
  };
}

Tensor in_map(const Pullback& pull, const Tensor& cotangents) {
  const Tensor weights = tensor({1, 1, 1, 2, 2, 2, 3, 3, 3}, {Dim(9)}, f64);
  return sum(map(pull, cotangents) * reshape(weights, {3, 3}), 0);
}

Tensor in_reversed_scan(const Pullback& pull, const Tensor& cotangents) {
  using State = std::pair<Tensor, Tensor>;
  const auto body = [&](const Tensor& cotangent, const State& s) {
    return std::pair{None{}, State{s.first + s.second * pull(cotangent), s.second - 1}};
  };
  return scan(Scan{.initial = State{nothing(), scalar(3, f64)},
                   .xs = cotangents,
                   .body = body,
                   .reverse = true})
      .state.first;
}

Tensor in_while_loop(const Pullback& pull, const Tensor& cotangents) {
  const auto cond = [&](const Tensor& i, const Tensor&) {
    return logical_and(i < 3, sum(pull(gather(cotangents, i * 0, 0))) < 1e9);
  };
  const auto body = [&](const Tensor& i, const Tensor& total) {
    return std::tuple{i + 1, total + weighted(i, pull(gather(cotangents, i, 0)))};
  };
  return std::get<1>(while_loop(cond, body, std::tuple{scalar(0), nothing()}));
}

Tensor in_foldl(const Pullback& pull, const Tensor& cotangents) {
  using Step = std::pair<Tensor, Tensor>;
  const auto add = [&](const Tensor& total, const Step& step) {
    return total + step.second * pull(step.first);
  };
  return foldl(add, Step{cotangents, tensor({1, 2, 3}, {Dim(3)}, f64)}, nothing());
}

Tensor in_nested_loops(const Pullback& pull, const Tensor& cotangents) {
  return fori_loop(
      0, 3,
      [&](const Tensor& i, const Tensor& total) {
        const auto add = [&](const Tensor&, const Tensor& s) {
          return s + pull(gather(cotangents, i, 0));
        };
        return total + fori_loop(0, i + 1, add, nothing());
      },
      nothing());
}

Tensor in_branches_of_a_loop(const Pullback& pull, const Tensor& cotangents) {
  return fori_loop(
      0, 3,
      [&](const Tensor& i, const Tensor& total) {
        return cond(
            equal(i, 1), [&] { return total + 2 * pull(gather(cotangents, i, 0)); },
            [&] { return total + weighted(i, pull(gather(cotangents, i, 0))); });
      },
      nothing());
}

Tensor in_a_branch(const Pullback& pull, const Tensor& cotangents) {
  return cond(
      sum(cotangents) < 1e9, [&] { return in_place(pull, cotangents); },
      [&] { return pull(nothing()); });
}

Tensor in_checkpoint(const Pullback& pull, const Tensor& cotangents) {
  return checkpoint([&](const Tensor& c) { return in_place(pull, c); })(cotangents);
}
Tensor in_jit(const Pullback& pull, const Tensor& cotangents) {
  return jit([&](const Tensor& c) { return in_place(pull, c); })(cotangents);
}
Tensor in_a_loop_in_jit(const Pullback& pull, const Tensor& cotangents) {
  return jit([&](const Tensor& c) { return in_fori_loop({})(pull, c); })(cotangents);
}
/// A pullback is linear, so it is its own tangent.
Tensor in_jvp(const Pullback& pull, const Tensor& cotangents) {
  const auto body = [&](const Tensor& i, const Tensor& total) {
    return total + jvp(pull, nothing(), weighted(i, gather(cotangents, i, 0))).second;
  };
  return fori_loop(0, 3, body, nothing());
}

const SavingRule kRecomputeAll = [](const StepValue&) { return Saving::recompute; };

const std::vector<Place>& plain_places() {
  static const std::vector<Place> all{
      in_map,        in_fori_loop({}), in_reversed_scan,      in_while_loop,
      in_foldl,      in_nested_loops,  in_branches_of_a_loop, in_a_branch,
      in_checkpoint, in_jit,           in_a_loop_in_jit,      in_jvp};
  return all;
}
const std::vector<Place>& places_under_policies() {
  static const std::vector<Place> all{
      in_fori_loop({.checkpoint = Checkpoint::every(1)}),
      in_fori_loop({.checkpoint = Checkpoint::every(2)}),
      in_fori_loop({.checkpoint = Checkpoint::budget(1)}),
      in_fori_loop({.checkpoint = Checkpoint().where(kRecomputeAll)}),
      in_fori_loop({.swap_memory = Spill{.bytes_in_memory = 0}})};
  return all;
}

class PullbackTest : public InEveryMode {
 protected:
  const Tensor x = tensor({.5, -.3, .8}, {Dim(3)}, f64);
  const Tensor w = tensor({1.1, .7, -.4}, {Dim(3)}, f64);
  const Tensor cotangents =
      reshape(tensor({.3, .1, -.2, 1., .5, -.7, .2, .9, .4}, {Dim(9)}, f64), {3, 3});

  /// Returns a function (x, w, cotangents) -> a scalar that makes the pullback and calls it at the
  /// place.
  static auto total(const Function& f, const Place& place) {
    return [f, place](const In& in) {
      const auto of_x = [&](const Tensor& x) { return f(x, in[1]); };
      const auto [y, pull] = vjp(of_x, in[0]);
      return sum(sin(place(pull, in[2]))) + sum(y);
    };
  }
  /// The sum of the squares of f's gradient, and beside it f's value and its gradient: so that one
  /// recording shows derivatives of three orders.
  template <class F>
  static auto squares_of_gradient(F f) {
    return [f](const In& in) {
      const auto [value, first] = value_and_grad(f)(in);
      Tensor total = scalar(0, f64);
      for (const Tensor& g : first) total = total + sum(square(g));
      return std::pair{total, std::pair{value, first}};
    };
  }
  static void expect_close(const In& actual, const In& expected, const char* what) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, what);
    for (std::size_t i = 0; i < expected.size(); ++i)
      expect_all_close(actual[i], expected[i], 1e-11);
  }
  /// Most of the time goes into passes over graphs of second gradients. At each place, every other
  /// mode takes the second gradient inside of the jitted function, and the rest around it. A number
  /// of iterations in flight changes no graph, and is tested inside alone.
  bool is_inside(std::size_t place) const {
    const auto mode = static_cast<std::size_t>(GetParam());
    return (place + mode) % 2 == 0;
  }
  static bool is_one_of_many_numbers() {
    return GetParam() == RunMode::dataflow1 || GetParam() == RunMode::dataflow2 ||
           GetParam() == RunMode::dataflow32;
  }

  void expect_as_in_place(const Function& f, const std::vector<Place>& places) const {
    const In in{x, w, cotangents};
    const auto plainly = total(f, in_place);
    const auto [squares, second] = value_and_grad(squares_of_gradient(plainly))(in);
    const auto& [value, first] = squares.second;
    expect_gradient_of(plainly, in, first, 1e-6);
    const auto [y, pull] = vjp([&](const Tensor& x) { return f(x, w); }, x);
    const Pullback made_before = pull;
    for (std::size_t k = 0; k < places.size(); ++k) {
      SCOPED_TRACE(str("place ", k));
      const auto here = total(f, places[k]);
      const auto of_cotangents = [&](const Tensor& c) {
        return sum(sin(places[k](made_before, c))) + sum(y);
      };
      if (is_inside(k)) {
        const auto [inside, gradient] = run(value_and_grad(squares_of_gradient(here)))(in);
        expect_close({inside.second.first}, {value}, "value");
        expect_close(inside.second.second, first, "gradient inside");
        expect_close(gradient, second, "second gradient inside");
        const auto [value_of, gradient_of] = run(value_and_grad(of_cotangents))(cotangents);
        expect_close({value_of}, {value}, "made eagerly: value");
        expect_close({gradient_of}, {first[2]}, "made eagerly: inside");
        if (!is_one_of_many_numbers()) expect_close(grad(run(here))(in), first, "gradient around");
      } else if (is_one_of_many_numbers()) {
        const auto [inside, gradient] = run(value_and_grad(here))(in);
        expect_close({inside}, {value}, "value");
        expect_close(gradient, first, "gradient inside");
      } else {
        const auto [around, gradient] = value_and_grad(run(squares_of_gradient(here)))(in);
        expect_close({around.second.first}, {value}, "value");
        expect_close(around.second.second, first, "gradient inside of one around");
        expect_close(gradient, second, "second gradient around");
        expect_close({grad(run(of_cotangents))(cotangents)}, {first[2]}, "made eagerly: around");
      }
    }
  }
  void expect_right_everywhere(const Function& f) const {
    expect_as_in_place(f, plain_places());
    expect_as_in_place(f, places_under_policies());
  }
};

TEST_P(PullbackTest, PullbackOfElementwiseOpsIsTheSameInEveryPlace) {
  expect_right_everywhere([](const Tensor& x, const Tensor& w) { return tanh(x * w) + x * x * w; });
}
TEST_P(PullbackTest, PullbackOfALinearFunctionIsTheSameInEveryPlace) {
  expect_as_in_place([](const Tensor& x, const Tensor&) { return 2 * x; }, plain_places());
}

Tensor loop_of(const Tensor& x, const Tensor& w, const ForiOptions& options = {}) {
  return fori_loop(
      0, 3, [&](const Tensor&, const Tensor& s) { return tanh(s * w) + x; }, x, options);
}
TEST_P(PullbackTest, PullbackOfALoopIsTheSameInEveryPlace) {
  expect_right_everywhere([](const Tensor& x, const Tensor& w) { return loop_of(x, w); });
}
TEST_P(PullbackTest, PullbackOfALoopWithCheckpointsIsTheSameInEveryPlace) {
  for (const Checkpoint& policy :
       {Checkpoint::every(1), Checkpoint::every(2), Checkpoint::budget(1)})
    expect_as_in_place(
        [policy](const Tensor& x, const Tensor& w) {
          return loop_of(x, w, {.checkpoint = policy});
        },
        {in_map, in_fori_loop({.checkpoint = Checkpoint::every(2)}), in_a_branch, in_jit});
}
TEST_P(PullbackTest, PullbackOfALoopUnderARuleIsTheSameInEveryPlace) {
  expect_as_in_place(
      [](const Tensor& x, const Tensor& w) {
        return loop_of(x, w, {.checkpoint = Checkpoint().where(kRecomputeAll)});
      },
      {in_map, in_fori_loop({.checkpoint = Checkpoint::every(1)}), in_a_loop_in_jit});
}
TEST_P(PullbackTest, PullbackOfALoopThatSpillsIsTheSameInEveryPlace) {
  expect_as_in_place(
      [](const Tensor& x, const Tensor& w) {
        return loop_of(x, w, {.swap_memory = Spill{.bytes_in_memory = 0}});
      },
      {in_map, in_fori_loop({.swap_memory = Spill{.bytes_in_memory = 0}}), in_a_loop_in_jit});
}
TEST_P(PullbackTest, PullbackOfAWhileLoopIsTheSameInEveryPlace) {
  expect_right_everywhere([](const Tensor& x, const Tensor& w) {
    const auto body = [&](const Tensor& i, const Tensor& s) {
      return std::tuple{i + 1, tanh(s * w) * x + s};
    };
    return std::get<1>(while_loop([](const Tensor& i, const Tensor&) { return i < 3; }, body,
                                  std::tuple{scalar(0), x}));
  });
}
TEST_P(PullbackTest, PullbackOfANestedScanIsTheSameInEveryPlace) {
  expect_as_in_place(
      [](const Tensor& x, const Tensor& w) {
        const auto body = [&](const Tensor& element, const Tensor& s) {
          const Tensor inner = fori_loop(
              0, 2, [&](const Tensor&, const Tensor& t) { return tanh(t * w + s); }, s * x);
          const Tensor next = cond(
              element > 0, [&] { return inner; }, [&] { return inner * x; });
          return std::pair{sum(next) * element, next};
        };
        const auto result = scan(Scan{.initial = x, .xs = x * w, .body = body});
        return result.ys * result.state;
      },
      plain_places());
}
TEST_P(PullbackTest, PullbackOfABranchIsTheSameInEveryPlace) {
  for (const double limit : {0., 9.})
    expect_as_in_place(
        [limit](const Tensor& x, const Tensor& w) {
          return cond(
              sum(x) > limit, [&] { return tanh(x * w) * x; }, [&] { return exp(x) * w; });
        },
        plain_places());
}
TEST_P(PullbackTest, PullbackOfALoopOverAnArrayIsTheSameInEveryPlace) {
  expect_as_in_place(
      [](const Tensor& x, const Tensor& w) {
        const auto body = [&](const Tensor& i, const TensorArray& all) {
          return all.write(i, weighted(i, tanh(x * w)));
        };
        const TensorArray all =
            fori_loop(0, 3, body, TensorArray(TensorType{f64, {3}}, {.size = 3}));
        return sum(square(all.stack()), 0);
      },
      plain_places());
}
TEST_P(PullbackTest, PullbackOfALoopWithADroppedArrayIsTheSameInEveryPlace) {
  const auto arrays = [](const Tensor& x, const Tensor& w, const ForiOptions& options) {
    using State = std::pair<TensorArray, Tensor>;
    const auto body = [&](const Tensor&, const State& s) {
      return State{s.first.push_back(sin(s.second)), tanh(s.second * w) + x};
    };
    return fori_loop(0, 2, body, State{TensorArray(TensorType{f64, {3}}, {.size = 0}), x}, options)
        .second;
  };
  const std::vector<Place> places{in_map, in_fori_loop({.checkpoint = Checkpoint::every(1)}),
                                  in_a_branch, in_a_loop_in_jit};
  for (const ForiOptions& options :
       {ForiOptions{}, ForiOptions{.checkpoint = Checkpoint().where(kRecomputeAll)},
        ForiOptions{.checkpoint = Checkpoint::every(1),
        .swap_memory = Spill{.bytes_in_memory = 0}}})
    expect_as_in_place([&](const Tensor& x, const Tensor& w) { return arrays(x, w, options); },
                       places);
  expect_as_in_place(
      [&](const Tensor& x, const Tensor& w) {
        const auto body = [&](const Tensor&, const Tensor& s) { return arrays(s, w, {}) + x; };
        return fori_loop(0, 2, body, x, {.checkpoint = Checkpoint::every(1)});
      },
      places);
}
TEST_P(PullbackTest, PullbackOfACustomGradientIsTheSameInEveryPlace) {
  using Residuals = std::tuple<Tensor, Tensor, Tensor>;
  const auto f = custom_vjp(
      [](const Tensor& x, const Tensor& w) {
        const Tensor y = tanh(x * w);
        return std::pair{y, Residuals{x, w, y}};
      },
      [](const Residuals& residuals, const Tensor& cotangent) {
        const auto& [x, w, y] = residuals;
        const Tensor inner = (1 - square(y)) * cotangent;
        return std::tuple{inner * w, inner * x};
      });
  expect_as_in_place([f](const Tensor& x, const Tensor& w) { return f(x, w) * x; }, plain_places());
}
TEST_P(PullbackTest, PullbackOfACheckpointedFunctionIsTheSameInEveryPlace) {
  expect_as_in_place(
      [](const Tensor& x, const Tensor& w) {
        return checkpoint([&](const Tensor& x) { return loop_of(x, w) * x; })(x) * x;
      },
      plain_places());
}
TEST_P(PullbackTest, PullbackOfAJittedFunctionIsTheSameInEveryPlace) {
  for (const Checkpoint& policy : {Checkpoint(), Checkpoint::every(2)}) {
    const auto f = jit([policy](const Tensor& x, const Tensor& w) {
      return loop_of(x, w, {.checkpoint = policy}) * x;
    });
    expect_as_in_place([f](const Tensor& x, const Tensor& w) { return f(x, w) * x; },
                       plain_places());
  }
}
TEST_P(PullbackTest, PullbackOfAGradientOrTangentIsTheSameInEveryPlace) {
  expect_as_in_place(
      [](const Tensor& x, const Tensor& w) {
        return grad([&](const Tensor& x) { return sum(loop_of(x, w) * x); })(x);
      },
      {in_map, in_nested_loops, in_a_branch, in_jit});
  expect_as_in_place(
      [](const Tensor& x, const Tensor& w) {
        return jvp([&](const Tensor& x) { return loop_of(x, w) * x; }, x, w).second;
      },
      {in_map, in_nested_loops, in_a_branch, in_jit});
}
TEST_P(PullbackTest, PullbackReadsTheDrawsOfTheForwardPass) {
  const auto f = [](const Tensor& x) {
    return x * random_normal({3}, f64) * random_normal({3}, f64);
  };
  const auto all = [f](const Tensor& x) {
    const auto [y, pull] = vjp(f, x);
    return std::pair{y, map(pull, reshape(tensor({1, 0, 0, 0, 2, 0}, {Dim(6)}, f64), {2, 3}))};
  };
  manual_seed(5);
  const auto [y, rows] = run(all)(x);
  const std::vector<double> values = values_of(y), at = values_of(x);
  expect_values(rows, {values[0] / at[0], 0, 0, 0, 2 * values[1] / at[1], 0}, 1e-12);
}

/// Returns one row per element of f(x).
template <class F>
Tensor jacobian(const F& f, const Tensor& x) {
  const auto [y, pull] = vjp(f, x);
  const Tensor units = reshape(tensor({1, 0, 0, 0, 1, 0, 0, 0, 1}, {Dim(9)}, f64), {3, 3});
  return map(pull, units);
}

TEST_P(PullbackTest, JacobianAndHessianByMap) {
  const auto f = [](const Tensor& x) { return x * x * sum(x); };
  const auto product = [](const Tensor& x) { return prod(x) * sum(x); };
  const Tensor at = tensor({1, 2, 3}, {Dim(3)}, f64);
  // 2 x_i s on the diagonal, and x_i² everywhere.
  expect_values(run([&](const Tensor& x) { return jacobian(f, x); })(at),
                {13, 1, 1, 4, 28, 4, 9, 9, 45});
  const auto hessian = [&](const Tensor& x) { return jacobian(grad(product), x); };
  expect_values(run(hessian)(at), {12, 27, 20, 27, 6, 11, 20, 11, 4});
}

TEST_P(PullbackTest, PullbackOfATableGivesRowsInABody) {
  const auto f = [](const Tensor& rows) {
    const auto look_up = [](const EmbeddingTable& t) { return gather(t, tensor({1, 0, 1})); };
    const auto [y, pull] = vjp(look_up, EmbeddingTable(rows));
    const auto one = [pull = pull](const Tensor& cotangent) {
      const EmbeddingTable rows = pull(cotangent);
      EXPECT_TRUE(rows.is_sparse());
      return rows.to_dense();
    };
    return map(one, reshape(range(12, f64), {2, 3, 2}));
  };
  expect_values(run(f)(reshape(range(6, f64), {3, 2})), {2, 3, 4, 6, 0, 0, 8, 9, 16, 18, 0, 0});
}

TEST_P(PullbackTest, ALoopPrintsOnceHoweverOftenItsPullbackIsCalled) {
  const auto f = [](const Tensor& x) {
    const auto loop = [](const Tensor& x) {
      return fori_loop(
          0, 2, [&](const Tensor&, const Tensor& s) { return print(s, "state") * x; }, x);
    };
    const auto [y, pull] = vjp(loop, x);
    return map(pull, tensor({1., 2., 3.}));
  };
  testing::internal::CaptureStdout();
  expect_values(run(f)(scalar(2.)), {12, 24, 36});
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_EQ(occurrences("state", printed), 2) << printed;
}

REEL_IN_EVERY_MODE(PullbackTest);

TEST(PullbackGraphTest, ALoopRunsOnceHoweverOftenItsPullbackIsCalled) {
  const auto f = jit([](const Tensor& x, const Tensor& cotangents) {
    const auto [y, pull] = vjp([](const Tensor& x) { return loop_of(x, x); }, x);
    return std::pair{y, map(pull, cotangents)};
  });
  f(tensor({1., 2.}), ones({4, 2}));
  // The forward loop, and the map with the gradient loop in it.
  const std::string graph = str(f.graph());
  EXPECT_EQ(occurrences(" = loop(", graph), 3) << graph;
}

}  // namespace
}  // namespace reel
