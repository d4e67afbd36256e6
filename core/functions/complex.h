// core/functions/complex.h — Complex, complex numbers as two tensors.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/functions/operands.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Complex numbers: the real and the imaginary parts, two floating tensors of one type. A tree, as
/// other structs of tensors: an argument or result of jit, a state of a loop, a parameter.
///
/// The gradient of a real loss has ∂loss/∂re in `re` and ∂loss/∂im in `im`, as for any struct. JAX
/// gives the complex conjugate of this number, PyTorch the number itself.
struct Complex {
  Tensor re, im;  ///< real and imaginary parts, of one type
};

// Operands are broadcast as in arithmetic on tensors, and an Arg is a real number. The functions
// throw as the arithmetic of their parts does.

Complex operator+(const Complex& a, const Complex& b);
Complex operator+(const Complex& a, const Arg& b);
Complex operator+(const Arg& a, const Complex& b);
Complex operator-(const Complex& a, const Complex& b);
Complex operator-(const Complex& a, const Arg& b);
Complex operator-(const Arg& a, const Complex& b);
Complex operator-(const Complex& a);
Complex operator*(const Complex& a, const Complex& b);
Complex operator*(const Complex& a, const Arg& b);
Complex operator*(const Arg& a, const Complex& b);
/// Return the quotient. A divisor with large or small parts is scaled first, so that its square
/// neither overflows nor vanishes.
Complex operator/(const Complex& a, const Complex& b);
Complex operator/(const Complex& a, const Arg& b);
Complex operator/(const Arg& a, const Complex& b);

/// Returns the complex conjugate: re - i·im.
Complex conj(const Complex& x);
/// Returns sqrt(re² + im²), without overflow of the squares. The gradient at 0 is 0.
Tensor abs(const Complex& x);
/// Returns re² + im².
Tensor squared_abs(const Complex& x);
/// Returns e^re · (cos im + i·sin im).
Complex exp(const Complex& x);

}  // namespace reel
REEL_API_END
