// frontend/checkpointed.h — checkpoint, a function of which little is kept for its gradient.
#pragma once

#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "reel/core/checkpoint_policy.h"
#include "reel/frontend/tree.h"

namespace reel {

namespace detail {
/// The leaves of what a function gives for these, with nothing of it kept but what the rule says.
TreeLeaves run_checkpointed(TreeLeaves arguments, const SavingRule& rule,
                            const std::function<TreeLeaves(const TreeLeaves&)>& function);
/// That of a Checkpoint without steps and bytes.
SavingRule only_rule_of(const Checkpoint& policy);
}  // namespace detail

/// The same function, of which a tape keeps nothing but what goes in: its gradient runs it once
/// more. It draws the same random numbers, then too. Gradients have the same bits as without
/// checkpoint, but of what f reads and others read as well (captured weights, an argument that is
/// used again): f's own cotangents are added up first, as those of a loop's step are, where without
/// checkpoint each is added to what is there by then.
///
///   h = checkpoint([&](const Tensor& x) { return tanh(matmul(x, w)); })(x);
///
/// rule: asked of every value that an op of f makes, those inside of loops and branches left out;
/// what it says to keep (or to spill: a file is for loops) is kept, and not computed again. A
/// Checkpoint with such a rule is taken, too.
///
///   checkpoint(layer, [](const StepValue& v) {
///     return v.op == "dot" ? Saving::keep : Saving::recompute;
///   })
///
/// f: takes and returns trees; captured tensors count as arguments. Under a tape of eager mode f is
/// recorded, as jit does it, at each call: it must not read values. What it prints is printed once.
/// Throws what f throws; TraceError where f asks for a value; ArgumentError for a Checkpoint of
/// steps or bytes. Memory: while the gradient is taken, that of f's own. Source: Chen et al.
/// (2016), "Training deep nets with sublinear memory cost".
template <class F>
auto checkpoint(F f, SavingRule rule = {}) {
  return [f = std::move(f), rule = std::move(rule)]<class... Args>(const Args&... args) {
    using R = std::decay_t<std::invoke_result_t<const F&, const Args&...>>;
    const std::tuple<Args...> arguments(args...);
    std::optional<R> result;  // says how containers look
    const TreeLeaves leaves =
        detail::run_checkpointed(flatten(arguments), rule, [&](const TreeLeaves& inside) {
          result.emplace(std::apply(f, unflatten(arguments, inside)));
          return flatten(*result);
        });
    return R(unflatten(*result, leaves));
  };
}
template <class F>
auto checkpoint(F f, const Checkpoint& policy) {
  return checkpoint(std::move(f), detail::only_rule_of(policy));
}

}  // namespace reel
