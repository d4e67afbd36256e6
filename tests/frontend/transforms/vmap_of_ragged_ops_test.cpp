// Functions of practice of a sequence, under vmap over a batch of sequences of different lengths,
// one of them empty: results and derivatives are those of map.
#include <vector>

#include "reel/tests/frontend/transforms/rows_alone.h"

namespace reel {
namespace {

struct OfSequence {
  const char* name;
  Tensor (*f)(const Tensor& x, const Dim& time, const Dim& feature);
};

/// Functions of a sequence [time, feature], with results of any dims.
const std::vector<OfSequence>& functions() {
  static const auto& all = *new std::vector<OfSequence>{
      {"softmax",
       [](const Tensor& x, const Dim& time, const Dim&) { return softmax(x, time) * x; }},
      {"mean", [](const Tensor& x, const Dim& time, const Dim&) { return x - mean(x, time); }},
      {"cumsum", [](const Tensor& x, const Dim& time, const Dim&) { return cumsum(x, time) * x; }},
      {"cumprod", [](const Tensor& x, const Dim& time, const Dim&) { return cumprod(x, time); }},
      {"reverse",
       [](const Tensor& x, const Dim& time, const Dim&) { return reverse(x, time) * x; }},
      {"sort", [](const Tensor& x, const Dim& time, const Dim&) { return sort(x, time) * x; }},
      {"logsumexp", [](const Tensor& x, const Dim& time,
                       const Dim& feature) { return (x - logsumexp(x, feature)) * sum(x, time); }},
      {"linear_scan",
       [](const Tensor& x, const Dim& time, const Dim&) {
         return linear_scan(sin(x), x, time) + linear_scan(cos(x), x, time, {.reverse = true});
       }},
      {"conv",
       [](const Tensor& x, const Dim& time, const Dim& feature) {
         const Dim taps("taps", 3), out("out", 2);
         const Tensor filter =
             sin(cast(reshape(range(12), Dims{taps, feature, out}), x.dtype()) + 1.0);
         return conv(x, filter, time,
                     {.taps = {taps}, .in = {feature}, .padding = WindowPadding::same});
       }},
      {"pool",
       [](const Tensor& x, const Dim& time, const Dim&) { return max_pool(x, time, {.size = 2}); }},
      {"attention",
       [](const Tensor& x, const Dim& time, const Dim& feature) {
         return attention(x, sin(x), cos(x), time, feature, {});
       }},
      {"scan",
       [](const Tensor& x, const Dim& time, const Dim& feature) {
         return scan(Scan{.spatial_dim = time,
                          .initial = zeros({feature}, x.dtype()),
                          .xs = x,
                          .body =
                              [](const Tensor& x, const Tensor& s) {
                                const Tensor next = tanh(s + x);
                                return std::pair{next * x, next};
                              },
                          .checkpoint = Checkpoint::every(2)})
             .ys;
       }},
      {"ctc",
       [](const Tensor& x, const Dim& time, const Dim& feature) {
         const Dim labels("labels", 1);
         return ctc_loss(x, ones({labels}, i32), {time, labels, feature}, {.zero_infinity = true});
       }},
      {"top_k",
       [](const Tensor& x, const Dim&, const Dim& feature) {
         return top_k(x, feature, Dim("best", 1)).values * sum(x, feature);
       }},
      {"shift", [](const Tensor& x, const Dim& time, const Dim&) { return x * shift(x, time, 1); }},
  };
  return all;
}

Function energy_of(const OfSequence& function) {
  return [f = function.f](const Tensor& x) -> Tensor {
    const Tensor y = square(f(x, x.dim("time"), x.dim("feature")));
    return y.rank() ? sum(y, Axes(y.dims())) : y;
  };
}

class VmapOfRaggedOpsTest : public RowsAlone {};

TEST_P(VmapOfRaggedOpsTest, SequencesHaveTheDerivativesOfMap) {
  const Dim batch("batch", 3), feature("feature", 2), time("time", tensor({3, 0, 2}, {batch}));
  manual_seed(11);
  const Tensor x = random_normal({batch, time, feature}, f64);
  for (const OfSequence& function : functions()) {
    SCOPED_TRACE(function.name);
    try {
      expect_as_map(energy_of(function), x, batch);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST_P(VmapOfRaggedOpsTest, EmptySequencesHaveTheDerivativesOfMap) {
  const Dim batch("batch", 2), feature("feature", 2), time("time", tensor({0, 0}, {batch}));
  const Tensor x = zeros({batch, time, feature}, f64);
  for (const OfSequence& function : functions()) {
    SCOPED_TRACE(function.name);
    try {
      expect_as_map(energy_of(function), x, batch);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

REEL_IN_EVERY_MODE(VmapOfRaggedOpsTest);

}  // namespace
}  // namespace reel
