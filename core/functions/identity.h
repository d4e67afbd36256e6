// core/functions/identity.h — print, and functions that return their input.
#pragma once

#include <string>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Returns x, and prints it on standard output each time it is computed, in program order. The
/// dataflow executor prints when data reaches it, and only if its result is read: x = print(x). In
/// a scan with entries that finish one by one, it also prints the iteration, and `-` for finished
/// entries.
Tensor print(const Tensor& x, const std::string& label = "");
/// Returns x.item<T>(): the value of a tensor with one element as a C++ number. In templates,
/// item<float>(x) needs no `template` keyword. Throws as Tensor::item does.
template <class T>
T item(const Tensor& x) {
  return x.item<T>();
}
/// Returns x as a new value.
Tensor identity(const Tensor& x);
/// Returns x with a name by which a memory policy can select residuals of a loop
/// (Checkpoint::where).
Tensor checkpoint_name(const Tensor& x, const std::string& name);
/// Returns x without a gradient.
Tensor stop_gradient(const Tensor& x);

}  // namespace reel
REEL_API_END
