// core/op_errors.h — as_op, whatever a kernel throws is an Error that names its op.
#pragma once

#include <string_view>
#include <utility>

#include "reel/core/source.h"

namespace reel {

class Tensor;
struct Op;

/// Throws ArgumentError in the name of the function if x is empty.
void check_defined(std::string_view function, const Tensor& x);

/// In a handler: throws on what it handles, with the op's name. An Error that begins with a name,
/// as those of the library do ("gather: ..."), stays what it is; any other std::exception is nested
/// in an Error (std::bad_alloc in a MemoryError). Loops then add in which iteration it was. Broken
/// promises of the library, and what is no std::exception, stay.
[[noreturn]] void rethrow_of(const Op& op, SourceId source = kNoSource);

/// Returns fn(), which computes the op. source: where a graph that runs it has it from.
template <class Fn>
decltype(auto) as_op(const Op& op, Fn&& fn, SourceId source = kNoSource) {
  try {
    return std::forward<Fn>(fn)();
  } catch (...) {
    rethrow_of(op, source);
  }
}

}  // namespace reel
