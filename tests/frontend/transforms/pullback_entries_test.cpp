// Pullbacks that are called in scans with entries that finish one by one. The bodies see other dims
// and values than the code outside.
#include <functional>
#include <utility>
#include <vector>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using In = std::vector<Tensor>;  // xs, x, w, memory
/// A function of x, over batch and features, and of memory, over batch, enc and features.
using Function = std::function<Tensor(const Tensor& x, const Tensor& w, const Tensor& memory)>;
using Pullback = std::function<Tensor(const Tensor&)>;
using Scanned = std::function<Tensor(const Tensor& xs, const Pullback& pull)>;

class PullbackEntriesTest : public InEveryMode {
 protected:
  PullbackEntriesTest() {
    manual_seed(1);
    const Dim batch("batch", 3), features("features", 2);
    const Dim time("time", tensor({1, 3, 2}, {batch})), enc("enc", tensor({2, 3, 1}, {batch}));
    in = {mask_padding(random_normal({batch, time, features}, f64)),
          random_normal({batch, features}, f64), random_normal({features}, f64),
          mask_padding(random_normal({batch, enc, features}, f64))};
  }

  /// Every iteration applies the pullback to a slice of xs.
  static Scanned scanned(bool reverse, const Checkpoint& policy) {
    return [=](const Tensor& xs, const Pullback& pull) {
      const auto body = [&](const Tensor& x, const Tensor& s) {
        const Tensor next = tanh(pull(x) + s);
        return std::pair{next * x, next};
      };
      const auto result = scan(Scan{.spatial_dim = xs.dim("time"),
                                    .initial = zeros({xs.dim("batch"), xs.dim("features")}, f64),
                                    .xs = xs,
                                    .body = body,
                                    .reverse = reverse,
                                    .checkpoint = policy});
      return sum(square(result.ys)) + sum(result.state);
    };
  }
  static Tensor mapped(const Tensor& xs, const Pullback& pull) {
    return sum(sin(map(pull, xs, {.spatial_dim = xs.dim("time")})));
  }

  /// Takes the gradient inside the body.
  static auto with_gradients(const Function& f, const Scanned& scanned) {
    return [=](const In& in) {
      return scanned(in[0], [&](const Tensor& cotangent) {
        const auto value = [&](const Tensor& x) { return sum(f(x, in[2], in[3]) * cotangent); };
        return grad(value)(in[1]);
      });
    };
  }
  static auto with_pullback(const Function& f, const Scanned& scanned) {
    return [=](const In& in) {
      const auto [y, pull] = vjp([&](const Tensor& x) { return f(x, in[2], in[3]); }, in[1]);
      return scanned(in[0], pull);
    };
  }

  void expect_as_gradients_inside(const Function& f) const {
    const std::vector<Scanned> all{scanned(false, {}), scanned(false, Checkpoint::every(2)),
                                   scanned(true, {}), mapped};
    const auto [y, made_before] = vjp([&](const Tensor& x) { return f(x, in[2], in[3]); }, in[1]);
    for (std::size_t k = 0; k < all.size(); ++k) {
      SCOPED_TRACE(str("scan ", k));
      const auto expected = value_and_grad(with_gradients(f, all[k]))(in);
      const auto actual = run(value_and_grad(with_pullback(f, all[k])))(in);
      const In around = grad(run(with_pullback(f, all[k])))(in);
      expect_all_close(actual.first, expected.first, 1e-11);
      for (std::size_t i = 0; i < in.size(); ++i) {
        const Tensor wanted = mask_padding(expected.second[i]);
        expect_all_close(mask_padding(actual.second[i]), wanted, 1e-11);
        expect_all_close(mask_padding(around[i]), wanted, 1e-11);
      }
      const auto of_xs = [&, pull = made_before](const Tensor& xs) { return all[k](xs, pull); };
      const auto from_outside = run(value_and_grad(of_xs))(in[0]);
      expect_all_close(from_outside.first, expected.first, 1e-11);
      expect_all_close(mask_padding(from_outside.second), mask_padding(expected.second[0]), 1e-11);
    }
  }

  static Tensor attention(const Tensor& x, const Tensor& memory) {
    const Dim enc = memory.dim("enc");
    return sum(softmax(memory * x, enc) * memory, enc);
  }
  static Tensor over_memory(const Tensor& x, const Tensor& w, const Tensor& memory,
                            const Checkpoint& policy) {
    const auto body = [&](const Tensor& m, const Tensor& s) {
      return std::pair{None{}, tanh(s * w + m)};
    };
    return scan(Scan{.spatial_dim = memory.dim("enc"),
                     .initial = x,
                     .xs = memory,
                     .body = body,
                     .checkpoint = policy})
        .state;
  }

  In in;
};

TEST_P(PullbackEntriesTest, PullbackOfElementwiseOpsIsTheGradientInside) {
  expect_as_gradients_inside(
      [](const Tensor& x, const Tensor& w, const Tensor&) { return tanh(x * w) * x; });
}
TEST_P(PullbackEntriesTest, PullbackOfAttentionIsTheGradientInside) {
  expect_as_gradients_inside([](const Tensor& x, const Tensor& w, const Tensor& memory) {
    return tanh(x * w) * attention(x, memory);
  });
}
TEST_P(PullbackEntriesTest, PullbackOfALoopOverOtherLengthsIsTheGradientInside) {
  for (const Checkpoint& policy : {Checkpoint(), Checkpoint::every(2)})
    expect_as_gradients_inside([policy](const Tensor& x, const Tensor& w, const Tensor& memory) {
      return over_memory(x, w, memory, policy);
    });
}
TEST_P(PullbackEntriesTest, PullbackOfALoopWithCapturedLengthsIsTheGradientInside) {
  for (const Checkpoint& policy : {Checkpoint(), Checkpoint::every(2), Checkpoint::budget(1)})
    expect_as_gradients_inside([policy](const Tensor& x, const Tensor& w, const Tensor& memory) {
      const auto body = [&](const Tensor&, const Tensor& s) {
        return tanh(s * w + attention(s, memory));
      };
      return fori_loop(0, 3, body, x, {.checkpoint = policy});
    });
}
TEST_P(PullbackEntriesTest, PullbackOfAStackIsTheGradientInside) {
  expect_as_gradients_inside([](const Tensor& x, const Tensor& w, const Tensor& memory) {
    const auto body = [&](const Tensor& m, const Tensor& s) {
      const Tensor next = tanh(s * w + m);
      return std::pair{next * x, next};
    };
    const auto result =
        scan(Scan{.spatial_dim = memory.dim("enc"), .initial = x, .xs = memory, .body = body});
    return sum(result.ys * memory, memory.dim("enc"));
  });
}
TEST_P(PullbackEntriesTest, PullbackOfACheckpointedFunctionIsTheGradientInside) {
  expect_as_gradients_inside([](const Tensor& x, const Tensor& w, const Tensor& memory) {
    return checkpoint([&](const Tensor& x) { return tanh(x * w) * attention(x, memory); })(x);
  });
}
TEST_P(PullbackEntriesTest, PullbackOfABranchOrJittedCallIsTheGradientInside) {
  expect_as_gradients_inside([](const Tensor& x, const Tensor& w, const Tensor& memory) {
    return cond(
        sum(x) < 1e9, [&] { return tanh(x * w) * attention(x, memory); }, [&] { return x; });
  });
  expect_as_gradients_inside([](const Tensor& x, const Tensor& w, const Tensor& memory) {
    return jit([](const Tensor& x, const Tensor& w, const Tensor& memory) {
      return tanh(x * w) * attention(x, memory);
    })(x, w, memory);
  });
}
TEST_P(PullbackEntriesTest, PullbackOfACustomGradientIsTheGradientInside) {
  using Residuals = std::tuple<Tensor, Tensor, Tensor>;
  const auto f = custom_vjp(
      [](const Tensor& x, const Tensor& memory) {
        const Tensor y = tanh(x * memory);
        return std::pair{y, Residuals{x, memory, y}};
      },
      [](const Residuals& residuals, const Tensor& cotangent) {
        const auto& [x, memory, y] = residuals;
        const Tensor inner = (1 - square(y)) * cotangent;
        return std::tuple{sum(inner * memory, memory.dim("enc")), inner * x};
      });
  expect_as_gradients_inside([f](const Tensor& x, const Tensor&, const Tensor& memory) {
    return sum(f(x, memory), memory.dim("enc"));
  });
}
TEST_P(PullbackEntriesTest, PullbackOfAJittedFunctionIsTheGradientInside) {
  expect_as_gradients_inside([](const Tensor& x, const Tensor& w, const Tensor& memory) {
    return jit([&](const Tensor& x) { return tanh(x * w) * attention(x, memory); })(x);
  });
}
// The first entry finishes first, so the body sees other lengths than the trace captured.
TEST_P(PullbackEntriesTest, PullbackOfATraceFromOutsideEqualsThatOfTheFunction) {
  const Dim enc = in[3].dim("enc");
  const auto over_enc = [&](const Tensor& x) { return tanh(x * in[3]); };
  const auto summed = [&](const Tensor& x) { return sum(square(over_enc(x)) * in[3], enc); };
  const auto checkpointed = [&](const Tensor& x) { return checkpoint(summed)(x); };
  const auto nested = [&](const Tensor& x) { return jit(summed)(x) * x; };
  const auto second = [&](const Tensor& x) {
    return grad([&](const Tensor& x) { return sum(summed(x)); })(x);
  };
  const auto expect_same = [&](const auto& f) {
    const Tensor &xs = in[0], &x = in[1];
    const auto pull = vjp(f, x).second;
    const auto pull_of_jitted = vjp(jit(f), x).second;
    const auto jitted = jit(f);
    jitted(x);
    for (const Scanned& scan : {scanned(false, {}), scanned(true, {}), Scanned(mapped)}) {
      const auto with = [&](const auto& pull) {
        return run(value_and_grad([&](const Tensor& xs) { return scan(xs, pull); }))(xs);
      };
      const auto expected = with(pull), actual = with(pull_of_jitted);
      expect_all_close(actual.first, expected.first, 1e-11);
      expect_all_close(mask_padding(actual.second), mask_padding(expected.second), 1e-11);
      const auto forward = with([&](const Tensor& v) { return f(v); });
      const auto forward_jitted = with([&](const Tensor& v) { return jitted(v); });
      expect_all_close(forward_jitted.first, forward.first, 1e-11);
      expect_all_close(mask_padding(forward_jitted.second), mask_padding(forward.second), 1e-11);
    }
  };
  expect_same(summed);
  expect_same(checkpointed);
  expect_same(nested);
  expect_same(second);
}

REEL_IN_EVERY_MODE(PullbackEntriesTest);

}  // namespace
}  // namespace reel
