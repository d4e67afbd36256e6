// Bodies of small products and short chains, with calls that a plan prepares: the bits of single
// ops.
#include <limits>
#include <random>

#include "reel/tests/gradients.h"
#include "reel/tests/threads.h"
#include "reel/tests/trace/plan/explained.h"

namespace reel {
namespace {

constexpr Executor kExecutors[] = {Executor::plan, Executor::interpreter, Executor::dataflow};

/// Expects f to have the bits of `expected` in an executor, on one thread and on three.
template <class F, class... Args>
void expect_bits(const TreeLeaves& expected, Executor executor, const F& f, const Args&... args) {
  for (const int count : {1, 3}) {
    SCOPED_TRACE(str("executor ", static_cast<int>(executor), ", ", count, " threads"));
    const Threads threads(count);
    const auto traced = jit(f, {.executor = executor});
    for (int call = 0; call < 2; ++call) {
      const TreeLeaves actual = flatten(traced(args...));
      ASSERT_EQ(actual.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i)
        expect_same_bits(actual[i].tensor, expected[i].tensor);
    }
  }
}

struct Weights {
  Tensor into, bias, out, start;
};

/// A body drawn at random: its sizes, layouts of matrices, and ops.
struct DrawnBody {
  DType dtype;
  std::int64_t rows, states, hidden;  ///< rows: 0 for none
  bool turns_into, turns_out, has_slices;
  int repeats, activation;

  explicit DrawnBody(unsigned seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned limit) { return static_cast<int>(random() % limit); };
    const auto one_of = [&](std::initializer_list<std::int64_t> sizes) {
      return sizes.begin()[below(static_cast<unsigned>(sizes.size()))];
    };
    dtype = below(3) ? f32 : f64;
    rows = one_of({0, 0, 1, 2, 3, 4});
    states = one_of({1, 2, 3, 5, 8, 16, 17});
    hidden = one_of({1, 2, 4, 7, 16, 20, 33});
    turns_into = below(2), turns_out = below(2), has_slices = below(2);
    repeats = 1 + below(3);
    activation = below(4);
  }
  std::string text() const {
    return str(dtype, ' ', rows, " rows, ", states, " states, ", hidden, " hidden, turned ",
               turns_into, turns_out, ", slices ", has_slices, ", repeats ", repeats,
               ", activation ", activation);
  }

  Tensor activated(const Tensor& x) const {
    return activation == 0   ? tanh(x)
           : activation == 1 ? sigmoid(x)
           : activation == 2 ? maximum(x, -0.1 * x)
                             : sin(x);
  }
  auto function() const {
    return [*this](const Weights& at, const Tensor& xs) {
      const Dim state = at.start.dims().back(), hidden = at.bias.dims()[0];
      const auto step = [&](const Tensor& x, const Tensor& y) {
        Tensor next = y;
        for (int i = 0; i < repeats; ++i) {
          const Tensor made = activated(matmul(next, at.into, state) + at.bias);
          next = next + 0.1 * matmul(made, at.out, hidden);
        }
        if (has_slices) next = next + x;
        return std::pair{next, next};
      };
      const auto result =
          scan(Scan{.spatial_dim = xs.dims()[0], .initial = at.start, .xs = xs, .body = step});
      return std::pair{result.ys, result.state};
    };
  }
  std::pair<Weights, Tensor> arguments() const {
    const Dim state("state", states), inner("hidden", hidden),
        row("row", std::max<std::int64_t>(rows, 1));
    const auto drawn = [&](const Dims& dims) { return cast(0.4 * random_normal(dims), dtype); };
    const Dims of_state = rows ? Dims{row, state} : Dims{state};
    Dims of_slices{Dim("time", 35)};
    of_slices.insert(of_slices.end(), of_state.begin(), of_state.end());
    return {Weights{drawn(turns_into ? Dims{inner, state} : Dims{state, inner}), drawn({inner}),
                    drawn(turns_out ? Dims{state, inner} : Dims{inner, state}), drawn(of_state)},
            drawn(of_slices)};
  }
};

TEST(ShortInstructionsTest, DrawnBodiesHaveTheBitsOfEagerMode) {
  manual_seed(7);
  for (unsigned seed = 0; seed < 40; ++seed) {
    const DrawnBody body(seed);
    SCOPED_TRACE(str("seed ", seed, ": ", body.text()));
    const auto f = body.function();
    const auto [weights, xs] = body.arguments();
    const TreeLeaves eager = flatten(f(weights, xs));
    for (const Executor executor : kExecutors) expect_bits(eager, executor, f, weights, xs);
  }
}

/// Sums of gradients over iterations may differ between executors in their last bits, which the
/// iterations of f32 enlarge.
TEST(ShortInstructionsTest, GradientsOfDrawnBodiesHaveOneResultOnAnyNumberOfThreads) {
  manual_seed(8);
  for (unsigned seed = 100; seed < 125; ++seed) {
    const DrawnBody body(seed);
    SCOPED_TRACE(str("seed ", seed, ": ", body.text()));
    const auto [weights, xs] = body.arguments();
    const auto loss = [&, xs = xs](const Weights& at) {
      const auto [all, last] = body.function()(at, xs);
      return sum(square(all)) + sum(last);
    };
    const auto gradient = grad(loss);
    const TreeLeaves eager = flatten(gradient(weights));
    for (const Executor executor : kExecutors) {
      const Threads one(1);
      const TreeLeaves traced = flatten(jit(gradient, {.executor = executor})(weights));
      expect_bits(traced, executor, gradient, weights);
      for (std::size_t i = 0; i < eager.size() && body.dtype == f64; ++i)
        expect_all_close(traced[i].tensor, eager[i].tensor, 1e-8);
    }
  }
}

TEST(ShortInstructionsTest, GradientsOfF64AgreeWithDifferences) {
  manual_seed(9);
  const Dim state("state", 2), hidden("hidden", 5), time("time", 6);
  const auto drawn = [&](const Dims& dims) { return cast(0.5 * random_normal(dims), f64); };
  const Weights at{drawn({state, hidden}), drawn({hidden}), drawn({hidden, state}), drawn({state})};
  const auto loss = [=](const Weights& at) {
    const auto step = [&](const Tensor& y) {
      const Tensor next =
          y + 0.1 * matmul(tanh(matmul(y, at.into, state) + at.bias), at.out, hidden);
      return std::pair{next, next};
    };
    return sum(square(scan(Scan{.spatial_dim = time, .initial = at.start, .body = step}).ys));
  };
  expect_gradient_of(jit(loss), at, jit(grad(loss))(at));
}

/// A plan that is bound to other Dims of the same sizes, and one that is resized.
TEST(ShortInstructionsTest, OtherDimsAndSizesHaveTheBitsOfEagerMode) {
  manual_seed(10);
  const auto f = [](const Weights& at) {
    const Dim state = at.start.dims()[0], hidden = at.bias.dims()[0];
    const auto body = [&](const Tensor&, const Tensor& y) {
      return y + matmul(tanh(matmul(y, at.into, state) + at.bias), at.out, hidden);
    };
    return fori_loop(0, 9, body, at.start);
  };
  const auto traced = jit(f);
  for (const int width : {16, 16, 3, 17, 16, 80}) {
    const Dim state("state", 2), hidden("hidden", width);
    const Weights at{0.3 * random_normal({state, hidden}), random_normal({hidden}),
                     0.3 * random_normal({hidden, state}), random_normal({state})};
    SCOPED_TRACE(str(width, " hidden"));
    expect_same_bits(traced(at), f(at));
  }
}

/// Infinite weights give NaN where they meet zeros, and nowhere else.
TEST(ShortInstructionsTest, InfiniteElementsKeepTheirColumns) {
  const Dim state("state", 2), hidden("hidden", 3);
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor into = tensor({1., infinity, 0., 2., 1., 3.}, {state, hidden});
  const auto f = [&](const Tensor& y) {
    const auto body = [&](const Tensor&, const Tensor& y) {
      return 0.5 * matmul(matmul(y, into, state), into, hidden);
    };
    return fori_loop(0, 2, body, y);
  };
  const Tensor y = tensor({1., 0.}, {state});
  expect_same_bits(jit(f)(y), f(y));
}

}  // namespace
}  // namespace reel
