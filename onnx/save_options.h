// onnx/save_options.h — SaveOnnxOptions, the options of save_onnx.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/frontend/jit.h"

REEL_API_BEGIN
namespace reel {

/// How a saved model gets its random numbers. ONNX has no counterpart of Reel's keys.
enum class OnnxDraws {
  nodes,  ///< from nodes of ONNX: the runtime draws, other numbers than Reel
  /// As inputs of the model, one for each draw: "draw", "draw_1" and so on. The input of a draw in
  /// a loop has the numbers of all iterations along its first axis; in loops in loops, along one
  /// axis for each loop, the outermost first. A loop reads as many as it has iterations.
  inputs,
};

/// Options of save_onnx and onnx_bytes.
struct SaveOnnxOptions {
  /// Names of the arguments of f, by position. An input has the name of its argument, followed by
  /// the path of the leaf: "model.cell.w". An argument with an empty name adds nothing: "cell.w".
  /// Without names, a single argument adds nothing, and others are called "x0", "x1" and so on.
  std::vector<std::string> arguments = {};
  /// Names of the results of f, by position if f returns a tuple or a pair, as for arguments.
  std::vector<std::string> results = {};
  /// Positions of arguments that become initializers: their example values are part of the model,
  /// and the model has no inputs for them.
  std::vector<std::size_t> parameters = {};
  /// Plain axes of arguments that may have any size, as JitOptions::any_length.
  std::vector<AnyLength> any_length = {};
  /// Names of dims that may have any size, as JitOptions::dynamic: symbolic sizes of the model.
  Dims dynamic = {};
  /// Where the random numbers of the model come from.
  OnnxDraws draws = OnnxDraws::nodes;
  /// True if a loop becomes RNN, GRU or LSTM where such a node computes exactly the loop. False: a
  /// Loop of its ops.
  bool recurrent_nodes = true;
  /// Op set of the model, 17 to 27. onnxruntime 1.20.1 runs models of up to 20, 1.30.0 of up to 26.
  std::int64_t op_set = 17;
  /// Bytes of parameters and captured tensors above which save_onnx writes them to a file beside
  /// the model, MODEL.data-1. onnx_bytes refuses such a function. A file of ONNX holds less than 2
  /// GiB.
  std::int64_t max_file_bytes = (std::int64_t{1} << 31) - 1;
  std::string name = "reel";  ///< of the graph, and of the function in errors
};

}  // namespace reel
REEL_API_END
