// tests/count_to_ten.h — the small loop that the tests of pictures draw.
#pragma once

#include <string>
#include <tuple>
#include <utility>

#include "reel/reel.h"

namespace reel {

/// Returns the traced example of the page that describes TensorFlow's graphs, after a run that
/// counts from 1 to 10.
inline auto count_to_ten(const std::string& name) {
  auto f = jit(
      [](const Tensor& i, const Tensor& n) {
        const auto less = [](const Tensor& a, const Tensor& n) { return a < n; };
        const auto add = [](const Tensor& a, const Tensor& n) { return std::tuple{a + 2, n}; };
        const auto [ii, nn] = while_loop(less, add, std::tuple{i, n});
        return std::pair{ii + 3, nn + 4};
      },
      {.name = name});
  f(scalar(1, i32), scalar(10, i32));
  return f;
}

}  // namespace reel
