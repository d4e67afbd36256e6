// bench/libtorch.h — libtorch's part in a comparison.
#pragma once

#include <functional>
#include <string>

#include "rnn.h"

namespace reel::bench {

/// How much is asked of a chain of ops.
enum class Chain {
  without_tape,          ///< no tensor requires a gradient
  in_inference_mode,     ///< what it computes can never take part in a gradient
  recorded,              ///< the graph is made, and freed
  forward_and_backward,  ///< the gradient of the first factor too
};

class Libtorch {
 public:
  virtual ~Libtorch() = default;
  /// Its version, and those of what it computes with.
  virtual std::string describe() const = 0;
  /// For every library that it computes with.
  virtual void set_threads(int count) const = 0;
  /// x · factor · factor · ..., element by element, of ones.
  virtual std::function<void()> multiply_chain(Chain what, int floats, int ops) const = 0;
  /// nn::LSTM or nn::GRU, which is the one that resets after the product: one layer.
  virtual RnnRun layer(const RnnProblem& problem) const = 0;
  /// A cell written in its ops, called in a C++ loop: `lstm` or `custom`.
  virtual RnnRun in_ops(const RnnProblem& problem) const = 0;
  /// The same cell and loop as a TorchScript.
  virtual RnnRun in_torchscript(const RnnProblem& problem) const = 0;
};

/// Null in a build without it.
const Libtorch* libtorch();

/// Has both compute on one thread, and notes which libtorch it is.
void start_on_one_thread();

}  // namespace reel::bench
