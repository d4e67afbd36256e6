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

/// Records a graph again, with its gradients.
class ReversalRecorder {
 public:
  ReversalRecorder(const Graph& forward, const ReversalSpec& spec)
      : forward_(forward),
        spec_(spec),
        builder_(forward.name + " reversed", "the gradient of " + forward.name),
        scope_(builder_.scope()) {
    if (!builder_.outer())
      for (const auto& [actual, symbol] : forward.renames) builder_.rename(actual, symbol);
  }

  RecordedReversal record() {
    Tensors inputs;
    for (const ValueId v : forward_.inputs) inputs.push_back(builder_.add_input(forward_.types[v]));
    RecordingTape tape;
    watch(tape, inputs);
    replay_forward(inputs);
    add_gradients(tape);
    return finish();
  }

 private:
  void watch(RecordingTape& tape, const Tensors& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!spec_.is_wanted[i]) continue;
      tape.watch(inputs[i]);
      if (!spec_.takes_rows.empty() && spec_.takes_rows[i]) tape.watch_rows(inputs[i]);
      sources_.push_back(inputs[i]);
      asked_.push_back(i);
    }
  }

  void replay_forward(const Tensors& inputs) {
    DimEnv env = DimEnv::renaming();  // dims of an enclosing graph stay unchanged
    outputs_ = replay(forward_, inputs, env);
    both_.forward_records = builder_.record_count();
    for (const TensorType& type : forward_.types)
      for_each_symbol(type, [&](const Dim& dim) {
        if (env.knows(dim)) both_.dims.emplace_back(dim, env.resolve(dim));
      });
  }

  void add_gradients(RecordingTape& tape) {
    // A cotangent has the dims of the output that was just applied again, which may be new.
    Tensors targets, cotangents, presences;
    for (std::size_t i = 0; i < spec_.has_cotangent.size(); ++i)
      if (spec_.has_cotangent[i]) {
        both_.cotangents.push_back(i);
        targets.push_back(outputs_[i]);
        cotangents.push_back(builder_.add_input(outputs_[i].type()));
      }
    // The last output first, as on the eager tape.
    std::reverse(targets.begin(), targets.end());
    std::reverse(cotangents.begin(), cotangents.end());
    std::vector<TableRows> rows;
    const AssumptionScope scope(spec_.assumes_cotangents);
    const Tensors gradients = tape.gradient(targets, cotangents, sources_, &presences, &rows);
    // No path, no cotangent: zeros would meet infinite derivatives. A carry always has one.
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].is_defined())
        add(i, gradients[i], presences[i], {});
      else if (!spec_.is_free[asked_[i]])
        add(i, zeros_of(sources_[i]), {}, {});
      if (rows[i].values.is_defined()) add(i, rows[i].values, {}, rows[i].numbers);
    }
    add_paths_and_numbers();
  }

  /// Adds an output: the cotangent of source i. path: true if it has come; undefined if it always
  /// does. of_rows: the numbers of the rows that it has; undefined if it has all.
  void add(std::size_t i, const Tensor& cotangent, const Tensor& path, const Tensor& of_rows) {
    both_.wanted.push_back(asked_[i]);
    found_.push_back(cotangent);
    paths_.push_back(path);
    numbers_.push_back(of_rows);
  }

  void add_paths_and_numbers() {
    for (const Tensor& path : paths_) {
      both_.presences.push_back(path.is_defined() ? static_cast<int>(found_.size()) : -1);
      if (path.is_defined()) found_.push_back(cast(path, i32));
    }
    for (const Tensor& of : numbers_) {
      both_.row_numbers.push_back(of.is_defined() ? static_cast<int>(found_.size()) : -1);
      if (of.is_defined()) found_.push_back(of);
    }
  }

  RecordedReversal finish() {
    std::vector<ValueId> forward_outputs, renumbered;
    for (const Tensor& output : outputs_) forward_outputs.push_back(builder_.value(output));
    const Ref<Graph> recorded = builder_.finish(found_);
    both_.captured = builder_.captured();
    // A loop and the loop that its vjp applies again are merged, among the forward records.
    both_.graph = merge_equal(*recorded, &renumbered, &both_.forward_records);
    for (const ValueId v : forward_outputs) both_.forward_outputs.push_back(renumbered[v]);
    return std::move(both_);
  }

  const Graph& forward_;
  const ReversalSpec& spec_;
  GraphBuilder builder_;
  const ModeScope scope_;
  RecordedReversal both_;
  Tensors sources_;                 ///< wanted inputs
  std::vector<std::size_t> asked_;  ///< their numbers
  Tensors outputs_;                 ///< of the forward graph
  Tensors found_, paths_, numbers_;
};

}  // namespace

RecordedReversal record_reversal(const Graph& forward, const ReversalSpec& spec) {
  return ReversalRecorder(forward, spec).record();
}

bool cotangents_are_assumed() { return are_assumed; }

}  // namespace reel
