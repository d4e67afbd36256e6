#include "reel/trace/executors/checkpoints/replay_segments.h"

#include <algorithm>

#include "reel/core/ops.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/trace/executors/interpreter.h"
#include "reel/trace/executors/loop/chunks.h"
#include "reel/trace/executors/loop/iterations.h"
#include "reel/trace/executors/loop/loop_types.h"

namespace reel {
namespace {

/// Returns the slices of the time steps of `chunk`, from `first` on, as a view.
Tensor rows_of(const Tensor& slices, std::int64_t first, const Dim& chunk) {
  return Tensor(allocate_view(chunk_type(slices.type(), chunk), slices.ref(),
                              slices.data<char>() + first * slice_type(slices.type()).bytes()));
}

}  // namespace

ReplaySegments::ReplaySegments(const RecomputeAttrs& attrs, Tensors inputs)
    : attrs_(attrs), loop_(attrs_.saving()), inputs_(std::move(inputs)), graphs_(attrs.graphs) {
  if (!graphs_) {
    std::vector<TensorType> types;
    for (const Tensor& input : inputs_) types.push_back(input.type());
    graphs_ = std::make_shared<ReplaySegmentGraphs>(attrs_, std::move(types));
  }
  for (const Dim& dim : attrs_.dims) tokens_.emplace_back(allocate_block(token_type(dim)));
  const std::size_t own = attrs_.loop_inputs(inputs_.size());
  steps_ = integer_of(inputs_[own]);
  if (loop_.makes_lengths())
    lengths_ = inputs_[own + 1];
  else if (const Tensor* const lengths = operands_of(loop_, inputs_).lengths)
    lengths_ = *lengths;
  inputs_.resize(own);
  for (const Tensor& slices : operands_of(loop_, inputs_).slices) {
    if (!slices.type().is_list() && slices.dims()[0].is_named()) time_ = slices.dims()[0];
    lists_.push_back(slices.type().is_list() ? list_elements(slices) : Tensors());
  }
}

/// Returns the carries with the dims of the captures where the body gives both one dim. If an outer
/// loop ran an iteration twice, the checkpoints have the dims of its first run, the captures those
/// of the second.
Tensors ReplaySegments::named_as_captures(Tensors carries) const {
  const Graph& body = *loop_.body.graph;
  const auto formals = body_inputs(loop_);
  const auto operands = operands_of(loop_, inputs_);
  DimEnv dims;
  for (std::size_t i = 0; i < formals.captures.size(); ++i)
    dims.bind(body.types[formals.captures[i]],
              operands.captures[static_cast<std::size_t>(loop_.body_captures[i])].type());
  for (std::size_t i = 0; i < carries.size(); ++i) {
    const TensorType& formal = body.types[formals.carries[i]];
    if (formal.is_list() || formal.rank() != carries[i].rank()) continue;
    Dims named = carries[i].dims();
    for (std::size_t axis = 0; axis < named.size(); ++axis)
      if (dims.knows(formal.dims()[axis])) named[axis] = dims.resolve(formal.dims()[axis]);
    if (named != carries[i].dims())
      carries[i] = named_alike(carries[i], carries[i].type().with(named));
  }
  return carries;
}

ReplaySegments::Ran ReplaySegments::run(std::int64_t begin, std::int64_t end,
                                        const Tensors& carries, bool saves) {
  const std::int64_t count = end - begin, first = loop_.trips.is_reverse ? steps_ - end : begin;
  const Dim chunk = graphs_->dim_of_segment(time_, first, count);
  Tensors inputs;
  inputs.reserve(inputs_.size() + tokens_.size() + 3);
  if (!is_dense()) inputs.push_back(scalar(count, i64));
  if (lengths_.is_defined()) inputs.push_back(lengths_);
  inputs.push_back(tensor({first, steps_}, {}, i64));
  inputs.insert(inputs.end(), tokens_.begin(), tokens_.end());
  const Tensors named = named_as_captures(carries);
  inputs.insert(inputs.end(), named.begin(), named.end());
  const auto operands = operands_of(loop_, inputs_);
  for (std::size_t i = 0; i < operands.slices.size(); ++i) {
    const Tensor& slices = operands.slices[i];
    inputs.push_back(slices.type().is_list() ? part_of_list(slices, lists_[i], first, count)
                                             : rows_of(slices, first, chunk));
  }
  inputs.insert(inputs.end(), operands.captures.begin(), operands.captures.end());
  const GraphRef graph = graphs_->graph_for(count, saves);
  const GraphRunner runner = attrs_.runner.value_or(GraphRunner{interpret});
  Tensors made = runner(graph, std::move(inputs));
  const auto first_residual = made.begin() + std::ssize(loop_.carries);
  return {Tensors(made.begin(), first_residual), Tensors(first_residual, made.end())};
}

}  // namespace reel
