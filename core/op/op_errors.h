// core/op/op_errors.h — as_op, which turns exceptions of kernels into Errors that name the op.
#pragma once

#include <string_view>
#include <utility>

#include "reel/core/base/source.h"
#include "reel/core/types/fwd.h"

namespace reel {

/// Rethrows the current exception with the op's name. Requires: called in a handler.
/// - An Error keeps its type. Its message gets a line with the op's name, unless it names a
/// function
///   ("gather: ...") already.
/// - Any other std::exception is nested in an Error, std::bad_alloc in a MemoryError.
/// - CancelledError, InternalError, and objects that are no std::exception are rethrown unchanged.
///
/// Loops then add the iteration to the message.
[[noreturn]] void rethrow_of(const Op& op, SourceId source = kNoSource);

/// Returns fn(), which computes the op. Throws as rethrow_of(). source: the place where a graph's
/// op was recorded.
template <class Fn>
decltype(auto) as_op(const Op& op, Fn&& fn, SourceId source = kNoSource) {
  try {
    return std::forward<Fn>(fn)();
  } catch (...) {
    rethrow_of(op, source);
  }
}

}  // namespace reel
