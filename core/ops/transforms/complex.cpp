// Arithmetic of complex numbers, composed of real arithmetic on their parts.
#include "reel/core/functions/complex.h"

#include <limits>

#include "reel/core/ops.h"

namespace reel {
namespace {

/// Returns the larger part, as a constant of the tape; 1 if it is 0 or infinite. Quotients by it
/// have parts of at most 1.
Tensor scale_of(const Complex& x) {
  const Tensor size = stop_gradient(maximum(abs(x.re), abs(x.im)));
  const auto is_odd = size == 0 || size == std::numeric_limits<double>::infinity();
  return where(is_odd, 1, size);
}

/// Returns the operand for two reads: the first one would take over the buffer of a temporary.
Arg read_twice(const Arg& b) { return b.is_number() ? b : Arg(b.tensor()); }

}  // namespace

Complex operator+(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }
Complex operator+(const Complex& a, const Arg& b) {
  const Tensor re = a.re + b;
  return {re, b.is_number() ? a.im : expand(a.im, re.dims())};
}
Complex operator+(const Arg& a, const Complex& b) { return b + a; }
Complex operator-(const Complex& a, const Complex& b) { return {a.re - b.re, a.im - b.im}; }
Complex operator-(const Complex& a, const Arg& b) {
  const Tensor re = a.re - b;
  return {re, b.is_number() ? a.im : expand(a.im, re.dims())};
}
Complex operator-(const Arg& a, const Complex& b) { return -b + a; }
Complex operator-(const Complex& a) { return {-a.re, -a.im}; }
Complex operator*(const Complex& a, const Complex& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
Complex operator*(const Complex& a, const Arg& b) { return {a.re * read_twice(b), a.im * b}; }
Complex operator*(const Arg& a, const Complex& b) { return b * a; }
// a / b = (a/s) conj(b/s) / |b/s|², whatever s is: no derivative flows through it.
Complex operator/(const Complex& a, const Complex& b) {
  const Tensor scale = scale_of(b);
  const Complex divisor = b / scale;
  return (a / scale) * conj(divisor) / squared_abs(divisor);
}
Complex operator/(const Complex& a, const Arg& b) { return {a.re / read_twice(b), a.im / b}; }
Complex operator/(const Arg& a, const Complex& b) {
  const Tensor scale = scale_of(b);
  const Complex divisor = b / scale;
  return conj(divisor) * (a / scale) / squared_abs(divisor);
}

Complex conj(const Complex& x) { return {x.re, -x.im}; }
Tensor squared_abs(const Complex& x) { return square(x.re) + square(x.im); }
Tensor abs(const Complex& x) {
  const Tensor scale = scale_of(x), squares = squared_abs(x / scale);
  const Tensor is_zero = squares == 0;
  return where(is_zero, 0, scale * sqrt(where(is_zero, 1, squares)));
}
Complex exp(const Complex& x) {
  const Tensor size = exp(x.re);
  return {size * cos(x.im), size * sin(x.im)};
}

}  // namespace reel
