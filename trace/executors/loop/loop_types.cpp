#include "reel/trace/executors/loop/loop_types.h"

#include <algorithm>
#include <cstring>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/replay.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/runtime/residual_source.h"

namespace reel {

TensorType type_without_iterations(const LoopAttrs& attrs, std::span<const TensorType> inputs,
                                   const TensorType& type) {
  DimEnv env = body_env(attrs, inputs);
  Dims dims;
  for (const Dim& dim : type.dims()) {
    if (dim.is_symbol() && !dim.has_size() && !env.knows(dim))
      env.bind(dim, dim.is_named() ? Dim(dim.name(), 0) : Dim(0));
    dims.push_back(env.resolve(dim));
  }
  return type.with(dims);
}

Tensors slices_of_list(const Tensor& list, const TensorType& slice, std::int64_t& limit) {
  Tensors slices = list_elements(list);
  if (limit == INT64_MAX) limit = static_cast<std::int64_t>(slices.size());
  slices.resize(static_cast<std::size_t>(std::max<std::int64_t>(limit, 0)));
  for (std::size_t i = 0; i < slices.size(); ++i)
    if (!slices[i].is_defined())
      slices[i] = slice.is_list()
                      ? empty_list(list.type())
                      : list_read(list, scalar(static_cast<std::int64_t>(i), i64), true);
  return slices;
}

Tensor step_of_residual(const Tensor& slices, std::int64_t position) {
  const ResidualValue& residual = *residual_value(slices);
  Tensor step = residual.steps->tensor(residual.index, position);
  return slices.type().is_list() ? step : named_alike(step, slice_type(slices.type()));
}

Tensor part_of_list(const Tensor& list, const Tensors& all, std::int64_t first,
                    std::int64_t count) {
  const auto begin = all.begin() + std::min<std::int64_t>(first, std::ssize(all)),
             end = all.begin() + std::min<std::int64_t>(first + count, std::ssize(all));
  return make_list(list.type().element(), Tensors(begin, end));
}

std::vector<std::size_t> slices_with_own_dims(const LoopAttrs& attrs,
                                              std::span<const TensorType> inputs) {
  const Graph& body = *attrs.body.graph;
  const auto formals = body_inputs(attrs).slices;
  const auto slices = operands_of(attrs, inputs).slices;
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const TensorType& formal = body.types[formals[i]];
    bool has_names = false;
    for_each_symbol(formal, [&](const Dim& dim) { has_names = has_names || dim.is_named(); });
    if (has_names && !formal.is_list() && slices[i].is_list()) result.push_back(i);
  }
  return result;
}

bool are_alike(const Dim& a, const Dim& b) {
  if (a == b) return true;
  if (a.raw_size() != b.raw_size() || a.is_ragged() != b.is_ragged()) return false;
  if (!a.is_ragged()) return true;
  // Recomputed residuals may have symbols as dims; only a run of the body tells their lengths.
  if (!a.node()->lengths || !b.node()->lengths) return false;
  const Tensor of_a(a.node()->lengths), of_b(b.node()->lengths);
  return of_a.dtype() == of_b.dtype() && of_a.type().numel() == of_b.type().numel() &&
         !std::memcmp(of_a.data<char>(), of_b.data<char>(),
                      static_cast<std::size_t>(of_a.type().bytes()));
}

DimsMadeTwice dims_made_twice(const LoopAttrs& attrs, const std::vector<std::size_t>& slices) {
  const Graph& body = *attrs.body.graph;
  const auto formals = body_inputs(attrs).slices;
  std::vector<ValueId> own;
  for (const std::size_t i : slices) own.push_back(formals[i]);
  Dims of_others, found;
  const auto add_to = [](Dims& dims, const TensorType& type) {
    for_each_symbol(type, [&](const Dim& dim) {
      if (dim.is_named() && !contains(dims, dim)) dims.push_back(dim);
    });
  };
  for (const ValueId input : body.inputs)
    if (!std::count(own.begin(), own.end(), input)) add_to(of_others, body.types[input]);
  for (const ValueId output : body.outputs) add_to(of_others, body.types[output]);
  for (const ValueId slice : own) add_to(found, body.types[slice]);
  std::erase_if(found, [&](const Dim& dim) { return contains(of_others, dim); });
  DimsMadeTwice result{{}, DimMeetings(body)};
  for (std::size_t i = 0; i < found.size(); ++i)
    for (std::size_t j = i + 1; j < found.size(); ++j)
      if (found[i].name() == found[j].name() && !result.meetings.meet(found[i], found[j]))
        result.pairs.emplace_back(found[i], found[j]);
  return result;
}

namespace {
/// Returns true if the lengths of the symbol and of a dim that was made run over the same dims.
/// They differ after a rename of the batch. If a dim of the symbol's lengths is not bound, the dim
/// of the slice in its place is compared.
bool has_length_dims(const Dim& symbol, const Dim& of_slice, const Dim& made, DimEnv& env) {
  const Dims &formal = symbol.length_dims(), &actual = of_slice.length_dims();
  const Dims& over = made.length_dims();
  bool result = formal.size() == over.size() && actual.size() == over.size();
  for (std::size_t i = 0; result && i < over.size(); ++i)
    result = formal[i].is_symbol() && !env.knows(formal[i]) ? are_alike(actual[i], over[i])
                                                            : env.resolve(formal[i]) == over[i];
  return result;
}
/// Returns true if a value has the symbol and another one that is bound to this dim.
bool meets_another(const Graph& body, const Dim& symbol, const Dim& bound, DimMeetings& meetings,
                   DimEnv& env) {
  bool result = false;
  for (const ValueId input : body.inputs)
    for_each_symbol(body.types[input], [&](const Dim& other) {
      result = result || (other.node() != symbol.node() && env.knows(other) &&
                          env.resolve(other) == bound && meetings.meet(symbol, other));
    });
  return result;
}
/// Binds a symbol of a slice to the dim of the other symbol of its pair, if the slice's own dim is
/// like it. Symbols stay apart if a value has both.
void bind_made_twice(const Graph& body, const TensorType& formal, const TensorType& actual,
                     DimsMadeTwice& twice, DimEnv& env) {
  for (int axis = 0; axis < formal.rank(); ++axis)
    for (const auto& [a, b] : twice.pairs) {
      const Dim &symbol = dim_at(formal, axis), &other = symbol.node() == a.node() ? b : a;
      if (symbol.node() != a.node() && symbol.node() != b.node()) continue;
      if (!env.knows(symbol) && env.knows(other) &&
          are_alike(env.resolve(other), dim_at(actual, axis)) &&
          has_length_dims(symbol, dim_at(actual, axis), env.resolve(other), env) &&
          !meets_another(body, symbol, env.resolve(other), twice.meetings, env))
        env.bind(symbol, env.resolve(other));
    }
}
}  // namespace

void name_alike(const LoopAttrs& attrs, const std::vector<std::size_t>& slices,
                DimsMadeTwice& twice, Tensors& inputs, DimEnv& env) {
  if (slices.empty()) return;
  const Graph& body = *attrs.body.graph;
  const auto formals = body_inputs(attrs).slices;
  const auto values = body_inputs_of(attrs, inputs).slices;
  std::vector<std::uint8_t> is_made(inputs.size());
  for (const std::size_t i : slices) body_inputs_of(attrs, is_made).slices[i] = true;
  for (std::size_t k = 0; k < inputs.size(); ++k)    // first those that no iteration made
    if (!is_made[k] && !inputs[k].type().is_list())  // a list may not know its elements' dims
      env.bind(body.types[body.inputs[k]], inputs[k].type());
  for (const std::size_t i : slices) {
    bind_made_twice(body, body.types[formals[i]], values[i].type(), twice, env);
    env.bind(body.types[formals[i]], values[i].type());
  }
  // A slice over hist + 1 gets its dim only after another one has bound hist.
  for (const std::size_t i : slices)
    values[i] = with_known_dims(std::move(values[i]), body.types[formals[i]], env);
}

void name_alike(const LoopAttrs& attrs, std::vector<TensorType>& operands) {
  const std::vector<std::size_t> made = slices_with_own_dims(attrs, operands);
  if (made.empty()) return;
  const Graph& body = *attrs.body.graph;
  const auto formals = body_inputs(attrs);
  const auto given = operands_of(attrs, operands);
  DimEnv env = attrs.body.env();
  for (std::size_t i = 0; i < given.carries.size(); ++i)
    env.bind(body.types[formals.carries[i]], given.carries[i]);
  for (std::size_t i = 0; i < given.slices.size(); ++i)
    if (!given.slices[i].is_list())
      env.bind(body.types[formals.slices[i]], slice_type(given.slices[i]));
  for (std::size_t i = 0; i < formals.captures.size(); ++i)
    env.bind(body.types[formals.captures[i]],
             given.captures[static_cast<std::size_t>(attrs.body_captures[i])]);
  for (const std::size_t i : made)
    env.bind(body.types[formals.slices[i]], slice_type(given.slices[i]));
  for (const std::size_t i : made)
    given.slices[i] =
        with_known_dims(slice_type(given.slices[i]), body.types[formals.slices[i]], env).as_list();
}

TensorType common_type(const TensorType& a, const TensorType& b) {
  if (a == b) return a;
  Dims dims = a.dims();
  for (std::size_t i = 0; i < dims.size() && i < b.dims().size(); ++i)
    if (!dims[i].is_named() && dims[i].has_size() && !(dims[i] == b.dims()[i]))
      dims[i] = Dim::unknown();
  return a.with(dims);
}

TensorType common_type(const Tensors& elements) {
  std::optional<TensorType> result;
  for (const Tensor& element : elements)
    if (element.is_defined())
      result = result ? common_type(*result, element.type()) : element.type();
  return *result;
}

std::int64_t bytes_of(const Tensor& tensor) {
  if (const ResidualValue* const residual = residual_value(tensor))
    return residual->steps->bytes_held();
  if (!tensor.type().is_list()) return tensor.type().bytes();
  std::int64_t bytes = 0;
  for (const Tensor& element : list_elements(tensor))
    if (element.is_defined()) bytes += bytes_of(element);
  return bytes;
}

std::int64_t dense_bytes(const TensorType& type) {
  return type.is_known() && !type.is_list() ? type.bytes() : 0;
}
std::int64_t dense_bytes(const std::vector<TensorType>& types) {
  std::int64_t sum = 0;
  for (const TensorType& type : types) sum += dense_bytes(type);
  return sum;
}

std::optional<std::int64_t> steps_of(const LoopAttrs& attrs, std::span<const TensorType> in) {
  if (!attrs.trips.is_full) return std::nullopt;
  for (const TensorType& slices : operands_of(attrs, in).slices)
    if (!slices.is_list() && slices.dims()[0].has_size()) return slices.dims()[0].size();
  for (const LoopStack& stack : attrs.stacks)
    if (!stack.is_list && stack.dim.has_size()) return stack.dim.size();
  return std::nullopt;
}

}  // namespace reel
