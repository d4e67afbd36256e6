// Scan, in versions 8 and 9.
#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/shape.h"
#include "reel/core/types/partial_shape.h"
#include "reel/frontend/loops/loop_leaves.h"
#include "reel/onnx/ops/loop_state.h"
#include "reel/onnx/ops/rows.h"
#include "reel/onnx/plain_dims.h"
#include "reel/onnx/registry.h"
#include "reel/onnx/run_graph.h"

namespace reel::imported {
namespace {

/// Returns x with an axis moved to another place.
Tensor moved(const Tensor& x, int from, int to) {
  std::vector<Axis> order;
  for (int i = 0; i < x.rank(); ++i)
    if (i != from) order.emplace_back(i);
  order.insert(order.begin() + to, from);
  return from == to ? x : transpose(x, Axes(order));
}

PathsFn paths_of(std::size_t count, const std::string& what) {
  return [count, what] {
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < count; ++i) paths.push_back(str(what, ' ', i));
    return paths;
  };
}

/// Scans the first axis of all inputs.
struct ScanRun {
  Values states, inputs;
  Tensor length;  ///< of the entries that count, or empty for all
};

/// Returns the final states, then the stacks along a first axis.
Values scanned(const Call& call, const ScanRun& run) {
  const Graph& body = call.graph("body");
  const std::size_t states = run.states.size();
  if (body.inputs.size() != states + run.inputs.size() || body.outputs.size() < states)
    call.refuse("the body takes or returns another number of values");
  const Layout layout(run.states);
  Values elements;
  ScanSpec spec;
  spec.name = call.node().name;
  spec.initial = layout.leaves(run.states, "Scan");
  for (const Value& input : run.inputs) spec.xs.push_back(TreeLeaf::of(input.tensor));
  const bool has_length = run.length.is_defined();
  if (has_length)
    spec.xs.push_back(TreeLeaf::of(range(run.inputs.at(0).tensor.dim(0), i64) < run.length));
  spec.state_paths = paths_of(states, "state");
  spec.returned_paths = paths_of(states, "state");
  spec.xs_paths = paths_of(spec.xs.size(), "input");
  spec.first_y_paths = spec.y_paths = paths_of(body.outputs.size() - states, "output");
  spec.has_ys = body.outputs.size() > states;
  spec.body = [&](const TreeLeaves& x, const TreeLeaves& state) {
    const Values before = layout.values(state);
    Values in = before;
    for (std::size_t i = 0; i < run.inputs.size(); ++i)
      in.push_back(Value::of(x[i].tensor, run.inputs[i].type));
    Values out = run_graph(body, in, &call.scope());
    if (has_length) {  // behind its end, an entry keeps its state, and its outputs are zeros
      const Tensor& is_inside = x.back().tensor;
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i].tensor = where(is_inside, out[i].tensor,
                              i < states ? before[i].tensor : zeros_like(out[i].tensor));
    }
    // ONNX lets no state change its sizes, whatever the nodes of the body know about them.
    for (std::size_t i = 0; i < states; ++i)
      if (!out[i].is_sequence() && out[i].tensor.dims() != before[i].tensor.dims() &&
          out[i].tensor.rank() == before[i].tensor.rank())
        out[i].tensor = ensure_shape(out[i].tensor, before[i].tensor.dims());
    elements.assign(out.begin() + static_cast<std::ptrdiff_t>(states), out.end());
    out.resize(states);
    ScanStep step{{}, layout.leaves(out, "the body of Scan")};
    for (const Value& element : elements) step.y.push_back(TreeLeaf::of(element.tensor));
    return step;
  };
  const ScanResult result = scan_leaves(spec);
  Values results = layout.values(result.state);
  for (std::size_t i = 0; i < elements.size(); ++i)
    results.push_back(Value::of(with_plain_dims(result.ys[i].tensor), elements[i].type));
  return results;
}

/// Returns the element of a list of attributes, or a default for a list that is shorter.
std::int64_t at(const std::vector<std::int64_t>& list, std::size_t i) {
  return i < list.size() ? list[i] : 0;
}

Values run_scan(const Call& call) {
  const std::int64_t given = call.integer("num_scan_inputs", 0);
  const auto count = static_cast<std::size_t>(given);
  if (given < 1 || count > call.input_count())
    call.refuse("num_scan_inputs does not fit the inputs");
  const std::size_t states = call.input_count() - count;
  const auto axes = call.integers("scan_input_axes"),
             directions = call.integers("scan_input_directions"),
             out_axes = call.integers("scan_output_axes"),
             out_directions = call.integers("scan_output_directions");
  ScanRun run;
  for (std::size_t i = 0; i < states; ++i) run.states.push_back(call.in(i));
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor& x = call.tensor(states + i);
    Tensor rows = moved(x, call.axis_in(at(axes, i), x.rank()), 0);
    if (at(directions, i)) rows = reverse(rows, 0);
    run.inputs.push_back(call.like(states + i, rows));
  }
  Values results = scanned(call, run);
  for (std::size_t i = 0; states + i < results.size(); ++i) {
    Tensor& y = results[states + i].tensor;
    if (at(out_directions, i)) y = reverse(y, 0);
    y = moved(y, 0, call.axis_in(at(out_axes, i), y.rank()));
  }
  return results;
}

/// Version 8 has a batch in front of every state and input, and a length for each entry. Entries
/// run one after another.
Values run_scan_8(const Call& call) {
  const std::int64_t given = call.integer("num_scan_inputs", 0);
  const auto count = static_cast<std::size_t>(given);
  if (given < 1 || count >= call.input_count())
    call.refuse("num_scan_inputs does not fit the inputs");
  const std::size_t states = call.input_count() - 1 - count;
  const auto directions = call.integers("directions");
  const std::int64_t batch = call.tensor(1 + states).dim(0).size();
  if (batch == 0) call.refuse("the batch has no entry");
  std::vector<Tensors> rows;
  std::vector<ElementType> types;
  for (std::int64_t b = 0; b < batch; ++b) {
    ScanRun run;
    const auto entry = [&](const Tensor& x) { return gather(x, scalar(b, i64), 0); };
    for (std::size_t i = 0; i < states; ++i)
      run.states.push_back(call.like(1 + i, entry(call.tensor(1 + i))));
    if (call.has(0)) run.length = entry(call.tensor(0));
    for (std::size_t i = 0; i < count; ++i) {
      Tensor x = entry(call.tensor(1 + states + i));
      if (at(directions, i) && call.has(0))
        x = gather(x, gather(reversed_positions(x.dim(0), reshape(run.length, {1})), scalar(0), 0),
                   0);
      else if (at(directions, i))
        x = reverse(x, 0);
      run.inputs.push_back(call.like(1 + states + i, x));
    }
    const Values results = scanned(call, run);
    rows.resize(results.size());
    types.resize(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      rows[i].push_back(results[i].tensor);
      types[i] = results[i].type;
    }
  }
  Values results;
  for (std::size_t i = 0; i < rows.size(); ++i)
    results.push_back(Value::of(stack(rows[i]), types[i]));
  return results;
}

const Rule kRules[] = {
    {"Scan", run_scan_8, "", 8, 8, false},
    {"Scan", run_scan, "", 9, kLatestVersion, false},
};

}  // namespace

std::span<const Rule> scan_rules() { return kRules; }

}  // namespace reel::imported
