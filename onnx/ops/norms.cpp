// Normalisations and losses.
#include <cmath>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/dim_arithmetic.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/reductions.h"
#include "reel/core/functions/shape.h"
#include "reel/frontend/layers/rms_norm.h"
#include "reel/onnx/ops/heads.h"
#include "reel/onnx/ops/sizes.h"
#include "reel/onnx/registry.h"

namespace reel::imported {
namespace {

/// Returns all axes from `first` on.
Axes axes_from(const Tensor& x, int first) {
  std::vector<Axis> axes;
  for (int axis = first; axis < x.rank(); ++axis) axes.emplace_back(axis);
  return Axes(axes);
}

/// Returns a tensor of one axis as one that broadcasts along axis 1 of x.
Tensor along_channels(const Tensor& per_channel, const Tensor& x) {
  if (x.rank() <= 1) return per_channel;
  Dims dims(static_cast<std::size_t>(x.rank() - 1), Dim(1));
  dims[0] = per_channel.dims()[0];
  return reshape_to(per_channel, dims);
}

/// In training, from version 14 on: normalises by the batch, and returns new running averages.
Values run_batch_normalization(const Call& call) {
  const Tensor& x = call.tensor(0);
  const double epsilon = call.number("epsilon", 1e-5);
  const bool is_training = call.version() >= 14  ? call.flag("training_mode", false)
                           : call.version() >= 7 ? call.output_count() > 1
                                                 : !call.flag("is_test", false);
  if (call.version() < 9 && !call.flag("spatial", true)) call.refuse("spatial must be 1");
  if (is_training && call.version() < 14) call.refuse("training is supported from version 14 on");
  Tensor mean = call.tensor(3), variance = call.tensor(4);
  Values results(1);
  if (is_training) {
    const double momentum = call.number("momentum", 0.9);
    const Axes others = [&] {
      std::vector<Axis> axes;
      for (int axis = 0; axis < x.rank(); ++axis)
        if (axis != 1) axes.emplace_back(axis);
      return Axes(axes);
    }();
    const Tensor now = reel::mean(x, others), spread = reel::variance(x, others);
    results.push_back(call.like(3, mean * momentum + now * (1 - momentum)));
    results.push_back(call.like(4, variance * momentum + spread * (1 - momentum)));
    mean = now, variance = spread;
  }
  const Tensor scale = call.tensor(1) * rsqrt(cast(variance, call.tensor(1).dtype()) + epsilon);
  results[0] = call.like(0, (x - along_channels(mean, x)) * along_channels(scale, x) +
                                along_channels(call.tensor(2), x));
  return results;
}

Values run_instance_normalization(const Call& call) {
  const Tensor& x = call.tensor(0);
  const Axes axes = axes_from(x, 2);
  const Tensor centred = x - mean(x, axes, Keep::yes);
  const Tensor scale = rsqrt(variance(x, axes, Keep::yes) + call.number("epsilon", 1e-5));
  return {call.like(
      0, centred * scale * along_channels(call.tensor(1), x) + along_channels(call.tensor(2), x))};
}

Values run_layer_normalization(const Call& call) {
  const Tensor& x = call.tensor(0);
  const Axes axes = axes_from(x, call.axis(-1));
  const Tensor average = mean(x, axes, Keep::yes);
  const Tensor scale = rsqrt(variance(x, axes, Keep::yes) + call.number("epsilon", 1e-5));
  Tensor result = (x - average) * scale * call.tensor(1);
  if (call.has(2)) result = result + call.tensor(2);
  return {call.like(0, result), Value::of(average), Value::of(scale)};
}

/// Computes in f32 if `stash_type` says so, which is also the precision of types with fewer bits.
/// RmsNorm normalises one dim: the last axes are merged.
Values run_rms_normalization(const Call& call) {
  const Tensor &x = call.tensor(0), &scale = call.tensor(1);
  const int first = call.axis(-1);
  const bool is_stored = call.integer("stash_type", 1) != 1;
  const Tensor in = is_stored ? x : cast(x, f32);
  Dims outer;
  std::vector<Axis> inner;
  Dim feature;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const Dim dim = named_like(axis < first ? "outer" : "inner", x.dim(axis));
    outer.push_back(dim);
    if (axis < first) continue;
    inner.emplace_back(dim);
    feature = axis == first ? dim : feature * dim;
  }
  Tensor named = reshape(in, outer);
  if (inner.size() > 1) named = merge_dims(named, Axes(inner), feature);
  // Only a scale for each element of one type is the layer's own.
  const bool is_own = scale.dims() == Dims(x.dims().begin() + first, x.dims().end()) &&
                      scale.dtype() == in.dtype() && call.type(0) == call.type(1) &&
                      call.type(0) == element_type_of(in.dtype());
  const Tensor factors = is_own ? reshape(scale, {feature}) : ones({feature}, in.dtype());
  const RmsNorm norm{factors, feature, call.number("epsilon", 1e-5)};
  const Tensor y = reshape_to(norm(named), x.dims());
  if (is_own) return {call.stored_like(1, y)};
  const Tensor normalized = stored_as(cast(y, x.dtype()), call.type(0));
  return {call.stored_like(1, cast(normalized, scale.dtype()) * scale)};
}

/// Normalises the channels of each group together. Version 18 had a scale for each group; it was
/// removed.
Values run_group_normalization(const Call& call) {
  const Tensor& x = call.tensor(0);
  const std::int64_t groups = call.integer("num_groups", 1);
  const std::vector<std::int64_t> sizes = x.shape();
  if (sizes.size() < 2 || groups < 1 || sizes[1] % groups)
    call.refuse(str("does not fit ", x.type(), " in ", groups, " groups"));
  std::vector<std::int64_t> apart{sizes[0], groups, sizes[1] / groups};
  apart.insert(apart.end(), sizes.begin() + 2, sizes.end());
  const bool is_single = call.integer("stash_type", 1) == 1;
  const Tensor rows = reshape(is_single ? cast(x, f32) : x, apart);
  const Axes axes = axes_from(rows, 2);
  const Tensor scale = rsqrt(variance(rows, axes, Keep::yes) + call.number("epsilon", 1e-5));
  const Tensor normalized =
      cast(reshape((rows - mean(rows, axes, Keep::yes)) * scale, sizes), x.dtype());
  return {call.stored_like(
      0, normalized * along_channels(call.tensor(1), x) + along_channels(call.tensor(2), x))};
}

Values run_mean_variance_normalization(const Call& call) {
  const Tensor& x = call.tensor(0);
  std::vector<std::int64_t> given = call.integers("axes");
  if (given.empty()) given = {0, 2, 3};
  std::vector<Axis> axes;
  for (const std::int64_t axis : given) axes.emplace_back(call.axis_in(axis, x.rank()));
  const Tensor deviation = sqrt(variance(x, Axes(axes), Keep::yes));
  return {call.like(0, (x - mean(x, Axes(axes), Keep::yes)) / (deviation + 1e-9))};
}

Values run_lp_normalization(const Call& call) {
  const Tensor& x = call.tensor(0);
  const int axis = call.axis(-1);
  const Tensor norm = call.integer("p", 2) == 1 ? sum(abs(x), axis, Keep::yes)
                                                : sqrt(sum(square(x), axis, Keep::yes));
  return {call.like(0, where(equal(norm, 0), zeros_like(x), x / where(equal(norm, 0), 1., norm)))};
}

/// Divides by a power of the sum of squares over neighbouring channels.
Values run_lrn(const Call& call) {
  const Tensor& x = call.tensor(0);
  const std::int64_t size = call.integer("size", 1);
  if (size < 1) call.refuse(str("size is ", size));
  // Behind all channels there are only zeros.
  const std::int64_t channels = x.dim(1).size(), half = (size - 1) / 2,
                     before = std::min(half, channels), after = std::min(size - 1 - half, channels);
  const Tensor squares = pad(square(x), 1, before, after);
  Tensor total = slice(squares, 1, 0, channels);
  for (std::int64_t i = 1; i <= before + after; ++i)
    total = total + slice(squares, 1, i, i + channels);
  const double alpha = call.number("alpha", 1e-4) / static_cast<double>(size);
  return {call.like(0, x / pow(total * alpha + call.number("bias", 1), call.number("beta", 0.75)))};
}

// ---- Losses -----------------------------------------------------------------------------------

/// Returns the loss of log probabilities. log_p: [N, C, d1, ...]; labels: [N, d1, ...].
Tensor likelihood_loss(const Call& call, const Tensor& log_p, const Tensor& given) {
  const Tensor labels = cast(given, i64);
  const bool ignores = call.has_attribute("ignore_index");
  const std::int64_t ignored = call.integer("ignore_index", 0);
  const Tensor counts = ignores ? not_equal(labels, ignored) : Tensor();
  const Tensor safe = ignores ? where(counts, labels, 0) : labels;
  // Classes in the last axis: then every label reads its own row.
  std::vector<Axis> order{0};
  for (int axis = 2; axis < log_p.rank(); ++axis) order.emplace_back(axis);
  order.emplace_back(1);
  const Dim classes = log_p.dim(1);
  const Tensor rows = reshape_to(transpose(log_p, Axes(order)), Dims{Dim(labels.numel()), classes});
  const Tensor flat = reshape(safe, {-1});
  const Tensor chosen = gather(rows, flat, 1, {.batch_dims = 1});
  Tensor weights = call.has(2) ? gather(call.tensor(2), flat, 0) : ones_like(chosen);
  if (ignores) weights = where(reshape(counts, {-1}), weights, zeros_like(weights));
  const Tensor losses = -chosen * weights;
  const std::string reduction = call.text("reduction", "mean");
  if (reduction == "none") return reshape(losses, labels.dims());
  if (reduction == "sum") return sum(losses);
  if (reduction != "mean") call.refuse(str("the reduction ", reduction, " is not supported"));
  return sum(losses) / sum(weights);
}

Values run_likelihood_loss(const Call& call) {
  return {call.like(0, likelihood_loss(call, call.tensor(0), call.tensor(1)))};
}
Values run_cross_entropy_loss(const Call& call) {
  const Tensor log_p = log_softmax(call.tensor(0), 1);
  return {call.like(0, likelihood_loss(call, log_p, call.tensor(1))), call.like(0, log_p)};
}

const Rule kRules[] = {
    {"BatchNormalization", run_batch_normalization},
    {"GroupNormalization", run_group_normalization, "", 21},
    {"InstanceNormalization", run_instance_normalization},
    {"LRN", run_lrn},
    {"LayerNormalization", run_layer_normalization, "", 17},
    {"LpNormalization", run_lp_normalization},
    {"MeanVarianceNormalization", run_mean_variance_normalization, "", 9},
    {"NegativeLogLikelihoodLoss", run_likelihood_loss, "", 12},
    {"RMSNormalization", run_rms_normalization, "", 23},
    {"SoftmaxCrossEntropyLoss", run_cross_entropy_loss, "", 12},
};

}  // namespace

std::span<const Rule> norm_rules() { return kRules; }

}  // namespace reel::imported
