#include "state_space.h"

#include <algorithm>
#include <type_traits>

#include "libtorch_models.h"

namespace reel::bench {
namespace {

struct Arguments {
  Tensor a, b, x;  // {channel}, {channel}, {time, channel}
};

Tensor states_of(const Arguments& at) {
  const auto step = [&](const Tensor& x, const Tensor& h) {
    const Tensor next = at.a * h + at.b * x;
    return std::pair{next, next};
  };
  return scan(Scan{.spatial_dim = at.x.dim("time"),
                   .initial = zeros_like(at.a),
                   .xs = at.x,
                   .body = step})
      .ys;
}

Tensor loss_of(const Arguments& at) { return mean(square(states_of(at))); }

/// The recurrence as a loop in C++. Results stay in buffers that the loop owns.
class ByHand {
 public:
  ByHand(const StateSpaceSizes& s, const Arguments& at)
      : steps_(static_cast<std::size_t>(s.steps)),
        channels_(static_cast<std::size_t>(s.channels)),
        a_(at.a.to_vector<float>()),
        b_(at.b.to_vector<float>()),
        x_(at.x.to_vector<float>()),
        h_(x_.size()),
        dx_(s.has_gradient ? x_.size() : 0),
        state_(channels_),
        da_(channels_),
        db_(channels_) {}

  void forward() {
    std::fill(state_.begin(), state_.end(), 0.0f);
    for (std::size_t t = 0; t < steps_; ++t)
      forward_step(a_.data(), b_.data(), &x_[t * channels_], state_.data(), &h_[t * channels_]);
  }
  double loss() const {
    double sum = 0;
    for (std::size_t t = 0; t < steps_; ++t) {
      float of_step = 0;
      for (std::size_t c = 0, i = t * channels_; c < channels_; ++c, ++i) of_step += h_[i] * h_[i];
      sum += of_step;
    }
    return sum / static_cast<double>(h_.size());
  }
  void backward() {
    for (auto* all : {&state_, &da_, &db_}) std::fill(all->begin(), all->end(), 0.0f);
    const Floats start(channels_);
    for (std::size_t t = steps_; t-- > 0;) {
      const std::size_t i = t * channels_;
      backward_step(&x_[i], &h_[i], t ? &h_[i - channels_] : start.data(), &dx_[i]);
    }
  }

 private:
  /// Steps have pointers that do not alias, so that the compiler uses vectors.
  void forward_step(const float* __restrict a, const float* __restrict b, const float* __restrict x,
                    float* __restrict state, float* __restrict h) const {
    for (std::size_t c = 0; c < channels_; ++c) h[c] = state[c] = a[c] * state[c] + b[c] * x[c];
  }
  void backward_step(const float* __restrict x, const float* __restrict h,
                     const float* __restrict before, float* __restrict dx) {
    const float scale = 2.0f / static_cast<float>(h_.size());
    const float* __restrict a = a_.data();
    const float* __restrict b = b_.data();
    float* __restrict state = state_.data();
    float* __restrict da = da_.data();
    float* __restrict db = db_.data();
    for (std::size_t c = 0; c < channels_; ++c) {
      const float dh = state[c] + scale * h[c];
      da[c] += dh * before[c];
      db[c] += dh * x[c];
      dx[c] = dh * b[c];
      state[c] = dh * a[c];
    }
  }

  std::size_t steps_, channels_;
  Floats a_, b_, x_, h_, dx_, state_, da_, db_;
};

/// Returns a run that computes the states, and with gradients the loss.
Step reel_step(const StateSpaceSizes& s, const std::string& name, const Arguments& at,
               bool is_traced) {
  const auto step_of = [at](auto function) -> Step {
    return [=] {
      const auto results = function(at);
      if constexpr (std::is_same_v<std::decay_t<decltype(results)>, Tensor>)
        return 0.0;  // the states alone
      else
        return static_cast<double>(results.first.template item<float>());
    };
  };
  const JitOptions options{.name = name};
  const auto gradient = value_and_grad(loss_of);
  if (s.has_gradient) return is_traced ? step_of(jit(gradient, options)) : step_of(gradient);
  return is_traced ? step_of(jit(states_of, options)) : step_of(states_of);
}

}  // namespace

Model state_space(const StateSpaceSizes& s) {
  const std::string name = str("state space", s.has_gradient ? "" : " forward", " T=", s.steps,
                               " channels=", s.channels);
  const auto arguments = [=] {
    manual_seed(1);
    const Dim channel("channel", s.channels), time("time", s.steps);
    return Arguments{random_uniform({channel}, 0.5, 0.99), random_normal({channel}),
                     random_normal({time, channel})};
  };
  Model result{name, [=](bool is_traced) { return reel_step(s, name, arguments(), is_traced); }};
  result.other_name = "loop_by_hand";
  result.other = [=]() -> Step {
    return [=, loop = std::make_shared<ByHand>(s, arguments())] {
      loop->forward();
      if (!s.has_gradient) return 0.0;
      const double loss = loop->loss();
      loop->backward();
      return loss;
    };
  };
  if (libtorch_models())
    result.libtorch = [=] {
      return libtorch_models()->state_space(s, numbers_of_tree(arguments()));
    };
  return result;
}

}  // namespace reel::bench
