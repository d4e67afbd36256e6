// Prints tensors as NumPy's str() does with its default options.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "reel/core/base/str.h"
#include "reel/core/types/print.h"
#include "reel/core/types/tensor.h"
#include "reel/core/types/valid_elements.h"

namespace reel {
namespace {

constexpr std::int64_t kMaxShownElements = 1000;  // elements; larger tensors print only the edges
constexpr std::int64_t kEdge = 3;
constexpr std::size_t kLineWidth = 75;
constexpr int kMaxDigits = 8;  // behind the point
constexpr std::string_view kPadding = "-", kOmitted = "...";

std::string spaces(std::size_t count) { return std::string(count, ' '); }
std::string right_aligned(std::string text, std::size_t width) {
  return text.size() < width ? spaces(width - text.size()) + text : text;
}

// ---- Numbers --------------------------------------------------------------------------

/// A finite number in decimal: [-]integer.fraction[e+exponent], the exponent with its sign.
struct Decimal {
  std::string integer, fraction, exponent;
};

/// Splits the text of to_chars.
Decimal split(const std::string& text) {
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::size_t e = std::min(text.find('e'), text.size());
  Decimal result;
  result.integer = text.substr(0, std::min(point, e));
  if (point < e) result.fraction = text.substr(point + 1, e - point - 1);
  if (e < text.size()) result.exponent = text.substr(e + 1);
  return result;
}

/// Returns scientific notation with `digits` digits behind the point.
Decimal with_digits(double number, std::size_t digits) {
  char text[400];
  return split(
      std::string(text, std::to_chars(text, text + sizeof text, number,
                                      std::chars_format::scientific, static_cast<int>(digits))
                            .ptr));
}

/// Returns the fewest digits that distinguish the number from others of its type, without zeros at
/// the end; at most `most_digits` behind the point.
template <class T>
Decimal decimal_of(T number, std::chars_format format, int most_digits) {
  const auto print = [&](auto... precision) {
    char text[400];
    return std::string(text,
                       std::to_chars(text, text + sizeof text, number, format, precision...).ptr);
  };
  Decimal result = split(print());
  if (most_digits >= 0 && result.fraction.size() > static_cast<std::size_t>(most_digits))
    result = split(print(most_digits));
  result.fraction.erase(result.fraction.find_last_not_of('0') + 1);
  return result;
}

/// Returns one number by itself, with all its digits.
template <class T>
std::string print_scalar(T number) {
  if constexpr (std::is_same_v<T, bool>)
    return number ? "True" : "False";
  else if constexpr (std::is_integral_v<T>)
    return str(number);
  else {
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
    const T size = std::abs(number);
    const bool is_plain = size == 0 || (size >= T(1e-4) && size < T(1e16));
    const Decimal d =
        decimal_of(number, is_plain ? std::chars_format::fixed : std::chars_format::scientific, -1);
    if (is_plain) return str(d.integer, '.', d.fraction.empty() ? "0" : d.fraction);
    return str(d.integer, d.fraction.empty() ? "" : ".", d.fraction, 'e', d.exponent);
  }
}

/// Formats all numbers of a tensor with their points below each other.
template <class T>
class FloatFormat {
 public:
  explicit FloatFormat(const std::vector<T>& numbers) {
    T largest = 0, smallest = std::numeric_limits<T>::infinity();
    bool has_nan = false, has_inf = false, has_minus_inf = false;
    for (const T number : numbers) {
      has_nan = has_nan || std::isnan(number);
      has_inf = has_inf || std::isinf(number);
      has_minus_inf = has_minus_inf || (std::isinf(number) && number < 0);
      if (!std::isfinite(number) || number == 0) continue;
      largest = std::max(largest, std::abs(number));
      smallest = std::min(smallest, std::abs(number));
    }
    is_scientific_ =
        largest > 0 && (largest >= T(1e8) || smallest < T(1e-4) || largest / smallest > T(1000));
    for (const T number : numbers) {
      if (!std::isfinite(number)) continue;
      const Decimal d = decimal(number);
      left_ = std::max(left_, d.integer.size());
      digits_ = std::max(digits_, d.fraction.size());
      exponent_ = std::max(exponent_, d.exponent.size());
    }
    width_ = std::max(left_ + 1 + right(), std::size_t{has_minus_inf        ? 4u
                                                       : has_nan || has_inf ? 3u
                                                                            : 0u});
    left_ = width_ - 1 - right();
  }

  std::string operator()(T number) const {
    if (!std::isfinite(number)) return right_aligned(print_scalar(number), width_);
    Decimal d = decimal(number);
    const std::size_t missing = digits_ - d.fraction.size();
    if (!is_scientific_)
      return right_aligned(d.integer, left_) + '.' + d.fraction + spaces(missing);
    if (missing) d = with_digits(number, digits_);  // real digits, not zeros
    d.exponent.insert(1, exponent_ - d.exponent.size(), '0');
    return right_aligned(d.integer, left_) + '.' + d.fraction + 'e' + d.exponent;
  }
  /// Returns the mark of padding, in the column of the last digit before the point.
  std::string padding() const {
    const bool has_point = left_ > 0;
    return right_aligned(str(kPadding, spaces(has_point ? right() + 1 : 0)), width_);
  }

 private:
  Decimal decimal(T number) const {
    return decimal_of(number,
                      is_scientific_ ? std::chars_format::scientific : std::chars_format::fixed,
                      kMaxDigits);
  }
  std::size_t right() const { return digits_ + (is_scientific_ ? 1 + exponent_ : 0); }

  bool is_scientific_ = false;
  std::size_t left_ = 0, digits_ = 0, exponent_ = 0, width_ = 0;
};

/// Formats integers and booleans.
template <class T>
class WholeFormat {
 public:
  explicit WholeFormat(const std::vector<T>& numbers) {
    for (const T number : numbers) width_ = std::max(width_, print_scalar(number).size());
  }
  std::string operator()(T number) const { return right_aligned(print_scalar(number), width_); }
  std::string padding() const { return right_aligned(std::string(kPadding), width_); }

 private:
  std::size_t width_ = 0;
};

// ---- Elements that are shown -------------------------------------------------------------

/// Calls fn for the positions of an axis that are shown.
template <class Fn>
void for_shown(std::int64_t size, bool is_summary, Fn&& fn) {
  for (std::int64_t i = 0; i < size; ++i) {
    if (is_summary && i == kEdge && size > 2 * kEdge) i = size - kEdge;
    fn(i);
  }
}

/// The shown elements of a tensor in order: their positions, or -1 for padding and finished
/// entries.
class ShownElements {
 public:
  ShownElements(const TensorType& type, std::span<const Tensor> running, bool is_summary)
      : sizes_(type.sizes()),
        valid_(type, running),
        is_summary_(is_summary),
        index_(sizes_.size()) {
    collect(0, 0);
  }
  const std::vector<std::int64_t>& positions() const { return positions_; }

 private:
  void collect(std::size_t axis, std::int64_t position) {
    if (axis == sizes_.size()) {
      positions_.push_back(valid_(index_) ? position : -1);
      return;
    }
    for_shown(sizes_[axis], is_summary_, [&](std::int64_t i) {
      index_[axis] = i;
      collect(axis + 1, position * sizes_[axis] + i);
    });
  }

  const std::vector<std::int64_t>& sizes_;
  ValidElements valid_;
  bool is_summary_;
  std::vector<std::int64_t> index_, positions_;
};

/// Returns the shown elements as text, all of one width.
std::vector<std::string> words_of(const Tensor& tensor, std::span<const Tensor> running,
                                  bool is_summary) {
  const ShownElements shown(tensor.type(), running, is_summary);
  std::vector<std::string> words;
  visit(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using Format = std::conditional_t<std::is_floating_point_v<T>, FloatFormat<T>, WholeFormat<T>>;
    const T* data = tensor.data<T>();
    std::vector<T> numbers;
    for (const std::int64_t position : shown.positions())
      if (position >= 0) numbers.push_back(data[position]);
    // NumPy pads True to the width of False in tensors with axes.
    if constexpr (std::is_same_v<T, bool>)
      if (tensor.rank()) numbers.push_back(false);
    const Format format(numbers);
    for (const std::int64_t position : shown.positions())
      words.push_back(position >= 0 ? format(data[position]) : format.padding());
  });
  return words;
}

// ---- Brackets and lines ------------------------------------------------------------------

class NestedPrinter {
 public:
  NestedPrinter(const std::vector<std::int64_t>& sizes, std::vector<std::string> words,
                bool is_summary)
      : sizes_(sizes), words_(std::move(words)), is_summary_(is_summary) {}

  std::string print() {
    print(0);
    return std::move(text_);
  }

 private:
  void print(std::size_t axis) {
    const bool is_row = axis + 1 == sizes_.size();
    const std::size_t indent = axis + 1;
    text_ += '[';
    if (is_row) line_ = indent;
    for_shown(sizes_[axis], is_summary_, [&](std::int64_t i) {
      const bool is_after_gap =
          is_summary_ && sizes_[axis] > 2 * kEdge && i == sizes_[axis] - kEdge;
      if (is_row) {
        if (is_after_gap) add_word(kOmitted, indent, i == 0);
        add_word(words_[next_++], indent, i == 0);
      } else {
        const std::string between = std::string(sizes_.size() - axis - 1, '\n') + spaces(indent);
        if (i) text_ += between;
        if (is_after_gap) text_ += str(kOmitted, between);
        print(axis + 1);
      }
    });
    text_ += ']';
  }

  /// Stays in the line if the word fits, with the brackets that may close behind it.
  void add_word(std::string_view word, std::size_t indent, bool is_first) {
    if (!is_first) {
      if (line_ + 1 + word.size() + indent > kLineWidth) {
        text_.erase(text_.find_last_not_of(' ') + 1);
        text_ += str('\n', spaces(indent));
        line_ = indent;
      } else {
        text_ += ' ';
        ++line_;
      }
    }
    text_ += word;
    line_ += word.size();
  }

  const std::vector<std::int64_t>& sizes_;
  std::vector<std::string> words_;
  bool is_summary_;
  std::string text_;
  std::size_t next_ = 0, line_ = 0;
};

std::string print_elements(const Tensor& tensor, std::span<const Tensor> running) {
  const TensorType& type = tensor.type();
  if (type.numel() == 0) return "[]";
  if (type.rank() == 0)
    return visit(type.dtype(),
                 [&](auto zero) { return print_scalar(*tensor.data<decltype(zero)>()); });
  const bool is_summary = type.numel() > kMaxShownElements;
  return NestedPrinter(type.sizes(), words_of(tensor, running, is_summary), is_summary).print();
}

}  // namespace

void print_running(std::ostream& out, const Tensor& tensor, std::span<const Tensor> running) {
  out << tensor.type();
  const BlockKind kind = tensor.block()->kind;
  if (kind == BlockKind::promise || kind == BlockKind::list) return;
  const std::string elements = print_elements(tensor, running);
  out << (elements.find('\n') == std::string::npos && tensor.rank() < 2 ? ' ' : '\n') << elements;
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor.is_defined()) return out << "(empty Tensor)";
  print_running(out, tensor, {});
  return out;
}

}  // namespace reel
