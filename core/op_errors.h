// core/op_errors.h — as_op, whatever a kernel throws is an Error that names its op.
#pragma once

#include <utility>

namespace reel {

struct Op;

/// In a handler: throws on what it handles, with the op's name. An Error that begins with a name,
/// as those of the library do ("gather: ..."), stays what it is; any other std::exception is nested
/// in an Error (std::bad_alloc in a MemoryError). Loops then add in which iteration it was. Broken
/// promises of the library, and what is no std::exception, stay.
[[noreturn]] void rethrow_of(const Op& op);

/// fn(), which computes the op.
template <class Fn>
decltype(auto) as_op(const Op& op, Fn&& fn) {
  try {
    return std::forward<Fn>(fn)();
  } catch (...) {
    rethrow_of(op);
  }
}

}  // namespace reel
