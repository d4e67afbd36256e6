// bench/models/loops_by_hand.h — loops in C++ that recurrences are compared with. The file is
// compiled for the processor at hand, with vectors of all functions, and includes nothing of Reel.
#pragma once

#include <cstddef>
#include <vector>

namespace reel::bench {

/// The selective scan of a Mamba block, and its gradients for a loss of mean y². Results stay in
/// buffers that the loop owns.
class SelectiveScanByHand {
 public:
  using Floats = std::vector<float>;
  static constexpr std::size_t kStates = 16;

  /// step, x: {batch, time, channel}. decay: {channel, state}. in, out: {batch, time, state}.
  SelectiveScanByHand(std::size_t batch, std::size_t steps, std::size_t channels, Floats step,
                      Floats x, Floats decay, Floats in, Floats out);
  /// Runs forward and backward. Returns the loss.
  double run();

 private:
  void forward(std::size_t row, std::size_t time);
  void backward(std::size_t row, std::size_t time);

  std::size_t batch_, steps_, channels_;
  Floats step_, x_, decay_, in_, out_;
  Floats a_, h_, y_, state_;
  Floats d_step_, d_x_, d_decay_, d_in_, d_out_;
};

/// A neural ODE of two states, one hidden layer of tanh, and steps of RK4; with gradients for a
/// loss of mean y² over all steps.
class NeuralOdeByHand {
 public:
  using Floats = std::vector<float>;
  static constexpr std::size_t kHidden = 16;

  /// into: {2, hidden}. bias: {hidden}. out: {hidden, 2}. start: {2}.
  NeuralOdeByHand(std::size_t steps, float dt, Floats into, Floats bias, Floats out, Floats start);
  /// Returns the loss.
  double forward();
  /// Requires forward().
  void backward();

 private:
  struct Slope {
    float y[2], hidden[kHidden];
  };
  void slope(Slope& at, float (&k)[2]) const;
  void add_gradients(const Slope& at, const float (&dk)[2], float (&dy)[2]);

  std::size_t steps_;
  float dt_;
  Floats into_, bias_, out_, start_, out_turned_;
  Floats y_;
  std::vector<Slope> slopes_;
  Floats d_into_, d_bias_, d_out_;
};

}  // namespace reel::bench
