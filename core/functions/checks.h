// core/functions/checks.h — check_numerics and assert_that, which throw if values are wrong.
#pragma once

#include <string>
#include <type_traits>

#include "reel/core/base/errors.h"
#include "reel/core/base/visibility.h"
#include "reel/core/runtime/detect_nan.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// The condition of an assert_that is false.
class AssertionError : public Error {
 public:
  using Error::Error;
};

/// Returns x. Throws NumericsError when a run computes x with a NaN or an infinity, or a gradient
/// of x with one. The message has the name, the first such index, and the loop and iteration.
///
/// x: any; integers are never wrong. Padding and finished entries of a scan may have any value.
/// All executors check, even if the result is not read. Cost: one pass over x.
Tensor check_numerics(const Tensor& x, const std::string& name = "");

/// Returns the condition. Throws AssertionError when a run computes it with an element that is
/// false. The message has the text, the first such index, the values, and the loop and iteration.
///
/// condition: boolean, any dims. values: tensors to print. Padding and finished entries of a scan
/// may have any value. All executors check, even if the result is not read. Throws DTypeError for
/// a condition that is not boolean.
Tensor assert_that(const Tensor& condition, const std::string& text, const Tensors& values);
template <class... Values>
requires(std::is_convertible_v<const Values&, Tensor>&&...) Tensor
    assert_that(const Tensor& condition, const std::string& text, const Values&... values) {
  return assert_that(condition, text, Tensors{values...});
}

}  // namespace reel
REEL_API_END
