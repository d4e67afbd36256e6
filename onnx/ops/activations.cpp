// Activation functions, softmax and its relatives.
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/reductions.h"
#include "reel/core/functions/shape.h"
#include "reel/onnx/ops/broadcast.h"
#include "reel/onnx/registry.h"

namespace reel::imported {
namespace {

/// Returns exp(x) - 1 where x is negative, else 0; the gradient is finite for every x.
Tensor negative_expm1(const Tensor& x) { return expm1(where(x < 0, x, zeros_like(x))); }

Values run_celu(const Call& call) {
  const double alpha = call.number("alpha", 1);
  return unary(call,
               [&](const Tensor& x) { return where(x < 0, negative_expm1(x / alpha) * alpha, x); });
}
Values run_elu(const Call& call) {
  const double alpha = call.number("alpha", 1);
  return unary(call, [&](const Tensor& x) { return where(x < 0, negative_expm1(x) * alpha, x); });
}
Values run_selu(const Call& call) {
  // Version 1 has rounded constants.
  const double alpha =
      call.number("alpha", call.version() < 6 ? 1.6732 : 1.67326319217681884765625);
  const double gamma =
      call.number("gamma", call.version() < 6 ? 1.0507 : 1.05070102214813232421875);
  return unary(
      call, [&](const Tensor& x) { return where(x <= 0, negative_expm1(x) * alpha, x) * gamma; });
}
Values run_hard_sigmoid(const Call& call) {
  const double alpha = call.number("alpha", 0.2), beta = call.number("beta", 0.5);
  return unary(call, [&](const Tensor& x) { return clip(x * alpha + beta, 0., 1.); });
}
Values run_hard_swish(const Call& call) {
  return unary(call, [](const Tensor& x) { return x * clip(x * (1. / 6) + 0.5, 0., 1.); });
}
Values run_leaky_relu(const Call& call) {
  const double alpha = call.number("alpha", 0.01);
  return unary(call, [&](const Tensor& x) { return where(x < 0, x * alpha, x); });
}
Values run_thresholded_relu(const Call& call) {
  const double alpha = call.number("alpha", 1);
  return unary(call, [&](const Tensor& x) { return where(x > alpha, x, zeros_like(x)); });
}
Values run_shrink(const Call& call) {
  const double lambda = call.number("lambd", 0.5), bias = call.number("bias", 0);
  return unary(call, [&](const Tensor& given) {
    const Tensor x = is_float(given.dtype()) ? given : cast(given, f64);
    const Tensor result = where(x < -lambda, x + bias, where(x > lambda, x - bias, zeros_like(x)));
    return cast(result, given.dtype());
  });
}
Values run_softsign(const Call& call) {
  return unary(call, [](const Tensor& x) { return x / (abs(x) + 1); });
}
Values run_gelu(const Call& call) {
  const std::string form = call.text("approximate", "none");
  if (form != "none" && form != "tanh") call.refuse(str("the form ", form, " is not supported"));
  return unary(call, [&](const Tensor& x) {
    return gelu(x, form == "tanh" ? GeluForm::tanh : GeluForm::exact);
  });
}
Values run_mish(const Call& call) {
  return unary(call, [](const Tensor& x) { return x * tanh(softplus(x)); });
}
Values run_swish(const Call& call) {
  const double alpha = call.number("alpha", 1);
  return unary(call, [&](const Tensor& x) { return x * sigmoid(x * alpha); });
}
template <Tensor (*fn)(const Arg&)>
Values run_unary(const Call& call) {
  return unary(call, [](const Tensor& x) { return fn(x); });
}

/// Before version 7, a slope of one axis belongs to the channels, axis 1.
Values run_prelu(const Call& call) {
  const Tensor& x = call.tensor(0);
  Tensor slope = call.tensor(1);
  if (call.version() < 7 && slope.rank() == 1 && x.rank() > 2) {
    Dims dims(static_cast<std::size_t>(x.rank() - 1), Dim(1));
    dims[0] = slope.dims()[0];
    slope = reshape(slope, dims);
  }
  return {call.stored_like(0, where(x < 0, x * slope, x))};
}

/// Applies fn along the axis. Before version 13, all axes from `axis` on are one.
template <class Fn>
Values along_axis(const Call& call, Fn fn) {
  const Tensor& x = call.tensor(0);
  if (call.version() >= 13) {
    if (x.rank() == 0) return {call.like(0, fn(reshape(x, {1}), Axes(0)))};
    return {call.like(0, fn(x, Axes(call.axis(-1))))};
  }
  std::vector<Axis> axes;
  const std::int64_t given = call.integer("axis", 1);
  const int first = x.rank() == 0 || given == x.rank() ? x.rank() : call.axis_in(given, x.rank());
  for (int axis = first; axis < x.rank(); ++axis) axes.emplace_back(axis);
  return {call.like(0, fn(x, Axes(axes)))};
}

Values run_softmax(const Call& call) {
  return along_axis(call, [](const Tensor& x, const Axes& axes) { return softmax(x, axes); });
}
Values run_log_softmax(const Call& call) {
  return along_axis(call, [](const Tensor& x, const Axes& axes) { return log_softmax(x, axes); });
}

/// Returns 1 at the first largest element, else 0.
Values run_hardmax(const Call& call) {
  const Tensor& x = call.tensor(0);
  const auto at_largest = [](const Tensor& row, int axis) {
    const Tensor position = argmax(row, axis, Keep::yes);
    Dims dims(static_cast<std::size_t>(row.rank()), Dim(1));
    dims[static_cast<std::size_t>(axis)] = row.dims()[static_cast<std::size_t>(axis)];
    const Tensor positions = reshape(range(row.dim(axis)), dims);
    return cast(equal(position, positions), row.dtype());
  };
  if (call.version() >= 13) return {call.like(0, at_largest(x, call.axis(-1)))};
  std::vector<std::int64_t> sizes(x.shape()), rows{1, 1};
  const auto axis = static_cast<std::size_t>(call.axis(1));
  for (std::size_t i = 0; i < sizes.size(); ++i) rows[i >= axis] *= sizes[i];
  return {call.like(0, reshape(at_largest(reshape(x, rows), 1), sizes))};
}

const Rule kRules[] = {
    {"Celu", run_celu, "", 12},
    {"Elu", run_elu},
    {"Gelu", run_gelu, "", 20},
    {"HardSigmoid", run_hard_sigmoid},
    {"HardSwish", run_hard_swish, "", 14},
    {"Hardmax", run_hardmax},
    {"LeakyRelu", run_leaky_relu},
    {"LogSoftmax", run_log_softmax},
    {"Mish", run_mish, "", 18},
    {"PRelu", run_prelu},
    {"Relu", run_unary<relu>},
    {"Selu", run_selu},
    {"Shrink", run_shrink, "", 9},
    {"Sigmoid", run_unary<sigmoid>},
    {"Softmax", run_softmax},
    {"Softplus", run_unary<softplus>},
    {"Softsign", run_softsign},
    {"Swish", run_swish, "", 24},
    {"Tanh", run_unary<tanh>},
    {"ThresholdedRelu", run_thresholded_relu, "", 10},
};

}  // namespace

std::span<const Rule> activation_rules() { return kRules; }

}  // namespace reel::imported
