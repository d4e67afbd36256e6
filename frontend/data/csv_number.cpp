#include "reel/frontend/data/csv_number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>

#include "reel/core/base/str.h"
#include "reel/frontend/data/csv.h"

namespace reel {
namespace {

enum class Outcome { number, no_number, too_large, too_small };

/// A field as a T.
template <class T>
struct Read {
  Outcome outcome = Outcome::no_number;
  T number{};
};

/// Returns true if two texts are equal up to the case of ASCII letters, in every locale.
bool is_word(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}
bool is_boolean_word(std::string_view text) {
  return is_word(text, "true") || is_word(text, "false");
}

Read<bool> read_boolean(std::string_view text) {
  if (text == "1" || is_word(text, "true")) return {Outcome::number, true};
  if (text == "0" || is_word(text, "false")) return {Outcome::number, false};
  return {};
}

/// Returns true if a decimal number, which a floating-point type cannot represent, is below one:
/// its first digit other than 0 stands behind the point after the exponent is applied.
bool is_below_one(std::string_view number) {
  const std::string_view digits = number.substr(0, number.find_first_of("eE"));
  std::string_view exponent = number.substr(std::min(digits.size() + 1, number.size()));
  const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), digits.size()));
  const auto first = static_cast<std::int64_t>(digits.find_first_of("123456789"));
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  std::int64_t power = 0;
  const auto [end, error] = std::from_chars(exponent.begin(), exponent.end(), power);
  if (error == std::errc::result_out_of_range) return exponent.starts_with('-');
  return power < first - point + (first < point ? 1 : 0);
}

template <class T>
Read<T> read(std::string_view field, char decimal) {
  if constexpr (std::is_same_v<T, bool>) {
    return read_boolean(field);
  } else {
    std::string_view text = field;
    std::string with_point;
    if (std::is_floating_point_v<T> && decimal != '.') {
      if (field.find('.') != std::string_view::npos) return {};  // such as 1.234,5
      with_point = field;
      std::replace(with_point.begin(), with_point.end(), decimal, '.');
      text = with_point;
    }
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
    const bool is_negative = text.starts_with('-');
    T number{};
    const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
    if (end != text.end() || text.empty()) return {};
    if (error == std::errc()) return {Outcome::number, number};
    if (error != std::errc::result_out_of_range) return {};
    if constexpr (std::is_floating_point_v<T>) {
      if (!is_below_one(text)) return {Outcome::too_large, {}};
      return {Outcome::number, is_negative ? -T(0) : T(0)};  // as strtod, NumPy and pandas
    }
    return {is_negative ? Outcome::too_small : Outcome::too_large, {}};
  }
}

bool is_missing(const std::string& field, const CsvOptions& options) {
  return std::find(options.missing.begin(), options.missing.end(), field) != options.missing.end();
}

/// Returns missing_value as a T; nothing if T cannot represent it.
template <class T>
std::optional<T> missing_number(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value == 0 || value == 1 ? std::optional(value == 1) : std::nullopt;
  } else if constexpr (std::is_floating_point_v<T>) {
    const bool fits =
        !std::isfinite(value) || std::abs(value) <= double{std::numeric_limits<T>::max()};
    return fits ? std::optional(static_cast<T>(value)) : std::nullopt;
  } else {
    // 2^31 and 2^63 are doubles, their predecessors not always.
    const double end = -static_cast<double>(std::numeric_limits<T>::min());
    const bool fits = value >= -end && value < end && value == std::trunc(value);
    return fits ? std::optional(static_cast<T>(value)) : std::nullopt;
  }
}

/// Returns the first of the wider dtypes that reads the field.
std::optional<DType> wider(const std::string& field, DType dtype, char decimal) {
  if (is_integer(dtype) && read<std::int64_t>(field, decimal).outcome == Outcome::number)
    return i64;
  if (dtype != f64 && read<double>(field, decimal).outcome == Outcome::number) return f64;
  return std::nullopt;
}

std::string read_as(DType dtype) { return str("; read the column as ", dtype); }

/// Texts by which common programs write missing numbers.
bool is_usually_missing(std::string_view field) {
  constexpr std::array<std::string_view, 9> kTexts{"",     "na",   "n/a", "#n/a", "<na>",
                                                   "null", "none", "-",   "?"};
  return std::any_of(kTexts.begin(), kTexts.end(),
                     [&](std::string_view text) { return is_word(field, text); });
}

std::string repair(const std::string& field, DType dtype, const CsvOptions& options) {
  if (const auto other = wider(field, dtype, options.decimal)) return read_as(*other);
  if (dtype != boolean && is_boolean_word(field)) return read_as(boolean);
  if (is_usually_missing(field))
    return str("; CsvOptions{.missing = {\"", field, "\"}} makes it a missing number");
  const char other = options.decimal == '.' ? ',' : '.';
  if (dtype != boolean && read<double>(field, other).outcome == Outcome::number)
    return str("; CsvOptions{.decimal = '", other, "'} reads it");
  return "";
}

template <class T>
std::string why(const std::string& field, const CsvOptions& options) {
  constexpr DType kDtype = dtype_of<T>();
  if (is_missing(field, options)) {
    if (std::isnan(options.missing_value))
      return str("is missing, and ", kDtype,
                 " has no NaN; give CsvOptions::missing_value, or read the column as f64");
    return str("is missing, and CsvOptions::missing_value, ", options.missing_value, ", is no ",
               kDtype);
  }
  const Outcome outcome = read<T>(field, options.decimal).outcome;
  const std::string help = repair(field, kDtype, options);
  if (outcome == Outcome::no_number) return str("is no ", kDtype, help);
  using Limits = std::numeric_limits<T>;
  if (outcome == Outcome::too_small)
    return str("is too small for ", kDtype, ", whose smallest number is ", Limits::min(), help);
  return str("is too large for ", kDtype, ", whose largest number is ", Limits::max(), help);
}

}  // namespace

template <class T>
std::optional<T> csv_number(const std::string& field, const CsvOptions& options) {
  if (is_missing(field, options)) return missing_number<T>(options.missing_value);
  const Read<T> found = read<T>(field, options.decimal);
  return found.outcome == Outcome::number ? std::optional(found.number) : std::nullopt;
}
template std::optional<float> csv_number(const std::string&, const CsvOptions&);
template std::optional<double> csv_number(const std::string&, const CsvOptions&);
template std::optional<std::int32_t> csv_number(const std::string&, const CsvOptions&);
template std::optional<std::int64_t> csv_number(const std::string&, const CsvOptions&);
template std::optional<bool> csv_number(const std::string&, const CsvOptions&);

std::string why_no_csv_number(const std::string& field, DType dtype, const CsvOptions& options) {
  return visit(dtype, [&](auto zero) { return why<decltype(zero)>(field, options); });
}

}  // namespace reel
