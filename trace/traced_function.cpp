#include "reel/trace/traced_function.h"

#include <algorithm>
#include <iostream>

#include "reel/core/dim_expression.h"
#include "reel/core/graph_builder.h"
#include "reel/core/memory.h"
#include "reel/core/ops/dims.h"
#include "reel/core/ops/new_dims.h"
#include "reel/core/random.h"
#include "reel/core/same_name.h"
#include "reel/core/str.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {
namespace {

/// The named dims of the arguments in the order of their first appearance, those of lengths before
/// the ragged ones, operands before what is computed from them.
///
/// A computed dim (time + 1) is seen as one where its operands matter: they are dims of arguments
/// too, or another argument's dim is computed from them. Otherwise it is a dim like others, so that
/// one that grows from call to call, d + 1, d + 2, ..., needs no trace for each.
class DimTable {
 public:
  explicit DimTable(const TreeLeaves& leaves) {
    Dims computed;
    each_dim(leaves, [&](const Dim& dim) {
      if (expression_of(dim) && !contains(computed, dim)) computed.push_back(dim);
    });
    if (computed.empty()) return;
    each_dim(leaves, [&](const Dim& dim) {
      if (dim.node() && !expression_of(dim)) uses_.emplace(dim.node(), 2);  // it is there itself
    });
    for (const Dim& dim : computed) each_atom(dim, [&](const Dim& of) { ++uses_[of.node()]; });
  }
  int place(const Dim& dim) {
    // Equal where a scan's ended entries show one for the other, of which arguments may have both.
    for (std::size_t i = 0; i < dims_.size(); ++i)
      if (dims_[i] == dim) return static_cast<int>(i);
    for (const Dim& of : dim.length_dims()) place(of);
    if (const DimExpression* expression = visible_expression(dim))
      for (const Dim& of : expression->operands) place(of);
    dims_.push_back(dim);
    return static_cast<int>(dims_.size()) - 1;
  }
  const Dims& dims() const { return dims_; }
  /// The expression of a dim whose operands matter, else null.
  const DimExpression* visible_expression(const Dim& dim) const {
    const DimExpression* expression = expression_of(dim);
    bool result = expression != nullptr;
    if (result)
      each_atom(dim, [&](const Dim& of) {
        const auto found = uses_.find(of.node());
        result = result && found != uses_.end() && found->second > 1;
      });
    return result ? expression : nullptr;
  }

 private:
  /// What a dim is computed from in the end.
  template <class Fn>
  static void each_atom(const Dim& dim, Fn&& fn) {
    const DimExpression* expression = expression_of(dim);
    if (!expression) return fn(dim);
    for (const Dim& of : expression->operands) each_atom(of, fn);
  }
  template <class Fn>
  static void each_dim(const TreeLeaves& leaves, Fn&& fn) {
    const auto visit = [&](const Dim& dim) {
      for (const Dim& of : dim.length_dims()) fn(of);
      fn(dim);
    };
    for (const TreeLeaf& leaf : leaves) {
      if (leaf.kind == TreeLeaf::Kind::dim) visit(leaf.dim);
      if (leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined())
        for (const Dim& dim : leaf.tensor.dims()) visit(dim);
    }
  }

  Dims dims_;
  std::unordered_map<const DimNode*, int> uses_;  ///< by dim: more than one, and it matters
};

void describe(std::ostream& out, DimTable& table, const Dim& dim) {
  if (!dim.is_named()) {
    out << (dim.has_size() ? str(dim.size()) : "?") << ',';
    return;
  }
  const std::size_t known = table.dims().size();
  const int place = table.place(dim);
  out << '#' << place;
  if (table.dims().size() > known) {  // seen for the first time: say what it is
    out << '(' << dim.name();
    if (dim.node()->kind == DimKind::fixed) out << '=' << dim.size();
    if (dim.node()->kind == DimKind::dynamic) out << " dynamic";
    if (dim.node()->kind == DimKind::undefined) out << " undefined";
    if (const DimExpression* expression = table.visible_expression(dim)) {
      out << " from " << static_cast<int>(expression->operation) << ' ' << expression->number;
      for (const Dim& of : expression->operands) out << " #" << table.place(of);
    }
    for (const Dim& of : dim.length_dims()) {
      out << " over ";
      describe(out, table, of);
    }
    out << ')';
  }
  out << ',';
}

/// The dims of a tensor among the leaves, as a trace sees them.
Dims dims_in_trace(const TreeLeaves& leaves, std::size_t place,
                   const std::vector<std::size_t>& of_any_length) {
  Dims dims = leaves[place].tensor.dims();
  const bool has_any_length =
      std::find(of_any_length.begin(), of_any_length.end(), place) != of_any_length.end();
  if (has_any_length && !dims.empty() && !dims[0].is_named()) dims[0] = Dim::unknown();
  return dims;
}

std::string signature(const TreeLeaves& leaves, DimTable& table,
                      const std::vector<std::size_t>& of_any_length) {
  std::ostringstream out;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const TreeLeaf& leaf = leaves[i];
    switch (leaf.kind) {
      case TreeLeaf::Kind::tensor:
        if (!leaf.tensor.is_defined()) {
          out << "empty;";
          break;
        }
        out << (leaf.tensor.type().is_list() ? "list of " : "") << leaf.tensor.dtype() << '[';
        for (const Dim& dim : dims_in_trace(leaves, i, of_any_length)) describe(out, table, dim);
        out << "];";
        break;
      case TreeLeaf::Kind::dim:
        out << "dim ";
        describe(out, table, leaf.dim);
        out << ';';
        break;
      case TreeLeaf::Kind::none:
        out << "none;";
        break;
      case TreeLeaf::Kind::fixed:
        out << leaf.fixed << ';';
        break;
    }
  }
  return out.str();
}

Tensor token_of(const Dim& dim) { return Tensor(allocate_block(token_type(dim))); }

/// What of the sizes of arguments a trace is for: those of plain axes, and of dims that are not
/// known by a tensor.
struct StaticSizes {
  struct Axis {
    std::size_t tensor;  ///< among the arguments that are tensors
    int axis;
    std::int64_t size;
  };
  std::vector<Axis> plain;
  std::vector<std::pair<std::string, std::int64_t>> named;  ///< by dim; -1: of others

  StaticSizes() = default;
  /// of_any_length: as of TracedFunction; their first axes are no sizes of a trace.
  StaticSizes(const TreeLeaves& leaves, const Dims& dims,
              const std::vector<std::size_t>& of_any_length) {
    std::size_t tensor = 0;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (leaves[i].kind != TreeLeaf::Kind::tensor || !leaves[i].tensor.is_defined()) continue;
      const Dims seen = dims_in_trace(leaves, i, of_any_length);
      for (std::size_t axis = 0; axis < seen.size(); ++axis)
        if (!seen[axis].is_named() && seen[axis].has_size())
          plain.push_back({tensor, static_cast<int>(axis), seen[axis].size()});
      ++tensor;
    }
    for (const Dim& dim : dims)
      named.emplace_back(dim.name(), dim.node()->kind == DimKind::fixed ? dim.size() : -1);
  }
  /// The same axes and dims, whatever their sizes.
  bool is_like(const StaticSizes& other) const {
    return std::equal(plain.begin(), plain.end(), other.plain.begin(), other.plain.end(),
                      [](const Axis& a, const Axis& b) {
                        return a.tensor == b.tensor && a.axis == b.axis;
                      }) &&
           std::equal(named.begin(), named.end(), other.named.begin(), other.named.end(),
                      [](const auto& a, const auto& b) {
                        return a.first == b.first && (a.second < 0) == (b.second < 0);
                      });
  }
};

}  // namespace

struct TracedFunction::Entry {
  int number = 0;                          ///< of the trace
  StaticSizes sizes;                       ///< that it is for
  std::vector<std::size_t> of_any_length;  ///< what has none
  GraphRef graph;
  Tensors captured;
  Dims dims;                          ///< of the arguments of the first call
  std::vector<std::uint8_t> guarded;  ///< by dim: the function named it itself
  TreeLeaves results;                 ///< kinds; tensors and dims come from the graph
  std::vector<int> outputs;           ///< by leaf: its place among the graph's outputs, or -1
  std::vector<MemoryClass> classes;   ///< by leaf: what its memory is for
  std::shared_ptr<const void> prototype;
  std::int64_t random_numbers = 0;
};

namespace {

/// "argument 0.cell.w", "result"
std::string name_of_leaf(const char* what, const std::string& path) {
  return path.empty() ? what : str(what, ' ', path);
}

/// What each input of a recorded graph is to the caller: dims, tensors, the stream of random
/// numbers.
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

std::shared_ptr<TracedFunction::Entry> TracedFunction::trace(
    const TreeLeaves& arguments, const Function& function,
    const std::vector<std::size_t>& of_any_length) {
  auto entry = std::make_shared<Entry>();
  DimTable table(arguments);
  signature(arguments, table, of_any_length);
  entry->dims = table.dims();
  entry->number = trace_count_;
  entry->sizes = StaticSizes(arguments, entry->dims, of_any_length);
  entry->of_any_length = of_any_length;

  const Dims shown = canonical(entry->dims);  // in a scan whose entries end, as its body sees them
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
    node->kind = dim.node()->kind;
    node->is_symbol = true;
    node->size = node->kind == DimKind::fixed ? dim.size() : -1;
    for (const Dim& of : dim.length_dims()) node->length_dims.push_back(symbol_of(of));
    symbols.push_back(Dim::of_node(node));
  }
  for (const Dim& symbol : symbols)
    if (!symbol.is_undefined()) builder.add_input(token_type(symbol));
  TreeLeaves promises = arguments;
  for (std::size_t i = 0; i < promises.size(); ++i) {
    TreeLeaf& leaf = promises[i];
    if (leaf.kind == TreeLeaf::Kind::dim) leaf.dim = symbol_of(leaf.dim);
    if (leaf.kind != TreeLeaf::Kind::tensor || !leaf.tensor.is_defined()) continue;
    Dims dims;
    for (const Dim& dim : dims_in_trace(promises, i, of_any_length)) dims.push_back(symbol_of(dim));
    leaf.tensor = builder.add_input(leaf.tensor.type().with(dims));
  }
  const Tensor stream = builder.add_input(TensorType(i64, {2}));
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    builder.rename(entry->dims[i], symbols[i]);
    if (shown[i].node() != entry->dims[i].node()) builder.rename(shown[i], symbols[i]);
  }

  RandomScope random(stream);
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
  Optimised optimised =
      form_ == Form::simplified ? optimise(std::move(graph)) : as_it_is(std::move(graph));
  for (const int i : optimised.kept_captures)
    entry->captured.push_back(builder.captured()[static_cast<std::size_t>(i)]);
  entry->graph = std::move(optimised.graph);
  ++trace_count_;
  return entry;
}

namespace {

/// Which sizes of arguments are not those of the first trace, and how one trace would do for all.
void warn_of_sizes(const std::string& name, const StaticSizes& first, const TreeLeaves& arguments,
                   const std::vector<std::size_t>& of_any_length, const Graph& graph) {
  DimTable table(arguments);
  signature(arguments, table, of_any_length);
  const StaticSizes now(arguments, table.dims(), of_any_length);
  if (!now.is_like(first)) return;
  const auto warn = [&](const std::string& what, const std::string& dim, std::int64_t size,
                        std::int64_t before) {
    std::cerr
        << "reel: jit \"" << name << "\" traces for the ninth time; " << what << ", " << size
        << ", was " << before
        << " at first, and every size keeps a graph and plans of its own. A dim whose size is "
           "a tensor has one trace for all sizes: Dim(\""
        << dim << "\", scalar(" << size << ")).\n";
  };
  for (std::size_t i = 0; i < now.named.size(); ++i)
    if (const auto& [dim, size] = now.named[i]; size != first.named[i].second)
      warn(str("the size of dim ", dim), dim, size, first.named[i].second);
  // Of plain axes, one of each pair of sizes: several arguments have the same ones.
  std::vector<std::pair<std::int64_t, std::int64_t>> told;
  const auto tensors = static_cast<std::size_t>(
      std::count_if(arguments.begin(), arguments.end(), [](const TreeLeaf& leaf) {
        return leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined();
      }));
  for (std::size_t i = 0; i < now.plain.size(); ++i) {
    const StaticSizes::Axis& at = now.plain[i];
    const std::pair sizes(at.size, first.plain[i].size);
    if (sizes.first == sizes.second || std::count(told.begin(), told.end(), sizes)) continue;
    told.push_back(sizes);
    const auto& names = graph.input_names;  // dims, tensors, the stream of random numbers
    const std::string argument = names.size() > tensors
                                     ? names[names.size() - 1 - tensors + at.tensor]
                                     : std::string("an argument");
    warn(str("the size of axis ", at.axis, " of ", argument), "time", at.size, sizes.second);
  }
}

}  // namespace

void TracedFunction::warn_of_fixed_values(const TreeLeaves& arguments) {
  std::vector<std::string> fixed;
  for (const TreeLeaf& leaf : arguments)
    if (leaf.kind == TreeLeaf::Kind::fixed) fixed.push_back(leaf.fixed);
  if (trace_count_ == 0) first_fixed_ = fixed;
  if (trace_count_ != 8) return;
  for (const auto& [key, entry] : entries_)
    if (entry->number == 0)
      warn_of_sizes(name_, entry->sizes, arguments, entry->of_any_length, *entry->graph);
  if (fixed.size() != first_fixed_.size()) return;
  for (std::size_t i = 0; i < fixed.size(); ++i)
    if (fixed[i] != first_fixed_[i])
      std::cerr << "reel: jit \"" << name_ << "\" traces for the ninth time; its fixed value "
                << fixed[i] << " was " << first_fixed_[i]
                << " at first. Pass what changes from call to call as a tensor: scalar(x).\n";
}

TracedFunction::Traced TracedFunction::operator()(TreeLeaves arguments, const Function& function,
                                                  const std::vector<std::size_t>& of_any_length) {
  DimTable table(arguments);
  const std::string key = signature(arguments, table, of_any_length);
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    warn_of_fixed_values(arguments);
    found = entries_.emplace(key, trace(arguments, function, of_any_length)).first;
  }
  const std::shared_ptr<Entry> entry = last_ = found->second;

  Tensors inputs;
  for (std::size_t i = 0; i < table.dims().size(); ++i) {
    const Dim& dim = table.dims()[i];
    if (entry->guarded[i] && !(dim == entry->dims[i]))
      throw ShapeError(str("jit \"", name_, "\": the function names dim ", entry->dims[i],
                           " itself, but this call's argument has ", dim,
                           one_dim_hint({entry->dims[i]}, {dim})));
    if (!dim.is_undefined()) inputs.push_back(token_of(dim));
  }
  for (TreeLeaf& leaf : arguments)
    if (leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined())
      inputs.push_back(std::move(leaf.tensor));
  inputs.push_back(current_random_stream());
  inputs.insert(inputs.end(), entry->captured.begin(), entry->captured.end());
  const Tensors outputs = run_(entry->graph, std::move(inputs));
  advance_random_stream(entry->random_numbers);

  Traced result{entry->results, entry->prototype};
  for (std::size_t i = 0; i < result.leaves.size(); ++i) {
    if (entry->outputs[i] < 0) continue;
    const Tensor& output = outputs[entry->outputs[i]];
    if (result.leaves[i].kind == TreeLeaf::Kind::dim)
      result.leaves[i].dim = output.dims()[1];
    else
      result.leaves[i].tensor = output;
    if (entry->classes[i] != MemoryClass::values) count_as(output, entry->classes[i]);
  }
  return result;
}

const Graph& TracedFunction::graph() const {
  if (!last_)
    throw ArgumentError(str("jit \"", name_, "\": there is no graph before the first call"));
  return *last_->graph;
}
std::string TracedFunction::explain() const {
  if (!last_)
    throw ArgumentError(
        str("jit \"", name_, "\": there is nothing to explain before the first call"));
  const std::size_t kinds = entries_.size();
  return str("jit \"", name_, "\", recorded for ", kinds, kinds == 1 ? " kind" : " kinds",
             " of arguments; as of the last call:\n", explain_(*last_->graph));
}
const Tensors& TracedFunction::captures() const {
  if (!last_)
    throw ArgumentError(str("jit \"", name_, "\": there are no captures before the first call"));
  return last_->captured;
}

}  // namespace reel
