// core/parallel.h — parallel_for, the one place where the library uses several threads.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>

namespace reel {

/// How many threads parallel_for uses at most, the caller's included, for the whole program; by
/// default as many as there are processors, and more than those never run at once. 1: all parts run
/// on the caller's. Calls that run already keep what they began with.
///
/// Throws ArgumentError unless 1 <= threads <= 1024. May be called from any thread.
void set_threads(int threads);
int threads();

/// Calls part(i, context) once for every i in [0, count), several of them at once. They begin in
/// their order: of parts that take different times the longest had better be the first.
///
/// A part begins as a new thread would: the caller's trace does not record it, the caller's tapes
/// do not see it, so that no gradient flows through what it computes; traces and tapes of its own
/// are its own. It draws from a stream of its own, which depends on the caller's stream and on i:
/// like all that a part computes, not on the number of threads. Ops use one thread each, but for
/// products of large matrices, softmax and its relatives, and the element-wise ops that a plan
/// joins, where they are large too. Parts may call parallel_for. The caller's CancellationScope
/// counts for them, too.
///
/// What a part throws is thrown here: that of the smallest i, as from a loop. Parts before it have
/// run then, of those behind it none begins any more, and none runs any more when this returns.
/// Throws ArgumentError when count is negative.
/// Cost: a task per part, about a microsecond; a part is worth it from some ten of them on.
void parallel_for(int count, void (*part)(int, void*), void* context);

/// The same for anything that can be called with an index: part(i), from several threads at once.
template <std::invocable<int> F>
void parallel_for(int count, F&& part) {
  using Part = std::remove_reference_t<F>;
  const auto call = [](int i, void* context) { (*static_cast<Part*>(context))(i); };
  parallel_for(count, call, const_cast<void*>(static_cast<const void*>(std::addressof(part))));
}

}  // namespace reel
