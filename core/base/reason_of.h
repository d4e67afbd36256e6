// core/base/reason_of.h — reason_of, the system's text for an error number.
#pragma once

#include <cstring>
#include <string>
#include <system_error>

namespace reel {

/// Returns the text of an errno, in English in every locale (strerror translates). Thread-safe.
inline std::string reason_of(int error) {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
  if (const char* text = ::strerrordesc_np(error)) return text;
#endif
  return std::generic_category().message(error);
}

}  // namespace reel
