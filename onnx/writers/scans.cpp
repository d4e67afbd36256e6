// Writers of recurrences along an axis, as nodes Scan.
#include <functional>
#include <limits>

#include "reel/core/ops/reductions/cumulative.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/scans/linear_scan.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/onnx/borders.h"
#include "reel/onnx/writer_registry.h"

namespace reel::exported {
namespace {

/// A recurrence with one state, which has the dims of a row: the tensors without the axis.
class Recurrence {
 public:
  /// full: the type with the axis.
  Recurrence(TensorType full, int axis, bool reverse)
      : full_(std::move(full)), axis_(axis), reverse_(reverse) {}

  /// The results of a step: the next state, and the row of the result.
  struct Step {
    Name next, row;
  };
  using StepFn = std::function<Step(GraphWriter& in, const Names& rows, const Name& state)>;

  TensorType row() const { return reduced_type(full_, {axis_}); }
  /// Returns the rows of the result along the axis. xs: with the axis.
  ///
  /// onnxruntime crashes if rows along another axis than the first have no elements, and has no
  /// Scan without rows. Therefore the axis comes first, and an extra row follows, which is cut off.
  Name write(GraphWriter& to, const Names& xs, const Name& initial, const StepFn& step) const {
    InnerGraph inner(to.model(), "step");
    GraphWriter in(to.model(), inner.nodes(), to.graph(), &to);
    const Name state = inner.add_input(in, "state", row());
    Names rows, inputs{initial};
    std::vector<int> in_front{axis_}, back;
    for (int axis = 0; axis < full_.rank(); ++axis) {
      if (axis != axis_) in_front.push_back(axis);
      back.push_back(axis < axis_ ? axis + 1 : axis == axis_ ? 0 : axis);
    }
    const bool may_be_empty = known_size(dim_at(full_, axis_)) <= 0;
    for (const Name& x : xs) {
      rows.push_back(inner.add_input(in, "row", row()));
      const Name turned = to.transpose(x, in_front);
      inputs.push_back(may_be_empty ? with_last_row(to, turned) : turned);
    }
    // onnxruntime takes a Mul by a constant without elements for the identity, and fails.
    const Step made = is_known_empty(row()) ? Step{state, state} : step(in, rows, state);
    inner.add_output(in, made.next, row());
    inner.add_output(in, made.row, row());
    const std::vector<int> directions(xs.size(), reverse_);
    const Names results =
        to.add("Scan", inputs, 2,
               {{"body", graph(inner.graph())},
                {"num_scan_inputs", integer(static_cast<std::int64_t>(xs.size()))},
                {"scan_input_directions", integers(directions)},
                {"scan_output_directions", integers(std::vector<int>{reverse_})}});
    return to.transpose(may_be_empty ? without_last_row(to, results[1]) : results[1], back);
  }
  /// Returns a row of one number.
  Name constant_row(GraphWriter& to, double value) const {
    const Name number = to.model().number(value, full_.dtype());
    return row().rank() ? to.expand(number, row().dims()) : number;
  }
  /// Returns the row at which the recurrence begins, or zeros if the axis is empty.
  Name first_row(GraphWriter& to, const Name& x) const {
    return to.sum(reverse_ ? part(to, x, -1, INT64_MAX) : part(to, x, 0, 1), {axis_});
  }
  /// Returns x with each row at the next step. The first step has `first`.
  Name lagged(GraphWriter& to, const Name& x, const Name& first) const {
    const Name edge = to.unsqueeze(first, {axis_});
    return reverse_ ? part(to, to.concat({x, edge}, axis_), 1, INT64_MAX)
                    : part(to, to.concat({edge, x}, axis_), 0, -1);
  }

 private:
  /// Returns some rows, from begin to end.
  Name part(GraphWriter& to, const Name& x, std::int64_t begin, std::int64_t end) const {
    return slice(to, x, axis_, begin, end);
  }
  static Name slice(GraphWriter& to, const Name& x, int axis, std::int64_t begin,
                    std::int64_t end) {
    ModelWriter& model = to.model();
    return to.add("Slice",
                  {x, model.integers({begin}), model.integers({end}), model.integers({axis})});
  }
  /// Returns rows along the first axis with a row of zeros that the recurrence reads last.
  Name with_last_row(GraphWriter& to, const Name& x) const {
    const auto rank = static_cast<std::size_t>(full_.rank());
    std::vector<std::int64_t> pads(2 * rank);
    pads[reverse_ ? 0 : rank] = 1;
    return to.add("Pad", {x, to.model().integers(pads), to.model().number(0, full_.dtype())});
  }
  Name without_last_row(GraphWriter& to, const Name& x) const {
    return reverse_ ? slice(to, x, 0, 1, INT64_MAX) : slice(to, x, 0, 0, -1);
  }

  const TensorType full_;
  const int axis_;
  const bool reverse_;
};

/// y_k is the product of all x before k.
Names write_product_before(const WriteCall& call) {
  const auto& attrs = call.attr<CumulativeAttrs>();
  const Recurrence walk(call.type_in(0), attrs.axis, attrs.reverse);
  return {walk.write(call.to, {call.in(0)}, walk.constant_row(call.to, 1),
                     [](GraphWriter& in, const Names& rows, const Name& state) {
                       return Recurrence::Step{in.add("Mul", {state, rows[0]}), state};
                     })};
}

/// y_k = log Σ_{j<=k} exp x_j. The exponents are relative to the larger one, or to 0 if it is
/// infinite.
Names write_logcumsumexp(const WriteCall& call) {
  const auto& attrs = call.attr<CumulativeAttrs>();
  const TensorType& full = call.type_in(0);
  const Recurrence walk(full, attrs.axis, attrs.reverse);
  return {walk.write(
      call.to, {call.in(0)}, walk.constant_row(call.to, -std::numeric_limits<double>::infinity()),
      [&](GraphWriter& in, const Names& rows, const Name& y) {
        const Name larger = in.add("Max", {y, rows[0]});
        const Name base = in.where(in.add("IsInf", {larger}), in.model().number(0, full.dtype()),
                                   larger, full.dtype());
        const auto power = [&](const Name& x) { return in.add("Exp", {in.add("Sub", {x, base})}); };
        const Name sum = in.add("Add", {power(y), power(rows[0])});
        const Name next = in.add("Add", {base, in.add("Log", {sum})});
        return Recurrence::Step{next, next};
      })};
}

/// t_0 = 0, t_{i+1} = c_i + x_i t_i.
Names write_recurrence(const WriteCall& call) {
  const auto& attrs = call.attr<CumulativeAttrs>();
  const Recurrence walk(call.type_in(0), attrs.axis, attrs.reverse);
  return {walk.write(call.to, {call.in(0), call.in(1)}, walk.constant_row(call.to, 0),
                     [](GraphWriter& in, const Names& rows, const Name& state) {
                       const Name product = in.add("Mul", {rows[0], state});
                       return Recurrence::Step{in.add("Add", {rows[1], product}), state};
                     })};
}

/// The operands of a linear recurrence: some lack the time axis.
struct ScanOperands {
  const LinearScanAttrs& attrs;
  const TensorType& full;
  GraphWriter& to;

  bool is_over_time(ScanOperand which) const { return attrs.over_time & which; }
  /// Returns a value such that it broadcasts to the result.
  Name broadcast(const Name& x, ScanOperand which) const {
    return is_over_time(which) ? x : to.unsqueeze(x, {attrs.axis});
  }
  /// Sums a cotangent over time if its operand lacks the axis.
  Name summed(const Name& x, ScanOperand which) const {
    return is_over_time(which) ? x : to.sum(x, {attrs.axis});
  }
};

/// h_t = a_t h_{t-1} + b_t x_t
Names write_linear_scan(const WriteCall& call) {
  GraphWriter& to = call.to;
  const auto& attrs = call.attr<LinearScanAttrs>();
  const TensorType& full = call.type_out();
  const ScanOperands operands{attrs, full, to};
  const Recurrence walk(full, attrs.axis, attrs.reverse);
  const bool has_x = attrs.operands & kScanX, has_initial = attrs.operands & kScanInitial;
  Name term = operands.broadcast(call.in(1), kScanB);
  if (has_x) term = to.add("Mul", {term, operands.broadcast(call.in(2), kScanX)});
  if (!operands.is_over_time(kScanB) && !(has_x && operands.is_over_time(kScanX)))
    term = to.expand(term, full.dims());
  const Name initial = has_initial ? call.in(has_x ? 3 : 2) : walk.constant_row(to, 0);
  const bool has_times = operands.is_over_time(kScanA);
  const Name a = call.in(0);
  return {walk.write(to, has_times ? Names{term, a} : Names{term}, initial,
                     [&](GraphWriter& in, const Names& rows, const Name& state) {
                       const Name kept = in.add("Mul", {has_times ? rows[1] : a, state});
                       const Name next = in.add("Add", {kept, rows[0]});
                       return Recurrence::Step{next, next};
                     })};
}

/// g = h̄ + (a g) of the next row; ā = g h', b̄ = g x, x̄ = g b, summed over time if the operand lacks
/// the axis, and a_0 g_0 for the initial h. h' is the row before.
Names write_linear_scan_grad(const WriteCall& call) {
  GraphWriter& to = call.to;
  const auto& attrs = call.attr<LinearScanAttrs>();
  const TensorType& full = call.type_in(1);
  const ScanOperands operands{attrs, full, to};
  const ScanGradOperands order(attrs);
  const auto in = [&](int place) { return call.in(static_cast<std::size_t>(place)); };
  const Recurrence walk(full, attrs.axis, attrs.reverse);
  const Recurrence back(full, attrs.axis, !attrs.reverse);
  const bool has_times = operands.is_over_time(kScanA);
  const Name a = call.in(0), h = call.in(1);
  const Name g = back.write(to, has_times ? Names{h, a} : Names{h}, walk.constant_row(to, 0),
                            [&](GraphWriter& inside, const Names& rows, const Name& state) {
                              const Name row = inside.add("Add", {rows[0], state});
                              const Name factor = has_times ? rows[1] : a;
                              return Recurrence::Step{inside.add("Mul", {factor, row}), row};
                            });
  Names results;
  if (attrs.wanted & kScanA) {
    const Name first = order.initial < 0 ? walk.constant_row(to, 0) : in(order.initial);
    const Name before = walk.lagged(to, in(order.h), first);
    results.push_back(operands.summed(to.add("Mul", {g, before}), kScanA));
  }
  if (attrs.wanted & kScanB) {
    const Name factor =
        order.x < 0 ? g : to.add("Mul", {g, operands.broadcast(in(order.x), kScanX)});
    results.push_back(operands.summed(factor, kScanB));
  }
  if (attrs.wanted & kScanX)
    results.push_back(
        operands.summed(to.add("Mul", {g, operands.broadcast(in(order.b), kScanB)}), kScanX));
  if (attrs.wanted & kScanInitial)
    results.push_back(
        to.add("Mul", {has_times ? walk.first_row(to, a) : a, walk.first_row(to, g)}));
  return results;
}

Names write_scan_lag(const WriteCall& call) {
  const auto& attrs = call.attr<ScanWalkAttrs>();
  const Recurrence walk(call.type_in(0), attrs.axis, attrs.reverse);
  const Name first = call.count_in() > 1 ? call.in(1) : walk.constant_row(call.to, 0);
  return {walk.lagged(call.to, call.in(0), first)};
}
Names write_scan_edge(const WriteCall& call) {
  const auto& attrs = call.attr<ScanWalkAttrs>();
  const Recurrence walk(call.type_in(0), attrs.axis, attrs.reverse);
  return {walk.first_row(call.to, call.in(0))};
}

const Writer kWriters[] = {
    {"product_before", write_product_before},
    {"logcumsumexp", write_logcumsumexp},
    {"recurrence", write_recurrence},
    {"linear_scan", write_linear_scan},
    {"linear_scan_grad", write_linear_scan_grad},
    {"scan_lag", write_scan_lag},
    {"scan_edge", write_scan_edge},
};

}  // namespace

std::span<const Writer> scan_writers() { return kWriters; }

}  // namespace reel::exported
