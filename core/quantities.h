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
/// With that many digits behind the point, as printf's %.1f; the same in every locale.
std::string fixed_text(double number, int places);
/// With at most that many digits that count, as printf's %.3g; the same in every locale.
std::string digits_text(double number, int digits);
/// "3 stacks", "1 stack".
std::string counted(std::int64_t count, const std::string& noun);

}  // namespace reel
