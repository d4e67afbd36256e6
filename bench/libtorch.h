// bench/libtorch.h — libtorch's side of a comparison.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops.h"
#include "rnn.h"

namespace reel::bench {

/// The work on a chain of ops.
enum class Chain {
  without_tape,          ///< no tensor requires a gradient
  in_inference_mode,     ///< results can never take part in a gradient
  recorded,              ///< the graph is built and freed
  forward_and_backward,  ///< including the gradient of the first factor
};

/// Libtorch's side of an op.
struct OpRun {
  std::function<void()> run;
  std::function<std::vector<float>()> result;
};

class Libtorch {
 public:
  virtual ~Libtorch() = default;
  /// Returns the versions of libtorch and of the libraries it computes with.
  virtual std::string describe() const = 0;
  /// Sets the threads of all libraries that it computes with.
  virtual void set_threads(int count) const = 0;
  /// Computes x · factor · factor · ..., element by element, on ones.
  virtual std::function<void()> multiply_chain(Chain what, int floats, int ops) const = 0;
  /// Returns libtorch's side of a case of ops.h; nothing to run if libtorch has no such op.
  virtual OpRun op(const OpCase& of, std::int64_t rows, std::int64_t columns) const = 0;
  /// Returns a run of nn::LSTM, or of nn::GRU, which resets after the product. Requires one layer.
  virtual RnnRun layer(const RnnProblem& problem) const = 0;
  /// Returns a run of a cell written in libtorch's ops, `lstm` or `custom`, in a C++ loop.
  virtual RnnRun in_ops(const RnnProblem& problem) const = 0;
  /// Returns the run of in_ops() with cell and loop as a TorchScript.
  virtual RnnRun in_torchscript(const RnnProblem& problem) const = 0;
};

/// Returns null in a build without libtorch.
const Libtorch* libtorch();

/// Sets both libraries to one thread, and notes libtorch's version.
void start_on_one_thread();

}  // namespace reel::bench
