// tests/trace/plan/ragged_loops.h — RaggedLoopsTest, loops over ragged batches.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "reel/reel.h"

namespace reel {

/// Ragged batches {time, batch, feature}, and loops over them with states {batch, hidden}.
class RaggedLoopsTest : public ::testing::Test {
 protected:
  RaggedLoopsTest(std::int64_t size, double scale)
      : feature("feature", size),
        hidden("hidden", size),
        next("next", size),
        u(random_normal({hidden, next}) * scale) {}

  void SetUp() override { manual_seed(5); }

  Tensor batch(const std::vector<int>& lengths) const {
    const Dim batch("batch", std::ssize(lengths)), time("time", tensor(lengths, {batch}));
    return random_normal({time, batch, feature});
  }

  /// Returns the states of a scan over x that begins with zeros. step(x_t, h): the next state.
  template <class Step>
  Tensor scanned(const Tensor& x, const Step& step) const {
    const auto body = [&](const Tensor& x_t, const Tensor& h) {
      const Tensor y = step(x_t, h);
      return std::pair{y, y};
    };
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .initial = zeros({x.dim("batch"), hidden}),
                     .xs = x,
                     .body = body})
        .ys;
  }

  /// Returns h times a matrix {hidden, next}, with the dim of h.
  Tensor multiplied(const Tensor& h, const Tensor& matrix) const {
    return rename(matmul(h, matrix, hidden), next, hidden);
  }

  /// Returns the states tanh(h·u + x_t).
  Tensor recurrent(const Tensor& x) const {
    return scanned(x, [this](const Tensor& x_t, const Tensor& h) {
      return tanh(multiplied(h, u) + rename(x_t, feature, hidden));
    });
  }

  /// Returns states that attend to the whole of `memory`: its longest length is in the body's
  /// types.
  ///
  /// before: makes each state from another one, before the loop returns it.
  Tensor attended(const Tensor& x, const Tensor& memory,
                  const std::function<Tensor(const Tensor& h)>& before = {}) const {
    const Dim time = memory.dim("time");
    return scanned(x, [&](const Tensor& x_t, const Tensor& h) {
      const Tensor query = rename(matmul(h, u, hidden), next, feature);
      const Tensor weights = softmax(matmul(memory, query + x_t, feature), time);
      const Tensor made = tanh(rename(matmul(memory, weights, time), feature, hidden) + h * 0.5);
      return before ? before(made) : made;
    });
  }

  const Dim feature, hidden, next;
  const Tensor u;
};

}  // namespace reel
