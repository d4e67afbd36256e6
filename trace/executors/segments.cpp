#include "reel/trace/executors/segments.h"

#include <algorithm>

#include "reel/core/ops.h"
#include "reel/core/ops/list.h"
#include "reel/core/without_effects.h"
#include "reel/trace/executors/chunks.h"
#include "reel/trace/executors/interpreter.h"
#include "reel/trace/executors/iterations.h"
#include "reel/trace/executors/way_back.h"

namespace reel {
namespace {

/// The elements of some steps, as far as there are any.
Tensor elements_of(const Tensor& list, const Tensors& all, std::int64_t first, std::int64_t count) {
  const auto begin = all.begin() + std::min<std::int64_t>(first, std::ssize(all)),
             end = all.begin() + std::min<std::int64_t>(first + count, std::ssize(all));
  return make_list(list.type().element(), Tensors(begin, end));
}

/// The steps of a loop that `chunk` stands for, with positions of their own.
Tensor rows_of(const Tensor& slices, std::int64_t first, const Dim& chunk) {
  return Tensor(allocate_view(chunk_type(slices.type(), chunk), slices.ref(),
                              slices.data<char>() + first * slice_type(slices.type()).bytes()));
}

}  // namespace

Segments::Segments(const RecallAttrs& attrs, Tensors inputs)
    : attrs_(attrs), loop_(attrs_.saving()), inputs_(std::move(inputs)) {
  const std::size_t own = attrs_.loop_inputs(inputs_.size());
  steps_ = integer_of(inputs_[own]);
  if (loop_.makes_lengths())
    lengths_ = inputs_[own + 1];
  else if (loop_.has_lengths)
    lengths_ = inputs_[loop_.has_bound];
  inputs_.resize(own);
  std::vector<TensorType> types;
  for (const Tensor& input : inputs_) types.push_back(input.type());
  is_dense_ = saves_in_one_piece(attrs_, types);
  for (int i = 0; i < loop_.slices; ++i) {
    const Tensor& slices = inputs_[loop_.first_slice() + static_cast<std::size_t>(i)];
    if (!slices.type().is_list() && slices.dims()[0].is_named()) time_ = slices.dims()[0];
    lists_.push_back(slices.type().is_list() ? list_elements(slices) : Tensors());
  }
}

Ref<Graph> Segments::make_graph(const Dim& chunk, bool saves) const {
  LoopAttrs steps = over_chunk(loop_, chunk);
  steps.body.graph = without_effects(*steps.body.graph);
  steps.cond = SubGraph();
  steps.cond_captures.clear();
  steps.origin = {};
  steps.checkpoint_steps = steps.checkpoint_bytes = 0;
  steps.swaps = false;
  for (std::uint8_t& kind : steps.stack_kinds)
    kind &= static_cast<std::uint8_t>(~LoopAttrs::kSpilled);
  steps.has_lengths = lengths_.is_defined();
  if (!is_dense_) {
    steps.has_bound = true;
    steps.is_full = false;
    for (std::uint8_t& kind : steps.stack_kinds) kind |= LoopAttrs::kList;
  }
  Ref<Graph> graph(new Graph);
  graph->name = loop_.name;
  const auto add_input = [&](const TensorType& type) {
    graph->inputs.push_back(graph->add_value(type));
  };
  if (steps.has_bound) add_input(TensorType(i64));
  if (steps.has_lengths) add_input(lengths_.type());
  add_input(TensorType(i64, {2}));
  std::vector<TensorType> types;
  for (const Tensor& input : inputs_) types.push_back(input.type());
  DimEnv env = body_env(loop_, types);
  for (std::size_t i = loop_.first_carry(); i < inputs_.size(); ++i) {
    const TensorType& type = types[i];
    const auto carry = static_cast<int>(i - loop_.first_carry());
    if (carry < loop_.carries && changes_dims(loop_, carry))
      add_input(
          loop_.body.graph->types[loop_.body.graph->inputs[1 + static_cast<std::size_t>(carry)]]);
    else
      add_input(i >= loop_.first_slice() && i < loop_.first_capture() && !type.is_list()
                    ? chunk_type(type, chunk)
                    : type);
    if (i < loop_.first_capture()) graph->formal_count = graph->inputs.size();
  }
  if (loop_.first_capture() == loop_.first_carry()) graph->formal_count = graph->inputs.size();
  const std::size_t first_stack = steps.first_stack();
  const AttrsRef attrs = make_attrs(std::move(steps));
  TypeList out;
  const std::vector<TensorType> in = graph->types_of(graph->inputs);
  TypeArgs rule{loop_op, attrs.get(), in, out};
  loop_op.type(rule);
  std::vector<ValueId> made;
  for (const TensorType& type : out.span()) made.push_back(graph->add_value(type));
  graph->append(loop_op, attrs, graph->inputs, made);
  graph->outputs.assign(made.begin(), made.begin() + loop_.carries);
  for (int j = attrs_.first_saved; saves && j < loop_.stacks; ++j)
    graph->outputs.push_back(made[first_stack + static_cast<std::size_t>(j)]);
  graph->seal();
  return graph;
}

GraphRef Segments::graph_for(std::int64_t count, bool saves) {
  const bool any = time_.is_named();
  GraphRef& graph = graphs_[{any ? 0 : count, saves}];
  if (graph) return graph;
  return graph = make_graph(any ? part_symbol(time_) : Dim(count), saves);
}

Segments::Ran Segments::run(std::int64_t begin, std::int64_t end, const Tensors& carries,
                            bool saves) {
  const std::int64_t count = end - begin, first = loop_.is_reverse ? steps_ - end : begin;
  const Dim chunk = part_of_dim(time_, first, count);
  Tensors inputs;
  if (!is_dense_) inputs.push_back(scalar(count, i64));
  if (lengths_.is_defined()) inputs.push_back(lengths_);
  inputs.push_back(tensor({first, steps_}, {}, i64));
  inputs.insert(inputs.end(), carries.begin(), carries.end());
  for (std::size_t i = loop_.first_slice(); i < loop_.first_capture(); ++i)
    inputs.push_back(inputs_[i].type().is_list()
                         ? elements_of(inputs_[i], lists_[i - loop_.first_slice()], first, count)
                         : rows_of(inputs_[i], first, chunk));
  inputs.insert(inputs.end(), inputs_.begin() + static_cast<std::ptrdiff_t>(loop_.first_capture()),
                inputs_.end());
  const GraphRef graph = graph_for(count, saves);
  const GraphRunner runner = attrs_.runner.value_or(GraphRunner{interpret});
  Tensors made = runner(graph, std::move(inputs));
  const auto first_saved = made.begin() + loop_.carries;
  return {Tensors(made.begin(), first_saved), Tensors(first_saved, made.end())};
}

}  // namespace reel
