// core/base/quantities.h — formats bytes, times and counts for people.
#pragma once

#include <cstdint>
#include <string>

namespace reel {

/// Return the number with some three digits and a unit: "1.5 MiB", "20.0 ms".
std::string bytes_text(std::int64_t bytes);
std::string time_text(double seconds);
/// Returns a rate. of: its unit.
std::string rate_text(double per_second, const char* of);
/// Returns the number with `places` digits behind the point, as printf's %.1f; equal in every
/// locale.
std::string fixed_text(double number, int places);
/// Returns the number with at most `digits` significant digits, as printf's %.3g; equal in every
/// locale.
std::string digits_text(double number, int digits);
/// Returns "3 stacks", "1 stack".
std::string counted(std::int64_t count, const std::string& noun);

}  // namespace reel
