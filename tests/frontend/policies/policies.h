// tests/frontend/policies/policies.h — UnderPolicies, which compares gradients under every
// Checkpoint policy with the gradients of a loop that saves all residuals.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reel/tests/modes.h"

namespace reel {

inline const std::vector<Checkpoint>& policies() {
  static const std::vector<Checkpoint> all{Checkpoint::every(1),       Checkpoint::every(3),
                                           Checkpoint::every(100),     Checkpoint::budget(1),
                                           Checkpoint::budget(500),    Checkpoint::budget(2000),
                                           Checkpoint::budget(1 << 20)};
  return all;
}
/// The memory policy of a loop.
struct LoopPolicy {
  Checkpoint checkpoint = {};
  SwapMemory swap_memory = false;
};

inline std::string text_of(const Checkpoint& policy) {
  return str("every ", policy.steps(), ", budget ", policy.bytes());
}

/// Returns the sum of squares of an LSTM's states, summed while the scan runs. x: over time, batch
/// and features.
inline Tensor squares_of_states(const LstmCell& cell, const Tensor& x, const LoopPolicy& policy,
                                bool reverse = false) {
  const auto body = [&](const Tensor& x, const LstmCell::State& state) {
    const LstmCell::State next = cell(x, state).second;
    return std::pair{sum(square(next.h)), next};
  };
  return sum(scan(Scan{.spatial_dim = x.dim("time"),
                       .initial = cell.initial_state({x.dim("batch")}),
                       .xs = x,
                       .body = body,
                       .reverse = reverse,
                       .checkpoint = policy.checkpoint,
                       .swap_memory = policy.swap_memory})
                 .ys);
}

/// Expects the same bits in all tensors of two trees.
template <class T>
void expect_same_leaves(const T& actual, const T& expected) {
  const TreeLeaves all = flatten(expected), mine = flatten(actual);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].kind == TreeLeaf::Kind::tensor) expect_same_bits(mine[i].tensor, all[i].tensor);
}

class UnderPolicies : public InEveryMode {
 protected:
  /// Expects that form(make(policy)) returns the same tensors for every policy. make: policy -> f.
  /// is_exact: the bits must be the same, in plans as well; otherwise values may differ by
  /// `tolerance`.
  template <class Make, class Form, class... Args>
  void expect_same(const Make& make, const Form& form, bool is_exact, double tolerance,
                   const Args&... args) const {
    const auto flat = [&](const Checkpoint& policy) {
      manual_seed(11);
      return flatten(run(form(make(policy)))(args...));
    };
    const TreeLeaves expected = flat({});
    for (const Checkpoint& policy : policies()) {
      SCOPED_TRACE(text_of(policy));
      const TreeLeaves actual = flat(policy);
      ASSERT_EQ(actual.size(), expected.size());
      for (std::size_t i = 0; i < actual.size(); ++i) {
        if (actual[i].kind != TreeLeaf::Kind::tensor) continue;
        if (is_exact)
          expect_same_bits(actual[i].tensor, expected[i].tensor);
        else
          expect_all_close(actual[i].tensor, expected[i].tensor, tolerance);
      }
    }
  }
  /// Expects the same value and the same gradient of f for every policy.
  template <class Make, class... Args>
  void expect_same_gradients(const Make& make, const Args&... args) const {
    expect_same(
        make, [](auto f) { return value_and_grad(std::move(f)); }, true, 0, args...);
  }
  /// Expects the same gradient of the sum of squares of f's gradient. f: a tensor -> a scalar. The
  /// bits may differ: the policy's gradient loop and the recomputed iterations each sum on their
  /// own (docs/decisions/0007).
  template <class Make>
  void expect_same_second_gradients(const Make& make, const Tensor& at,
                                    bool is_exact = false) const {
    const auto second = [](auto f) {
      return value_and_grad(
          [f = std::move(f)](const Tensor& x) { return sum(square(grad(f)(x))); });
    };
    expect_same(make, second, is_exact, 1e-11, at);
  }
};

}  // namespace reel
