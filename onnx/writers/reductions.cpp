// Writers of reductions, softmax and running sums.
#include <limits>

#include "reel/core/ops/reductions/cumulative.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/onnx/writer_registry.h"

namespace reel::exported {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const std::vector<int>& axes_of(const WriteCall& call) { return call.attr<ReduceAttrs>().axes; }

/// Adds a reduction whose axes are an attribute. Without axes ONNX would reduce all.
Name reduce(GraphWriter& to, const std::string& op, const Name& x, const std::vector<int>& axes,
            bool keeps = false) {
  if (axes.empty()) return x;
  return to.add(op, {x}, {{"axes", integers(axes)}, {"keepdims", integer(keeps)}});
}
Name sum_kept(GraphWriter& to, const Name& x, const std::vector<int>& axes) {
  return to.add("ReduceSum", {x, to.model().integers({axes.begin(), axes.end()})});
}

Names write_sum(const WriteCall& call) { return {call.to.sum(call.in(0), axes_of(call))}; }

template <const auto& kOp>
Names write_reduction(const WriteCall& call) {
  return {reduce(call.to, kOp, call.in(0), axes_of(call))};
}

Names write_any(const WriteCall& call) { return {call.to.any(call.in(0), axes_of(call))}; }
/// All are true unless one is false.
Names write_all(const WriteCall& call) {
  const Name one_is_false = call.to.any(call.to.logical_not(call.in(0)), axes_of(call));
  return {call.to.logical_not(one_is_false)};
}

template <const auto& kOp>
Names write_position(const WriteCall& call) {
  if (axes_of(call).size() != 1) throw NotExpressible{"over several axes"};
  const Name position = call.to.add(
      kOp, {call.in(0)}, {{"axis", integer(axes_of(call)[0])}, {"keepdims", integer(0)}});
  return {call.to.cast(position, i32)};
}

/// Returns exp(x - m) for the largest element m along the axes, which are kept. A row of only -inf
/// becomes zeros.
Name exponentials(const WriteCall& call) {
  GraphWriter& to = call.to;
  const DType dtype = call.type_in(0).dtype();
  const Name most = reduce(to, "ReduceMax", call.in(0), axes_of(call), true);
  const Name is_nothing = to.add("Equal", {most, to.model().number(-kInfinity, dtype)});
  const Name shift = to.add("Where", {is_nothing, to.model().number(0, dtype), most});
  return to.add("Exp", {to.add("Sub", {call.in(0), shift})});
}
/// True if ONNX's own op does: one axis, and no padding, which makes whole rows of -inf.
bool is_plain(const WriteCall& call) {
  return axes_of(call).size() == 1 && !call.type_in(0).is_ragged();
}

Names write_softmax(const WriteCall& call) {
  if (axes_of(call).empty()) return {call.in(0)};
  if (is_plain(call))
    return {call.to.add("Softmax", {call.in(0)}, {{"axis", integer(axes_of(call)[0])}})};
  GraphWriter& to = call.to;
  const DType dtype = call.type_in(0).dtype();
  const Name parts = exponentials(call), total = sum_kept(to, parts, axes_of(call));
  const Name is_nothing = to.add("Equal", {total, to.model().number(0, dtype)});
  const Name divisor = to.add("Where", {is_nothing, to.model().number(1, dtype), total});
  return {to.add("Div", {parts, divisor})};
}

Names write_log_softmax(const WriteCall& call) {
  if (is_plain(call))
    return {call.to.add("LogSoftmax", {call.in(0)}, {{"axis", integer(axes_of(call)[0])}})};
  GraphWriter& to = call.to;
  const Name whole = reduce(to, "ReduceLogSumExp", call.in(0), axes_of(call), true);
  return {to.add("Sub", {call.in(0), whole})};
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

const Writer kWriters[] = {
    {"sum", write_sum},
    {"sum_to", write_sum_to},
    {"prod", write_reduction<kProd>},
    {"max", write_reduction<kMax>},
    {"min", write_reduction<kMin>},
    {"any", write_any},
    {"all", write_all},
    {"argmax", write_position<kArgMax>},
    {"argmin", write_position<kArgMin>},
    {"logsumexp", write_reduction<kLogSumExp>},
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
