#include "loops_by_hand.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace reel::bench {

SelectiveScanByHand::SelectiveScanByHand(std::size_t batch, std::size_t steps, std::size_t channels,
                                         Floats step, Floats x, Floats decay, Floats in, Floats out)
    : batch_(batch),
      steps_(steps),
      channels_(channels),
      step_(std::move(step)),
      x_(std::move(x)),
      decay_(std::move(decay)),
      in_(std::move(in)),
      out_(std::move(out)),
      a_(step_.size() * kStates),
      h_(a_.size()),
      y_(step_.size()),
      state_(channels * kStates),
      d_step_(step_.size()),
      d_x_(step_.size()),
      d_decay_(state_.size()),
      d_in_(in_.size()),
      d_out_(in_.size()) {}

double SelectiveScanByHand::run() {
  for (std::size_t row = 0; row < batch_; ++row) {
    std::fill(state_.begin(), state_.end(), 0.f);
    for (std::size_t time = 0; time < steps_; ++time) forward(row, time);
  }
  double loss = 0;
  for (const float y : y_) loss += static_cast<double>(y) * static_cast<double>(y);
  std::fill(d_decay_.begin(), d_decay_.end(), 0.f);
  for (std::size_t row = 0; row < batch_; ++row) {
    std::fill(state_.begin(), state_.end(), 0.f);
    for (std::size_t time = steps_; time-- > 0;) backward(row, time);
  }
  return loss / static_cast<double>(y_.size());
}

void SelectiveScanByHand::forward(std::size_t row, std::size_t time) {
  const std::size_t at = row * steps_ + time;
  const float* __restrict in = &in_[at * kStates];
  const float* __restrict out = &out_[at * kStates];
  const float* __restrict decay = decay_.data();
  float* __restrict a = &a_[at * channels_ * kStates];
  float* __restrict h = &h_[at * channels_ * kStates];
  float* __restrict state = state_.data();
  for (std::size_t c = 0; c < channels_; ++c) {
    const float step = step_[at * channels_ + c], input = step * x_[at * channels_ + c];
    float y = 0;
    for (std::size_t n = 0; n < kStates; ++n) {
      const std::size_t i = c * kStates + n;
      a[i] = std::exp(-step * decay[i]);
      h[i] = state[i] = a[i] * state[i] + input * in[n];
      y += h[i] * out[n];
    }
    y_[at * channels_ + c] = y;
  }
}

/// state_ has the cotangents of the states, times the decay, from the step behind.
void SelectiveScanByHand::backward(std::size_t row, std::size_t time) {
  const std::size_t at = row * steps_ + time, row_size = channels_ * kStates;
  const Floats start(time ? 0 : row_size);
  const float* __restrict in = &in_[at * kStates];
  const float* __restrict out = &out_[at * kStates];
  const float* __restrict decay = decay_.data();
  const float* __restrict a = &a_[at * row_size];
  const float* __restrict h = &h_[at * row_size];
  const float* __restrict before = time ? h - row_size : start.data();
  float* __restrict state = state_.data();
  float* __restrict d_decay = d_decay_.data();
  const float scale = 2.f / static_cast<float>(y_.size());
  float d_in[kStates] = {}, d_out[kStates] = {};
  for (std::size_t c = 0; c < channels_; ++c) {
    const float step = step_[at * channels_ + c], x = x_[at * channels_ + c], input = step * x;
    const float dy = scale * y_[at * channels_ + c];
    float d_exponent = 0, d_input = 0;
    for (std::size_t n = 0; n < kStates; ++n) {
      const std::size_t i = c * kStates + n;
      const float g = state[i] + dy * out[n];
      d_out[n] += dy * h[i];
      const float d_power = g * before[i] * a[i];
      d_exponent += d_power * decay[i];
      d_decay[i] -= d_power * step;
      d_input += g * in[n];
      d_in[n] += g * input;
      state[i] = g * a[i];
    }
    d_step_[at * channels_ + c] = d_input * x - d_exponent;
    d_x_[at * channels_ + c] = d_input * step;
  }
  std::copy(d_in, d_in + kStates, &d_in_[at * kStates]);
  std::copy(d_out, d_out + kStates, &d_out_[at * kStates]);
}

NeuralOdeByHand::NeuralOdeByHand(std::size_t steps, float dt, Floats into, Floats bias, Floats out,
                                 Floats start)
    : steps_(steps),
      dt_(dt),
      into_(std::move(into)),
      bias_(std::move(bias)),
      out_(std::move(out)),
      start_(std::move(start)),
      out_turned_(out_.size()),
      y_(2 * (steps + 1)),
      slopes_(4 * steps),
      d_into_(into_.size()),
      d_bias_(bias_.size()),
      d_out_(out_.size()) {
  for (std::size_t i = 0; i < kHidden; ++i)
    for (std::size_t k = 0; k < 2; ++k) out_turned_[k * kHidden + i] = out_[2 * i + k];
}

void NeuralOdeByHand::slope(Slope& at, float (&k)[2]) const {
  const float* __restrict into = into_.data();
  const float* __restrict out = out_turned_.data();
  float first = 0, second = 0;
  for (std::size_t i = 0; i < kHidden; ++i) {
    const float sum = at.y[0] * into[i] + at.y[1] * into[kHidden + i] + bias_[i];
    const float power = std::exp(-2 * std::fabs(sum));
    at.hidden[i] = std::copysign((1 - power) / (1 + power), sum);
    first += at.hidden[i] * out[i];
    second += at.hidden[i] * out[kHidden + i];
  }
  k[0] = first;
  k[1] = second;
}

double NeuralOdeByHand::forward() {
  const float fractions[4] = {0, dt_ / 2, dt_ / 2, dt_};
  std::copy(start_.begin(), start_.end(), y_.begin());
  double loss = 0;
  for (std::size_t t = 0; t < steps_; ++t) {
    const float* y = &y_[2 * t];
    float k[4][2];
    for (std::size_t j = 0; j < 4; ++j) {
      Slope& at = slopes_[4 * t + j];
      for (std::size_t i = 0; i < 2; ++i) at.y[i] = j ? y[i] + fractions[j] * k[j - 1][i] : y[i];
      slope(at, k[j]);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      const float next = y[i] + dt_ / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
      y_[2 * t + 2 + i] = next;
      loss += static_cast<double>(next) * static_cast<double>(next);
    }
  }
  return loss / static_cast<double>(2 * steps_);
}

void NeuralOdeByHand::add_gradients(const Slope& at, const float (&dk)[2], float (&dy)[2]) {
  const float* __restrict into = into_.data();
  const float* __restrict out = out_turned_.data();
  float* __restrict d_into = d_into_.data();
  float* __restrict d_bias = d_bias_.data();
  float* __restrict d_out = d_out_.data();
  float first = 0, second = 0;
  for (std::size_t i = 0; i < kHidden; ++i) {
    const float hidden = at.hidden[i];
    d_out[i] += hidden * dk[0];
    d_out[kHidden + i] += hidden * dk[1];
    const float d = (out[i] * dk[0] + out[kHidden + i] * dk[1]) * (1 - hidden * hidden);
    d_bias[i] += d;
    d_into[i] += d * at.y[0];
    d_into[kHidden + i] += d * at.y[1];
    first += d * into[i];
    second += d * into[kHidden + i];
  }
  dy[0] = first;
  dy[1] = second;
}

void NeuralOdeByHand::backward() {
  for (Floats* all : {&d_into_, &d_bias_, &d_out_}) std::fill(all->begin(), all->end(), 0.f);
  const float fractions[4] = {0, dt_ / 2, dt_ / 2, dt_};
  const float weights[4] = {dt_ / 6, dt_ / 3, dt_ / 3, dt_ / 6};
  float dy[2] = {};
  for (std::size_t t = steps_; t-- > 0;) {
    float dk[4][2], before[2];
    for (std::size_t i = 0; i < 2; ++i) {
      dy[i] += y_[2 * t + 2 + i] / static_cast<float>(steps_);
      before[i] = dy[i];
      for (std::size_t j = 0; j < 4; ++j) dk[j][i] = weights[j] * dy[i];
    }
    for (std::size_t j = 4; j-- > 0;) {
      float of_slope[2];
      add_gradients(slopes_[4 * t + j], dk[j], of_slope);
      for (std::size_t i = 0; i < 2; ++i) {
        before[i] += of_slope[i];
        if (j) dk[j - 1][i] += fractions[j] * of_slope[i];
      }
    }
    std::copy(before, before + 2, dy);
  }
}

}  // namespace reel::bench
