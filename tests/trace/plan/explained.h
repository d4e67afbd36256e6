// tests/trace/plan/explained.h — parts of the texts that explain() returns, and models that tests
// explain.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {

/// Returns the text without the lines of machine-dependent numbers.
inline std::string without_times(const std::string& text) {
  std::istringstream in(text);
  std::string result;
  for (std::string line; std::getline(in, line);) {
    const std::string words = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    if (!words.starts_with("time:") && !words.starts_with("rates:")) result += line + '\n';
  }
  return result;
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Returns the first line that contains `part`, from `part` on.
inline std::string line_with(const std::string& text, const std::string& part) {
  const std::size_t at = text.find(part);
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

/// Returns the text from `part` on, without times.
inline std::string from(const std::string& text, const std::string& part) {
  return without_times(text.substr(std::min(text.find(part), text.size())));
}

/// Returns the explanation after one call of f.
template <class F, class... Args>
std::string explained(const F& f, const Args&... args) {
  const auto jitted = jit(f);
  jitted(args...);
  return jitted.explain();
}

class ExplainTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(3); }

  struct Model {
    LstmCell cell;
    Linear out;
  };
  const Dim time{"time", 6}, batch{"batch", 16}, in{"in", 256}, hidden{"hidden", 80},
      classes{"classes", 10};
  const Model model{LstmCell::init(in, hidden), Linear::init(hidden, classes)};
  const Tensor x = random_normal({time, batch, in});

  static Tensor loss(const Model& m, const Tensor& x) {
    const auto body = [&](const Tensor& x, const LstmCell::State& s) {
      const auto [y, next] = m.cell(x, s);
      return std::pair{m.out(y), next};
    };
    return mean(square(scan(Scan{.spatial_dim = x.dim("time"),
                                 .initial = m.cell.initial_state({x.dim("batch")}),
                                 .xs = x,
                                 .body = body,
                                 .name = "lstm"})
                           .ys));
  }

  /// Returns a scan of tanh(h + x) over plain sizes with five iterations, and its input.
  static auto small_scan(std::int64_t rows = 2) {
    return std::pair{[](const Tensor& x, const Tensor& h) {
                       const auto body = [](const Tensor& x, const Tensor& h) {
                         const Tensor y = tanh(h + x);
                         return std::pair{y, y};
                       };
                       return scan(Scan{.initial = h, .xs = x, .body = body}).ys;
                     },
                     ones({5, rows, 3})};
  }
};

}  // namespace reel
