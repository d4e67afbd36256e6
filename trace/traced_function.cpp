#include "reel/trace/traced_function.h"

#include <algorithm>
#include <iostream>
#include <new>

#include "reel/core/base/str.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/dims/slice_uses.h"
#include "reel/core/functions/unranked.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/runtime/memory.h"
#include "reel/core/runtime/random.h"
#include "reel/core/types/dim_expression.h"
#include "reel/core/types/mode.h"
#include "reel/trace/passes/cleanup/fold_captures.h"
#include "reel/trace/passes/cleanup/sink_transposes.h"
#include "reel/trace/passes/pipeline.h"
#include "reel/trace/result_slices.h"
#include "reel/trace/signature.h"
#include "reel/trace/trace_causes.h"

namespace reel {
namespace {

Tensor token_of(const Dim& dim) { return Tensor(allocate_block(token_type(dim))); }

}  // namespace

void TracedFunction::Prototype::refuse(const std::type_info& wanted) const {
  throw InternalError(str("a trace gave a result of type ", type_ ? type_->name() : "none",
                          " where the call returns ", wanted.name()));
}

struct TracedFunction::Entry {
  std::uint64_t last_call = 0;
  std::type_index type = typeid(void);  ///< of the arguments
  KnownLeaves known;                    ///< of the last call
  /// A graph that calls run, and the tensors behind its captures.
  struct Program {
    GraphRef graph;
    Tensors captured;
  };
  /// `folded` serves calls without a tape, since no gradient may flow to its captures: null before
  /// the first of them, and if it would equal `recorded`.
  Program recorded, folded;
  bool is_folded = false;             ///< there was a call without a tape
  const Program* last = &recorded;    ///< of the last call
  Dims dims;                          ///< of the arguments of the first call
  std::vector<std::uint8_t> guarded;  ///< by dim: the function names it itself
  /// Slices of dims that the function names itself: the dim's index, and the whole Dim.
  std::vector<std::pair<std::size_t, Dim>> slices_of_outside;
  TreeLeaves results;                ///< kinds; tensors and dims come from the graph
  std::vector<std::size_t> tensors;  ///< the arguments' leaves that are defined tensors
  std::vector<int> outputs;          ///< by leaf: its place among the graph's outputs, or -1
  std::vector<MemoryClass> classes;  ///< by leaf: class of its memory
  Prototype prototype;
  std::int64_t random_numbers = 0;
  ResultSlices result_slices;
};

namespace {

/// Makes symbols slices of one another as the dims are that they stand for.
void note_slices(const Dims& dims, const Dims& symbols) {
  if (!has_slices()) return;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (expression_of(symbols[i])) continue;  // its operands are slices
    std::optional<std::size_t> nearest;
    for (std::size_t j = 0; j < dims.size(); ++j)
      if (j != i && is_slice_of(dims[i], dims[j]) &&
          (!nearest || is_slice_of(dims[j], dims[*nearest])))
        nearest = j;
    if (nearest)
      note_slice(symbols[i], symbols[*nearest], symbols[*nearest], {});
    else
      copy_slice(dims[i], symbols[i]);
  }
}

/// "argument 0.cell.w", "result"
std::string name_of_leaf(const char* what, const std::string& path) {
  return path.empty() ? what : str(what, ' ', path);
}

/// Returns names for the inputs of a recorded graph: dims, tensors, the stream of random numbers.
std::vector<std::string> names_of_inputs(const Dims& dims, const TreeLeaves& arguments,
                                         const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const Dim& dim : dims)
    if (!dim.is_undefined()) names.push_back(str("dim ", dim.name()));
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].kind == TreeLeaf::Kind::tensor && arguments[i].tensor.is_defined())
      names.push_back(name_of_leaf("argument", paths[i]));
  names.push_back("random stream");
  return names;
}

}  // namespace

namespace {

/// Throws ArgumentError unless the arguments have a dim of each name.
void check_names(const std::string& jit, const DynamicSizes& dynamic, const Dims& dims) {
  for (const std::string& name : dynamic.dims)
    if (std::none_of(dims.begin(), dims.end(), [&](const Dim& dim) { return dim.name() == name; }))
      throw ArgumentError(str("jit \"", jit, "\": dynamic names dim ", name,
                              ", but no argument has a dim of this name; the arguments' dims are ",
                              dims));
}

}  // namespace

std::shared_ptr<TracedFunction::Entry> TracedFunction::trace(std::type_index type,
                                                             const TreeLeaves& arguments,
                                                             const Function& function,
                                                             const DynamicSizes& dynamic) {
  auto entry = std::make_shared<Entry>();
  DimTable table(arguments);
  signature_of(arguments, table, dynamic);
  check_names(name_, dynamic, table.dims());
  entry->dims = table.dims();

  const Dims shown = canonical(entry->dims);  // for finished entries, the dims in the body
  GraphBuilder builder(name_, form_ == Form::as_recorded ? name_ : str("jit \"", name_, '"'));
  ModeScope scope(builder.scope());
  Dims symbols;
  const auto symbol_of = [&](const Dim& dim) -> Dim {
    return dim.is_named() ? symbols[table.place(dim)] : dim;
  };
  for (const Dim& dim : entry->dims) {
    if (const DimExpression* expression = table.visible_expression(dim)) {
      Dims operands;
      for (const Dim& of : expression->operands) operands.push_back(symbol_of(of));
      symbols.push_back(recompute(*expression, operands));
      continue;
    }
    Ref<DimNode> node(new DimNode);
    node->name = dim.name();
    node->kind = dynamic.has(dim) ? DimKind::dynamic : dim.node()->kind;
    node->is_symbol = true;
    node->size = node->kind == DimKind::fixed ? dim.size() : -1;
    for (const Dim& of : dim.length_dims()) node->length_dims.push_back(symbol_of(of));
    symbols.push_back(Dim::of_node(node));
  }
  note_slices(entry->dims, symbols);
  for (const Dim& symbol : symbols)
    if (!symbol.is_undefined()) builder.add_input(token_type(symbol));
  TreeLeaves promises = arguments;
  for (std::size_t i = 0; i < promises.size(); ++i) {
    TreeLeaf& leaf = promises[i];
    if (leaf.kind == TreeLeaf::Kind::dim) leaf.dim = symbol_of(leaf.dim);
    if (leaf.kind != TreeLeaf::Kind::tensor || !leaf.tensor.is_defined()) continue;
    Dims dims;
    entry->tensors.push_back(i);
    for (const Dim& dim : dims_in_trace(promises, i, dynamic)) dims.push_back(symbol_of(dim));
    leaf.tensor = builder.add_input(leaf.tensor.type().with(dims));
  }
  const Tensor stream = builder.add_input(TensorType(i64, {2}));
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    builder.rename(entry->dims[i], symbols[i]);
    if (shown[i].node() != entry->dims[i].node()) builder.rename(shown[i], symbols[i]);
  }

  // Loops with finished entries run the graph, or its gradient, with other dims than were captured.
  builder.capture_ragged_dims();

  RandomScope random(stream);
  SliceUses slice_uses;
  Recorded traced = function(promises);
  Tensors outputs;
  for (TreeLeaf& leaf : traced.leaves) {
    entry->outputs.push_back(-1);
    entry->classes.push_back(MemoryClass::values);
    if (leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined()) {
      entry->classes.back() = leaf.tensor.block()->memory_class;
      entry->outputs.back() = static_cast<int>(outputs.size());
      outputs.push_back(leaf.tensor);
      leaf.tensor = Tensor();
    } else if (leaf.kind == TreeLeaf::Kind::dim && leaf.dim.is_symbol() &&
               !leaf.dim.is_undefined()) {
      entry->outputs.back() = static_cast<int>(outputs.size());
      outputs.push_back(dim_token(leaf.dim));
    }
  }
  entry->random_numbers = random.taken();
  entry->results = std::move(traced.leaves);
  entry->prototype = std::move(traced.prototype);
  Ref<Graph> graph = builder.finish(outputs);
  if (traced.argument_paths.size() == promises.size())
    graph->input_names = names_of_inputs(symbols, promises, traced.argument_paths);
  for (std::size_t i = 0; i < traced.result_paths.size(); ++i)
    if (entry->outputs[i] >= 0)
      graph->output_names.push_back(name_of_leaf("result", traced.result_paths[i]));
  for (const Dim& symbol : symbols) entry->guarded.push_back(builder.is_guarded(symbol));
  for (const auto& [symbol, whole] : slice_uses.uses())
    for (std::size_t i = 0; i < symbols.size(); ++i)
      if (symbols[i].node() == symbol.node()) entry->slices_of_outside.emplace_back(i, whole);
  entry->result_slices = ResultSlices(*graph, builder.captured(), symbols);
  Optimised optimised =
      form_ == Form::as_recorded ? as_it_is(std::move(graph)) : optimise(std::move(graph));
  for (const int i : optimised.kept_captures)
    entry->recorded.captured.push_back(builder.captured()[static_cast<std::size_t>(i)]);
  entry->recorded.graph = std::move(optimised.graph);
  if (traced.argument_paths.size() == arguments.size())
    note_causes({type, arguments, traced.argument_paths, entry->dims, dynamic});
  ++trace_count_;
  return entry;
}

namespace {

/// Returns true if a call in the current mode runs ops on captures once for all calls: nothing
/// takes gradients of captures, replaces them, or names the ops and elements of the recorded graph.
bool may_fold() {
  return !thread_mode.tape && !thread_mode.builder && !thread_mode.entries &&
         !thread_mode.nan_checks;
}

/// Returns the graph without ops on captures, and without transposes that undo each other; null if
/// that changes nothing.
CapturedGraph folded(const Graph& graph, const Tensors& captured) {
  const auto with_names = [&](Ref<Graph> result) {
    result->renames = graph.renames;
    result->input_names = graph.input_names;
    result->output_names = graph.output_names;
    return result;
  };
  Ref<Graph> moved = sink_transposes(graph);
  if (!moved) {
    CapturedGraph result = fold_captures(graph, captured);
    if (result.graph) result.graph = with_names(std::move(result.graph));
    return result;
  }
  Optimised sunk = optimise(with_names(std::move(moved)));
  Tensors read;
  for (const int i : sunk.kept_captures) read.push_back(captured[static_cast<std::size_t>(i)]);
  CapturedGraph result = fold_captures(*sunk.graph, read);
  if (!result.graph) result = {std::move(sunk.graph), std::move(read)};
  result.graph = with_names(std::move(result.graph));
  return result;
}

}  // namespace

void TracedFunction::note_causes(TracedArguments arguments) {
  if (!causes_) causes_ = std::make_shared<TraceCauses>();
  if (trace_count_ == 8)
    for (const ArgumentDifference& at : causes_->since_first(arguments))
      std::cerr << str("reel: jit \"", name_, "\" traces for the ninth time; ", at.name, ", ",
                       at.now, ", was ", at.first,
                       " at first, and every value keeps a graph and plans of its own. ", at.repair,
                       '\n');
  causes_->add(std::move(arguments));
}

void TracedFunction::make_room() {
  if (max_traces_ == 0) return;
  while (entries_.size() >= max_traces_)
    entries_.erase(std::min_element(entries_.begin(), entries_.end(), [](auto& a, auto& b) {
      return a.second->last_call < b.second->last_call;
    }));
}

void TracedFunction::clear() {
  entries_.clear();
  last_.reset();
}

namespace {

/// Never fails: if memory for a list of its elements runs out, a list keeps its count.
void count_result(const Tensor& result, MemoryClass what) {
  try {
    count_as(result, what);
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

TracedFunction::Traced TracedFunction::operator()(
    std::type_index type, TreeLeaves& arguments, const Function& function,
    const DynamicSizes& dynamic, const std::function<void(const Traced&)>& before_run) {
  leaf_count_ = arguments.size();
  DimTable table;
  bool is_known = true;
  if (!last_ || last_->type != type || !last_->known.are_like(arguments, dynamic)) {
    table = DimTable(arguments);
    Signature signature{type, signature_of(arguments, table, dynamic)};
    auto found = entries_.find(signature);
    if (found == entries_.end()) {
      std::shared_ptr<Entry> made = trace(type, arguments, function, dynamic);
      make_room();
      found = entries_.emplace(std::move(signature), std::move(made)).first;
    }
    last_ = found->second;
    last_->type = type;
    last_->known = KnownLeaves(arguments, dynamic, table.dims());
    is_known = false;
  }
  const std::shared_ptr<Entry> entry = last_;
  const Dims& dims = is_known ? entry->known.dims() : table.dims();
  entry->last_call = ++call_count_;

  Tensors inputs;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const Dim& dim = dims[i];
    if (entry->guarded[i] && !(dim == entry->dims[i]))
      throw ShapeError(str("jit \"", name_, "\": the function names dim ", entry->dims[i],
                           " itself, but this call's argument has ", dim,
                           one_dim_hint({entry->dims[i]}, {dim})));
    if (!dim.is_undefined()) inputs.push_back(is_known ? entry->known.tokens()[i] : token_of(dim));
  }
  for (const auto& [place, whole] : entry->slices_of_outside)
    if (const Dim& dim = dims[place]; !is_slice_of(dim, whole))
      throw ShapeError(str("jit \"", name_, "\": the function names dim ", whole,
                           " itself, of which ", dim, " of this call's argument is no slice"));
  const std::size_t first_tensor = inputs.size();
  const Tensor stream = current_random_stream();
  Traced result{entry->results, entry->prototype};
  if (before_run) before_run(result);

  if (form_ == Form::folded && !entry->is_folded && !entry->tensors.empty() && may_fold()) {
    entry->is_folded = true;
    try {
      CapturedGraph made = folded(*entry->recorded.graph, entry->recorded.captured);
      entry->folded = {std::move(made.graph), std::move(made.captured)};
    } catch (const MemoryError&) {  // calls run as recorded, which needs less
    }
  }
  entry->last = entry->folded.graph && may_fold() ? &entry->folded : &entry->recorded;
  const Entry::Program& program = *entry->last;

  // Reserve memory before moving tensors, so that only the run can fail behind this. If it throws,
  // the tensors are moved back; its results are returned without allocations.
  inputs.reserve(first_tensor + entry->tensors.size() + 1 + program.captured.size());
  for (const std::size_t i : entry->tensors) inputs.push_back(std::move(arguments[i].tensor));
  inputs.push_back(stream);
  inputs.insert(inputs.end(), program.captured.begin(), program.captured.end());
  Tensors outputs = [&] {
    try {
      return run_(program.graph, std::move(inputs));
    } catch (...) {
      for (std::size_t i = 0; i < entry->tensors.size(); ++i)
        arguments[entry->tensors[i]].tensor = std::move(inputs[first_tensor + i]);
      throw;
    }
  }();
  advance_random_stream(entry->random_numbers);
  entry->result_slices.note(outputs, dims);
  for (std::size_t i = 0; i < result.leaves.size(); ++i) {
    if (entry->outputs[i] < 0) continue;
    Tensor& output = outputs[entry->outputs[i]];  // of this leaf only
    if (entry->classes[i] != MemoryClass::values) count_result(output, entry->classes[i]);
    if (result.leaves[i].kind == TreeLeaf::Kind::dim)
      result.leaves[i].dim = output.dims()[1];
    else
      result.leaves[i].tensor =
          is_unranked(output) ? as_ranked(output, PartialShape::unknown_rank()) : std::move(output);
  }
  return result;
}

const TracedFunction::Entry& TracedFunction::last_entry(const char* wanted) const {
  if (!last_)
    throw ArgumentError(
        str("jit \"", name_, "\": there ", wanted,
            trace_count_ ? " between clear_traces() and the next call" : " before the first call"));
  return *last_;
}
const Graph& TracedFunction::graph() const { return *last_entry("is no graph").last->graph; }
const Graph& TracedFunction::recorded_graph() const {
  return *last_entry("is no graph").recorded.graph;
}
std::string TracedFunction::explain() const {
  const Entry& last = last_entry("is nothing to explain");
  const std::string text = explain_(*last.last->graph, *last.recorded.graph);
  const std::size_t kinds = entries_.size();
  const auto times = static_cast<std::size_t>(trace_count_);
  return str("jit \"", name_, "\", recorded for ", kinds, kinds == 1 ? " kind" : " kinds",
             " of arguments", times == kinds ? "" : str(", ", times, " times in all"),
             "; as of the last call:\n", causes_ ? causes_->text() : "", text);
}
const Tensors& TracedFunction::captures() const {
  return last_entry("are no captures").last->captured;
}

}  // namespace reel
