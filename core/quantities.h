// core/quantities.h — bytes, times and numbers of things, as they are told to people.
#pragma once

#include <cstdint>
#include <string>

namespace reel {

/// Of some three digits, with a unit.
std::string bytes_text(std::int64_t bytes);
std::string time_text(double seconds);
/// of: the unit.
std::string rate_text(double per_second, const char* of);
/// "3 stacks", "1 stack".
std::string counted(std::int64_t count, const std::string& noun);

}  // namespace reel
