// Constants, conversions, and tensors made from sizes.
#include <cmath>
#include <limits>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/shape.h"
#include "reel/onnx/ops/convert.h"
#include "reel/onnx/ops/sizes.h"
#include "reel/onnx/registry.h"

namespace reel::imported {

Tensor converted(const Tensor& x, ElementType from, ElementType to, const StoreOptions& options) {
  const auto dtype = dtype_of(to);
  if (!dtype) throw DTypeError(str("Cast: there is no conversion to ", to));
  if (from == to) return x;
  // Fractions and wide integers are converted to i64 first: the type keeps its lower bits.
  if (is_integer(to) && *dtype == i32 && to != ElementType::int32 && x.dtype() != boolean)
    return cast(stored_as(cast(x, i64), to), i32);
  if (to == ElementType::int32 && x.dtype() == i64) return cast(x, i32);
  // Rounded once: f32 would round f64 and integers before.
  if (is_float(to) && bits_of(to) < 32 && x.dtype() != f32)
    return cast(stored_as(cast(x, f64), to, options), f32);
  return stored_as(cast(x, *dtype), to, options);
}

namespace {

Values run_constant(const Call& call) {
  if (call.has_attribute("value")) return {call.tensor_attribute("value")};
  if (call.has_attribute("value_int"))
    return {Value::of(scalar(call.integer("value_int", 0), i64), ElementType::int64)};
  if (call.has_attribute("value_ints"))
    return {Value::of(tensor(call.integers("value_ints")), ElementType::int64)};
  if (call.has_attribute("value_float"))
    return {Value::of(scalar(call.number("value_float", 0), f32))};
  if (call.has_attribute("value_floats"))
    return {Value::of(tensor(call.numbers("value_floats"), f32))};
  call.refuse("only tensors, integers and floats are supported as values");
}

/// ONNX 1.12 (op set 17) cut the bits of bfloat16 off; version 19 rounds.
StoreOptions store_options(const Call& call) {
  return {.saturates = call.flag("saturate", true),
          .round_mode = call.text("round_mode", "up"),
          .truncates_bfloat16 = call.version() < 19};
}

Values run_cast(const Call& call) {
  const auto to = static_cast<ElementType>(call.integer("to", 0));
  Value result = Value::of(converted(call.tensor(0), call.type(0), to, store_options(call)), to);
  if (is_integer(to)) result.sizes = call.in(0).sizes;
  return {result};
}
Values run_cast_like(const Call& call) {
  const ElementType to = call.type(1);
  return {Value::of(converted(call.tensor(0), call.type(0), to, store_options(call)), to)};
}
Values run_identity(const Call& call) { return {call.in(0)}; }

Values run_constant_of_shape(const Call& call) {
  const Value value =
      call.has_attribute("value") ? call.tensor_attribute("value") : Value::of(tensor({0.}, f32));
  if (value.tensor.numel() != 1) call.refuse("value must have one element");
  return {Value::of(expand_plain(scalar_of(value.tensor), new_axes(call, 0)), value.type)};
}

Values run_eye_like(const Call& call) {
  const Tensor& x = call.tensor(0);
  if (x.rank() != 2) call.refuse(str("takes a matrix, got ", x.type()));
  const auto type =
      static_cast<ElementType>(call.integer("dtype", static_cast<std::int64_t>(call.type(0))));
  const Tensor rows = reshape(range(x.dim(0), i64), Dims{x.dim(0), Dim(1)});
  const Tensor columns = range(x.dim(1), i64);
  return {Value::of(
      converted(equal(columns - rows, call.integer("k", 0)), ElementType::boolean, type), type)};
}

/// Returns the elements of Range if only a run knows their number. Throws AssertionError if the run
/// finds too many.
Values range_of_a_run(const Call& call) {
  const auto number = [&](std::size_t i) { return cast(scalar_of(call.tensor(i)), f64); };
  const Tensor count = maximum(ceil((number(1) - number(0)) / number(2)), 0.);
  const Tensor steps = range(size_of_a_run(count), i64);
  const Tensor start = scalar_of(call.tensor(0)), delta = scalar_of(call.tensor(2));
  return {call.stored_like(0, cast(steps, start.dtype()) * delta + start)};
}

/// Returns start, start + delta, ... before the limit.
Values run_range(const Call& call) {
  const DType type = call.tensor(0).dtype();
  if (call.in(1).sizes && !holds_computed_size(call, 1) && call.is_known(0) && call.is_known(2) &&
      call.known_numbers(0).at(0) == 0 &&
      call.known_numbers(2).at(0) == 1)  // up to the size of an axis
    return {call.like(0, range(call.in(1).sizes->at(0), type))};
  if (!call.is_known(0) || !call.is_known(1) || !call.is_known(2)) return range_of_a_run(call);
  const double start = call.known_numbers(0).at(0), limit = call.known_numbers(1).at(0),
               delta = call.known_numbers(2).at(0);
  const double count = std::max(std::ceil((limit - start) / delta), 0.);
  if (!(count < 0x1p40)) call.refuse(str("gives ", count, " elements"));
  const DType dtype = call.tensor(0).dtype();
  const Tensor steps = range(static_cast<std::int64_t>(count), i64);
  return {call.stored_like(0, cast(steps, dtype) * call.tensor(2) + call.tensor(0))};
}

const Rule kRules[] = {
    {"Cast", run_cast, "", 6},
    {"CastLike", run_cast_like, "", 15},
    {"Constant", run_constant},
    with_numbers({0}, {"ConstantOfShape", run_constant_of_shape, "", 9}),
    {"EyeLike", run_eye_like, "", 9},
    {"Identity", run_identity},
    with_numbers({0, 1, 2}, {"Range", run_range, "", 11}),
};

}  // namespace

std::span<const Rule> constant_rules() { return kRules; }

}  // namespace reel::imported
