// Random tensors, and Dropout. All draw from Reel's stream; an attribute `seed` has no effect.
#include "reel/core/functions/random.h"
#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/shape.h"
#include "reel/onnx/ops/convert.h"
#include "reel/onnx/ops/sizes.h"
#include "reel/onnx/registry.h"
#include "reel/onnx/run_limits.h"

namespace reel::imported {
namespace {

/// Returns the type that an attribute names, or else the type of the first input.
ElementType type_of(const Call& call) {
  if (call.has_attribute("dtype")) return static_cast<ElementType>(call.integer("dtype", 1));
  return call.has(0) ? call.type(0) : ElementType::float32;
}

Dims dims_of(const Call& call) {
  if (call.has(0)) return call.tensor(0).dims();
  const std::vector<std::int64_t> sizes = call.integers("shape");
  check_rank(call.node(), sizes.size());
  return Dims(sizes.begin(), sizes.end());
}

Values run_normal(const Call& call) {
  const ElementType type = type_of(call);
  const DType dtype = dtype_of(type).value_or(f32);
  const Tensor draws = random_normal(dims_of(call), dtype);
  return {
      Value::of(stored_as(draws * call.number("scale", 1) + call.number("mean", 0), type), type)};
}
Values run_uniform(const Call& call) {
  const ElementType type = type_of(call);
  const DType dtype = dtype_of(type).value_or(f32);
  return {Value::of(
      stored_as(random_uniform(dims_of(call), call.number("low", 0), call.number("high", 1), dtype),
                type),
      type)};
}
Values run_bernoulli(const Call& call) {
  const ElementType type = type_of(call);
  const Tensor draws = bernoulli(call.tensor(0), call.tensor(0).dims());
  return {Value::of(converted(draws, ElementType::boolean, type), type)};
}
Values run_multinomial(const Call& call) {
  const Tensor& logits = call.tensor(0);
  const std::int64_t count = call.integer("sample_size", 1);
  if (logits.rank() != 2 || count < 0) call.refuse(str("does not fit ", logits.type()));
  const auto type = static_cast<ElementType>(call.integer("dtype", 6));
  const Tensor rows = broadcast_to(reshape(logits, Dims{logits.dim(0), Dim(1), logits.dim(1)}),
                                   Dims{logits.dim(0), Dim(count), logits.dim(1)});
  return {Value::of(converted(categorical(rows, 2), ElementType::int32, type), type)};
}

/// Until version 11 a model for inference has no effect of Dropout; later an input says if it
/// trains.
Values run_dropout(const Call& call) {
  const Tensor& x = call.tensor(0);
  const bool is_old = call.version() < 12;
  if (call.version() < 7 && !call.flag("is_test", false))
    call.refuse("training is supported from version 12 on");
  const Tensor all = logical_not(zeros(x.dims(), boolean));
  // Before version 10 the mask has the type of x.
  const auto results = [&](const Tensor& y, const Tensor& mask) {
    if (call.version() < 10) return Values{call.like(0, y), call.like(0, cast(mask, x.dtype()))};
    return Values{call.like(0, y), Value::of(mask)};
  };
  if (is_old || !call.has(2)) return results(x, all);
  if (call.is_known(2) && !call.known_integer(2)) return results(x, all);
  const Tensor trains = scalar_of(call.tensor(2));
  const Tensor ratio =
      call.has(1) ? cast(scalar_of(call.tensor(1)), x.dtype()) : full({}, 0.5, x.dtype());
  const Tensor mask = bernoulli(1 - ratio, x.dims()) || !trains;
  const Tensor scaled = x / where(ratio < 1, 1 - ratio, 1.);
  return results(where(mask, where(trains, scaled, x), zeros_like(x)), mask);
}

const Rule kRules[] = {
    {"Bernoulli", run_bernoulli, "", 15, kLatestVersion, false},
    {"Dropout", run_dropout, "", 1, kLatestVersion, false},
    {"Multinomial", run_multinomial, "", 7, kLatestVersion, false},
    {"RandomNormal", run_normal, "", 1, kLatestVersion, false},
    {"RandomNormalLike", run_normal, "", 1, kLatestVersion, false},
    {"RandomUniform", run_uniform, "", 1, kLatestVersion, false},
    {"RandomUniformLike", run_uniform, "", 1, kLatestVersion, false},
};

}  // namespace

std::span<const Rule> random_rules() { return kRules; }

}  // namespace reel::imported
