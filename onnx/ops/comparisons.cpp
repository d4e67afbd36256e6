// Comparisons, logic and selection.
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/onnx/ops/broadcast.h"
#include "reel/onnx/registry.h"

namespace reel::imported {
namespace {

template <Tensor (*fn)(const Arg&, const Arg&)>
Values run_comparison(const Call& call) {
  return {Value::of(fn(call.tensor(0), second_operand(call)))};
}

Values run_not(const Call& call) { return {Value::of(logical_not(call.tensor(0)))}; }
Values run_is_nan(const Call& call) { return {Value::of(isnan(call.tensor(0)))}; }
Values run_is_inf(const Call& call) {
  const Tensor& x = call.tensor(0);
  Tensor result = isinf(x);
  if (!call.flag("detect_negative", true)) result = result && x > 0;
  if (!call.flag("detect_positive", true)) result = result && x < 0;
  return {Value::of(result)};
}
Values run_where(const Call& call) {
  const Tensor &condition = call.tensor(0), &a = call.tensor(1), &b = call.tensor(2);
  return {call.like(1, where(condition, a, b))};
}

const Rule kRules[] = {
    {"And", run_comparison<logical_and>},
    {"Equal", run_comparison<equal>},
    {"Greater", run_comparison<greater>},
    {"GreaterOrEqual", run_comparison<greater_equal>, "", 12},
    {"IsInf", run_is_inf, "", 10},
    {"IsNaN", run_is_nan, "", 9},
    {"Less", run_comparison<less>},
    {"LessOrEqual", run_comparison<less_equal>, "", 12},
    {"Not", run_not},
    {"Or", run_comparison<logical_or>},
    {"Where", run_where, "", 9},
    {"Xor", run_comparison<logical_xor>},
};

}  // namespace

std::span<const Rule> comparison_rules() { return kRules; }

}  // namespace reel::imported
