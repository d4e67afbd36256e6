// Bodies that read captures of all kinds along a ragged dim while entries of a scan finish. Each
// entry must have the values and gradients that it has alone, in every mode.
#include <functional>
#include <limits>

#include "reel/tests/cases/entries_alone.h"

namespace reel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Read {
  Tensor x, h;         // {hidden} of each entry
  Tensor keys, scale;  // {source, hidden} and {hidden} of each entry
  Tensor w;            // {hidden, next}, of all entries
  Dim source, hidden, next;

  Tensor turned(const Tensor& v) const { return rename(matmul(v, w, hidden), next, hidden); }
  Tensor count() const { return cast(source.lengths(), f64); }
};
using Body = std::function<Tensor(const Read&)>;

class RaggedCaptureKindsTest : public EntriesAlone {
 protected:
  const Dim hidden{"hidden", 2}, next{"next", 2};

  struct Lengths {
    std::vector<int> time, source;
  };
  static Tensor numbers(const Dims& dims, double low, double high) {
    return mask_padding(random_uniform(dims, low, high, f64), kNan);
  }
  /// Returns xs, keys, scale and w, with NaN in all padding and in captures of entries without time
  /// steps: no running entry reads them.
  In arguments(const Lengths& lengths) const {
    manual_seed(4);
    const Dim batch("batch", std::ssize(lengths.time));
    const Dim time("time", tensor(lengths.time, {batch})),
        source("source", tensor(lengths.source, {batch}));
    const auto of_running = [&](const Tensor& x) {
      return where(expand(time.lengths() > 0, x.dims()), x, kNan);
    };
    return {numbers({time, batch, hidden}, -1, 1),
            of_running(numbers({batch, source, hidden}, 0.2, 1)),
            of_running(numbers({batch, hidden}, 0.5, 1)), numbers({hidden, next}, 0.2, 0.6)};
  }
  static Tensor loss(const Body& body, const In& in, bool is_reverse = false) {
    const Dim time = in[0].dim("time"), batch = in[0].dim("batch"), hidden = in[0].dim("hidden");
    const auto step = [&](const Tensor& x, const Tensor& h) {
      const Tensor made =
          tanh(body({x, h, in[1], in[2], in[3], in[1].dim("source"), hidden, in[3].dim("next")}));
      return std::pair{made * x, made};
    };
    const auto result = scan(Scan{.spatial_dim = time,
                                  .initial = full({batch, hidden}, 0.3, f64),
                                  .xs = in[0],
                                  .body = step,
                                  .reverse = is_reverse});
    return sum(square(result.ys)) + sum(result.state);
  }
  void expect_alone(const Body& body) const {
    for (const Lengths& lengths :
         std::vector<Lengths>{{{1, 3, 0, 2}, {4, 2, 0, 3}},  // an empty one never runs
                              {{4, 0, 3, 0, 1, 2, 3, 4}, {1, 0, 4, 3, 2, 3, 1, 2}},  // in any order
                              {{1, 1, 1, 3, 1, 1}, {2, 1, 3, 2, 1, 4}}}) {  // all finish but one
      SCOPED_TRACE(str(lengths.time.size(), " entries"));
      const In in = arguments(lengths);
      for (const bool is_reverse : {false, true})
        expect_entries_alone([&](const In& in) { return loss(body, in, is_reverse); }, in,
                             {in[0].dim("batch")});
    }
  }
};
REEL_IN_EVERY_MODE(RaggedCaptureKindsTest);

// The gradient of w is a sum of products with values that no iteration changes, which are NaN or
// infinite for entries that never run.
TEST_P(RaggedCaptureKindsTest, InvariantsOfEntriesThatNeverRun) {
  expect_alone([](const Read& r) {
    return r.turned(r.scale) + r.turned(sum(r.keys, r.source) / r.count()) * r.x + r.h;
  });
  expect_alone([](const Read& r) {
    return r.turned(r.h) / sum(r.keys, r.source) + r.turned(r.x) * (1.0 / r.scale);
  });
  expect_alone([](const Read& r) { return r.turned(r.scale / r.count()) * r.h + r.x; });
}
TEST_P(RaggedCaptureKindsTest, DivisionByLengths) {
  expect_alone([](const Read& r) { return r.turned(r.h + r.x) / r.count(); });
  expect_alone([](const Read& r) { return sum(r.keys * r.h, r.source) / r.count() + r.x; });
  expect_alone([](const Read& r) { return mean(r.keys * r.turned(r.h), r.source) * r.scale; });
}
TEST_P(RaggedCaptureKindsTest, DivisionBySums) {
  expect_alone([](const Read& r) {
    const Tensor weights = exp(r.keys * r.h);
    return sum(weights / sum(weights, r.source) * r.keys, r.source) + r.turned(r.x);
  });
}
TEST_P(RaggedCaptureKindsTest, LogarithmsOfSumsReadEachEntryAlone) {
  expect_alone([](const Read& r) {
    return log(sum(r.keys, r.source)) * r.h + log(sum(exp(r.keys * r.h), r.source)) + r.x;
  });
  expect_alone([](const Read& r) { return logsumexp(r.keys * r.turned(r.h), r.source) * r.x; });
}
TEST_P(RaggedCaptureKindsTest, SortsReadEachEntryAlone) {
  expect_alone([](const Read& r) {
    const Tensor first = gather(sort(r.keys * r.scale, r.source), scalar(0, i32), r.source);
    return first * r.h + max(r.keys + r.h, r.source) + r.x;
  });
  expect_alone([](const Read& r) {
    return gather(sort(r.keys + r.h, r.source, true), scalar(0, i32), r.source) + r.x;
  });
}
TEST_P(RaggedCaptureKindsTest, ElementsAtLengths) {
  expect_alone(
      [](const Read& r) { return gather(r.keys * r.h, r.source.lengths() - 1, r.source) + r.x; });
  expect_alone([](const Read& r) { return gather(r.keys + r.h, scalar(-1, i32), r.source) * r.x; });
  expect_alone([](const Read& r) {
    return gather(r.keys * r.h, scalar(9, i32), r.source, {.clip = true}) / r.count();
  });
}
TEST_P(RaggedCaptureKindsTest, OrderOfElements) {
  expect_alone([](const Read& r) {
    const Tensor turned = reverse(r.keys * r.h, r.source), sums = cumsum(turned, r.source);
    return gather(sums, scalar(0, i32), r.source) + sum(shift(turned, r.source, 1), r.source) * r.x;
  });
}
TEST_P(RaggedCaptureKindsTest, ProductsReadEachEntryAlone) {
  expect_alone([](const Read& r) {
    const Tensor weights = softmax(matmul(r.keys, r.turned(r.h), r.hidden), r.source);
    return matmul(weights, r.keys, r.source) * r.scale + r.x;
  });
}
TEST_P(RaggedCaptureKindsTest, LoopsAndBranches) {
  expect_alone([](const Read& r) {
    const auto step = [&](const Tensor& s, const Tensor& key) { return tanh(s + key * r.scale); };
    return foldl(step, r.keys, r.h, {.spatial_dim = r.source}) / r.count() + r.x;
  });
}

// Lengths of words over the keys of each entry.
TEST_P(RaggedCaptureKindsTest, LengthsOverARaggedDim) {
  const Dim batch("batch", 4), time("time", tensor({1, 3, 0, 2}, {batch})),
      source("source", tensor({2, 1, 0, 3}, {batch}));
  const Dim words("words", tensor({2, 1, 9, 3, 9, 9, 9, 9, 9, 1, 2, 2}, {batch, source}));
  manual_seed(6);
  const In in{numbers({time, batch}, 0.2, 1), numbers({batch, source, words}, 0.2, 1),
              scalar(0.7, f64)};
  expect_entries_alone(
      [](const In& in) {
        const Dim words = in[1].dim("words"), source = in[1].dim("source");
        const auto step = [&](const Tensor& x, const Tensor& h) {
          const Tensor means = sum(in[1] * h, words) / cast(words.lengths(), f64);
          const Tensor made = tanh(in[2] * x + 1.0 / sum(means, source));
          return std::pair{made, made * 0.5 + h};
        };
        const auto result = scan(Scan{.spatial_dim = in[0].dim("time"),
                                      .initial = ones({in[0].dim("batch")}, f64),
                                      .xs = in[0],
                                      .body = step});
        return sum(square(result.ys)) + sum(result.state);
      },
      in, {batch});
}

TEST_P(RaggedCaptureKindsTest, ThirdDerivativesAndTangents) {
  const Lengths lengths{{1, 3, 0, 2}, {4, 2, 0, 3}};
  const In in = arguments(lengths);
  const Body body = [](const Read& r) {
    return r.turned(r.h) / sum(r.keys, r.source) + sum(r.keys * r.h, r.source) / r.count() + r.x;
  };
  const auto of_w = [&](const Tensor& w) { return loss(body, {in[0], in[1], in[2], w}); };
  const auto slope = [&](const Tensor& w) { return sum(square(grad(of_w)(w))); };
  const auto bend = [&](const Tensor& w) { return sum(square(grad(slope)(w))); };
  const Tensor direction = numbers({hidden, next}, -1, 1);
  const auto tangent = [&](const Tensor& w) { return jvp(of_w, w, direction).second; };
  // By central differences of one derivative less, in eager mode.
  const auto differences = [&](const auto& f) {
    const double step = 1e-5;
    return (f(in[3] + direction * step).template item<double>() -
            f(in[3] - direction * step).template item<double>()) /
           (2 * step);
  };
  const auto along = [&](const auto& f) {
    return sum(run(grad(f))(in[3]) * direction).template item<double>();
  };
  EXPECT_NEAR(along(of_w), differences(of_w), 1e-7);
  EXPECT_NEAR(along(slope), differences(slope), 1e-5);
  EXPECT_NEAR(along(bend), differences(bend), 1e-3);
  EXPECT_NEAR(run(tangent)(in[3]).item<double>(), differences(of_w), 1e-7);
}

}  // namespace
}  // namespace reel
