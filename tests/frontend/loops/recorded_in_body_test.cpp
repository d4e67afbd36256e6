// Loops under a policy, and jitted functions, in the body of a scan with entries that finish one by
// one. Eager mode records them inside the body, where dims differ from the dims outside.
#include <gtest/gtest.h>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

Tensor ragged_input() {
  manual_seed(3);
  const Dim batch("batch", 3), time("time", tensor({1, 3, 2}, {batch}));
  return random_normal({batch, time}, f64);
}

class RecordedInBodyTest : public InEveryMode {
 protected:
  /// inner: (x, frame, state, policy) -> next state.
  template <class Inner>
  void expect_policies_change_nothing(const Inner& inner) const {
    const Tensor x = ragged_input();
    const auto f = [&](const Checkpoint& policy) {
      return run(value_and_grad([&inner, policy](const Tensor& x) {
        const auto body = [&](const Tensor& frame, const Tensor& h) {
          const Tensor next = inner(x, frame, h, policy);
          return std::pair{next, next};
        };
        return sum(square(scan(Scan{.spatial_dim = x.dim("time"),
                                    .initial = ones({x.dim("batch")}, f64),
                                    .xs = x,
                                    .body = body})
                              .ys));
      }))(x);
    };
    const auto expected = f({});
    for (const Checkpoint& policy : {Checkpoint::every(2), Checkpoint::budget(200)}) {
      const auto actual = f(policy);
      expect_same_bits(actual.first, expected.first);
      expect_same_bits(actual.second, expected.second);
    }
  }
};

TEST_P(RecordedInBodyTest, ALoopMayNameADimOfTheEntries) {
  expect_policies_change_nothing(
      [](const Tensor& x, const Tensor& frame, const Tensor& h, const Checkpoint& policy) {
        const auto row = [time = x.dim("time")](const Tensor& x, const Tensor& s) {
          return std::pair{None{}, s + sum(square(log_softmax(tanh(x), time)))};
        };
        const Tensor rows = scan(Scan{.spatial_dim = x.dim("batch"),
                                      .initial = scalar(0.0, f64),
                                      .xs = x,
                                      .body = row,
                                      .checkpoint = policy})
                                .state;
        return tanh(h * rows + frame);
      });
}

TEST_P(RecordedInBodyTest, EntriesOfALoopMayFinishOneByOne) {
  const Dim unit("unit", 2);
  expect_policies_change_nothing(
      [&](const Tensor&, const Tensor& frame, const Tensor& h, const Checkpoint& policy) {
        using State = std::pair<Tensor, Tensor>;
        const Tensor limit = tensor({1, 2}, {unit});
        const auto made =
            scan(Scan{.spatial_dim = Dim("steps"),
                      .cond_dims = {unit},
                      .initial = State{zeros({unit}, i32), expand(h, {unit, h.dim("batch")})},
                      .cond = [&](const State& s) { return s.first < limit; },
                      .body =
                          [&](const State& s) {
                            const Tensor next = tanh(s.second * frame);
                            return std::pair{next, State{s.first + 1, next}};
                          },
                      .checkpoint = policy});
        return sum(made.ys, {made.dim, unit});
      });
}

TEST_P(RecordedInBodyTest, AJittedFunctionMayNameADimOfTheEntries) {
  const Tensor x = ragged_input();
  const auto f = [&](const auto& form) {
    return run(value_and_grad([&form](const Tensor& x) {
      const Dim time = x.dim("time");
      const auto g = [&](const Tensor& x) { return sum(square(softmax(x, time)), {time}); };
      const auto body = [&](const Tensor& frame, const Tensor& h) {
        const Tensor next = tanh(h * form(g)(x) + frame);
        return std::pair{next, next};
      };
      return sum(scan(Scan{.spatial_dim = time,
                           .initial = ones({x.dim("batch")}, f64),
                           .xs = x,
                           .body = body})
                     .ys);
    }))(x);
  };
  const auto expected = f([](const auto& g) { return g; });
  const auto actual = f([](const auto& g) { return jit(g); });
  expect_all_close(actual.first, expected.first, 1e-13);
  expect_all_close(actual.second, expected.second, 1e-13);
}

REEL_IN_EVERY_MODE(RecordedInBodyTest);

}  // namespace
}  // namespace reel
