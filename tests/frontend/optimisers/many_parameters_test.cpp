// Steps of optimisers over many parameters: in place if traced, with the bits of eager steps.
#include <gtest/gtest.h>

#include <thread>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using List = std::vector<Tensor>;

/// Parameters: equal shapes in a row, another shape between them, an empty parameter, and some with
/// more elements than a tile.
List draw(std::uint64_t seed, DType dtype = f32) {
  manual_seed(seed);
  List result;
  for (const Dims& dims : {Dims{1000},
                           {1000},
                           {1000},
                           {3, 5},
                           {1000},
                           {1},
                           {0},
                           {5000},
                           {5000},
                           {64, 40},
                           {1000},
                           Dims{}})
    result.push_back(cast(random_normal(dims), dtype));
  return result;
}
/// Returns copies, which share no memory with the tensors.
List copies(const List& of) {
  List result;
  for (const Tensor& x : of) result.push_back(x * 1.);
  return result;
}
void expect_equal(const List& a, const List& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) expect_same_bits(a[i], b[i]);
}

template <class Optimiser>
struct State {
  List parameters;
  Optimiser optimiser;
};
const auto step = [](auto state, const List& gradient) {
  state.optimiser.update(state.parameters, gradient);
  return state;
};
List all_of(const auto& state) { return tensors_of(flatten(state)); }

Adam<List> adam(const List& p) { return Adam<List>(p); }
AdamW<List> adamw(const List& p) { return AdamW<List>(p, {.clip_norm = 1}); }
Sgd<List> sgd(const List& p) { return Sgd<List>(p, {.momentum = 0.9, .nesterov = true}); }
RmsProp<List> rmsprop(const List& p) {
  return RmsProp<List>(p, {.momentum = 0.5, .centered = true});
}

class ManyParametersTest : public InEveryMode {
 protected:
  /// Expects the bits of eager steps from three steps that move their state in.
  template <class Make>
  void expect_eager_bits(const Make& make, DType dtype) const {
    const List start = draw(1, dtype);
    State eager{copies(start), make(start)}, moved{copies(start), make(start)};
    const auto traced =
        jit([](const decltype(eager)& state, const List& g) { return step(state, g); },
            options_of(GetParam()));
    for (std::uint64_t i = 0; i < 3; ++i) {
      const List gradient = draw(10 + i, dtype), kept = copies(gradient);
      eager = step(eager, gradient);
      moved = is_eager() ? step(std::move(moved), gradient) : traced(std::move(moved), gradient);
      expect_equal(gradient, kept);
      expect_equal(all_of(moved), all_of(eager));
    }
  }
};
REEL_IN_EVERY_MODE(ManyParametersTest);

TEST_P(ManyParametersTest, StepsOfAdamHaveTheBitsOfEagerSteps) {
  expect_eager_bits(adam, f32);
  expect_eager_bits(adam, f64);
}
TEST_P(ManyParametersTest, StepsOfSgdAndRmsPropHaveTheBitsOfEagerSteps) {
  expect_eager_bits(sgd, f32);
  expect_eager_bits(rmsprop, f32);
}

TEST_P(ManyParametersTest, AClippedStepIsCloseToTheEagerStep) {
  const List start = draw(1), gradient = draw(2);
  const State state{start, adamw(start)};
  const List traced = all_of(run(step)(state, gradient)), eager = all_of(step(state, gradient));
  for (std::size_t i = 0; i < eager.size(); ++i) expect_all_close(traced[i], eager[i], 1e-5);
}

TEST_P(ManyParametersTest, ATensorThatIsTwoParametersIsUpdatedAsTwo) {
  List start = draw(1);
  start[1] = start[0];
  start[4] = start[2];
  const List before = copies(start), gradient = draw(2);
  State eager{copies(start), adam(start)}, shared{start, adam(start)};
  const Tensor held = start[2];
  start.clear();
  const auto traced =
      jit([](const State<Adam<List>>& state, const List& g) { return step(state, g); },
          options_of(GetParam()));
  eager = step(eager, gradient);
  shared = is_eager() ? step(std::move(shared), gradient) : traced(std::move(shared), gradient);
  expect_equal(all_of(shared), all_of(eager));
  expect_same_bits(held, before[2]);
}

TEST_P(ManyParametersTest, GradientsPassThroughAStep) {
  const List start = draw(1), gradient = draw(2);
  const auto loss = [&](const List& p) {
    State<Sgd<List>> next = step(State<Sgd<List>>{p, sgd(p)}, gradient);
    next = step(next, p);
    Tensor total = scalar(0.);
    for (const Tensor& x : next.parameters) total = total + sum(square(x));
    return total;
  };
  const List expected = grad(loss)(start), found = run(grad(loss))(start);
  for (std::size_t i = 0; i < expected.size(); ++i) expect_all_close(found[i], expected[i], 1e-5);
}

TEST_P(ManyParametersTest, AStepOfABatchOfModelsIsABatchOfSteps) {
  const List a{random_normal({7}), random_normal({7}), random_normal({2, 2})};
  const List b{random_normal({7}), random_normal({7}), random_normal({2, 2})};
  const auto stepped = [](const List& p) {
    return step(State<Adam<List>>{p, adam(p)}, p).parameters;
  };
  List both;
  for (std::size_t i = 0; i < a.size(); ++i) both.push_back(stack(Tensors{a[i], b[i]}));
  const List found = run(vmap(stepped))(both);
  const List of_a = stepped(a), of_b = stepped(b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    expect_all_close(found[i][0], of_a[i]);
    expect_all_close(found[i][1], of_b[i]);
  }
}

TEST(ManyParametersInPlaceTest, AStepUpdatesAllThatNothingElseHolds) {
  const List start = draw(1), gradient = draw(2);
  const auto traced =
      jit([](const State<Adam<List>>& state, const List& g) { return step(state, g); });
  State state{copies(start), adam(start)};
  state = traced(std::move(state), gradient);
  for (int i = 0; i < 2; ++i) {
    std::vector<const void*> before;
    for (const Tensor& x : state.parameters) before.push_back(x.data<void>());
    const Tensor held = state.parameters[2];
    const Tensor copy = held * 1.;
    state = traced(std::move(state), gradient);
    for (std::size_t k = 0; k < before.size(); ++k) {
      const bool is_same = state.parameters[k].data<void>() == before[k];
      EXPECT_EQ(is_same, k != 2) << k;
    }
    expect_same_bits(held, copy);
  }
  EXPECT_NE(
      traced.explain().find(
          "in place: argument 0.parameters.0, argument 0.parameters.1, argument 0.parameters.3"),
      std::string::npos)
      << traced.explain();
  EXPECT_EQ(traced.trace_count(), 1);
}

/// The equal updates of a plan share one program; the plans of two threads share nothing.
TEST(ManyParametersInPlaceTest, TwoThreadsTakeStepsOfTheirOwn) {
  const List start = draw(1), gradient = draw(2);
  List results[2];
  const auto work = [&](List& result) {
    const auto traced =
        jit([](const State<Adam<List>>& state, const List& g) { return step(state, g); });
    State state{copies(start), adam(start)};
    for (int i = 0; i < 20; ++i) state = traced(std::move(state), gradient);
    result = all_of(state);
  };
  std::thread other(work, std::ref(results[1]));
  work(results[0]);
  other.join();
  State eager{copies(start), adam(start)};
  for (int i = 0; i < 20; ++i) eager = step(std::move(eager), gradient);
  expect_equal(results[0], all_of(eager));
  expect_equal(results[1], all_of(eager));
}

}  // namespace
}  // namespace reel
