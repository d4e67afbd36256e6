#include "reel/core/ops/control/checkpointed.h"

#include <algorithm>
#include <atomic>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops/control/replay.h"
#include "reel/core/ops/loop/joined_dims.h"
#include "reel/core/ops/registry.h"

namespace reel {
namespace {

/// All numbers differ, so that no two applications are merged.
struct AfreshAttrs {
  std::int64_t number;
  template <class F>
  static void fields(F&& f) {
    f("number", &AfreshAttrs::number);
  }
};

}  // namespace

const Op afresh_op{
    .name = "afresh",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
    .kernel = [](KernelArgs& a) { a.out[0] = a.input(0); },
    .storage = OpStorage::any,
    .vjp = [](Vjp& at) { at.add(0, at.cotangent()); },
    .samples =
        [] {
          return OpSamples{
              {{{TensorType(f64, {2, 3})}, {TensorType(f64, {4})}}, make_attrs(AfreshAttrs{0})}};
        },
    .takes_lists = kAll,
    .takes_unranked = true,
};

const Op checkpointed_op{
    .name = "checkpointed",
    .type =
        [](TypeArgs& a) {
          const SubGraph& body = a.attr<CheckpointedAttrs>().body;
          DimEnv env = body.env();
          const Graph& graph = *body.graph;
          for (std::size_t i = 0; i < graph.inputs.size(); ++i)
            env.bind(graph.types[graph.inputs[i]], a.in[i]);
          JoinedDims made(env);
          for (const ValueId v : graph.outputs)
            a.out.push_back(made.of(graph.types[v], graph.types[v]));
        },
    .kernel =
        [](KernelArgs& a) {
          const SubGraph& body = a.attr<CheckpointedAttrs>().body;
          Tensors inputs;
          for (std::size_t i = 0; i < a.in.size(); ++i) inputs.push_back(a.input(i));
          DimEnv env = body.env();
          *a.decided = replay(*body.graph, inputs, env);
        },
    .vjp = checkpointed_vjp,
    .reads_by =
        [](const Attrs* attrs, std::uint32_t) {
          const auto& checkpointed = get<CheckpointedAttrs>(attrs);
          const std::size_t count = checkpointed.body.graph->outputs.size();
          OpReads reads{.inputs = kAll};
          for (std::size_t k = count - static_cast<std::size_t>(checkpointed.kept); k < count; ++k)
            reads.outputs |= 1u << std::min<std::size_t>(k, 31);
          return reads;
        },
    .samples = [] { return OpSamples{}; },
    .kernel_decides_types = true,
    .takes_lists = kAll,
    .takes_unranked = true,
};

Tensor afresh(const Tensor& x, const Tensor& after) {
  static std::atomic<std::int64_t> next{0};
  return bind(afresh_op, {x, after}, make_attrs(AfreshAttrs{next++}));
}

namespace {
const Op* const kCheckpointedOps[] = {&checkpointed_op, &afresh_op};
}
std::span<const Op* const> checkpointed_ops() { return kCheckpointedOps; }

}  // namespace reel
