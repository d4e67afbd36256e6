// Writers of functions of the frontend that newer op sets have as one op, from calls that
// whole_function recorded (frontend/loops/whole_function.h).
#include <algorithm>
#include <cmath>

#include "reel/core/functions/creation.h"
#include "reel/core/ops/control/checkpointed.h"
#include "reel/onnx/writer_registry.h"
#include "reel/onnx/writers/attention_writer.h"
#include "reel/onnx/writers/labelled_call.h"
#include "reel/onnx/writers/linear_attention_writer.h"
#include "reel/onnx/writers/merged_axes.h"

namespace reel::exported {
namespace {

// ---- rotary: RotaryEmbedding of X [1, others, positions, feature]

Names write_rotary(const WriteCall& call, const LabelledCall& at) {
  GraphWriter& to = call.to;
  const Dim& feature = at.dim(0);
  const Dims &dims = at.type(0)->dims(), &of_positions = at.type(1)->dims();
  const std::int64_t n = known_size(feature);
  std::vector<double> rates;
  for (std::int64_t i = 0; i < n / 2; ++i)
    rates.push_back(std::pow(at.number(0), -2.0 * static_cast<double>(i) / static_cast<double>(n)));
  const Name positions = to.cast(to_axes(to, at.name(to, 1), of_positions, {{}, of_positions, {}}),
                                 at.type(0)->dtype());
  const Name angles = to.add(
      "Mul", {positions, to.model().constant(tensor(rates, {Dim(n / 2)}, at.type(0)->dtype()))});
  const MergedAxes axes{
      {}, dims_without(dims_without(dims, {feature}), of_positions), of_positions, {feature}};
  const Name x = to_axes(to, at.name(to, 0), dims, axes);
  const Name cosines = to.add("Cos", {angles}), sines = to.add("Sin", {angles});
  return {
      from_axes(to, to.add("RotaryEmbedding", {x, cosines, sines}), axes, call.type_out().dims())};
}

// ---- rms_norm: RMSNormalization along the last axis

Names write_rms_norm(const WriteCall& call, const LabelledCall& at) {
  GraphWriter& to = call.to;
  const Dims& dims = at.type(0)->dims();
  MergedAxes axes;
  for (const Dim& dim : dims_without(dims, {at.dim(0)})) axes.push_back({dim});
  axes.push_back({at.dim(0)});
  const Name y =
      to.add("RMSNormalization", {to_axes(to, at.name(to, 0), dims, axes), at.name(to, 1)},
             {{"axis", integer(-1)}, {"epsilon", number(at.number(0))}});
  return {from_axes(to, y, axes, call.type_out().dims())};
}

// ---- causal_conv: CausalConvWithState of X [others, channel, time]

bool fits_causal_conv(const LabelledCall& at) {
  const TensorType &x = *at.type(0), &filter = *at.type(1);
  const Dim &time = at.dim(0), &channel = at.dim(1), &past = at.dim(2);
  if (filter.rank() != 2 || at.number(0) != 1 || known_size(past) < 1) return false;
  if (!contains(x.dims(), time) || !contains(x.dims(), channel)) return false;
  if (!at.type(3)) return true;
  // The node's state ends where the longest entry ends.
  const Dims others = dims_without(x.dims(), {time, channel}), &state = at.type(3)->dims();
  return !time.is_ragged() && dims_without(state, {past, channel}).size() == others.size() &&
         dims_without(others, state).empty();
}

Names write_causal_conv(const WriteCall& call, const LabelledCall& at) {
  GraphWriter& to = call.to;
  const Dims& dims = at.type(0)->dims();
  const Dim &time = at.dim(0), &channel = at.dim(1), &past = at.dim(2);
  const Dims others = dims_without(dims, {time, channel});
  const MergedAxes axes{others, {channel}, {time}}, of_state{others, {channel}, {past}};
  const Name filter = to.unsqueeze(to.transpose(at.name(to, 1), {1, 0}), {1});
  Names inputs{to_axes(to, at.name(to, 0), dims, axes), filter};
  if (at.type(2) || at.type(3)) inputs.push_back(at.type(2) ? at.name(to, 2) : "");
  if (at.type(3)) inputs.push_back(to_axes(to, at.name(to, 3), at.type(3)->dims(), of_state));
  const Names made = to.add("CausalConvWithState", inputs, 2);
  Names results{from_axes(to, made[0], axes, call.type_out(0).dims())};
  if (call.count_out() > 1)
    results.push_back(from_axes(to, made[1], of_state, call.type_out(1).dims()));
  return results;
}

// ---- All functions

/// A function of the frontend and its node.
struct FunctionWriter {
  const char* label;
  std::int64_t since;                      ///< op set that brought the op
  bool (*fits)(const LabelledCall& call);  ///< null: always
  Names (*write)(const WriteCall& call, const LabelledCall& at);
};
constexpr FunctionWriter kFunctions[] = {
    {"attention", 23, fits_attention, write_attention},
    {"causal_conv", 27, fits_causal_conv, write_causal_conv},
    {"linear_attention", 27, fits_linear_attention, write_linear_attention},
    {"rms_norm", 23, nullptr, write_rms_norm},
    {"rotary", 23, nullptr, write_rotary},
};

const FunctionWriter* find_function(const std::string& label) {
  for (const FunctionWriter& function : kFunctions)
    if (label == function.label) return &function;
  return nullptr;
}

Names write_call(const WriteCall& call) {
  const LabelledCall at(call.to.graph(), call.record);
  return find_function(at.label().name)->write(call, at);
}

const Writer kWriters[] = {{"checkpointed", write_call}};

}  // namespace

bool has_own_node(const Graph& graph, const OpRecord& call, std::int64_t op_set) {
  const LabelledCall at(graph, call);
  const FunctionWriter* const function = find_function(at.label().name);
  return function && op_set >= function->since && at.is_plain_f32() &&
         (!function->fits || function->fits(at));
}

std::span<const Writer> function_writers() { return kWriters; }

}  // namespace reel::exported
