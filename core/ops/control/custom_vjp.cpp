#include "reel/core/ops/control/custom_vjp.h"

#include <algorithm>
#include <memory>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/custom_vjp_parts.h"
#include "reel/core/ops/control/replay.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/registry.h"
#include "reel/core/runtime/random.h"

namespace reel {
namespace {

/// Inputs of the op: the values that `backward` reads (residuals, then in a trace its captures),
/// the arguments, the results.
struct CustomVjpAttrs {
  std::size_t residuals = 0, captures = 0, arguments = 0;
  SubGraph graph;  // in a trace: takes residuals, cotangents and captures
  std::shared_ptr<const CustomBackward> function;  // in eager mode
  std::vector<int> given;      // in a trace: indices of arguments with a cotangent from the graph
  bool reads_results = false;  // results of unknown rank: zeros as their cotangents need sizes
  std::size_t read() const { return residuals + captures; }
  template <class F>
  static void fields(F&& f) {
    f("residuals", &CustomVjpAttrs::residuals);
    f("captures", &CustomVjpAttrs::captures);
    f("arguments", &CustomVjpAttrs::arguments);
    f("given", &CustomVjpAttrs::given);
    f("graph", &CustomVjpAttrs::graph);
    f("reads_results", &CustomVjpAttrs::reads_results);
  }
};

Tensors run_backward(Vjp& at, const CustomVjpAttrs& attrs) {
  Tensors residuals, cotangents;
  for (std::size_t i = 0; i < attrs.residuals; ++i) residuals.push_back(at.input(i));
  for (std::size_t i = 0; i < at.output_count(); ++i) {
    Tensor cotangent = at.cotangent(i);
    if (is_unranked(cotangent))
      cotangent = list_add(std::move(cotangent), list_zeros_like(at.output(i)));
    cotangents.push_back(std::move(cotangent));
  }
  if (attrs.function) return (*attrs.function)(residuals, cotangents);
  Tensors inputs = std::move(residuals);
  inputs.insert(inputs.end(), cotangents.begin(), cotangents.end());
  for (std::size_t i = 0; i < attrs.captures; ++i) inputs.push_back(at.input(attrs.residuals + i));
  DimEnv env = attrs.graph.env();
  const Tensors given = replay(*attrs.graph.graph, inputs, env);
  Tensors gradients(attrs.arguments);
  for (std::size_t k = 0; k < given.size(); ++k)
    gradients[static_cast<std::size_t>(attrs.given[k])] = given[k];
  return gradients;
}

const Op custom_vjp_op{
    .name = "custom_vjp",
    .type =
        [](TypeArgs& a) {
          const auto& attrs = a.attr<CustomVjpAttrs>();
          for (std::size_t i = attrs.read() + attrs.arguments; i < a.in.size(); ++i)
            a.out.push_back(a.in[i]);
        },
    .kernel =
        [](KernelArgs& a) {
          const auto& attrs = a.attr<CustomVjpAttrs>();
          ModeScope plain({});
          for (std::size_t i = 0; i < a.out.size(); ++i)
            a.out[i] = identity(a.input(attrs.read() + attrs.arguments + i));
        },
    .storage = OpStorage::any,
    .vjp =
        [](Vjp& at) {
          const auto& attrs = at.attr<CustomVjpAttrs>();
          const Tensors gradients = run_backward(at, attrs);
          for (std::size_t i = 0; i < attrs.arguments; ++i)
            if (gradients[i].is_defined()) at.add(attrs.read() + i, gradients[i]);
        },
    .reads_by =
        [](const Attrs* attrs, std::uint32_t) {
          const auto& custom = get<CustomVjpAttrs>(attrs);
          const std::size_t read = custom.read();
          return OpReads{.inputs = read < 32 ? (std::uint32_t{1} << read) - 1 : kAll,
                         .outputs = custom.reads_results ? kAll : 0};
        },
    .samples = [] { return OpSamples{}; },
    .takes_lists = kAll,
    .takes_unranked = true,
};

}  // namespace

Tensors with_custom_vjp(const Tensors& arguments, const Tensors& results, const Tensors& residuals,
                        const CustomBackward& backward) {
  // In eager mode `backward` runs later, if at all, and in a trace here. The scope gives it the
  // same draws and loops in both modes, and leaves the draws behind this place unchanged.
  RandomScope random;
  CustomVjpAttrs attrs;
  attrs.residuals = residuals.size();
  attrs.arguments = arguments.size();
  attrs.reads_results = std::ranges::any_of(results, is_unranked);
  Tensors inputs = residuals;
  if (is_tracing()) {
    std::vector<TensorType> types;  // as in the trace: a captured tensor is not part of it yet
    for (const Tensors* given : {&residuals, &results})
      for (const Tensor& x : *given) types.push_back(x.type().with(x.type().dims()));
    const RecordedGraph recorded = record_graph("custom_vjp", types, [&](const Tensors& given) {
      random.begin(0);
      const auto cotangents = given.begin() + static_cast<std::ptrdiff_t>(residuals.size());
      Tensors gradients =
          backward(Tensors(given.begin(), cotangents), Tensors(cotangents, given.end()));
      Tensors outputs;
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (!gradients[i].is_defined()) continue;
        attrs.given.push_back(static_cast<int>(i));
        outputs.push_back(std::move(gradients[i]));
      }
      return outputs;
    });
    attrs.graph = make_sub_graph(recorded.graph);
    attrs.captures = recorded.captured.size();
    inputs.insert(inputs.end(), recorded.captured.begin(), recorded.captured.end());
  } else {
    random.begin(0);
    attrs.function = std::make_shared<const CustomBackward>(
        !thread_mode.tape ? backward
                          : [backward, stream = current_random_stream()](
                                const Tensors& residuals, const Tensors& cotangents) {
                              RandomScope scope(stream);
                              return backward(residuals, cotangents);
                            });
  }
  inputs.insert(inputs.end(), arguments.begin(), arguments.end());
  inputs.insert(inputs.end(), results.begin(), results.end());
  return bind_all(custom_vjp_op, inputs, make_attrs(std::move(attrs)));
}

bool is_custom_vjp(const Op& op) { return &op == &custom_vjp_op; }

CustomVjpParts custom_vjp_parts(const AttrsRef& ref) {
  const CustomVjpAttrs& attrs = get<CustomVjpAttrs>(ref.get());
  return {attrs.residuals, attrs.captures, attrs.arguments, attrs.given, attrs.graph};
}

namespace {
const Op* const kCustomOps[] = {&custom_vjp_op};
}
std::span<const Op* const> custom_ops() { return kCustomOps; }

}  // namespace reel
