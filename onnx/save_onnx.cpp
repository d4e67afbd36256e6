// save_onnx: records a function and writes its graph.
#include "reel/onnx/save_onnx.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "reel/core/base/str.h"
#include "reel/core/graph/passes/inline_checkpointed.h"
#include "reel/core/ops/alignments/alignments.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/runtime/no_memory.h"
#include "reel/frontend/loops/loop_policy.h"
#include "reel/frontend/loops/whole_function.h"
#include "reel/onnx/borders.h"
#include "reel/onnx/external_data.h"
#include "reel/onnx/graph_writer.h"
#include "reel/onnx/node_form.h"
#include "reel/onnx/write_model.h"
#include "reel/onnx/writer_registry.h"
#include "reel/trace/executors/interpreter.h"
#include "reel/trace/passes/cleanup/drop_dead.h"
#include "reel/trace/passes/cleanup/fold_constants.h"

namespace reel {
namespace exported {
namespace {

/// The path of a leaf, such as "argument 0.cell.w": the position of its argument, and the rest.
struct LeafPath {
  std::size_t position = 0;
  std::string rest;
};
/// prefix: "argument" or "result". has_position: the path begins with a position.
LeafPath parse_path(std::string_view path, std::string_view prefix, bool has_position) {
  if (path.starts_with(prefix)) path.remove_prefix(prefix.size());
  if (path.starts_with(' ')) path.remove_prefix(1);
  LeafPath result;
  if (has_position)
    while (!path.empty() && std::isdigit(static_cast<unsigned char>(path[0]))) {
      result.position = result.position * 10 + static_cast<std::size_t>(path[0] - '0');
      path.remove_prefix(1);
    }
  if (path.starts_with('.')) path.remove_prefix(1);
  result.rest = path;
  return result;
}

/// Returns the name of a leaf. letter: of default names: x0, y0.
std::string name_of(const LeafPath& path, const std::vector<std::string>& names, bool is_only,
                    char letter) {
  std::string name;
  if (path.position < names.size())
    name = names[path.position];
  else if (!is_only)
    name = str(letter, path.position);
  if (name.empty() && path.rest.empty()) return std::string(1, letter);
  if (name.empty() || path.rest.empty()) return name + path.rest;
  return str(name, '.', path.rest);
}

/// Writes the graph of a recorded function.
class FunctionWriter {
 public:
  /// inputs: the values of all inputs and captures in the example call.
  FunctionWriter(const Graph& graph, const Tensors& inputs, const detail::FunctionToSave& function,
                 const SaveOnnxOptions& options)
      : graph_(graph),
        inputs_(inputs),
        function_(function),
        options_(options),
        model_(options),
        writer_(model_, nodes_, graph) {}

  imported::Graph write() {
    result_.name = options_.name;
    set_captured_lengths();
    add_arguments();
    name_results();
    add_captures();
    writer_.write_records();
    add_results();
    model_.check();
    for (DrawnInput& drawn : model_.drawn) result_.inputs.push_back(std::move(drawn.input));
    result_.nodes = model_.constants();
    result_.nodes.insert(result_.nodes.end(), std::make_move_iterator(nodes_.begin()),
                         std::make_move_iterator(nodes_.end()));
    return std::move(result_);
  }

 private:
  /// Sets the lengths of ragged dims of captures, which are constants unless an argument has them.
  void set_captured_lengths() {
    for (std::size_t i = graph_.formal_count; i < graph_.inputs.size(); ++i) {
      if (inputs_[i].type().is_list()) continue;  // refused below
      const Dims& dims = writer_.type(graph_.inputs[i]).dims();
      for (std::size_t axis = 0; axis < dims.size(); ++axis)
        if (dims[axis].is_ragged())
          writer_.set_lengths(dims[axis], model_.constant(inputs_[i].dims()[axis].lengths()));
    }
  }

  /// Inputs of the graph: tokens of dims, tensors, then the stream of random numbers.
  void add_arguments() {
    for (std::size_t i = 0; i + 1 < graph_.formal_count; ++i) {
      const std::string& path = graph_.input_names[i];
      if (path.starts_with("argument")) add_argument(graph_.inputs[i], inputs_[i], path);
    }
    for (std::size_t i = 0; i + 1 < graph_.formal_count; ++i)
      if (!graph_.input_names[i].starts_with("argument")) add_dim(graph_.inputs[i]);
    if (options_.draws != OnnxDraws::inputs) return;
    writer_.set(graph_.inputs[graph_.formal_count - 1], model_.add_key({}));
  }

  void add_argument(ValueId value, const Tensor& example, const std::string& path) {
    const LeafPath leaf = parse_path(path, "argument", true);
    const Name name =
        model_.unique(name_of(leaf, options_.arguments, function_.argument_count == 1, 'x'));
    writer_.set(value, name);
    const bool is_parameter =
        std::count(options_.parameters.begin(), options_.parameters.end(), leaf.position) > 0;
    if (is_parameter)
      add_initializer(name, example);
    else
      result_.inputs.push_back(writer_.declared(name, writer_.type(value), true));
  }

  /// Adds an input for the lengths of a dim if no tensor shows its size.
  void add_dim(ValueId token) {
    const Dim& dim = writer_.type(token).dims()[1];
    if (expression_of(dim) || known_size(dim) >= 0) return;
    const auto has_dim = [&](ValueId value) {
      return value != token && contains(writer_.type(value).dims(), dim);
    };
    if (!dim.is_ragged() &&
        std::any_of(graph_.inputs.begin(),
                    graph_.inputs.begin() + static_cast<std::ptrdiff_t>(graph_.formal_count),
                    has_dim))
      return;
    const Name name = model_.unique(dim.name() + "_lengths");
    result_.inputs.push_back(writer_.declared(name, TensorType(i32, dim.length_dims()), true));
    writer_.set_lengths(dim, name);
  }

  void add_captures() {
    for (std::size_t i = graph_.formal_count; i < graph_.inputs.size(); ++i) {
      const ValueId value = graph_.inputs[i];
      const TensorType& type = writer_.type(value);
      if (type.is_list())
        throw OnnxError("save_onnx: the function captures a TensorArray; pass it as an argument");
      if (is_token(type)) {
        const Dim& dim = type.dims()[1];
        if (dim.is_ragged())
          writer_.set_lengths(dim, model_.constant(inputs_[i].dims()[1].lengths()));
        continue;
      }
      const Name name = model_.unique("captured");
      writer_.set(value, name);
      add_initializer(name, inputs_[i]);
    }
  }
  void add_initializer(const Name& name, const Tensor& value) {
    result_.constants.emplace(name, imported::Value::of(value));
  }

  /// Takes the names of the results before nodes do.
  void name_results() {
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      const TensorType& type = writer_.type(graph_.outputs[i]);
      const bool is_tuple = function_.has_tuple_result;
      const LeafPath leaf = parse_path(graph_.output_names[i], "result", is_tuple);
      const bool is_known_dim = is_token(type) && known_size(type.dims()[1]) >= 0;
      result_names_.push_back(
          is_known_dim ? Name() : model_.unique(name_of(leaf, options_.results, !is_tuple, 'y')));
    }
  }

  void add_results() {
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      const ValueId value = graph_.outputs[i];
      const TensorType& type = writer_.type(value);
      const Name& name = result_names_[i];
      if (name.empty()) continue;  // a dim of one size
      try {
        writer_.add_identity(leaving(writer_, value), name);
      } catch (const NotExpressible& error) {
        throw OnnxError(str("save_onnx: result ", name, " ", error.reason));
      }
      result_.outputs.push_back(writer_.declared(name, leaving_type(type), true));
    }
  }

  const Graph& graph_;
  const Tensors& inputs_;
  const detail::FunctionToSave& function_;
  const SaveOnnxOptions& options_;
  ModelWriter model_;
  std::vector<Node> nodes_;
  GraphWriter writer_;
  imported::Graph result_;
  std::vector<Name> result_names_;  ///< by output of the graph; empty for dims of one size
};

/// Returns the graph with calls of checkpointed functions inlined unless they are one node in the
/// op set, and without ops on constants and ops that no result needs: some runtimes fail on them.
GraphRef simplified(const GraphRef& graph, std::int64_t op_set) {
  const auto has_node = [op_set](const Graph& around, const OpRecord& call) {
    return has_own_node(around, call, op_set);
  };
  Ref<Graph> result = drop_dead(*fold_constants(*inline_checkpointed_unless(*graph, has_node)));
  result->input_names = graph->input_names;
  result->output_names = graph->output_names;
  return result;
}

void check_options(const detail::FunctionToSave& function, const SaveOnnxOptions& options) {
  for (const std::size_t position : options.parameters)
    if (position >= function.argument_count)
      throw ArgumentError(str("save_onnx: parameters lists argument ", position,
                              ", but the function has ", function.argument_count));
  if (options.op_set < kFirstOpSet || options.op_set > kLastOpSet)
    throw ArgumentError(str("save_onnx: op_set is ", options.op_set, ", but models are written in ",
                            kFirstOpSet, " to ", kLastOpSet));
  if (options.arguments.size() > function.argument_count)
    throw ArgumentError(str("save_onnx: there are ", options.arguments.size(),
                            " names for arguments, but the function has ",
                            function.argument_count));
}

/// Ops of functions of the frontend exist from here on.
constexpr std::int64_t kFirstOpSetOfFunctions = 23;

/// Returns the model of a recorded function. Throws OnnxError if ONNX cannot express it.
imported::Graph written(const GraphRef& graph, const Tensors& inputs,
                        const detail::FunctionToSave& function, const SaveOnnxOptions& options) {
  const auto attempt = [&](std::int64_t op_set_of_calls) {
    return FunctionWriter(*simplified(graph, op_set_of_calls), inputs, function, options).write();
  };
  if (options.op_set >= kFirstOpSetOfFunctions) {
    try {
      return attempt(options.op_set);
    } catch (const OnnxError&) {
      // A node of a function may need a size or lengths that its ops do not. The model is written
      // anew, so that no half-written node stays. Errors then name ops.
    }
  }
  return attempt(kFirstOpSetOfFunctions - 1);
}

/// Returns the model of a function.
imported::Graph graph_of(detail::FunctionToSave& function, const SaveOnnxOptions& options) {
  check_options(function, options);
  imported::Graph result;
  const auto run = [&](const GraphRef& graph, Tensors&& inputs) {
    result = written(graph, inputs, function, options);
    return interpret(graph, std::move(inputs));
  };
  const auto explain = [](const Graph&, const Graph&) { return std::string(); };
  TracedFunction traced(options.name, run, explain);
  // ONNX has no policies for memory. They change no values.
  const LoopPoliciesOff policies_off;
  // Without an op set that has ops for some of them, all functions are recorded by their ops.
  std::optional<WholeFunctions> whole_functions;
  if (options.op_set >= kFirstOpSetOfFunctions) whole_functions.emplace();
  // ONNX has no ops for alignments.
  const AlignmentOpsOff alignment_ops_off;
  traced(function.type, function.arguments, function.function, function.dynamic);
  return result;
}

/// A file holds less than 2 GiB; this leaves 64 MiB for nodes and their constants.
constexpr std::int64_t kMaxInitializers = (std::int64_t{1} << 31) - (std::int64_t{1} << 26);

std::int64_t bytes_of_initializers(const imported::Graph& graph) {
  std::int64_t bytes = 0;
  for (const auto& [name, value] : graph.constants) bytes += value.tensor.type().bytes();
  return bytes;
}

}  // namespace
}  // namespace exported

std::string detail::bytes_of_function(FunctionToSave function, const SaveOnnxOptions& options) {
  return as_memory_error("save_onnx", [&] {
    const imported::Graph graph = exported::graph_of(function, options);
    if (const std::int64_t bytes = exported::bytes_of_initializers(graph);
        bytes > options.max_file_bytes)
      throw OnnxError(str("save_onnx: parameters and captured tensors take ", bytes,
                          " bytes, more than max_file_bytes, which is ", options.max_file_bytes,
                          "; onnx_bytes returns one file, save_onnx writes a second one for them"));
    return exported::bytes_of_model(graph, options.op_set, nullptr);
  });
}

void detail::save_function(const std::string& path, FunctionToSave function,
                           const SaveOnnxOptions& options) {
  as_memory_error("save_onnx", [&] {
    const imported::Graph graph = exported::graph_of(function, options);
    std::optional<exported::ExternalData> data;
    if (exported::bytes_of_initializers(graph) >
        std::min(options.max_file_bytes, exported::kMaxInitializers))
      data.emplace(path);
    exported::ExternalData* const beside = data ? &*data : nullptr;
    exported::write_model_files(path, exported::bytes_of_model(graph, options.op_set, beside),
                                beside);
  });
}

}  // namespace reel
