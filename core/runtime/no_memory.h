// core/runtime/no_memory.h — as_memory_error, which turns std::bad_alloc into a MemoryError.
#pragma once

#include <new>
#include <string_view>
#include <utility>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// Throws a MemoryError saying that `function` found no memory, nested with the current exception.
/// Requires: called in a handler of std::bad_alloc. If there is no memory for the message either,
/// the MemoryError has a general one.
[[noreturn]] void throw_no_memory_in(std::string_view function);

/// Returns fn(). Throws MemoryError if fn throws std::bad_alloc.
template <class Fn>
decltype(auto) as_memory_error(std::string_view function, Fn&& fn) {
  try {
    return std::forward<Fn>(fn)();
  } catch (const std::bad_alloc&) {
    throw_no_memory_in(function);
  }
}

}  // namespace reel
REEL_API_END
