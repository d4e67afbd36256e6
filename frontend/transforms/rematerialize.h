// frontend/transforms/rematerialize.h — checkpoint: recomputes a function for its gradient, to save
// memory.
#pragma once

#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/options/checkpoint_policy.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

namespace detail {
/// Returns the leaves of function(arguments) under a checkpoint. The tape saves the arguments and
/// the values that the rule selects.
TreeLeaves run_checkpointed(TreeLeaves arguments, const SavingRule& rule,
                            const std::function<TreeLeaves(const TreeLeaves&)>& function);
/// Returns the rule of a Checkpoint. Throws ArgumentError if the Checkpoint has steps or bytes.
SavingRule only_rule_of(const Checkpoint& policy);
}  // namespace detail

/// Returns a function with the values of f for which a tape saves only the inputs; the gradient
/// runs f again.
///
/// The second run draws the same random numbers. Gradients have the same bits as without
/// checkpoint, with one exception: cotangents of tensors that both f and other code read (captured
/// weights, an argument that is used again). There f's own cotangents are summed first, as in one
/// loop iteration; without checkpoint each is added to the sum so far.
///
///   h = checkpoint([&](const Tensor& x) { return tanh(matmul(x, w)); })(x);
///
/// rule: called for each value that an op of f makes, except inside loops and branches. Values for
/// which it returns `keep` or `spill` are saved and not recomputed; `spill` saves in memory,
/// because files are for loops only. A Checkpoint with such a rule may be given instead.
///
///   checkpoint(layer, [](const StepValue& v) {
///     return v.op == "dot" ? Saving::keep : Saving::recompute;
///   })
///
/// f: takes and returns trees; captured tensors count as arguments. Under an eager tape each call
/// records f, as jit does, so f must not read values. Output of print appears once. Throws the
/// exceptions of f; TraceError if f reads a value; ArgumentError for a Checkpoint with steps or
/// bytes. Memory: the residuals of f, while its gradient is computed. Source: Chen et al. (2016),
/// "Training deep nets with sublinear memory cost".
template <class F>
auto checkpoint(F f, SavingRule rule = {}) {
  return [f = std::move(f), rule = std::move(rule)]<class... Args>(const Args&... args) {
    static_assert(std::is_invocable_v<const F&, const Args&...>,
                  "a function under checkpoint is called with the arguments of f, which takes them "
                  "by value or by const reference");
    if constexpr (!detail::returns_tree<std::invoke_result_t<const F&, const Args&...>>()) {
      return Tensor();
    } else {
      using R = std::decay_t<std::invoke_result_t<const F&, const Args&...>>;
      const std::tuple<Args...> arguments(args...);
      std::optional<R> result;  // holds the container sizes of the result
      const TreeLeaves leaves =
          detail::run_checkpointed(flatten(arguments), rule, [&](const TreeLeaves& inside) {
            result.emplace(std::apply(f, unflatten(arguments, inside)));
            return flatten(*result);
          });
      return R(unflatten(*result, leaves));
    }
  };
}
template <class F>
auto checkpoint(F f, const Checkpoint& policy) {
  return checkpoint(std::move(f), detail::only_rule_of(policy));
}

}  // namespace reel
REEL_API_END
