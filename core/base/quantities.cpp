#include "reel/core/base/quantities.h"

#include <cmath>
#include <iomanip>
#include <span>

#include "reel/core/base/str.h"

namespace reel {
namespace {

/// Returns some three digits and a unit.
std::string with_unit(double number, double factor, std::span<const char* const> units) {
  std::size_t unit = 0;
  while (number >= factor && unit + 1 < units.size()) {
    number /= factor;
    ++unit;
  }
  const bool has_places = unit || number != std::floor(number);
  return (has_places ? fixed_text(number, number < 100) : str(number)) + ' ' + units[unit];
}

}  // namespace

std::string bytes_text(std::int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  return with_unit(static_cast<double>(bytes), 1024, kUnits);
}

std::string time_text(double seconds) {
  constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
  return with_unit(std::round(seconds * 1e9), 1000, kUnits);
}

std::string rate_text(double per_second, const char* of) {
  constexpr const char* kUnits[] = {"", "k", "M", "G"};
  return with_unit(std::round(per_second), 1000, kUnits) + of;
}

std::string fixed_text(double number, int places) {
  TextStream out;
  out << std::fixed << std::setprecision(places) << number;
  return out.str();
}

std::string digits_text(double number, int digits) {
  TextStream out;
  out << std::setprecision(digits) << number;
  return out.str();
}

std::string counted(std::int64_t count, const std::string& noun) {
  return str(count, ' ', noun, count == 1 ? "" : "s");
}

}  // namespace reel
