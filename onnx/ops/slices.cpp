// Slice.
#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/shape.h"
#include "reel/core/types/mode.h"
#include "reel/onnx/ops/sizes.h"
#include "reel/onnx/registry.h"
#include "reel/onnx/run_graph.h"

namespace reel::imported {
namespace {

/// Positions of a slice along one axis, as NumPy reads them.
struct SliceBounds {
  std::int64_t begin, step;
  std::optional<std::int64_t> end;
};

SliceBounds clamped(std::int64_t begin, std::int64_t end, std::int64_t step, std::int64_t size) {
  if (begin < 0) begin += size;
  if (end < 0) end += size;
  if (step > 0) {
    begin = std::clamp(begin, std::int64_t{0}, size);
    return {begin, step, std::max(begin, std::clamp(end, std::int64_t{0}, size))};
  }
  begin = std::clamp(begin, std::int64_t{-1}, size - 1);
  end = std::clamp(end, std::int64_t{-1}, size - 1);
  if (begin <= end) return {0, 1, 0};  // no element
  return {begin, step, end < 0 ? std::nullopt : std::optional(end)};
}

Tensor sliced(const Call& call, const Tensor& x, int axis, std::int64_t begin, std::int64_t end,
              std::int64_t step) {
  if (step == 0) call.refuse("a step is 0");
  const Dim size = x.dim(axis);
  if (size.has_size()) {
    const SliceBounds bounds = clamped(begin, end, step, size.size());
    if (bounds.begin == 0 && bounds.step == 1 && bounds.end == size.size()) return x;
    return slice(x, axis, bounds.begin, bounds.end, bounds.step);
  }
  constexpr std::int64_t kFar = std::numeric_limits<std::int32_t>::max();
  const bool is_open = step > 0 ? end >= kFar : end <= -kFar;
  if (begin == 0 && is_open && step == 1) return x;
  return slice(x, axis, begin >= kFar ? -1 : begin, is_open ? std::nullopt : std::optional(end),
               step);
}

/// A value as another one plus a number.
struct Offset {
  std::string base;
  std::int64_t number = 0;
};

/// Follows the nodes that make a value, as far as they keep it or add a constant.
Offset offset_of(const Call& call, std::string name) {
  Offset result{std::move(name)};
  const std::vector<Node>& nodes = call.scope().graph().nodes;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (node->outputs.size() != 1 || node->outputs[0] != result.base || !node->domain.empty())
      continue;
    if (node->op == "Unsqueeze" || node->op == "Squeeze" || node->op == "Identity" ||
        node->op == "Cast") {
      result.base = node->inputs.at(0);
      continue;
    }
    if (node->op != "Add" && node->op != "Sub") return result;
    const bool adds = node->op == "Add";
    for (std::size_t i = adds ? 0 : 1; i < 2; ++i) {
      const Value& value = call.scope().get(node->inputs.at(i));
      if (!value.is_constant || value.tensor.numel() != 1) continue;
      const ModeScope aside({});
      const auto number = cast(value.tensor, i64).to_vector<std::int64_t>()[0];
      std::int64_t sum;
      if (adds ? __builtin_add_overflow(result.number, number, &sum)
               : __builtin_sub_overflow(result.number, number, &sum))
        return result;
      result.number = sum;
      result.base = node->inputs.at(1 - i);
      break;
    }
    if (result.base == node->outputs[0]) return result;
  }
  return result;
}

/// A slice that begins where only a run knows has a known length if its end is its begin plus a
/// constant, as in x[i:i+1].
std::optional<Values> moving_slice(const Call& call) {
  if (call.version() < 10 || (call.is_known(1) && call.is_known(2))) return {};
  const Offset begin = offset_of(call, call.node().inputs.at(1)),
               end = offset_of(call, call.node().inputs.at(2));
  std::int64_t length;
  if (__builtin_sub_overflow(end.number, begin.number, &length)) return {};
  if (begin.base != end.base || length < 0 || call.tensor(1).numel() != 1) return {};
  if (call.has(4) && call.known_integer(4) != 1) return {};
  const int axis = call.axis_in(call.has(3) ? call.known_integer(3) : 0, call.tensor(0).rank());
  const Tensor first = cast(scalar_of(call.tensor(1)), i64);
  return Values{call.like(0, gather(call.tensor(0), first + range(length, i64), axis))};
}

/// Throws ArgumentError unless a Slice has as many ends, axes and steps as starts.
void check_lengths(const Call& call, std::size_t starts,
                   std::initializer_list<std::size_t> others) {
  for (const std::size_t count : others)
    if (count != starts) call.refuse("starts, ends, axes and steps differ in length");
}

/// Returns the elements of x between two bounds along an axis, if a trace does not know both.
Tensor sliced_in_a_run(const Tensor& x, int axis, const Number& begin, const Number& end) {
  const Tensor size = value_of_size(x.dim(axis)).tensor;
  const auto bound = [&](const Number& number) {
    const Tensor given = number.known ? Value::integer(*number.known).tensor : number.traced;
    return minimum(maximum(where(given < 0, given + size, given), 0), size);
  };
  const Tensor first = bound(begin), count = maximum(bound(end) - first, 0);
  return gather(x, first + range(bounded_size_of_a_run(count), i64), axis);
}

/// Returns the result of a Slice with bounds that only a run knows; along their axes the step is 1.
Values slice_of_a_run(const Call& call) {
  const std::vector<Number> begins = elements_of(call, 1), ends = elements_of(call, 2);
  std::vector<std::int64_t> axes, steps(begins.size(), 1);
  for (std::size_t i = 0; i < begins.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (call.has(3)) axes = call.known_integers(3);
  if (call.has(4)) steps = call.known_integers(4);
  check_lengths(call, begins.size(), {ends.size(), axes.size(), steps.size()});
  Tensor x = call.tensor(0);
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const int axis = call.axis_in(axes[i], x.rank());
    if (begins[i].known && ends[i].known) {
      x = sliced(call, x, axis, *begins[i].known, *ends[i].known, steps[i]);
    } else {
      if (steps[i] != 1) call.known_integers(begins[i].known ? 2 : 1);  // throws
      x = sliced_in_a_run(x, axis, begins[i], ends[i]);
    }
  }
  return {call.like(0, x)};
}

/// Until version 9 the positions are attributes, later inputs.
Values run_slice(const Call& call) {
  if (const auto moving = moving_slice(call)) return *moving;
  if (call.version() >= 10 && !(call.is_known(1) && call.is_known(2))) return slice_of_a_run(call);
  const bool has_inputs = call.version() >= 10;
  const std::vector<std::int64_t> begins =
      has_inputs ? call.known_integers(1) : call.integers("starts");
  const std::vector<std::int64_t> ends =
      has_inputs ? call.known_integers(2) : call.integers("ends");
  std::vector<std::int64_t> axes = call.integers("axes"), steps;
  if (has_inputs && call.has(3)) axes = call.known_integers(3);
  if (has_inputs && call.has(4)) steps = call.known_integers(4);
  if (axes.empty())
    for (std::size_t i = 0; i < begins.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (steps.empty()) steps.resize(begins.size(), 1);
  check_lengths(call, begins.size(), {ends.size(), axes.size(), steps.size()});
  const auto apply = [&](Tensor x) {
    for (std::size_t i = 0; i < begins.size(); ++i)
      x = sliced(call, x, call.axis_in(axes[i], x.rank()), begins[i], ends[i], steps[i]);
    return x;
  };
  Value result = call.like(0, apply(call.tensor(0)));
  if (call.in(0).sizes && begins.size() == 1) {
    const Dims& sizes = *call.in(0).sizes;
    const ModeScope aside({});
    const Tensor positions = apply(range(static_cast<std::int64_t>(sizes.size()), i64));
    result.sizes.emplace();
    for (const std::int64_t at : positions.to_vector<std::int64_t>())
      result.sizes->push_back(sizes[static_cast<std::size_t>(at)]);
  }
  return {result};
}

const Rule kRules[] = {with_numbers({1, 2, 3, 4}, {"Slice", run_slice})};

}  // namespace

std::span<const Rule> slice_rules() { return kRules; }

}  // namespace reel::imported
