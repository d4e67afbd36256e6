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
}  // namespace detail

/// The same function, of which a tape keeps nothing but what goes in: its gradient runs it once
/// more, and is the same up to the order in which cotangents of what f captures are added up.
///
///   h = checkpoint([&](const Tensor& x) { return tanh(matmul(x, w)); })(x);
///
/// rule: asked of every value that an op of f makes, those inside of loops and branches left out;
/// what it says to keep (or to spill: a file is for loops) is kept, and not computed again.
///
///   checkpoint(layer, [](const StepValue& v) {
///     return v.op == "dot" ? Saving::keep : Saving::recompute;
///   })
///
/// f: takes and returns trees; captured tensors count as arguments. Under a tape of eager mode f is
/// recorded, as jit does it, at each call: it must not read values. What it prints is printed once.
/// Random numbers come from a stream of its own: others than f called plainly would draw, and the
/// same ones in both modes, and when it is run once more. Throws what f throws; TraceError where f
/// asks for a value. Memory: while the gradient is taken, that of f's own. Source: Chen et al.
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

}  // namespace reel
