// Checkpoint with bodies that make Dims: recomputed iterations make them again.
#include "reel/tests/frontend/policies/policies.h"
#include "reel/tests/gradients.h"
#include "reel/trace/executors/spill/spilled.h"

namespace reel {
namespace {

class CheckpointDimsTest : public UnderPolicies {
 protected:
  static constexpr int kSteps = 7;

  /// Returns a scan over k = 1, 2, ... under a policy. step: (k, h, w) -> the next state, a scalar.
  template <class Step>
  static auto scan_of(const Step& step) {
    return [step](const Checkpoint& policy) {
      return [step, policy](const Tensor& w) {
        const auto body = [&](const Tensor& k, const Tensor& h) {
          const Tensor next = step(k, h, w);
          return std::pair{None{}, next};
        };
        return scan(Scan{.initial = scalar(0.3, f64),
                         .xs = range(kSteps) + 1,
                         .body = body,
                         .checkpoint = policy})
            .state;
      };
    };
  }
  /// Expects that policies change neither first nor second gradients. is_exact: second gradients
  /// must have the same bits, except in plans. False for bodies in which eager mode adds in another
  /// order: it records only loops under a policy (docs/decisions/0007).
  template <class Make>
  void expect_first_and_second(const Make& make, bool is_exact = true) const {
    const Tensor w = scalar(0.9, f64);
    expect_same_gradients(make, w);
    expect_same_second_gradients(make, w, is_exact && this->is_exact());
    const auto norm = [f = make(Checkpoint::every(2))](const Tensor& w) {
      return sum(square(grad(f)(w)));
    };
    expect_gradient_of(norm, w, run(grad(norm))(w), 1e-6);
  }
};
REEL_IN_EVERY_MODE(CheckpointDimsTest);

Tensor over_new_dim(const Tensor& k, const Tensor& x) {
  const Dim n("n", cast(k, i32));
  return sum(sin(expand(x, {n})) * cast(range(n), f64)) * 0.1;
}
/// Like over_new_dim, but with ops that are costly enough to be saved, so that values along the dim
/// are residuals and not only the dim.
Tensor costly_over_new_dim(const Tensor& k, const Tensor& x) {
  const Dim n("n", cast(k, i32));
  const Tensor y = softmax(sin(expand(x, {n}) * cast(range(n), f64)), n);
  const Tensor z = softmax(y * y * x, n);
  return sum(z * z * y) * 0.1;
}

TEST_P(CheckpointDimsTest, GradientsAreTheSameIfTheDimChangesSize) {
  expect_first_and_second(scan_of([](const Tensor& k, const Tensor& h, const Tensor& w) {
    return h + over_new_dim(k, h * w);
  }));
}

TEST_P(CheckpointDimsTest, GradientsAreTheSameIfResidualsHaveTheDim) {
  expect_first_and_second(scan_of([](const Tensor& k, const Tensor& h, const Tensor& w) {
                            return h + costly_over_new_dim(k, h * w);
                          }),
                          !is_eager());
}

TEST_P(CheckpointDimsTest, GradientsAreTheSameIfTheDimHasOneSize) {
  expect_first_and_second(scan_of([](const Tensor&, const Tensor& h, const Tensor& w) {
                            const Dim n("n", 3);
                            const Tensor x =
                                softmax(sin(expand(h * w, {n})) * cast(range(n), f64), n);
                            return h + sum(x * x) * 0.1;
                          }),
                          !is_eager());
}

TEST_P(CheckpointDimsTest, GradientsAreTheSameIfTheDimIsRagged) {
  const Dim batch("batch", 2);
  expect_first_and_second(scan_of([batch](const Tensor& k, const Tensor& h, const Tensor& w) {
                            const Dim n("n", tensor({1, 0}, {batch}) + cast(k, i32));
                            const Tensor x = sin(expand(h * w, {batch, n})) * cast(range(n), f64);
                            return h + sum(x * x) * 0.001;
                          }),
                          !is_eager());
}

TEST_P(CheckpointDimsTest, ComputedFromOthersAndOfSeveralTensors) {
  expect_first_and_second(scan_of([](const Tensor& k, const Tensor& h, const Tensor& w) {
                            const Dim n("n", cast(k, i32));
                            const Tensor x = sin(expand(h * w, {n})) * cast(range(n), f64);
                            const Tensor longer = pad(x, n, 1, 0, 0.5, n + 1);
                            const Tensor y = exp(longer * 0.1) * longer;
                            return h + sum(y * y) * 0.01 +
                                   sum(x * slice(y, n + 1, 1, {}, n)) * 0.01;
                          }),
                          !is_eager());
}

TEST_P(CheckpointDimsTest, LoopsInsideMayMakeDims) {
  const auto make = [](const Checkpoint& policy) {
    const auto inner = [policy](const Tensor& k, const Tensor& h, const Tensor& w) {
      const auto step = [&](const Tensor& j, const Tensor& s) {
        return std::pair{None{}, s + over_new_dim(j, s * w) + costly_over_new_dim(j, s * w)};
      };
      const Dim n("n", cast(k, i32));
      return scan(Scan{.spatial_dim = n,
                       .initial = h,
                       .xs = range(n),
                       .body = step,
                       .checkpoint = policy})
          .state;
    };
    return scan_of(inner)(policy);
  };
  expect_first_and_second(make, false);
}

TEST_P(CheckpointDimsTest, GradientsAreTheSameIfTheLengthIsUnknown) {
  using State = std::pair<Tensor, Tensor>;
  const auto make = [](const Checkpoint& policy) {
    return [policy](const Tensor& w) {
      const auto cond = [](const State& s) { return s.second < 2.0; };
      const auto body = [&](const State& s) {
        return State{s.first + 1, s.second + over_new_dim(s.first, s.second * w) +
                                      costly_over_new_dim(s.first, s.second * w)};
      };
      return while_loop(cond, body, State{scalar(2, i32), scalar(0.3, f64)}, {.checkpoint = policy})
          .second;
    };
  };
  expect_first_and_second(make);
}

/// Each iteration reads and writes a whole state that grows along its own Dim.
TEST_P(CheckpointDimsTest, GradientsAreTheSameIfTheStateGrows) {
  struct History {
    Tensor step, h;
    Dim d;
  };
  const auto make = [](const Checkpoint& policy) {
    return [policy](const Tensor& w) {
      const Dim d("history", scalar(0));
      const auto body = [&](const History& s) {
        const Tensor next = tanh(w + sum(s.h * s.h, s.d));
        auto [h, d] = cum_concat(next, tanh(s.h * w), s.d);
        return History{s.step + 1, h, d};
      };
      const History last =
          while_loop([](const History& s) { return s.step < 6; }, body,
                     History{scalar(0), zeros({d}, f64), d}, {.checkpoint = policy});
      return sum(square(last.h));
    };
  };
  expect_first_and_second(make, false);
}

TEST_P(CheckpointDimsTest, ThirdGradientsAndTangents) {
  const auto make = scan_of(
      [](const Tensor& k, const Tensor& h, const Tensor& w) { return h + over_new_dim(k, h * w); });
  const Tensor w = scalar(0.9, f64), v = ones_like(w);
  const auto third = [&](const Checkpoint& policy) {
    return run(grad(grad(grad(make(policy)))))(w);
  };
  const auto tangent = [&](const Checkpoint& policy) {
    return run([&, f = make(policy)](const Tensor& w) { return jvp(grad(f), w, v).second; })(w);
  };
  const auto product = [&](const Checkpoint& policy) {
    return run([&, f = make(policy)](const Tensor& w) { return hvp(f, w, v); })(w);
  };
  const Tensor expected = third({}), second = run(grad(grad(make({}))))(w);
  for (const Checkpoint& policy : policies()) {
    SCOPED_TRACE(text_of(policy));
    expect_all_close(third(policy), expected, 1e-11);
    expect_all_close(tangent(policy), second, 1e-12);
    expect_all_close(product(policy), second, 1e-12);
  }
}

TEST_P(CheckpointDimsTest, GradientsAreTheSameIfResidualsAreSpilled) {
  const auto f = [](const SwapMemory& swaps, const Checkpoint& policy) {
    return [swaps, policy](const Tensor& w) {
      const auto body = [&](const Tensor& k, const Tensor& h) {
        return std::pair{None{}, h + costly_over_new_dim(k, h * w)};
      };
      return scan(Scan{.initial = scalar(0.3, f64),
                       .xs = range(kSteps) + 1,
                       .body = body,
                       .checkpoint = policy,
                       .swap_memory = swaps})
          .state;
    };
  };
  const Tensor w = scalar(0.9, f64), expected = run(grad(grad(f(false, {}))))(w);
  SmallSpillBlocks blocks;
  for (const Checkpoint& policy : {Checkpoint(), Checkpoint::every(3), Checkpoint::budget(500)}) {
    expect_all_close(run(grad(grad(f(true, policy))))(w), expected, 1e-12);
    if (GetParam() != RunMode::plan) {  // there, one block holds the chunk of all steps
      EXPECT_GT(blocks.written(), 0);
    }
  }
}

TEST_P(CheckpointDimsTest, DimsOfFinishedEntriesKeepTheirGradients) {
  const Dim batch("batch", 3), time("time", tensor({5, 2, 4}, {batch}));
  const auto make = [&](const Checkpoint& policy) {
    return [&, policy](const Tensor& w) {
      const auto body = [&](const Tensor& k, const Tensor& h) {
        const Dim n("n", cast(k, i32)), m("m", tensor({2, 1, 3}, {batch}) + cast(k, i32));
        const Tensor x = sin(expand(h * w, {batch, n})) * cast(range(n), f64);
        const Tensor y = softmax(cos(expand(h * w, {batch, m})) * cast(range(m), f64), m);
        const Tensor next = h + sum(x * x, n) * 0.1 + sum(y * y, m) * 0.01;
        return std::pair{next, next};
      };
      const auto made = scan(Scan{.spatial_dim = time,
                                  .initial = zeros({batch}, f64) + 0.3,
                                  .xs = range(time) + 1,
                                  .body = body,
                                  .checkpoint = policy});
      return sum(square(made.ys)) + sum(made.state);
    };
  };
  expect_first_and_second(make, false);
}

// A recomputed iteration reads less than the original: only the dim of a capture.
TEST_P(CheckpointDimsTest, GradientsAreTheSameIfOnlyACapturesDimIsRead) {
  const auto make = [](const Checkpoint& policy) {
    return [policy](const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        return std::pair{dropout(w, 0.25), h + x};
      };
      const Dim time("time", kSteps);
      const auto ys = scan(Scan{.spatial_dim = time,
                                .initial = scalar(0., f64),
                                .xs = cast(range(time), f64),
                                .body = body,
                                .checkpoint = policy})
                          .ys;
      return sum(sin(ys));
    };
  };
  for (const int size : {3, 2}) {
    const Dim n("n", scalar(size));
    expect_same_gradients(make, full({n}, 0.7, f64));
  }
}

// The inner loop runs over a dim with lengths over the outer loop's batch. Finished entries get a
// new layout of this dim, also in recomputed iterations.
TEST_P(CheckpointDimsTest, SecondGradientsOfARaggedLoopInARaggedLoop) {
  const Dim batch("batch", 2), in("in", 2), time("time", tensor({2, 1}, {batch})),
      inner("inner", tensor({1, 2}, {batch}));
  manual_seed(5);
  const Tensor x = random_normal({time, batch, in}, f64), w = random_normal({in}, f64);
  const auto second = [&](const Checkpoint& of_inner, const Checkpoint& of_outer) {
    const auto f = [=](const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const auto step = [&](const Tensor& a, const Tensor& h) {
          const Tensor next = tanh(h * w + x * a);
          return std::pair{next * next, next};
        };
        const auto of_step = scan(Scan{.spatial_dim = inner,
                                       .initial = h,
                                       .xs = cast(range(inner), f64) + 0.3,
                                       .body = step,
                                       .checkpoint = of_inner});
        return std::pair{sum(of_step.ys, inner), of_step.state};
      };
      return sum(square(scan(Scan{.spatial_dim = time,
                                  .initial = zeros({batch, in}, f64) + 0.1,
                                  .xs = x,
                                  .body = body,
                                  .checkpoint = of_outer})
                            .ys));
    };
    return run(grad([=](const Tensor& w) { return sum(sin(grad(f)(w))); }))(w);
  };
  const Tensor expected = second({}, {});
  for (const Checkpoint& inside : {Checkpoint::every(1), Checkpoint::every(8)})
    for (const Checkpoint& outside : {Checkpoint(), Checkpoint::every(1), Checkpoint::every(3)})
      expect_all_close(second(inside, outside), expected, 1e-12);
}

}  // namespace
}  // namespace reel
