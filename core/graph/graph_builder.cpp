#include "reel/core/graph/graph_builder.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/core/dims/dim_facts.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/graph/known_number.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/list_operands.h"
#include "reel/core/types/dim_expression.h"
#include "reel/core/types/dim_node.h"
#include "reel/core/types/dim_symbol.h"
#include "reel/core/types/empty_tensor.h"

namespace reel {
namespace {
std::atomic<std::uint64_t> next_serial{1};
}

Dim canonical(const Dim& dim) {
  if (!dim.node()) return dim;
  if (is_tracing()) return thread_mode.builder->canonical(dim);
  return thread_mode.entries ? thread_mode.entries->visible(dim) : dim;
}
Dims canonical(const Dims& dims) {
  Dims result;
  result.reserve(dims.size());
  for (const Dim& dim : dims) result.push_back(canonical(dim));
  return result;
}

GraphBuilder::GraphBuilder(std::string name, std::string place)
    : around_(thread_mode),
      serial_(next_serial++),
      first_dim_(next_dim_serial()),
      graph_(new Graph),
      recording_(new Recording(std::move(place))) {
  graph_->name = std::move(name);
}

const GraphBuilder& GraphBuilder::root() const {
  const GraphBuilder* builder = this;
  while (builder->outer()) builder = builder->outer();
  return *builder;
}
GraphBuilder& GraphBuilder::root() {
  return const_cast<GraphBuilder&>(std::as_const(*this).root());
}

namespace {

/// Returns a computed dim with changed operands; the dim itself if none changes.
template <class Fn>
Dim of_operands(const Dim& dim, const DimExpression& expression, Fn&& change) {
  Dims operands;
  bool is_other = false;
  for (const Dim& of : expression.operands) {
    operands.push_back(change(of));
    is_other = is_other || operands.back().node() != of.node();
  }
  return is_other ? recompute(expression, operands) : dim;
}

}  // namespace

void GraphBuilder::rename(const Dim& actual, const Dim& symbol) {
  renames_.emplace(actual.node(), symbol);
  dims_outside_.insert_or_assign(symbol.node(), actual);
  if (expression_of(actual) && !expression_of(symbol))
    for_each_operand(actual, [&](const Dim& of) { hidden_operands_.insert(of.node()); });
}

Dim GraphBuilder::canonical(const Dim& dim) {
  GraphBuilder& root = this->root();
  EntryScope* const entries = root.around_.entries;  // of the eager scan around the trace
  const bool is_outer = entries && !dim.is_symbol();
  return in_body(root.renamed(is_outer ? entries->visible(dim) : dim));
}

bool GraphBuilder::has_made(const Dim& dim) const {
  return dim.is_symbol() && dim.serial() >= first_dim_ && !root().dims_outside_.count(dim.node());
}

DimEnv GraphBuilder::dims_outside() const {
  DimEnv env;
  for (const auto& [actual, symbol] : body_dims_) env.bind(symbol, actual);
  return env;
}

Dim GraphBuilder::in_body(const Dim& given) {
  const Dim dim = outer() ? outer()->in_body(given) : given;
  if (entry_dims_.empty() || !dim.is_ragged() || dim.is_symbol()) return dim;
  if (const DimExpression* expression = expression_of(dim))
    return of_operands(dim, *expression, [&](const Dim& of) { return in_body(of); });
  for (const auto& [actual, symbol] : body_dims_)
    if (actual.node() == dim.node()) return symbol;
  Dims length_dims;
  bool is_other = false;
  for (const Dim& of : dim.length_dims()) {
    const Dim here = in_body(root().renamed(of));
    length_dims.push_back(here);
    is_other = is_other || (here.is_ragged() && here.is_symbol());
    for (const Dim& entry : entry_dims_) is_other = is_other || entry.node() == here.node();
  }
  for (const Dim& entry : entry_dims_) is_other = is_other && entry.node() != dim.node();
  if (!is_other) return dim;
  body_dims_.emplace_back(dim, dim_symbol(dim.name(), std::move(length_dims)));
  copy_slice(dim, body_dims_.back().second);
  return body_dims_.back().second;
}

Dim GraphBuilder::renamed(const Dim& dim) {
  if (const auto found = renames_.find(dim.node()); found != renames_.end()) {
    guard(found->second);
    return found->second;
  }
  if (dim.is_symbol()) return dim;
  Dim result = dim;
  if (const DimExpression* expression = expression_of(dim))
    result = of_operands(dim, *expression, [&](const Dim& of) { return renamed(of); });
  else if (captures_ragged_dims_ && dim.is_ragged())
    return captured_dim(dim);
  if (result.node() == dim.node() && is_related(dim)) renames_.emplace(dim.node(), dim);
  return result;
}

void GraphBuilder::guard(const Dim& symbol) {
  guarded_.insert(symbol.node());
  for_each_operand(symbol, [&](const Dim& of) { guarded_.insert(of.node()); });
}

bool GraphBuilder::is_related(const Dim& dim) const {
  bool result = false;
  if (!hidden_operands_.empty())
    for_each_operand(dim,
                     [&](const Dim& of) { result = result || hidden_operands_.count(of.node()); });
  return result;
}

std::optional<Dim> GraphBuilder::outside(const Dim& dim) const {
  if (!dim.is_symbol()) return dim;
  const auto& known = root().dims_outside_;
  if (const auto found = known.find(dim.node()); found != known.end()) return found->second;
  const DimExpression* expression = expression_of(dim);
  if (!expression) return std::nullopt;
  Dims operands;
  for (const Dim& of : expression->operands) {
    std::optional<Dim> operand = outside(of);
    if (!operand) return std::nullopt;
    operands.push_back(*std::move(operand));
  }
  const ModeScope plain({});
  try {
    return recompute(*expression, operands);
  } catch (const ArgumentError&) {
    return std::nullopt;  // its lengths do not fit into a dim; a run that computes them throws
  }
}

Dim GraphBuilder::unified(const Dim& made) {
  GraphBuilder& root = this->root();
  if (root.hidden_operands_.empty()) return made;
  const std::optional<Dim> actual = root.outside(made);
  if (!actual || !root.is_related(*actual)) return made;
  const auto [known, is_new] = root.renames_.emplace(actual->node(), made);
  if (is_new) root.dims_outside_.emplace(made.node(), *actual);
  if (known->second.node() == made.node()) return made;
  root.guard(made);
  root.guard(known->second);
  return known->second;
}

Dim GraphBuilder::captured_dim(const Dim& dim) {
  Dims length_dims;
  for (const Dim& of : dim.length_dims()) length_dims.push_back(renamed(of));
  const Dim symbol = dim_symbol(dim.name(), std::move(length_dims));
  copy_slice(dim, symbol);
  rename(dim, symbol);
  capture_values_.push_back(graph_->add_value(token_type(symbol)));
  const ModeScope outside({});
  captured_.emplace_back(allocate_block(token_type(dim)));
  return symbol;
}

bool GraphBuilder::stands_for(const Dim& symbol, const Dim& actual) {
  GraphBuilder& root = this->root();
  const Dim seen = root.around_.entries ? root.around_.entries->visible(actual) : actual;
  for (const GraphBuilder* builder = this; builder; builder = builder->outer())
    for (const auto& [from, to] : builder->body_dims_)
      if (from.node() == seen.node() && to.node() == symbol.node()) return true;
  const auto found = root.renames_.find(seen.node());
  if (found == root.renames_.end() || found->second.node() != symbol.node()) return false;
  root.guarded_.insert(symbol.node());
  return true;
}

Tensor GraphBuilder::add_input(const TensorType& type) {
  const ValueId v = graph_->add_value(type);
  graph_->inputs.push_back(v);
  return Tensor(allocate_promise(type, serial_, v, recording_, nullptr));
}

std::string leak_text(const TensorBlock& promise) {
  const std::string& place = static_cast<const Recording&>(*promise.attachment).place;
  const auto* maker = static_cast<const Op*>(promise.data);
  return str("a value of type ", promise.type, " that ",
             maker ? str(maker->name, " made in ") : std::string("was given to "), place,
             " is used outside of it; values leave a body only through its state or outputs, a "
             "branch or a traced function only through its result");
}

Tensor GraphBuilder::lift(const Tensor& tensor) {
  if (!tensor.is_defined()) throw ArgumentError(kGivenEmptyTensor);
  if (tensor.is_traced() && tensor.block()->builder == serial_) return tensor;
  if (!sees(tensor)) throw TraceError(leak_text(*tensor.block()));
  const auto [it, fresh] = lifted_.emplace(tensor.block()->id, Tensor());
  if (fresh) {
    TensorType type = tensor.type();
    if (!type.node()->is_permanent)
      type = type.with(type.dims());  // dims of arguments become their symbols
    const ValueId v = graph_->add_value(type);
    capture_values_.push_back(v);
    captured_.push_back(tensor);
    it->second = Tensor(allocate_promise(type, serial_, v, recording_, nullptr));
  }
  return it->second;
}

bool GraphBuilder::sees(const Tensor& tensor) const {
  if (!tensor.is_traced()) return true;
  const GraphBuilder* builder = this;
  while (builder && builder->serial_ != tensor.block()->builder) builder = builder->outer();
  return builder != nullptr;
}

Tensor GraphBuilder::known(const Tensor& tensor) const {
  if (tensor.is_traced() && tensor.block()->builder == serial_) return tensor;
  const auto found = lifted_.find(tensor.block()->id);
  return found == lifted_.end() ? Tensor() : found->second;
}

Tensor GraphBuilder::outside(const Tensor& tensor) const {
  if (!tensor.is_traced() || tensor.block()->builder != serial_) return tensor;
  const auto found =
      std::find(capture_values_.begin(), capture_values_.end(), tensor.block()->value);
  return found == capture_values_.end()
             ? Tensor()
             : captured_[static_cast<std::size_t>(found - capture_values_.begin())];
}

ValueId GraphBuilder::value(const Tensor& tensor) { return lift(tensor).block()->value; }

std::optional<std::int64_t> GraphBuilder::known_integer(const Tensor& tensor) const {
  if (!tensor.is_traced() || tensor.block()->builder != serial_) return std::nullopt;
  return known_number(*graph_, tensor.block()->value);
}

Tensors GraphBuilder::record(const Op& op, const AttrsRef& attrs, OpInputs inputs) {
  std::vector<ValueId> in, out;
  TypeList in_types, out_types;
  for (const OpInput& input : inputs) {
    in.push_back(value(*input.tensor));
    const TensorType& type = graph_->types[in.back()];
    check_list_operand(op, in.size() - 1, type);
    if (type.is_unranked() && !op.takes_unranked)
      as_function(op.name, [&] { refuse_unranked(type); });
    in_types.push_back(type);
  }
  TypeArgs args{op, attrs.get(), in_types, out_types};
  apply_type_rule(args);
  Tensors results;
  for (const TensorType& type : out_types.span()) {
    out.push_back(graph_->add_value(type));
    results.emplace_back(allocate_promise(type, serial_, out.back(), recording_, &op));
  }
  graph_->append(op, attrs, in, out, detail::last_source = source_here());
  return results;
}

Tensors GraphBuilder::inline_part(const Graph& part, const Tensors& inputs) {
  std::vector<ValueId> place(part.types.size(), kNoValue);
  Tensors values(part.types.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId v = part.inputs[i];
    values[v] = lift(inputs[i]);
    place[v] = values[v].block()->value;
  }
  inline_graph(*graph_, part, place);
  for (const OpRecord& record : part.records) {
    for (const ValueId v : part.outputs_of(record))
      values[v] = Tensor(allocate_promise(part.types[v], serial_, place[v], recording_, record.op));
    if (record.op->dim_use == DimUse::defines)
      adopt_slice(part.types[part.outputs_of(record)[0]].dims()[1]);
    if (!thread_mode.tape) continue;
    std::vector<OpInput> in;
    Tensors out;
    for (const ValueId v : part.inputs_of(record)) in.emplace_back(values[v]);
    for (const ValueId v : part.outputs_of(record)) out.push_back(values[v]);
    detail::last_source = record.source;  // a tape reads the place there
    for (Recorder* tape = thread_mode.tape; tape; tape = tape->outer)
      tape->record(*record.op, record.attrs, in, out);
  }
  Tensors outputs;
  for (const ValueId v : part.outputs) outputs.push_back(values[v]);
  return outputs;
}

Ref<Graph> GraphBuilder::finish(const Tensors& outputs) {
  as_function(recording_->place, [&] {
    for (const Tensor& output : outputs) graph_->outputs.push_back(value(output));
  });
  graph_->formal_count = graph_->inputs.size();
  for (const auto& [node, symbol] : renames_)
    if (node != symbol.node()) graph_->renames.add(Dim::of_node(Ref<const DimNode>(node)), symbol);
  graph_->inputs.insert(graph_->inputs.end(), capture_values_.begin(), capture_values_.end());
  graph_->seal();
  return graph_;
}

}  // namespace reel
