// Writers of reductions, softmax and running sums.
#include <algorithm>
#include <limits>

#include "reel/core/ops/reductions/cumulative.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/onnx/writer_registry.h"

namespace reel::exported {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const std::vector<int>& axes_of(const WriteCall& call) { return call.attr<ReduceAttrs>().axes; }

/// Adds a reduction with its axes as an attribute. Without axes ONNX would reduce all.
Name reduce(GraphWriter& to, const std::string& op, const Name& x, const std::vector<int>& axes,
            bool keeps = false) {
  if (axes.empty()) return x;
  return to.add(op, {x}, {{"axes", integers(axes)}, {"keepdims", integer(keeps)}});
}
Name sum_kept(GraphWriter& to, const Name& x, const std::vector<int>& axes) {
  return to.add("ReduceSum", {x, to.model().integers({axes.begin(), axes.end()})});
}

Names write_sum(const WriteCall& call) { return {call.to.sum(call.in(0), axes_of(call))}; }

std::int64_t lowest_of(DType dtype) {
  return dtype == i32 ? std::numeric_limits<std::int32_t>::min()
                      : std::numeric_limits<std::int64_t>::min();
}
std::int64_t highest_of(DType dtype) {
  return dtype == i32 ? std::numeric_limits<std::int32_t>::max()
                      : std::numeric_limits<std::int64_t>::max();
}

/// True if a row of a reduction may have no elements.
bool may_be_empty(const WriteCall& call) {
  return std::any_of(axes_of(call).begin(), axes_of(call).end(), [&](int axis) {
    return known_size(call.type_in(0).dims()[static_cast<std::size_t>(axis)]) <= 0;
  });
}
/// Returns x with one more element along each axis of the reduction, which does not change it.
Name with_neutral_element(const WriteCall& call, double neutral) {
  const TensorType& type = call.type_in(0);
  const auto rank = static_cast<std::size_t>(type.rank());
  std::vector<std::int64_t> pads(2 * rank);
  for (const int axis : axes_of(call)) pads[rank + static_cast<std::size_t>(axis)] = 1;
  ModelWriter& model = call.to.model();
  const Name value = is_integer(type.dtype())
                         ? model.integer(neutral < 0   ? lowest_of(type.dtype())
                                         : neutral > 1 ? highest_of(type.dtype())
                                                       : 1,
                                         type.dtype())
                         : model.number(neutral, type.dtype());
  return call.to.add("Pad", {call.in(0), model.integers(pads), value});
}

/// Returns x such that no row of the reduction is empty: ONNX leaves the results of these open.
Name without_empty_rows(const WriteCall& call, double neutral) {
  return may_be_empty(call) ? with_neutral_element(call, neutral) : call.in(0);
}

/// kNeutral: the result for no elements.
template <const auto& kOp, const double& kNeutral>
Names write_reduction(const WriteCall& call) {
  return {reduce(call.to, kOp, without_empty_rows(call, kNeutral), axes_of(call))};
}

/// onnxruntime makes NaN of one element -inf, the neutral one.
Names write_logsumexp(const WriteCall& call) {
  const Name op = "ReduceLogSumExp";
  if (!may_be_empty(call)) return {reduce(call.to, op, call.in(0), axes_of(call))};
  GraphWriter& to = call.to;
  const Name x = with_neutral_element(call, -kInfinity);
  const Name most = reduce(to, "ReduceMax", x, axes_of(call));
  const Name nothing = to.model().number(-kInfinity, call.type_in(0).dtype());
  return {
      to.add("Where", {to.add("Equal", {most, nothing}), most, reduce(to, op, x, axes_of(call))})};
}

Names write_any(const WriteCall& call) { return {call.to.any(call.in(0), axes_of(call))}; }
/// All are true unless one is false.
Names write_all(const WriteCall& call) {
  const Name one_is_false = call.to.any(call.to.logical_not(call.in(0)), axes_of(call));
  return {call.to.logical_not(one_is_false)};
}

/// Writes argmax or argmin. The first of equal elements counts, so neutral elements behind the
/// others change nothing. kNeutral: the lowest element for argmax, the highest for argmin.
template <const auto& kOp, const double& kNeutral>
Names write_position(const WriteCall& call) {
  if (axes_of(call).size() != 1) throw NotExpressible{"over several axes"};
  const Name position =
      call.to.add(kOp, {without_empty_rows(call, kNeutral)},
                  {{"axis", integer(axes_of(call)[0])}, {"keepdims", integer(0)}});
  return {call.to.cast(position, i32)};
}

/// Returns exp(x - m) for the largest element m along the axes, which are kept. A row of only -inf
/// becomes zeros.
Name exponentials(const WriteCall& call) {
  GraphWriter& to = call.to;
  const DType dtype = call.type_in(0).dtype();
  const Name most =
      reduce(to, "ReduceMax", without_empty_rows(call, -kInfinity), axes_of(call), true);
  const Name is_nothing = to.add("Equal", {most, to.model().number(-kInfinity, dtype)});
  const Name shift = to.add("Where", {is_nothing, to.model().number(0, dtype), most});
  return to.add("Exp", {to.add("Sub", {call.in(0), shift})});
}
/// True if ONNX's own op does: one axis, and no padding, which makes whole rows of -inf.
bool is_plain(const WriteCall& call) {
  return axes_of(call).size() == 1 && !call.type_in(0).is_ragged();
}

/// Returns y, but `value` for elements of x that are -inf: in a row of only -inf, ONNX makes NaN.
Name unless_nothing(const WriteCall& call, const Name& y, const Name& value) {
  const Name nothing = call.to.model().number(-kInfinity, call.type_in(0).dtype());
  return call.to.add("Where", {call.to.add("Equal", {call.in(0), nothing}), value, y});
}

Names write_softmax(const WriteCall& call) {
  if (axes_of(call).empty()) return {call.in(0)};
  GraphWriter& to = call.to;
  const DType dtype = call.type_in(0).dtype();
  if (is_plain(call)) {
    const Name y = to.add("Softmax", {call.in(0)}, {{"axis", integer(axes_of(call)[0])}});
    return {unless_nothing(call, y, to.model().number(0, dtype))};
  }
  const Name parts = exponentials(call), total = sum_kept(to, parts, axes_of(call));
  const Name is_nothing = to.add("Equal", {total, to.model().number(0, dtype)});
  const Name divisor = to.add("Where", {is_nothing, to.model().number(1, dtype), total});
  return {to.add("Div", {parts, divisor})};
}

Names write_log_softmax(const WriteCall& call) {
  GraphWriter& to = call.to;
  if (is_plain(call)) {
    const Name y = to.add("LogSoftmax", {call.in(0)}, {{"axis", integer(axes_of(call)[0])}});
    return {unless_nothing(call, y, call.in(0))};
  }
  const Name whole =
      reduce(to, "ReduceLogSumExp", without_empty_rows(call, -kInfinity), axes_of(call), true);
  return {unless_nothing(call, to.add("Sub", {call.in(0), whole}), call.in(0))};
}

/// Repeats the input along new axes.
Names write_spread(const WriteCall& call) {
  const SpreadAttrs& attrs = call.attr<SpreadAttrs>();
  const Name thin = call.to.unsqueeze(call.in(0), attrs.axes);
  for (const Dim& dim : attrs.dims)
    if (known_size(dim) != 1) return {call.to.expand(thin, call.type_out().dims())};
  return {thin};
}

Names write_axes_size(const WriteCall& call) {
  GraphWriter& to = call.to;
  Dims dims;
  for (const int axis : axes_of(call))
    dims.push_back(call.type_in(0).dims()[static_cast<std::size_t>(axis)]);
  return {reduce(to, "ReduceProd", to.shape(dims), {0})};
}

Names write_norm(const WriteCall& call) {
  GraphWriter& to = call.to;
  const Name x = to.cast(call.in(0), f64);
  std::vector<int> axes;
  for (int i = 0; i < call.type_in(0).rank(); ++i) axes.push_back(i);
  return {to.add("Sqrt", {to.sum(to.add("Mul", {x, x}), axes)})};
}

Names write_cumsum(const WriteCall& call) {
  const auto& attrs = call.attr<CumulativeAttrs>();
  return {
      call.to.add("CumSum", {call.in(0), call.to.model().integer(attrs.axis)},
                  {{"exclusive", integer(attrs.exclusive)}, {"reverse", integer(attrs.reverse)}})};
}

/// Sums the axes that broadcasting repeated, if the types tell them.
Names write_sum_to(const WriteCall& call) {
  GraphWriter& to = call.to;
  const TensorType &from = call.type_in(0), &out = call.type_out();
  const int extra = from.rank() - out.rank();
  std::vector<int> leading, repeated;
  for (int i = 0; i < from.rank(); ++i) {
    if (i < extra) {
      leading.push_back(i);
      continue;
    }
    const Dim &had = out.dims()[static_cast<std::size_t>(i - extra)],
              &has = from.dims()[static_cast<std::size_t>(i)];
    if (had == has) continue;
    if (known_size(had) == 1)
      repeated.push_back(i);
    else if (known_size(had) < 0)
      throw NotExpressible{"only a run determines which axes were broadcast"};
  }
  const Name kept = repeated.empty() ? call.in(0) : sum_kept(to, call.in(0), repeated);
  return {to.sum(kept, leading)};
}

constexpr char kProd[] = "ReduceProd", kMax[] = "ReduceMax", kMin[] = "ReduceMin",
               kArgMax[] = "ArgMax", kArgMin[] = "ArgMin", kLogSumExp[] = "ReduceLogSumExp";

constexpr double kOne = 1, kLowest = -kInfinity, kHighest = kInfinity;

const Writer kWriters[] = {
    {"sum", write_sum},
    {"sum_to", write_sum_to},
    {"prod", write_reduction<kProd, kOne>},
    {"max", write_reduction<kMax, kLowest>},
    {"min", write_reduction<kMin, kHighest>},
    {"any", write_any},
    {"all", write_all},
    {"argmax", write_position<kArgMax, kLowest>},
    {"argmin", write_position<kArgMin, kHighest>},
    {"logsumexp", write_logsumexp},
    {"softmax", write_softmax},
    {"log_softmax", write_log_softmax},
    {"spread", write_spread},
    {"axes_size", write_axes_size},
    {"norm", write_norm},
    {"cumsum", write_cumsum},
};

}  // namespace

std::span<const Writer> reduction_writers() { return kWriters; }

}  // namespace reel::exported
