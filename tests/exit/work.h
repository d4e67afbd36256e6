// tests/exit/work.h — Work, typical uses of the library, to repeat at the end of a process.
#pragma once

#include <vector>

#include "reel/reel.h"

namespace reel {

/// Functions that use all per-thread and per-process state of the library, and their results. The
/// constructor runs them for the first time, while main() runs.
class Work {
 public:
  Work() : expected_(all()) {}

  /// Runs them again. Returns true if the values are the same.
  bool has_same_values() const {
    const std::vector<std::vector<float>> now = all();
    return now == expected_;
  }

 private:
  static Tensor loss(const Tensor& w, const Tensor& x) {
    const auto step = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(matmul(h, w) + x);
      return std::pair{next, next};
    };
    return sum(scan(Scan{.initial = zeros({4, 8}), .xs = x, .body = step}).ys);
  }
  static Tensor until_large(const Tensor& x) {
    return while_loop([](const Tensor& x) { return sum(x) < 1000.f; },
                      [](const Tensor& x) { return x * 2.f + 1.f; }, x);
  }
  static Tensor swapped(const Tensor& w, const Tensor& x) {
    const auto step = [&](const Tensor& x, const Tensor& h) {
      return std::pair{None{}, tanh(matmul(h, w) + x)};
    };
    return sum(scan(Scan{.initial = zeros({4, 8}),
                         .xs = x,
                         .body = step,
                         .checkpoint = Checkpoint::every(4)})
                   .state);
  }

  static std::vector<std::vector<float>> all() {
    std::vector<std::vector<float>> values;
    const auto note = [&](const Tensor& x) { values.push_back(x.to_vector<float>()); };
    const Tensor w = full({8, 8}, 0.1), x = reshape(cast(range(640), f32) * 0.001f, {20, 4, 8});
    note(cast(scalar(3), f32) + (w + 2.f));
    note(sum(matmul(full({300, 300}, 0.5), full({300, 300}, 0.25)), Axes(0)));  // several threads
    note(matmul(transpose(w, {1, 0}), w));
    note(grad([](const Tensor& x) { return sum(x * x); })(w));
    note(grad(loss)(w, x));
    note(grad(swapped)(w, x));
    note(grad([](const Tensor& x) { return sum(until_large(x)); })(w));
    note(hvp([&](const Tensor& w) { return loss(w, x); }, w, w));
    note(TensorArray(w.type()).push_back(w).push_back(w + 1.f).stack());
    for (const Executor executor : {Executor::plan, Executor::interpreter, Executor::dataflow}) {
      const auto fast = jit(value_and_grad(loss), {.executor = executor});
      note(fast(w, x).second);
      note(fast(w, x).second);
      note(jit(until_large, {.executor = executor})(w * 1.f));
    }
    const Dim batch("batch", 3);
    const Dim time = Dim("time", tensor({3, 0, 2}, {batch})) + 1;
    note(sum(ones({batch, time}), time));
    std::vector<float> parts(8);
    parallel_for(
        8, [&](int i) { parts[static_cast<std::size_t>(i)] = sum(w * float(i)).item<float>(); });
    values.push_back(parts);
    return values;
  }

  std::vector<std::vector<float>> expected_;
};

}  // namespace reel
