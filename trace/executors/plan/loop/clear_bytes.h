// trace/executors/plan/loop/clear_bytes.h — clear_bytes, which sets a part of a result to zero.
#pragma once

#include <cstdint>
#include <cstring>

namespace reel {

/// Sets bytes [from, to) to zero.
inline void clear_bytes(char* data, std::int64_t from, std::int64_t to) {
  if (from < to) std::memset(data + from, 0, static_cast<std::size_t>(to - from));
}

}  // namespace reel
