// frontend/checkpointed.h — checkpoint, a function of which nothing is kept for its gradient.
#pragma once

#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "reel/frontend/tree.h"

namespace reel {

namespace detail {
/// The leaves of what a function gives for these, with nothing of it kept.
TreeLeaves run_checkpointed(TreeLeaves arguments,
                            const std::function<TreeLeaves(const TreeLeaves&)>& function);
}  // namespace detail

/// The same function, of which a tape keeps nothing but what goes in: its gradient runs it once
/// more. The gradient has the same bits.
///
///   h = checkpoint([&](const Tensor& x) { return tanh(matmul(x, w)); })(x);
///
/// f: takes and returns trees; captured tensors count as arguments. Under a tape of eager mode f is
/// recorded, as jit does it, at each call: it must not read values. What it prints is printed once,
/// and random numbers are drawn the same. Throws what f throws; TraceError where f asks for a
/// value. Memory: while the gradient is taken, that of f's own. Source: Chen et al. (2016),
/// "Training deep nets with sublinear memory cost".
template <class F>
auto checkpoint(F f) {
  return [f = std::move(f)]<class... Args>(const Args&... args) {
    using R = std::decay_t<std::invoke_result_t<const F&, const Args&...>>;
    const std::tuple<Args...> arguments(args...);
    std::optional<R> result;  // says how containers look
    const TreeLeaves leaves =
        detail::run_checkpointed(flatten(arguments), [&](const TreeLeaves& inside) {
          result.emplace(std::apply(f, unflatten(arguments, inside)));
          return flatten(*result);
        });
    return R(unflatten(*result, leaves));
  };
}

}  // namespace reel
