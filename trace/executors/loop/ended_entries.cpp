#include "reel/trace/executors/loop/ended_entries.h"

#include <algorithm>
#include <cstring>

#include "reel/core/ops/control/entries.h"
#include "reel/core/runtime/residual_source.h"

namespace reel {
namespace {

/// Returns the dims that stay unchanged: entry dims, dims of elements of arrays in the state, and
/// dims of a state that change, which the body handles itself.
Dims dims_kept(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  Dims result = attrs.entry_dims;
  result.insert(result.end(), attrs.kept_dims.begin(), attrs.kept_dims.end());
  const Graph& body = *attrs.body.graph;
  const Dims changing = changing_dims(attrs);
  for (int i = 0; i < attrs.carries; ++i) {
    const Dims &formal = body.types[body.inputs[1 + i]].dims(),
               &actual = inputs[attrs.first_carry() + i].dims();
    for (std::size_t axis = 0; axis < formal.size(); ++axis)
      if (contains(changing, formal[axis])) result.push_back(actual[axis]);
  }
  return result;
}

/// Returns the data of a value that stands for saved steps of an inner loop: replacing dims needs
/// it.
Tensor in_memory(const Tensor& x) {
  const SavedValue* const saved = saved_value(x);
  if (!saved || x.type().is_list() || !saved->steps->is_uniform()) return x;
  const Tensor result(allocate_block(x.type()));
  const std::lock_guard lock(saved->steps->mutex);
  const std::int64_t steps = x.type().sizes()[0];
  if (!steps) return result;
  saved->steps->need(0, steps);
  std::memcpy(result.block()->data, saved->steps->data(saved->index, 0),
              static_cast<std::size_t>(x.type().bytes()));
  return result;
}

}  // namespace

EndedEntries::EndedEntries(const LoopAttrs& attrs, std::span<const TensorType> inputs)
    : attrs_(attrs), dims_(dims_kept(attrs, inputs)) {
  for (const auto& [symbol, actual] : attrs.body.bindings) dims_.add(actual);
  for (int i = 0; i < attrs.carries; ++i)
    if (attrs.fills[i] != Fill::as_is) dims_.add(inputs[attrs.first_carry() + i]);
  // Residual lists may have dims that an iteration made.
  for (int i = 0; i < attrs.slices; ++i)
    if (const TensorType& slices = inputs[attrs.first_slice() + i];
        !slices.is_list() || attrs.fills[attrs.carries + i] != Fill::as_is)
      dims_.add(slice_type(slices));
  for (const int capture : attrs.body_captures) dims_.add(inputs[attrs.first_capture() + capture]);
  // Sums are cotangents of another loop's captures. Iterations of that loop read their dims in this
  // form.
  const Graph& body = *attrs.body.graph;
  DimEnv env = body_env(attrs, inputs);
  for (std::size_t k = attrs.carries + attrs.stacks; k < body.outputs.size(); ++k)
    for (const Dim& dim : body.types[body.outputs[k]].dims())
      if (env.knows(dim)) dims_.add(env.resolve(dim));
}

void EndedEntries::set_live(const Tensor& live) {
  live_ = live;
  dims_.set_live(live);
}

Tensor EndedEntries::seen(const Tensor& x, std::size_t input) const {
  const Fill how = fill_in_memory(attrs_.fill_of(input));
  if (how == Fill::live) return dims_.filled(x);
  return dims_.renamed(how == Fill::zero ? zero_ended(x, live_) : x);
}

SubGraph EndedEntries::body() const {
  SubGraph result = attrs_.body;
  for (auto& [symbol, actual] : result.bindings) actual = dims_(actual);
  return result;
}

Tensor EndedEntries::made(const Tensor& x, std::size_t output) const {
  const auto is_shown = [&](const Dim& dim) { return dims_.is_shown(dim); };
  const Tensor read = std::any_of(x.dims().begin(), x.dims().end(), is_shown) ? in_memory(x) : x;
  return dims_.restored(attrs_.output_adds_finished(output) ? collect_live(read, live_) : read);
}

Tensor EndedEntries::term(const Tensor& made, std::size_t output) const {
  const std::size_t stack = output - attrs_.carries;
  const bool is_raw = stack < static_cast<std::size_t>(attrs_.stacks) && attrs_.is_raw(stack);
  return is_raw || attrs_.output_adds_finished(output) ? made : zero_ended(made, live_);
}

Tensor EndedEntries::next(const Tensor& made, const Tensor& before, int carry) const {
  if (attrs_.fills[carry] == Fill::as_is) return made;
  return keep_ended(dims_.completed(made, before), before, live_);
}

}  // namespace reel
