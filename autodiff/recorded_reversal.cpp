#include "reel/autodiff/recorded_reversal.h"

#include <algorithm>
#include <utility>

#include "reel/autodiff/tape.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/graph/passes/merge_equal.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/replay.h"
#include "reel/core/ops/list/list.h"

namespace reel {
namespace {

thread_local bool are_assumed = false;

class AssumptionScope {
 public:
  explicit AssumptionScope(bool assumed) : before_(std::exchange(are_assumed, assumed)) {}
  ~AssumptionScope() { are_assumed = before_; }
  AssumptionScope(const AssumptionScope&) = delete;
  AssumptionScope& operator=(const AssumptionScope&) = delete;

 private:
  const bool before_;
};

Tensor zeros_of(const Tensor& x) {
  if (x.type().is_list()) return empty_list(x.type());
  return x.type().is_known() ? zeros(x.type()) : zeros_like(x);
}

}  // namespace

RecordedReversal record_reversal(const Graph& forward, const ReversalSpec& spec) {
  RecordedReversal both;
  GraphBuilder builder(forward.name + " reversed", "the gradient of " + forward.name);
  ModeScope scope(builder.scope());
  if (!builder.outer())
    for (const auto& [actual, symbol] : forward.renames) builder.rename(actual, symbol);
  Tensors inputs, targets, cotangents, sources;
  for (const ValueId v : forward.inputs) inputs.push_back(builder.add_input(forward.types[v]));
  RecordingTape tape;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (spec.is_wanted[i]) {
      tape.watch(inputs[i]);
      if (!spec.takes_rows.empty() && spec.takes_rows[i]) tape.watch_rows(inputs[i]);
      sources.push_back(inputs[i]);
      both.wanted.push_back(i);
    }
  DimEnv env = DimEnv::renaming();  // dims of an enclosing graph stay unchanged
  const Tensors outputs = replay(forward, inputs, env);
  both.forward_records = builder.record_count();
  for (const TensorType& type : forward.types)
    for_each_symbol(type, [&](const Dim& dim) {
      if (env.knows(dim)) both.dims.emplace_back(dim, env.resolve(dim));
    });
  // A cotangent has the dims of the output that was just applied again, which may be new.
  for (std::size_t i = 0; i < spec.has_cotangent.size(); ++i)
    if (spec.has_cotangent[i]) {
      both.cotangents.push_back(i);
      targets.push_back(outputs[i]);
      cotangents.push_back(builder.add_input(outputs[i].type()));
    }
  // The last output first, as on the eager tape.
  std::reverse(targets.begin(), targets.end());
  std::reverse(cotangents.begin(), cotangents.end());
  Tensors presences;
  std::vector<TableRows> rows;
  const AssumptionScope scope_of_vjps(spec.assumes_cotangents);
  const Tensors gradients = tape.gradient(targets, cotangents, sources, &presences, &rows);
  // No path, no cotangent: zeros would meet infinite derivatives. A carry always has one.
  const std::vector<std::size_t> asked = std::exchange(both.wanted, {});
  Tensors found, paths, numbers;
  const auto add = [&](std::size_t i, const Tensor& cotangent, const Tensor& path,
                       const Tensor& of_rows) {
    both.wanted.push_back(asked[i]);
    found.push_back(cotangent);
    paths.push_back(path);
    numbers.push_back(of_rows);
  };
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].is_defined())
      add(i, gradients[i], presences[i], {});
    else if (!spec.is_free[asked[i]])
      add(i, zeros_of(sources[i]), {}, {});
    if (rows[i].values.is_defined()) add(i, rows[i].values, {}, rows[i].numbers);
  }
  for (const Tensor& path : paths) {
    both.presences.push_back(path.is_defined() ? static_cast<int>(found.size()) : -1);
    if (path.is_defined()) found.push_back(cast(path, i32));
  }
  for (const Tensor& of : numbers) {
    both.row_numbers.push_back(of.is_defined() ? static_cast<int>(found.size()) : -1);
    if (of.is_defined()) found.push_back(of);
  }
  std::vector<ValueId> forward_outputs, renumbered;
  for (const Tensor& output : outputs) forward_outputs.push_back(builder.value(output));
  const Ref<Graph> recorded = builder.finish(found);
  both.captured = builder.captured();
  // A loop and the loop that its vjp applies again are merged, among the forward records.
  both.graph = merge_equal(*recorded, &renumbered, &both.forward_records);
  for (const ValueId v : forward_outputs) both.forward_outputs.push_back(renumbered[v]);
  return both;
}

bool cotangents_are_assumed() { return are_assumed; }

}  // namespace reel
