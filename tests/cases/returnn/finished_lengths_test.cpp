// Lengths of finished entries: in a body they are a running entry's, wherever they are read.
// Shorter and empty entries must not disturb others.
#include <limits>

#include "reel/tests/cases/entries_alone.h"

namespace reel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class ReturnnFinishedLengths : public EntriesAlone {
 protected:
  using Body = std::function<Tensor(const In& in, const Tensor& s)>;

  const Dim batch{"batch", 4};
  /// All kinds of entries: the first to finish is the longest along enc, and one never runs and is
  /// empty.
  const Dim steps{"steps", tensor({1, 3, 0, 2}, {batch})};
  const Dim enc{"enc", tensor({4, 2, 0, 3}, {batch})};

  static Tensor numbers(const Dims& dims, double low, double high, std::uint64_t seed) {
    manual_seed(seed);
    return mask_padding(random_uniform(dims, low, high, f64), kNan);
  }
  /// Returns a captured tensor, w, and a tensor along the steps.
  In inputs() const {
    return {numbers({batch, enc}, 0.3, 1, 1), scalar(0.8, f64), numbers({batch, steps}, 0.3, 1, 2)};
  }

  void expect_alone(const Body& body) const {
    expect_entries_alone(
        [&](const In& in) {
          const Dim batch = in[0].dim("batch");
          const auto [ys, last, dim] = scan(Scan{
              .spatial_dim = in[2].dim("steps"),
              .initial = ones({batch}, f64),
              .xs = in[2],
              .body =
                  [&](const Tensor& x, const Tensor& s) {
                    const Tensor read = body(in, s);
                    return std::pair{read * x, 0.5 * s + read};
                  },
          });
          return sum(square(ys)) + sum(last);
        },
        inputs(), {batch});
  }
};
REEL_IN_EVERY_MODE(ReturnnFinishedLengths);

TEST_P(ReturnnFinishedLengths, SumsThatTheBodyDividesBy) {
  expect_alone([](const In& in, const Tensor&) { return in[1] / sum(in[0], in[0].dim("enc")); });
}
TEST_P(ReturnnFinishedLengths, LengthsThatTheBodyDividesBy) {
  expect_alone([](const In& in, const Tensor&) {
    const Dim enc = in[0].dim("enc");
    return in[1] * sum(in[0], enc) / cast(enc.lengths(), f64);
  });
}
TEST_P(ReturnnFinishedLengths, TensorsMadeAlongThemDisturbNoEntry) {
  expect_alone([](const In& in, const Tensor& s) {
    const Dim batch = in[0].dim("batch"), enc = in[0].dim("enc");
    const Tensor made = ones({batch, enc}, f64) * s + cast(range(enc), f64) * in[1];
    return in[1] / sum(made, enc) + log(sum(where(mask(enc), in[1], scalar(0.0, f64)), enc));
  });
}
TEST_P(ReturnnFinishedLengths, ShapesLikeThatOfACapture) {
  expect_alone([](const In& in, const Tensor& s) {
    const Dim enc = in[0].dim("enc");
    const Tensor like = zeros(in[0].type()) + ones_like(in[0]) * s;
    return in[1] / sum(like, enc) + sqrt(max(in[0] * like, enc));
  });
}
TEST_P(ReturnnFinishedLengths, DimsComputedFromThem) {
  expect_alone([](const In& in, const Tensor& s) {
    const Dim enc = in[0].dim("enc");
    const Tensor longer = pad(in[0], enc, 0, 1, 0.5, enc + 1),
                 padded = pad(in[0] * s, enc, 1, 0, 0.25);
    return in[1] / sum(longer * in[1], enc + 1) + log(sum(padded, padded.dim("enc"))) +
           1.0 / sum(ones({in[0].dim("batch"), enc * 2}, f64) * s, enc * 2);
  });
}
TEST_P(ReturnnFinishedLengths, OrderAlongThem) {
  expect_alone([](const In& in, const Tensor& s) {
    const Dim enc = in[0].dim("enc");
    const Tensor shifted = shift(in[0], enc, 1), sums = cumsum(in[0] * s, enc);
    return in[1] / sum(reverse(in[0], enc) + shifted, enc) + 1.0 / max(sums, enc);
  });
}
TEST_P(ReturnnFinishedLengths, AttentionByHand) {
  expect_alone([](const In& in, const Tensor& s) {
    const Dim enc = in[0].dim("enc");
    const Tensor energies = exp(in[0] * in[1] + s);
    return sum(energies / sum(energies, enc) * in[0], enc) + log(sum(exp(in[0] * s), enc));
  });
}
TEST_P(ReturnnFinishedLengths, AScanInTheBody) {
  expect_alone([](const In& in, const Tensor& s) {
    const auto counted = scan(Scan{
        .spatial_dim = in[0].dim("enc"),
        .initial = zeros({in[0].dim("batch")}, f64),
        .xs = in[0],
        .body =
            [&](const Tensor& x, const Tensor& q) {
              return std::pair{x / (q + s), q + x * in[1]};
            },
    });
    return in[1] / counted.state + 1.0 / sum(counted.ys, counted.dim);
  });
}
TEST_P(ReturnnFinishedLengths, AScanOfUnknownLengthInTheBody) {
  expect_alone([](const In& in, const Tensor& s) {
    const Dim batch = in[0].dim("batch"), enc = in[0].dim("enc");
    const auto found = scan(Scan{
        .cond_dims = Dims{batch},
        .initial = sum(in[0], enc) * 0.1,
        .cond = [](const Tensor& q) { return logical_and(q > 0.0, q < 1.0); },
        .body =
            [&](const Tensor& q) {
              return std::pair{q * s, q + 0.3};
            },
    });
    return in[1] / cast(found.dim.lengths(), f64) + in[1] / sum(found.ys, found.dim);
  });
}
TEST_P(ReturnnFinishedLengths, AGradientInTheBody) {
  expect_alone([](const In& in, const Tensor& s) {
    const Dim enc = in[0].dim("enc");
    const Tensor before = sum(in[0], enc);  // read before the inner tape is opened
    return before + 1.0 / grad([&](const Tensor& v) { return sum(log(sum(in[0] * v, enc))); })(s);
  });
}
TEST_P(ReturnnFinishedLengths, LengthsOverThem) {
  const Dim sub("sub", tensor({2, 1, 3, 1, 1, 2, 9, 9, 9, 9, 9, 9, 2, 1, 1, 9}, {batch, enc}));
  In in = inputs();
  in.push_back(numbers({batch, enc, sub}, 0.3, 1, 3));
  expect_entries_alone(
      [](const In& in) {
        const Dim enc = in[0].dim("enc"), sub = in[3].dim("sub");
        return sum(scan(Scan{
                            .spatial_dim = in[2].dim("steps"),
                            .initial = ones({in[0].dim("batch")}, f64),
                            .xs = in[2],
                            .body =
                                [&](const Tensor& x, const Tensor& s) {
                                  const Tensor means = sum(in[3], sub) / cast(sub.lengths(), f64);
                                  return std::pair{None{}, s * in[1] + x / sum(means, enc)};
                                },
                        })
                       .state);
      },
      in, {batch});
}
TEST_P(ReturnnFinishedLengths, AStateAlongThem) {
  expect_entries_alone(
      [](const In& in) {
        const Dim enc = in[0].dim("enc");
        const auto [ys, last, dim] = scan(Scan{
            .spatial_dim = in[2].dim("steps"),
            .initial = in[0],
            .xs = in[2],
            .body =
                [&](const Tensor& x, const Tensor& s) {
                  return std::pair{in[1] / sum(s * s, enc), s * in[1] + x / sum(s, enc)};
                },
        });
        return sum(square(ys)) + sum(last);
      },
      inputs(), {batch});
}
TEST_P(ReturnnFinishedLengths, DimsThatAreNoArguments) {
  const In in = inputs();
  const auto f = [&](const Tensor& w) {
    return sum(scan(Scan{
                        .spatial_dim = steps,
                        .initial = ones({batch}, f64),
                        .body =
                            [&](const Tensor& s) {
                              const Tensor e = exp(in[0] * w + s);
                              return std::pair{None{}, sum(e / sum(e, enc) * in[0], enc) +
                                                           w / cast(enc.lengths(), f64)};
                            },
                    })
                   .state);
  };
  const double h = 1e-6;
  const double expected =
      (f(scalar(0.8 + h, f64)).item<double>() - f(scalar(0.8 - h, f64)).item<double>()) / (2 * h);
  expect_values(run(grad(f))(in[1]), {expected}, 1e-8);
}

TEST_P(ReturnnFinishedLengths, AnArrayOfElementsAlongThem) {
  expect_alone([](const In& in, const Tensor& s) {
    const Dim enc = in[0].dim("enc");
    const TensorArray array =
        TensorArray(TensorType(f64, in[0].dims())).push_back(in[0]).push_back(in[0] * in[1]);
    return sum(array[0] * in[0], enc) + sum(array[-1], enc) * s;
  });
  expect_entries_alone(
      [](const In& in) {
        const Dim enc = in[0].dim("enc");
        const TensorArray array =
            TensorArray(TensorType(f64, in[0].dims())).push_back(in[0]).push_back(in[0] * in[1]);
        return sum(scan(Scan{
                            .spatial_dim = in[2].dim("steps"),
                            .initial = ones({in[0].dim("batch")}, f64),
                            .xs = in[2],
                            .body =
                                [&](const Tensor& x, const Tensor& s) {
                                  return std::pair{None{}, s * in[1] +
                                                               sum(array[0] * in[0], enc) * x +
                                                               sum(array[-1], enc) * s};
                                },
                        })
                       .state);
      },
      inputs(), {batch});
}

struct History {
  Tensor frames;
  Dim hist;
};
TEST_P(ReturnnFinishedLengths, AttentionToAllFramesSoFar) {
  const Dim feature("feature", 2);
  expect_entries_alone(
      [&](const In& in) {
        const Tensor& x = in[0];
        const Dim batch = x.dim("batch"), none("hist", zeros({batch}, i32));
        auto [ys, last, dim] = scan(Scan{
            .spatial_dim = x.dim("steps"),
            .initial = History{zeros({batch, none, feature}, f64), none},
            .xs = x,
            .body =
                [&](const Tensor& x, const History& s) {
                  auto [frames, hist] = cum_concat(x, s.frames, s.hist);
                  Tensor weights = softmax(matmul(frames, x, feature), hist);
                  return std::pair{matmul(weights, frames, hist), History{frames, hist}};
                },
        });
        return sum(square(ys)) + sum(last.frames);
      },
      {numbers({batch, steps, feature}, -1, 1, 4)}, {batch});
}

}  // namespace
}  // namespace reel
