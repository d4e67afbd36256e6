// core/no_memory.h — as_memory_error, which makes a MemoryError of std::bad_alloc.
#pragma once

#include <new>
#include <string_view>
#include <utility>

namespace reel {

/// In a handler of std::bad_alloc: throws a MemoryError in which it is nested, and which says that
/// `function` found no memory. Where there is none for the message either, the MemoryError is one
/// without a name.
[[noreturn]] void throw_no_memory_in(std::string_view function);

/// Returns fn(). Throws MemoryError where fn throws std::bad_alloc.
template <class Fn>
decltype(auto) as_memory_error(std::string_view function, Fn&& fn) {
  try {
    return std::forward<Fn>(fn)();
  } catch (const std::bad_alloc&) {
    throw_no_memory_in(function);
  }
}

}  // namespace reel
