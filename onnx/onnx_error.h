// onnx/onnx_error.h — OnnxError.
#pragma once

#include "reel/core/base/errors.h"
#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// A model is damaged, breaks a rule of ONNX, or has ops, versions or types without a rule in Reel.
class OnnxError : public Error {
 public:
  using Error::Error;
};

}  // namespace reel
REEL_API_END
