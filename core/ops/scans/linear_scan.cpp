// Linear recurrences: the op, its gradient, and the second gradient.
#include "reel/core/ops/scans/linear_scan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

TensorType without_axis(const TensorType& full, int axis) { return reduced_type(full, {axis}); }

/// Returns the operands of linear_scan_op that are given, in their order.
std::vector<ScanOperand> operands_of(const LinearScanAttrs& attrs) {
  std::vector<ScanOperand> result;
  for (const ScanOperand which : {kScanA, kScanB, kScanX, kScanInitial})
    if (attrs.operands & which) result.push_back(which);
  return result;
}

std::string_view name_of(ScanOperand which) {
  return which == kScanA ? "a" : which == kScanB ? "b" : which == kScanX ? "x" : "initial";
}

/// Checks an operand of a scan with a result of type `full`.
void check_scan_operand(const TypeArgs& args, std::size_t i, ScanOperand which,
                        const TensorType& full) {
  const auto& attrs = args.attr<LinearScanAttrs>();
  check_operand(args.op.name, name_of(which), args.in[i],
                attrs.over_time & which ? full : without_axis(full, attrs.axis), Fits::dims);
}

void scan_rule(TypeArgs& args) {
  const auto& attrs = args.attr<LinearScanAttrs>();
  const auto operands = operands_of(attrs);
  const auto found = std::ranges::find_if(
      operands, [&](ScanOperand which) { return (attrs.over_time & which) != 0; });
  if (found == operands.end()) throw InternalError("no operand of linear_scan has the time axis");
  const TensorType& full = args.in[static_cast<std::size_t>(found - operands.begin())];
  check_axis(full, attrs.axis);
  for (std::size_t i = 0; i < operands.size(); ++i) check_scan_operand(args, i, operands[i], full);
  args.out.push_back(full);
}

void scan_grad_rule(TypeArgs& args) {
  const auto& attrs = args.attr<LinearScanAttrs>();
  const TensorType& full = args.in[1];
  check_axis(full, attrs.axis);
  check_scan_operand(args, 0, kScanA, full);
  const ScanGradOperands at(attrs);
  if (at.h >= 0)
    check_operand(args.op.name, "h", args.in[static_cast<std::size_t>(at.h)], full, Fits::dims);
  const std::pair<int, ScanOperand> others[] = {
      {at.initial, kScanInitial}, {at.b, kScanB}, {at.x, kScanX}};
  for (const auto& [i, which] : others)
    if (i >= 0) check_scan_operand(args, static_cast<std::size_t>(i), which, full);
  for (const ScanOperand which : operands_of(attrs))
    if (attrs.wanted & which)
      args.out.push_back(attrs.over_time & which ? full : without_axis(full, attrs.axis));
}

Tensor apply_scan(const Tensor& a, const Tensor& b, const LinearScanAttrs& attrs) {
  return bind(linear_scan_op, {a, b}, make_attrs(attrs));
}

/// Returns the states of a walk with zeros in padding. If a lacks the time axis, a walk forwards
/// goes on there, and may overflow. The gradient, which comes back through it, is zero there, and
/// zero times infinity is NaN.
Tensor states_without_padding(const Tensor& h, const LinearScanAttrs& attrs) {
  const bool ends_in_padding = !attrs.reverse && !(attrs.over_time & kScanA);
  return ends_in_padding ? without_padding(h, {attrs.axis}, 0.) : h;
}

// x̄ are products of g, which runs from the other end: g_t = h̄_t + a_{t+1} g_{t+1}.
void scan_vjp(Vjp& at) {
  LinearScanAttrs attrs = at.attr<LinearScanAttrs>();
  const std::vector<ScanOperand> operands = operands_of(attrs);
  std::size_t positions[kScanInitial + 1] = {};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    positions[operands[i]] = i;
    if (at.needs(i)) attrs.wanted |= operands[i];
  }
  const ScanGradOperands order(attrs);
  Tensor cotangent = at.last_cotangent();
  std::vector<OpInput> in{at.input(0), std::move(cotangent)};
  const Tensor h = order.h >= 0 ? states_without_padding(at.output(), attrs) : Tensor();
  if (order.h >= 0) in.emplace_back(h);
  if (order.initial >= 0) in.emplace_back(at.input(positions[kScanInitial]));
  if (order.b >= 0) in.emplace_back(at.input(positions[kScanB]));
  if (order.x >= 0) in.emplace_back(at.input(positions[kScanX]));
  Tensors cotangents = bind_all(linear_scan_grad_op, OpInputs(in), make_attrs(attrs));
  std::size_t next = 0;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (attrs.wanted & operands[i]) at.add(i, std::move(cotangents[next++]));
}

OpReads scan_reads(const Attrs* attributes, std::uint32_t wanted) {
  const std::vector<ScanOperand> operands = operands_of(get<LinearScanAttrs>(attributes));
  OpReads reads{.inputs = 1};  // a
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!(wanted >> i & 1)) continue;
    for (std::size_t other = 0; other < operands.size(); ++other) {
      const bool is_read = (operands[i] == kScanA && operands[other] == kScanInitial) ||
                           (operands[i] == kScanB && operands[other] == kScanX) ||
                           (operands[i] == kScanX && operands[other] == kScanB);
      if (is_read) reads.inputs |= 1u << other;
    }
    if (operands[i] == kScanA) reads.outputs = 1;
  }
  return reads;
}

// ---- The gradient of the gradient ---------------------------------------------------------------

/// The vjp of linear_scan_grad_op. In the formulas, ' marks the row before in the walk, and Σ the
/// sum over time of an operand that lacks the axis:
///   g = h̄ + (a g) of the next row, ā = Σ g h', b̄ = Σ g x, x̄ = Σ g b, h̄0 = a_0 g_0.
class ScanGradVjp {
 public:
  explicit ScanGradVjp(Vjp& at)
      : at_(at),
        attrs_(at.attr<LinearScanAttrs>()),
        order_(attrs_),
        full_(at.input_type(1)),
        a_(at.input(0)) {
    std::size_t next = 0;
    for (const ScanOperand which : operands_of(attrs_))
      if (attrs_.wanted & which) {
        if (at.has_cotangent(next)) cotangents_[which] = at.cotangent(next);
        ++next;
      }
  }

  void run() {
    const bool needs_g =
        needs(0) || needs(order_.h) || needs(order_.initial) || needs(order_.b) || needs(order_.x);
    if (needs_g) g_ = cotangent_of_state();
    if (needs(0) || needs(1)) add_of_state();
    add_of_a_out();
    if (const Tensor& c = cotangents_[kScanX]; c.is_defined() && needs(order_.b))
      at_.add(position(order_.b), as_operand(over_time(c, kScanX) * g_, kScanB));
    if (const Tensor& c = cotangents_[kScanB]; c.is_defined() && needs(order_.x))
      at_.add(position(order_.x), as_operand(over_time(c, kScanB) * g_, kScanX));
  }

 private:
  static std::size_t position(int operand) { return static_cast<std::size_t>(operand); }
  bool needs(int operand) const { return operand >= 0 && at_.needs(position(operand)); }
  bool is_over_time(ScanOperand which) const { return attrs_.over_time & which; }

  /// Repeats a value along the time axis if its operand lacks it.
  Tensor over_time(const Tensor& x, ScanOperand which) const {
    return is_over_time(which) ? x : spread_like(x, {attrs_.axis}, full_);
  }
  /// Sums a value over time if its operand lacks the axis.
  Tensor as_operand(const Tensor& x, ScanOperand which) const {
    return is_over_time(which) ? x : bind(sum_op, {x}, reduce_attrs({attrs_.axis}));
  }
  /// Moves rows to the next step of the walk.
  Tensor lag(const Tensor& x, bool reverse) const {
    return bind(scan_lag_op, {x}, make_attrs(ScanWalkAttrs{attrs_.axis, reverse}));
  }
  /// Returns the first row of the walk.
  Tensor edge(const Tensor& x) const {
    return bind(scan_edge_op, {x}, make_attrs(ScanWalkAttrs{attrs_.axis, attrs_.reverse}));
  }
  /// Returns zeros, with a row at the first step of the walk.
  Tensor at_edge(const Tensor& row) const {
    return bind(scan_lag_op, {zeros(full_), row},
                make_attrs(ScanWalkAttrs{attrs_.axis, attrs_.reverse}));
  }
  LinearScanAttrs plain_scan(bool reverse) const {
    return {attrs_.axis, reverse, kScanA | kScanB, kScanB | (attrs_.over_time & kScanA), 0};
  }

  Tensor cotangent_of_state() const {
    const bool back = !attrs_.reverse;
    return apply_scan(is_over_time(kScanA) ? lag(a_, back) : a_, at_.input(1), plain_scan(back));
  }
  Tensor state_before() const {
    const Tensor& h = at_.input(position(order_.h));
    if (order_.initial < 0) return lag(h, attrs_.reverse);
    return bind(scan_lag_op, {h, at_.input(position(order_.initial))},
                make_attrs(ScanWalkAttrs{attrs_.axis, attrs_.reverse}));
  }

  /// Returns the cotangent of g without its recurrence; empty if there is none.
  Tensor direct_cotangent_of_g() const {
    Tensor result;
    const auto add = [&](Tensor term) {
      result = result.is_defined() ? result + term : std::move(term);
    };
    if (const Tensor& c = cotangents_[kScanA]; c.is_defined())
      add(over_time(c, kScanA) * state_before());
    if (const Tensor& c = cotangents_[kScanB]; c.is_defined()) {
      const Tensor all = over_time(c, kScanB);
      add(order_.x < 0 ? all : all * over_time(at_.input(position(order_.x)), kScanX));
    }
    if (const Tensor& c = cotangents_[kScanX]; c.is_defined())
      add(over_time(c, kScanX) * over_time(at_.input(position(order_.b)), kScanB));
    if (const Tensor& c = cotangents_[kScanInitial]; c.is_defined())
      add(at_edge(c * (is_over_time(kScanA) ? edge(a_) : a_)));
    return result;
  }

  /// Adds the cotangents of a and of the operand h̄, which g is made of.
  void add_of_state() {
    const Tensor direct = direct_cotangent_of_g();
    if (!direct.is_defined()) return;
    const Tensor all =
        states_without_padding(apply_scan(a_, direct, plain_scan(attrs_.reverse)), attrs_);
    if (needs(1)) at_.add(1, all);
    if (!needs(0)) return;
    at_.add(0, as_operand(lag(all, attrs_.reverse) * g_, kScanA));
    if (const Tensor& c = cotangents_[kScanInitial]; c.is_defined()) {
      const Tensor first = c * edge(g_);
      at_.add(0, is_over_time(kScanA) ? at_edge(first) : first);
    }
  }

  void add_of_a_out() {
    const Tensor& c = cotangents_[kScanA];
    if (!c.is_defined() || (!needs(order_.h) && !needs(order_.initial))) return;
    const Tensor of_before = over_time(c, kScanA) * g_;
    if (needs(order_.h)) at_.add(position(order_.h), lag(of_before, !attrs_.reverse));
    if (needs(order_.initial)) at_.add(position(order_.initial), edge(of_before));
  }

  Vjp& at_;
  const LinearScanAttrs& attrs_;
  ScanGradOperands order_;
  TensorType full_;
  Tensor a_;
  Tensor g_;
  Tensor cotangents_[kScanInitial + 1];
};

// ---- Samples ------------------------------------------------------------------------------------

/// Operands and dims of samples: every set of operands, with and without the axis.
struct ScanSample {
  LinearScanAttrs attrs;
  Dims full;
  TensorType type(bool over_time) const {
    const TensorType all(f32, full);
    return over_time ? all : without_axis(all, attrs.axis);
  }
};
std::vector<ScanSample> scan_samples() {
  const Dim batch("batch", 2), feature("feature", 4);
  const Dim time("time", tensor({3, 1}, {batch}));
  const std::pair<Dims, int> shapes[] = {{{5}, 0},    {{3, 2}, 0},    {{2, 3}, 1},
                                         {{4, 9}, 0}, {{0, 3}, 0},    {{3, 0}, 0},
                                         {{1, 3}, 0}, {{2, 4, 8}, 1}, {{batch, time, feature}, 2}};
  constexpr int kAB = kScanA | kScanB;
  const std::pair<int, int> operands[] = {{kAB, kAB},
                                          {kAB | kScanInitial, kAB},
                                          {kAB | kScanInitial, kScanB},
                                          {kAB | kScanX | kScanInitial, kScanX},
                                          {kAB | kScanX, kAB}};
  std::vector<ScanSample> result;
  for (const auto& [dims, axis] : shapes)
    for (const auto& [given, over_time] : operands)
      for (const bool reverse : {false, true})
        result.push_back({{axis, reverse, given, over_time, 0}, dims});
  return result;
}

OpSamples forward_samples() {
  OpSamples result;
  for (const ScanSample& sample : scan_samples()) {
    OpSample made{{}, make_attrs(sample.attrs)};
    for (const ScanOperand which : operands_of(sample.attrs))
      made.inputs.push_back({sample.type(sample.attrs.over_time & which), -1.2, 1.2});
    result.push_back(std::move(made));
  }
  return result;
}

OpSamples gradient_samples() {
  OpSamples result;
  for (ScanSample sample : scan_samples()) {
    const int given = sample.attrs.operands;
    for (const int wanted : {given, given & ~kScanA, given & kScanA}) {
      sample.attrs.wanted = wanted;
      const ScanGradOperands order(sample.attrs);
      OpSample made{{}, make_attrs(sample.attrs)};
      const auto type = [&](ScanOperand which) {
        return sample.type(sample.attrs.over_time & which);
      };
      made.inputs.assign(static_cast<std::size_t>(order.count), {sample.type(true), -1.2, 1.2});
      made.inputs[0].type = type(kScanA);
      const auto set = [&](int at, const TensorType& type) {
        if (at >= 0) made.inputs[static_cast<std::size_t>(at)].type = type;
      };
      set(order.initial, sample.type(false));
      set(order.b, type(kScanB));
      set(order.x, type(kScanX));
      result.push_back(std::move(made));
    }
  }
  return result;
}

OpSamples walk_samples(bool with_first) {
  const Dim batch("batch", 2), feature("feature", 4);
  const Dim time("time", tensor({3, 1}, {batch}));
  const std::pair<Dims, int> shapes[] = {{{5}, 0},
                                         {{2, 3}, 1},
                                         {{2, 3, 4}, 1},
                                         {{0, 3}, 0},
                                         {{3, 0}, 0},
                                         {{1, 3}, 0},
                                         {{batch, time, feature}, 2}};
  OpSamples result;
  for (const auto& [dims, axis] : shapes)
    for (const bool reverse : {false, true}) {
      const TensorType full(f32, dims);
      OpSample sample{{{full}}, make_attrs(ScanWalkAttrs{axis, reverse})};
      result.push_back(sample);
      if (!with_first) continue;
      sample.inputs.push_back({without_axis(full, axis)});
      result.push_back(std::move(sample));
    }
  return result;
}

/// Factors are the axes of operands with all axes; other operands and results lack the axis of the
/// recurrence.
template <class Attrs>
void recurrence_axes(const OpCall& call, AxisFactors& f) {
  const int worked = call.attr<Attrs>().axis;
  int rank = 0;
  for (const TensorType& type : call.in) rank = std::max(rank, type.rank());
  const auto factor = [&](const TensorType& type, int axis) {
    return axis + (type.rank() < rank && axis >= worked);
  };
  for (std::size_t i = 0; i < call.in.size(); ++i)
    for (int axis = 0; axis < call.in[i].rank(); ++axis)
      if (factor(call.in[i], axis) != worked) f.in(i, axis) = factor(call.in[i], axis);
  for (std::size_t k = 0; k < call.out.size(); ++k)
    for (int axis = 0; axis < call.out[k].rank(); ++axis)
      f.out(k, axis) = factor(call.out[k], axis);
}

}  // namespace

namespace {

/// States stay zero if the first one and all that is added are.
bool gives_zero_states(const Attrs* attrs, std::uint32_t zeros) {
  const int operands = get<LinearScanAttrs>(attrs).operands;
  const int count = 2 + ((operands & kScanX) != 0) + ((operands & kScanInitial) != 0);
  const auto is_zero = [&](int i) { return (zeros >> i & 1) != 0; };
  const bool adds_zeros = is_zero(1) || ((operands & kScanX) && is_zero(2));
  return adds_zeros && (!(operands & kScanInitial) || is_zero(count - 1));
}

}  // namespace

const Op linear_scan_op{
    .name = "linear_scan",
    .type = scan_rule,
    .kernel = linear_scan_kernel,
    .vjp = scan_vjp,
    .reads_by = scan_reads,
    .samples = forward_samples,
    .iteration_batching = axis_across_iterations<LinearScanAttrs>,
    .axes = recurrence_axes<LinearScanAttrs>,
    .zero_if = gives_zero_states,
    .fails = fails_without_memory,
    .reads_lengths = [](const OpCall&, std::size_t, int) { return true; },
};

const Op linear_scan_grad_op{
    .name = "linear_scan_grad",
    .type = scan_grad_rule,
    .kernel = linear_scan_grad_kernel,
    .vjp = [](Vjp& at) { ScanGradVjp(at).run(); },
    .reads = {.inputs = kAll},
    .samples = gradient_samples,
    .iteration_batching = axis_across_iterations<LinearScanAttrs>,
    .axes = recurrence_axes<LinearScanAttrs>,
    .zero_if = [](const Attrs*, std::uint32_t zeros) { return (zeros & 0b10) != 0; },
    .fails = fails_without_memory,
    .reads_lengths = [](const OpCall&, std::size_t, int) { return true; },
};

const Op scan_lag_op{
    .name = "scan_lag",
    .type =
        [](TypeArgs& args) {
          const TensorType& x = args.in[0];
          const int axis = args.attr<ScanWalkAttrs>().axis;
          check_axis(x, axis);
          if (args.in.size() > 1)
            check_operand("scan_lag", "the first row", args.in[1], without_axis(x, axis),
                          Fits::dims);
          args.out.push_back(x);
        },
    .kernel = scan_lag_kernel,
    .vjp =
        [](Vjp& at) {
          const auto& attrs = at.attr<ScanWalkAttrs>();
          const Tensor c = at.cotangent();
          if (at.needs(0))
            at.add(0,
                   bind(scan_lag_op, {c}, make_attrs(ScanWalkAttrs{attrs.axis, !attrs.reverse})));
          if (at.input_count() > 1 && at.needs(1)) at.add(1, bind(scan_edge_op, {c}, at.attrs()));
        },
    .samples = [] { return walk_samples(true); },
    .iteration_batching = axis_across_iterations<ScanWalkAttrs>,
    .axes = recurrence_axes<ScanWalkAttrs>,
    .fails = fails_without_memory,
    .reads_lengths = [](const OpCall&, std::size_t, int) { return true; },
};

const Op scan_edge_op{
    .name = "scan_edge",
    .type =
        [](TypeArgs& args) {
          args.out.push_back(without_axis(args.in[0], args.attr<ScanWalkAttrs>().axis));
        },
    .kernel = scan_edge_kernel,
    .vjp =
        [](Vjp& at) {
          at.add(0, bind(scan_lag_op, {zeros(at.input_type(0)), at.cotangent()}, at.attrs()));
        },
    .samples = [] { return walk_samples(false); },
    .iteration_batching = axis_across_iterations<ScanWalkAttrs>,
    .axes = recurrence_axes<ScanWalkAttrs>,
    .fails = fails_without_memory,
    .reads_lengths = [](const OpCall&, std::size_t, int) { return true; },
};

namespace {
const Op* const kLinearScanOps[] = {&linear_scan_op, &linear_scan_grad_op, &scan_lag_op,
                                    &scan_edge_op};
}
std::span<const Op* const> linear_scan_ops() { return kLinearScanOps; }

bool is_linear_scan(const Op* op) {
  return std::ranges::find(kLinearScanOps, op) != std::end(kLinearScanOps);
}
int linear_scan_axis(const Op* op, const Attrs* attrs) {
  const bool has_operands = op == &linear_scan_op || op == &linear_scan_grad_op;
  return has_operands ? get<LinearScanAttrs>(attrs).axis : get<ScanWalkAttrs>(attrs).axis;
}

}  // namespace reel
