// Quantised tensors: integers, or floats of few bits, with a scale and a zero point. Products of
// integers are exact.
#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/products.h"
#include "reel/core/functions/reductions.h"
#include "reel/core/functions/shape.h"
#include "reel/onnx/ops/convert.h"
#include "reel/onnx/ops/sizes.h"
#include "reel/onnx/ops/windows.h"
#include "reel/onnx/registry.h"

namespace reel::imported {
namespace {

/// Returns a scale or zero point such that it broadcasts to x: one number, one for each position of
/// an axis, or one for each block of positions.
Tensor spread(const Call& call, const Tensor& parameter, const Tensor& x) {
  if (parameter.numel() == 1) return scalar_of(parameter);
  const int axis = call.axis_in(call.integer("axis", 1), x.rank());
  const std::int64_t block = call.integer("block_size", 0);
  if (block <= 0) {
    if (parameter.rank() != 1)
      call.refuse(
          str("a scale or zero point is ", parameter.type(), ", but there is no block_size"));
    Dims dims(static_cast<std::size_t>(x.rank()), Dim(1));
    dims[static_cast<std::size_t>(axis)] = parameter.dims()[0];
    return reshape(parameter, dims);
  }
  std::vector<std::int64_t> blocks;
  for (std::int64_t i = 0; i < x.dim(axis).size(); ++i) blocks.push_back(i / block);
  return gather(parameter, tensor(blocks), axis);
}

/// Returns rounded numbers plus a zero point as the type stores them, saturated.
Tensor quantized(const Tensor& number, const Tensor& zero_point, ElementType type) {
  const Tensor shifted = round(number) + cast(zero_point, number.dtype());
  return cast(saturated(shifted, type), *dtype_of(type));
}

/// Returns the type of the result: the zero point's type, or that in an attribute, or uint8.
ElementType quantized_type(const Call& call) {
  if (call.has(2)) return call.type(2);
  const std::int64_t given = call.integer("output_dtype", 0);
  return given ? static_cast<ElementType>(given) : ElementType::uint8;
}

Values run_quantize(const Call& call) {
  const Tensor& x = call.tensor(0);
  const ElementType to = quantized_type(call);
  if (!dtype_of(to)) call.refuse(str("the type ", to, " is not supported"));
  const std::int64_t given = call.integer("precision", 0);
  const ElementType precision = given ? static_cast<ElementType>(given) : call.type(1);
  const DType dtype = is_float(precision) ? dtype_of(precision).value_or(f32) : f32;
  const Tensor scale = cast(spread(call, call.tensor(1), x), dtype);
  const Tensor quotient =
      stored_as(cast(x, dtype) / scale, is_float(precision) ? precision : ElementType::float32);
  const Tensor zero = call.has(2) ? spread(call, call.tensor(2), x) : zeros({}, dtype);
  if (is_integer(to)) return {Value::of(quantized(quotient, zero, to), to)};
  const StoreOptions options{.saturates = call.flag("saturate", true)};
  const Tensor shifted = quotient + cast(zero, dtype);
  return {Value::of(cast(stored_as(shifted, to, options), *dtype_of(to)), to)};
}

Values run_dequantize(const Call& call) {
  const Tensor& x = call.tensor(0);
  const std::int64_t given = call.integer("output_dtype", 0);
  const ElementType to = given ? static_cast<ElementType>(given) : call.type(1);
  const DType dtype = dtype_of(to).value_or(f32);
  Tensor shifted = x;
  if (call.has(2)) shifted = x - spread(call, call.tensor(2), x);
  const Tensor y = cast(shifted, dtype) * cast(spread(call, call.tensor(1), x), dtype);
  return {Value::of(stored_as(y, to), to)};
}

/// Chooses scale and zero point such that the range of x, with 0, becomes 0 to 255.
Values run_dynamic_quantize(const Call& call) {
  const Tensor& x = call.tensor(0);
  constexpr double kLargest = 255;
  const Tensor low = minimum(min(x), 0), high = maximum(max(x), 0);
  const Tensor range = high - low;
  const Tensor scale = range / kLargest;
  const Tensor divisor = where(equal(range, 0), 1., scale);
  const Tensor zero = round(clip(-low / divisor, 0, kLargest));
  return {Value::of(quantized(x / divisor, zero, ElementType::uint8), ElementType::uint8),
          Value::of(scale), Value::of(cast(zero, i32), ElementType::uint8)};
}

// ---- Products ---------------------------------------------------------------------------------

/// Returns integers minus their zero point, input `zero_point` of the node. axis: of x, along which
/// a zero point with several elements runs.
Tensor centred(const Call& call, std::size_t x, std::size_t zero_point, int axis) {
  const Tensor& given = call.tensor(x);
  if (!call.has(zero_point)) return given;
  const Tensor& zero = call.tensor(zero_point);
  if (zero.numel() == 1) return given - scalar_of(zero);
  if (zero.rank() != 1) return given - zero;
  Dims dims(static_cast<std::size_t>(given.rank()), Dim(1));
  dims[static_cast<std::size_t>(call.axis_in(axis, given.rank()))] = zero.dims()[0];
  return given - reshape(zero, dims);
}

/// Returns the scale with the axes of size 1 that it needs to broadcast along `axis` of a result.
Tensor scale_along(const Call& call, const Tensor& scale, const Tensor& result, int axis) {
  if (scale.numel() == 1) return scalar_of(scale);
  if (scale.rank() != 1) return scale;
  Dims dims(static_cast<std::size_t>(result.rank()), Dim(1));
  dims[static_cast<std::size_t>(call.axis_in(axis, result.rank()))] = scale.dims()[0];
  return reshape(scale, dims);
}

/// Rows of the first operand and columns of the second one may have their own zero points.
Tensor product_of(const Call& call, std::size_t a, std::size_t a_zero, std::size_t b,
                  std::size_t b_zero) {
  return matmul(centred(call, a, a_zero, -2), centred(call, b, b_zero, -1));
}

Values run_matmul_integer(const Call& call) {
  return {Value::of(product_of(call, 0, 2, 1, 3), ElementType::int32)};
}
Values run_conv_integer(const Call& call) {
  return {Value::of(convolved(call, centred(call, 0, 2, 1), centred(call, 1, 3, 0)),
                    ElementType::int32)};
}

Values run_qlinear_matmul(const Call& call) {
  const Tensor product = cast(product_of(call, 0, 2, 3, 5), f32);
  const Tensor scale = scale_along(call, call.tensor(1), product, -2) *
                       scale_along(call, call.tensor(4), product, -1) /
                       scale_along(call, call.tensor(6), product, -2);
  const ElementType to = call.type(7);
  return {Value::of(quantized(product * scale, scale_along(call, call.tensor(7), product, -2), to),
                    to)};
}

/// The bias is int32, of the scale x_scale w_scale.
Values run_qlinear_conv(const Call& call) {
  Tensor sums = convolved(call, centred(call, 0, 2, 1), centred(call, 3, 5, 0));
  if (call.has(8)) sums = sums + scale_along(call, call.tensor(8), sums, 1);
  const Tensor scale = scalar_of(call.tensor(1)) * scale_along(call, call.tensor(4), sums, 1) /
                       scalar_of(call.tensor(6));
  const ElementType to = call.type(7);
  return {Value::of(quantized(cast(sums, f32) * scale, scalar_of(call.tensor(7)), to), to)};
}

const Rule kRules[] = {
    {"ConvInteger", run_conv_integer, "", 10},
    {"DequantizeLinear", run_dequantize, "", 10},
    {"DynamicQuantizeLinear", run_dynamic_quantize, "", 11},
    {"MatMulInteger", run_matmul_integer, "", 10},
    {"QLinearConv", run_qlinear_conv, "", 10},
    {"QLinearMatMul", run_qlinear_matmul, "", 10},
    {"QuantizeLinear", run_quantize, "", 10},
};

}  // namespace

std::span<const Rule> quantized_rules() { return kRules; }

}  // namespace reel::imported
