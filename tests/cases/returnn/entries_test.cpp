// The rule behind RETURNN's rows: in any body, each entry of a batch gets the result that it gets
// alone, with first and second gradients, and padding never matters.
#include <limits>

#include "reel/tests/cases/entries_alone.h"

namespace reel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class ReturnnEntries : public EntriesAlone {
 protected:
  const Dim batch{"batch", 4};
  const Dim time{"time", tensor({3, 0, 1, 4}, {batch})};
  const Tensor w = scalar(0.8, f64);

  /// Returns numbers in (low, high), with NaN in the padding.
  static Tensor numbers(const Dims& dims, double low, double high, std::uint64_t seed) {
    manual_seed(seed);
    return mask_padding(random_uniform(dims, low, high, f64), kNan);
  }
  Tensor x() const { return numbers({batch, time}, -1, 1, 1); }
  Tensor s0() const { return numbers({batch}, -1, 1, 2); }
};
REEL_IN_EVERY_MODE(ReturnnEntries);

TEST_P(ReturnnEntries, ScansInBothDirectionsTreatEntriesAlone) {
  for (const bool reverse : {false, true})
    expect_entries_alone(
        [reverse](const In& in) {
          const auto [ys, last, dim] = scan(Scan{
              .spatial_dim = in[0].dim("time"),
              .initial = in[1],
              .xs = in[0],
              .body =
                  [&](const Tensor& x, const Tensor& s) {
                    const Tensor next = tanh(s * in[2] + x);
                    return std::pair{next * x, next};
                  },
              .reverse = reverse,
          });
          return sum(square(ys)) + sum(last * in[1]);
        },
        {x(), s0(), w}, {batch});
}

TEST_P(ReturnnEntries, LengthsOverTwoDims) {
  const Dim beam("beam", 2), time("time", tensor({3, 0, 1, 2, 0, 0, 4, 1}, {batch, beam}));
  expect_entries_alone(
      [](const In& in) {
        const auto [ys, last, dim] = scan(Scan{
            .spatial_dim = in[0].dim("time"),
            .initial = in[1],
            .xs = in[0],
            .body =
                [&](const Tensor& x, const Tensor& s) {
                  const Tensor next = s * in[2] + 1.0 / x;
                  return std::pair{next * x, next};
                },
        });
        return sum(square(ys)) + sum(last * in[1]);
      },
      {numbers({batch, time, beam}, 0.5, 1, 1), numbers({beam, batch}, -1, 1, 2), w},
      {batch, beam});
}

TEST_P(ReturnnEntries, EntriesAlongARaggedDim) {
  // Sentences of documents, words of sentences. Lengths beyond a document's last sentence have no
  // meaning.
  const Dim document("document", 3), sentence("sentence", tensor({2, 0, 1}, {document}));
  const Dim word("word", tensor({2, 3, 77, -5, 1, 9}, {document, sentence}));
  expect_values(word.lengths(), {2, 3, 0, 0, 1, 0});
  EXPECT_EQ(word.size(), 3);
  expect_entries_alone(
      [](const In& in) {
        const auto [ys, last, dim] = scan(Scan{
            .spatial_dim = in[0].dim("word"),
            .initial = in[1],
            .xs = in[0],
            .body =
                [&](const Tensor& x, const Tensor& s) {
                  const Tensor next = s * in[2] / x;
                  return std::pair{next * x, next};
                },
        });
        return sum(square(ys)) + sum(last * in[1]);
      },
      {numbers({document, sentence, word}, 0.5, 1, 1), numbers({document, sentence}, -1, 1, 2), w},
      {document, sentence});
}

TEST_P(ReturnnEntries, DivisionsByValuesOfFinishedEntriesMakeNoNaN) {
  // The entry of length 0 has captured and state values that would give 0/0 for all entries through
  // the shared w.
  const Tensor captured = tensor({1., 0., 2., 3.}, {batch}, f64),
               start = tensor({1., 0., 1., 2.}, {batch}, f64);
  expect_entries_alone(
      [](const In& in) {
        const auto [ys, last, dim] = scan(Scan{
            .spatial_dim = in[0].dim("time"),
            .initial = in[1],
            .xs = in[0],
            .body =
                [&](const Tensor& x, const Tensor& s) {
                  const Tensor y = in[2] * s / in[3] + sqrt(s) / s;
                  return std::pair{y, abs(x) + in[2] * s + 0.1};
                },
        });
        return sum(square(ys)) + sum(last * in[2]);
      },
      {x(), start, w, captured}, {batch});
}

TEST_P(ReturnnEntries, P4_AttentionWhoseWeightsOfHeadsAddUpInTheState) {
  const Dim enc("enc", tensor({2, 3, 5, 1}, {batch})), heads("heads", 2), feature("feature", 2);
  expect_entries_alone(
      [&](const In& in) {
        struct State {
          Tensor s, accumulated;
        };
        const Dim enc = in[3].dim("enc");
        const auto [ys, last, dim] = scan(Scan{
            .spatial_dim = in[0].dim("time"),
            .initial = State{in[1], zeros({in[1].dim("batch"), enc, heads}, f64)},
            .xs = in[0],
            .body =
                [&](const Tensor& x, const State& s) {
                  const Tensor energy = matmul(in[3], s.s, feature) + s.accumulated * in[2];
                  const Tensor weights = softmax(energy, enc);
                  const Tensor context = matmul(weights, in[3], enc);
                  return std::pair{std::pair{context, weights},
                                   State{tanh(context + x), s.accumulated + weights}};
                },
        });
        return sum(square(ys.first)) + sum(square(ys.second)) + sum(square(last.s)) +
               sum(square(last.accumulated));
      },
      {x(), numbers({batch, heads, feature}, -1, 1, 2), w,
       numbers({batch, enc, heads, feature}, -1, 1, 5)},
      {batch});
}

TEST_P(ReturnnEntries, P23_RaggedScanInARaggedScan) {
  const Dim inner("inner", tensor({1, 2, 0, 3}, {batch}));
  expect_entries_alone(
      [](const In& in) {
        const auto [ys, last, dim] = scan(Scan{
            .spatial_dim = in[0].dim("time"),
            .initial = in[1],
            .xs = in[0],
            .body =
                [&](const Tensor& x, const Tensor& s) {
                  const auto [zs, z, unused] = scan(Scan{
                      .spatial_dim = in[3].dim("inner"),
                      .initial = s,
                      .xs = in[3],
                      .body =
                          [&](const Tensor& t, const Tensor& s) {
                            return std::pair{s * t, in[2] * s / t + x};
                          },
                      .reverse = true,
                  });
                  return std::pair{sum(square(zs), in[3].dim("inner")), tanh(z)};
                },
        });
        return sum(square(ys)) + sum(last);
      },
      {x(), s0(), w, numbers({batch, inner}, 0.5, 1.5, 5)}, {batch});
}

TEST_P(ReturnnEntries, InnerLengthsThatTheOuterLoopSlices) {
  // Each frame has its own number of parts: lengths lie over the scanned dim, too.
  const Dim part("part", tensor({1, 2, 0, 9, 9, 9, 9, 9, 2, 9, 9, 9, 0, 1, 2, 1}, {batch, time}));
  expect_entries_alone(
      [](const In& in) {
        const Tensor sums = sum(square(in[0]), in[0].dim("part"));
        const auto [ys, last, dim] = scan(Scan{
            .spatial_dim = in[0].dim("time"),
            .initial = in[1],
            .xs = sums,
            .body =
                [&](const Tensor& x, const Tensor& s) {
                  return std::pair{s / x, s * in[2] + x};
                },
        });
        return sum(where(isfinite(ys), ys, zeros_like(ys))) + sum(last);
      },
      {numbers({batch, time, part}, 0.5, 1, 1), s0(), w}, {batch});
}

TEST_P(ReturnnEntries, UnknownLengthWithCapturesAndTrees) {
  const Dim enc("enc", tensor({2, 0, 5, 1}, {batch}));
  struct State {
    Tensor s, left;
  };
  const Tensor target = tensor({2, 0, 5, 1}, {batch});
  expect_entries_alone(
      [&](const In& in) {
        const auto [ys, last, dim] = scan(Scan{
            .spatial_dim = Dim("out"),
            .cond_dims = {in[0].dim("batch")},
            .initial = State{in[0], max(in[2], in[2].dim("enc")) * 0.0 + 3.0},
            .cond = [](const State& s) { return abs(s.s) < 2.0; },
            .body =
                [&](const State& s) {
                  const Tensor context = sum(in[2] / s.left, in[2].dim("enc"));
                  return std::pair{std::tuple{s.s * context, s.s > 0.0},
                                   State{s.s * 1.5 + context * in[1] + sign(s.s) * 0.3, s.left}};
                },
            .max_seq_len = 6,
        });
        return sum(square(std::get<0>(ys))) + sum(where(std::get<1>(ys), std::get<0>(ys), 0.5)) +
               sum(last.s);
      },
      {s0(), w, numbers({batch, enc}, 0.5, 1, 5)}, {batch});
}

TEST_P(ReturnnEntries, EntriesMayFinishBeforeTheirLength) {
  for (const bool before : {true, false})
    expect_entries_alone(
        [before](const In& in) {
          const auto [ys, last, dim] = scan(Scan{
              .spatial_dim = in[0].dim("time"),
              .cond_dims = {in[0].dim("batch")},
              .cond_before_body = before,
              .initial = in[1],
              .xs = in[0],
              .cond = [](const Tensor& s) { return abs(s) < 1.0; },
              .body =
                  [&](const Tensor& x, const Tensor& s) {
                    return std::pair{s / x, s + x * in[2]};
                  },
          });
          return sum(ys) + sum(square(last));
        },
        {x(), s0(), w}, {batch});
}

TEST_P(ReturnnEntries, AWhileLoopAndACondInTheBody) {
  expect_entries_alone(
      [](const In& in) {
        const auto [ys, last, dim] = scan(Scan{
            .spatial_dim = in[0].dim("time"),
            .initial = in[1],
            .xs = in[0],
            .body =
                [&](const Tensor& x, const Tensor& s) {
                  const auto [i, z] =
                      while_loop([](const Tensor& i, const Tensor&) { return i < 2; },
                                 [&](const Tensor& i, const Tensor& z) {
                                   return std::tuple{i + 1, z * in[2] / x};
                                 },
                                 std::tuple{scalar(0), s});
                  const Tensor y = cond(
                      any(isnan(z)), [&] { return z * 100.0; }, [&] { return z * x; });
                  return std::pair{y, tanh(z)};
                },
        });
        return sum(ys) + sum(last);
      },
      {numbers({batch, time}, 0.5, 1, 1), s0(), w}, {batch});
}

TEST_P(ReturnnEntries, AJittedFunctionAndAGradientInTheBody) {
  const auto energy = [](const Tensor& s, const Tensor& x) {
    return sum(square(s) * x / (s + 3.0));
  };
  expect_entries_alone(
      [&](const In& in) {
        const auto step = jit([](const Tensor& s, const Tensor& x) { return sin(s) + x; });
        const auto [ys, last, dim] = scan(Scan{
            .spatial_dim = in[0].dim("time"),
            .initial = in[1],
            .xs = in[0],
            .body =
                [&](const Tensor& x, const Tensor& s) {
                  const Tensor down = grad(energy)(s, x);
                  return std::pair{down, step(s - down * in[2], x)};
                },
        });
        return sum(square(ys)) + sum(last);
      },
      {x(), s0(), w}, {batch});
}

TEST_P(ReturnnEntries, P5_NestedXsOfIntegersAndTables) {
  const Dim vocabulary("vocabulary", 5), feature("feature", 2);
  const Tensor tokens =
      tensor({1, 2, 3, 99, 99, 99, 99, 99, 4, 99, -7, 99, 0, 1, 1, 4}, {batch, time});
  const auto f = [&](const Tensor& tokens) {
    return [=](const In& in) {
      const auto [ys, last, dim] = scan(Scan{
          .spatial_dim = in[2].dim("time"),
          .initial = in[1],
          .xs = std::map<std::string, Tensor>{{"token", tokens}, {"x", in[2]}},
          .body =
              [&](const std::map<std::string, Tensor>& xs, const Tensor& s) {
                const Tensor e = gather(in[0], xs.at("token"), vocabulary);
                const Tensor next = s * in[3] + e * xs.at("x");
                return std::pair{next, next};
              },
      });
      return sum(square(ys)) + sum(last);
    };
  };
  const Tensor table = numbers({vocabulary, feature}, -1, 1, 4);
  const auto both = f(tokens);
  const In in{table, numbers({batch, feature}, -1, 1, 2), x(), w};
  const auto [value, gradient] = run(value_and_grad(both))(in);
  const auto [clean, clean_gradient] =
      value_and_grad(f(mask_padding(tokens)))(In{table, in[1], mask_padding(in[2]), w});
  expect_all_close(value, clean, 1e-12);
  for (std::size_t i = 0; i < in.size(); ++i)
    expect_all_close(mask_padding(gradient[i]), mask_padding(clean_gradient[i]), 1e-12);
}

TEST_P(ReturnnEntries, LengthsThatTheBodyDividesBy) {
  const Dim enc("enc",
                tensor({2, 0, 3, 1}, {batch}));  // the entry without frames has none here either
  expect_entries_alone(
      [](const In& in) {
        const Dim enc = in[3].dim("enc");
        const auto [ys, last, dim] = scan(Scan{
            .spatial_dim = in[0].dim("time"),
            .initial = in[1],
            .xs = in[0],
            .body =
                [&](const Tensor& x, const Tensor& s) {
                  const Tensor average = sum(in[3] * in[2], enc) / cast(enc.lengths(), f64);
                  return std::pair{in[2] / cast(enc.lengths(), f64), s * x + average};
                },
        });
        return sum(square(ys)) + sum(last);
      },
      {x(), s0(), w, numbers({batch, enc}, -1, 1, 5)}, {batch});
}

TEST_P(ReturnnEntries, AnArrayOfRaggedElementsInTheState) {
  const Dim enc("enc", tensor({2, 1, 3, 1}, {batch}));
  expect_entries_alone(
      [](const In& in) {
        const Dim batch = in[1].dim("batch"), enc = in[3].dim("enc");
        const auto [ys, last, dim] = scan(Scan{
            .spatial_dim = in[0].dim("time"),
            .initial = std::pair{in[1], TensorArray({f64, {batch, enc}}).push_back(in[3])},
            .xs = in[0],
            .body =
                [&](const Tensor& x, const std::pair<Tensor, TensorArray>& s) {
                  const Tensor before = s.second[-1];
                  const Tensor next = tanh(s.first * in[2] + x);
                  return std::pair{sum(before, enc) * next,
                                   std::pair{next, s.second.push_back(before / x)}};
                },
        });
        return sum(square(ys)) + sum(last.first);
      },
      {numbers({batch, time}, 0.5, 1, 1), s0(), w, numbers({batch, enc}, -1, 1, 5)}, {batch});
}

TEST_P(ReturnnEntries, AnEmptyBatchRunsNoEntry) {
  const Dim nobody("batch", 0), time("time", zeros({nobody}, i32)),
      enc("enc", zeros({nobody}, i32));
  expect_entries_alone(
      [](const In& in) {
        const auto [ys, last, dim] = scan(Scan{
            .spatial_dim = in[0].dim("time"),
            .initial = in[1],
            .xs = in[0],
            .body =
                [&](const Tensor& x, const Tensor& s) {
                  const Tensor context = sum(in[3], in[3].dim("enc"));
                  return std::pair{s * x, s * in[2] + x / context};
                },
        });
        return sum(square(ys)) + sum(last);
      },
      {zeros({nobody, time}, f64), zeros({nobody}, f64), w, zeros({nobody, enc}, f64)}, {nobody});
}

}  // namespace
}  // namespace reel
