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
#include "reel/core/runtime/memory.h"
#include "reel/core/runtime/random.h"
#include "reel/core/types/mode.h"
#include "reel/trace/fold_trace.h"
#include "reel/trace/passes/pipeline.h"
#include "reel/trace/result_slices.h"
#include "reel/trace/signature.h"
#include "reel/trace/trace_causes.h"
#include "reel/trace/trace_symbols.h"

namespace reel {
namespace {

Tensor token_of(const Dim& dim) { return Tensor(allocate_block(token_type(dim))); }

}  // namespace

void TracedFunction::Prototype::refuse(const std::type_info& wanted) const {
  throw InternalError(str("a trace gave a result of type ", type_ ? type_->name() : "none",
                          " where the call returns ", wanted.name()));
}

/// A trace: the graphs that serve calls of one signature.
struct TracedFunction::Entry {
  class Call;

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

  /// Notes the function's result, and returns the outputs of the graph: the result's tensors, and a
  /// token for each dim of the trace.
  Tensors take_results(Recorded& traced);
  /// Notes the dims of arguments that the function names itself: later calls must have them.
  void note_named_dims(const GraphBuilder& builder, const Dims& symbols, const SliceUses& uses);
};

namespace {

bool is_tensor(const TreeLeaf& leaf) {
  return leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined();
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
    if (is_tensor(arguments[i])) names.push_back(name_of_leaf("argument", paths[i]));
  names.push_back("random stream");
  return names;
}

/// Throws ArgumentError unless the arguments have a dim of each name.
void check_names(const std::string& jit, const DynamicSizes& dynamic, const Dims& dims) {
  for (const std::string& name : dynamic.dims)
    if (std::none_of(dims.begin(), dims.end(), [&](const Dim& dim) { return dim.name() == name; }))
      throw ArgumentError(str("jit \"", jit, "\": dynamic names dim ", name,
                              ", but no argument has a dim of this name; the arguments' dims are ",
                              dims));
}

/// Lets the function's own Dims, the dims of the first call's arguments, mean the symbols.
/// In loops with finished entries, bodies see these dims under canonical() ones.
void rename_dims(GraphBuilder& builder, const Dims& dims, const Dims& canonical_dims,
                 const Dims& symbols) {
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    builder.rename(dims[i], symbols[i]);
    if (canonical_dims[i].node() != dims[i].node()) builder.rename(canonical_dims[i], symbols[i]);
  }
}

}  // namespace

Tensors TracedFunction::Entry::take_results(Recorded& traced) {
  Tensors graph_outputs;
  for (TreeLeaf& leaf : traced.leaves) {
    outputs.push_back(-1);
    classes.push_back(MemoryClass::values);
    if (is_tensor(leaf)) {
      classes.back() = leaf.tensor.block()->memory_class;
      outputs.back() = static_cast<int>(graph_outputs.size());
      graph_outputs.push_back(leaf.tensor);
      leaf.tensor = Tensor();
    } else if (leaf.kind == TreeLeaf::Kind::dim && leaf.dim.is_symbol() &&
               !leaf.dim.is_undefined()) {
      outputs.back() = static_cast<int>(graph_outputs.size());
      graph_outputs.push_back(dim_token(leaf.dim));
    }
  }
  results = std::move(traced.leaves);
  prototype = std::move(traced.prototype);
  return graph_outputs;
}

void TracedFunction::Entry::note_named_dims(const GraphBuilder& builder, const Dims& symbols,
                                            const SliceUses& uses) {
  for (const Dim& symbol : symbols) guarded.push_back(builder.is_guarded(symbol));
  for (const auto& [symbol, whole] : uses.uses())
    for (std::size_t i = 0; i < symbols.size(); ++i)
      if (symbols[i].node() == symbol.node()) slices_of_outside.emplace_back(i, whole);
}

std::shared_ptr<TracedFunction::Entry> TracedFunction::trace(std::type_index type,
                                                             const TreeLeaves& arguments,
                                                             const Function& function,
                                                             const DynamicSizes& dynamic) {
  auto entry = std::make_shared<Entry>();
  DimTable table(arguments);
  signature_of(arguments, table, dynamic);
  check_names(name_, dynamic, table.dims());
  entry->dims = table.dims();
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (is_tensor(arguments[i])) entry->tensors.push_back(i);
  const Dims canonical_dims = canonical(entry->dims);

  GraphBuilder builder(name_, form_ == Form::as_recorded ? name_ : str("jit \"", name_, '"'));
  ModeScope scope(builder.scope());
  const TraceSymbols symbols(table, dynamic);
  const TreeLeaves promises = symbols.add_inputs(builder, arguments, dynamic);
  const Tensor stream = builder.add_input(TensorType(i64, {2}));
  rename_dims(builder, entry->dims, canonical_dims, symbols.all());
  // Loops with finished entries run the graph, or its gradient, with other dims than were captured.
  builder.capture_ragged_dims();

  RandomScope random(stream);
  SliceUses slice_uses;
  Recorded traced = function(promises);
  const Tensors outputs = entry->take_results(traced);
  entry->random_numbers = random.taken();
  Ref<Graph> graph = builder.finish(outputs);
  if (traced.argument_paths.size() == promises.size())
    graph->input_names = names_of_inputs(symbols.all(), promises, traced.argument_paths);
  for (std::size_t i = 0; i < traced.result_paths.size(); ++i)
    if (entry->outputs[i] >= 0)
      graph->output_names.push_back(name_of_leaf("result", traced.result_paths[i]));
  entry->note_named_dims(builder, symbols.all(), slice_uses);
  entry->result_slices = ResultSlices(*graph, builder.captured(), symbols.all());

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

/// One call of a TracedFunction, which must outlive it.
class TracedFunction::Entry::Call {
 public:
  /// Finds the trace for these arguments. Records the function if there is none.
  Call(TracedFunction& owner, std::type_index type, const TreeLeaves& arguments,
       const Function& function, const DynamicSizes& dynamic)
      : owner_(owner) {
    if (!owner.last_ || owner.last_->type != type ||
        !owner.last_->known.are_like(arguments, dynamic)) {
      find_or_trace(type, arguments, function, dynamic);
      is_known_ = false;
    }
    entry_ = owner.last_;
    entry_->last_call = ++owner.call_count_;
  }

  /// Throws ShapeError if the function names a dim of an argument itself, and this call's argument
  /// has another dim there.
  void check_dims() const;
  /// Returns the first inputs of the graph: a token of each dim.
  Tensors dim_tokens() const;
  /// Returns the result without its tensors and dims.
  Traced prepared_result() const { return {entry_->results, entry_->prototype}; }
  /// Chooses the graph that this call runs. Folds captures at the first call that may.
  void choose_program();
  /// Runs the graph. Moves the arguments' tensors to `inputs`, behind the tokens of dims. If the
  /// run throws, moves them back.
  Tensors run_moving(TreeLeaves& arguments, Tensors inputs, const Tensor& stream) const;
  /// Moves the graph's outputs to the result's leaves. Allocates nothing.
  void unpack(Tensors outputs, Traced& result) const;

 private:
  void find_or_trace(std::type_index type, const TreeLeaves& arguments, const Function& function,
                     const DynamicSizes& dynamic);
  const Dims& dims() const { return is_known_ ? entry_->known.dims() : table_.dims(); }

  TracedFunction& owner_;
  std::shared_ptr<Entry> entry_;
  bool is_known_ = true;  ///< the arguments are like the last call's
  DimTable table_;        ///< of the arguments if they are not
};

void TracedFunction::Entry::Call::find_or_trace(std::type_index type, const TreeLeaves& arguments,
                                                const Function& function,
                                                const DynamicSizes& dynamic) {
  table_ = DimTable(arguments);
  Signature signature{type, signature_of(arguments, table_, dynamic)};
  auto found = owner_.entries_.find(signature);
  if (found == owner_.entries_.end()) {
    std::shared_ptr<Entry> made = owner_.trace(type, arguments, function, dynamic);
    owner_.make_room();
    found = owner_.entries_.emplace(std::move(signature), std::move(made)).first;
  }
  owner_.last_ = found->second;
  owner_.last_->type = type;
  owner_.last_->known = KnownLeaves(arguments, dynamic, table_.dims());
}

void TracedFunction::Entry::Call::check_dims() const {
  const std::string& name = owner_.name_;
  for (std::size_t i = 0; i < dims().size(); ++i)
    if (const Dim& dim = dims()[i], &named = entry_->dims[i]; entry_->guarded[i] && !(dim == named))
      throw ShapeError(str("jit \"", name, "\": the function names dim ", named,
                           " itself, but this call's argument has ", dim,
                           one_dim_hint({named}, {dim})));
  for (const auto& [place, whole] : entry_->slices_of_outside)
    if (const Dim& dim = dims()[place]; !is_slice_of(dim, whole))
      throw ShapeError(str("jit \"", name, "\": the function names dim ", whole,
                           " itself, of which ", dim, " of this call's argument is no slice"));
}

Tensors TracedFunction::Entry::Call::dim_tokens() const {
  Tensors tokens;
  for (std::size_t i = 0; i < dims().size(); ++i)
    if (const Dim& dim = dims()[i]; !dim.is_undefined())
      tokens.push_back(is_known_ ? entry_->known.tokens()[i] : token_of(dim));
  return tokens;
}

void TracedFunction::Entry::Call::choose_program() {
  Entry& entry = *entry_;
  if (owner_.form_ == Form::folded && !entry.is_folded && !entry.tensors.empty() && may_fold()) {
    entry.is_folded = true;
    try {
      CapturedGraph folded = fold_trace(*entry.recorded.graph, entry.recorded.captured);
      entry.folded = {std::move(folded.graph), std::move(folded.captured)};
    } catch (const MemoryError&) {  // calls run as recorded, which needs less
    }
  }
  entry.last = entry.folded.graph && may_fold() ? &entry.folded : &entry.recorded;
}

Tensors TracedFunction::Entry::Call::run_moving(TreeLeaves& arguments, Tensors inputs,
                                                const Tensor& stream) const {
  const std::vector<std::size_t>& tensors = entry_->tensors;
  const Program& program = *entry_->last;
  const std::size_t first_tensor = inputs.size();
  // Reserve memory before moving tensors, so that only the run can fail behind this.
  inputs.reserve(first_tensor + tensors.size() + 1 + program.captured.size());
  for (const std::size_t i : tensors) inputs.push_back(std::move(arguments[i].tensor));
  inputs.push_back(stream);
  inputs.insert(inputs.end(), program.captured.begin(), program.captured.end());
  try {
    return owner_.run_(program.graph, std::move(inputs));
  } catch (...) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      arguments[tensors[i]].tensor = std::move(inputs[first_tensor + i]);
    throw;
  }
}

void TracedFunction::Entry::Call::unpack(Tensors outputs, Traced& result) const {
  advance_random_stream(entry_->random_numbers);
  entry_->result_slices.note(outputs, dims());
  for (std::size_t i = 0; i < result.leaves.size(); ++i) {
    if (entry_->outputs[i] < 0) continue;
    Tensor& output = outputs[entry_->outputs[i]];  // of this leaf only
    if (entry_->classes[i] != MemoryClass::values) count_result(output, entry_->classes[i]);
    if (result.leaves[i].kind == TreeLeaf::Kind::dim)
      result.leaves[i].dim = output.dims()[1];
    else
      result.leaves[i].tensor =
          is_unranked(output) ? as_ranked(output, PartialShape::unknown_rank()) : std::move(output);
  }
}

TracedFunction::Traced TracedFunction::operator()(
    std::type_index type, TreeLeaves& arguments, const Function& function,
    const DynamicSizes& dynamic, const std::function<void(const Traced&)>& before_run) {
  leaf_count_ = arguments.size();
  Entry::Call call(*this, type, arguments, function, dynamic);
  call.check_dims();
  Tensors tokens = call.dim_tokens();
  const Tensor stream = current_random_stream();
  Traced result = call.prepared_result();
  if (before_run) before_run(result);
  call.choose_program();
  call.unpack(call.run_moving(arguments, std::move(tokens), stream), result);
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
