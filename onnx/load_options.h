// onnx/load_options.h — LoadOnnxOptions, the options of load_onnx.
#pragma once

#include <cstdint>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// Limits of load_onnx, for models from strangers. A model or call beyond a limit is an OnnxError
/// that names the node and the option.
struct LoadOnnxOptions {
  /// Nodes of the model, including the nodes of inner graphs. Each call of a function counts its
  /// nodes again.
  std::int64_t max_nodes = 200'000;
  /// Bytes that the values of a call may take together. Counts the nodes' results if the model runs
  /// eagerly, and their constants in a trace; not the parameters, nor the memory of a traced
  /// function's run. Values of a loop's body count until its iteration ends.
  std::int64_t max_bytes = std::int64_t{1} << 32;
  /// Axes of a tensor, in the file and in a call.
  std::int64_t max_rank = 64;
};

}  // namespace reel
REEL_API_END
