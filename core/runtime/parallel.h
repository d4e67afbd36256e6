// core/runtime/parallel.h — parallel_for, the only way by which the library uses several threads.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// Sets the number of threads that parallel_for uses, the caller's included, for the whole program.
/// Default: the number of processors; more threads than processors never run at once. With 1, all
/// parts run on the caller's thread. Running calls keep their number.
///
/// Throws ArgumentError unless 1 <= threads <= 1024. Thread-safe.
void set_threads(int threads);
/// Returns the number of threads that parallel_for uses.
int threads();

/// Calls part(i, context) once for every i in [0, count), several at once. Parts begin in order of
/// i: if their times differ, put the longest first.
///
/// A part runs as on a new thread. The caller's trace does not record it, and the caller's tapes do
/// not see it, so that no gradient flows through it. It may have its own traces and tapes. It draws
/// random numbers from its own stream, which depends on the caller's stream and on i. Results do
/// not depend on the number of threads. Ops in a part use one thread each, except large products,
/// large softmax and its relatives, and large element-wise ops that a plan has fused. Parts may
/// call parallel_for. The caller's CancellationScope applies to them.
///
/// If parts throw, rethrows the exception of the smallest i, as a loop would. All parts before it
/// have then run; parts behind it that have not begun are skipped; none runs any more on return.
/// Throws ArgumentError if count is negative. Cost: a task per part, about a microsecond. A part
/// should take at least some ten microseconds.
void parallel_for(int count, void (*part)(int, void*), void* context);

/// Calls part(i) as above, for any callable. Requires: part may be called from several threads at
/// once.
template <std::invocable<int> F>
void parallel_for(int count, F&& part) {
  using Part = std::remove_reference_t<F>;
  const auto call = [](int i, void* context) { (*static_cast<Part*>(context))(i); };
  parallel_for(count, call, const_cast<void*>(static_cast<const void*>(std::addressof(part))));
}

}  // namespace reel
REEL_API_END
