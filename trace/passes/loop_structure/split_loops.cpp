#include "reel/trace/passes/loop_structure/split_loops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "reel/core/base/str.h"
#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/op/facts.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/loop/loop_builder.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/trace/executors/loop/chunks.h"
#include "reel/trace/passes/analysis/carry_layers.h"
#include "reel/trace/passes/analysis/loop_time.h"
#include "reel/trace/passes/support/remarks.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// Assigns the records and carries of a loop's body to layers, numbered from 0; each layer becomes
/// a loop.
class Layers {
 public:
  explicit Layers(const LoopAttrs& attrs) : attrs_(attrs), body_(*attrs.body.graph) {
    carry_ = layers_of_carries(attrs);
    for (const int layer : carry_) count_ = std::max(count_, layer + 1);
    if (count_ == 1) return;
    find_layers_of_records();
    bring_products_to_what_they_multiply();
  }

  int count() const { return count_; }
  int of_carry(std::size_t i) const { return carry_[i]; }
  int of_record(std::size_t r) const { return record_[r]; }
  /// Returns the layer that makes the value; -1 if every layer has it: slices, captures, constants.
  int of_value(ValueId v) const { return value_[v]; }

 private:
  /// Places records as late as their readers allow, so that few values cross between layers.
  void find_layers_of_records() {
    record_.assign(body_.records.size(), -1);
    value_.assign(body_.types.size(), -1);
    std::vector<int> least(body_.types.size(), 0), wanted(body_.types.size(), count_);
    const auto formals = body_inputs(attrs_);
    const auto terms = body_outputs(attrs_);
    for (std::size_t i = 0; i < carry_.size(); ++i) {
      const ValueId before = formals.carries[i], behind = terms.carries[i];
      value_[before] = least[before] = carry_[i];
      wanted[behind] = std::min(wanted[behind], carry_[i]);
    }
    for (const OpRecord& record : body_.records)
      for (const ValueId out : body_.outputs_of(record))
        for (const ValueId in : body_.inputs_of(record))
          least[out] = std::max(least[out], least[in]);
    for (const auto& leaves : {terms.stacks, terms.sums})
      for (const ValueId v : leaves) wanted[v] = std::min(wanted[v], least[v]);
    for (std::size_t r = body_.records.size(); r-- > 0;) {
      const OpRecord& record = body_.records[r];
      const auto in = body_.inputs_of(record), out = body_.outputs_of(record);
      if (in.empty()) continue;  // constants: every layer makes its own
      int layer = count_ - 1;
      for (const ValueId v : out) layer = std::min(layer, wanted[v]);
      record_[r] = layer;
      for (const ValueId v : out) value_[v] = layer;
      for (const ValueId v : in) wanted[v] = std::min(wanted[v], layer);
    }
  }

  /// Moves a product into the layer that makes its operands if its result is smaller than they are.
  /// Backwards, a layer then multiplies the gradient of its gates itself and passes on the gradient
  /// of its input. Layers have equal work.
  void bring_products_to_what_they_multiply() {
    for (std::size_t r = 0; r < body_.records.size(); ++r) {
      const OpRecord& record = body_.records[r];
      if (!is_product(*record.op) || record_[r] < 0) continue;
      int layer = -1;
      std::int64_t read = 0;
      for (const ValueId v : body_.inputs_of(record)) {
        layer = std::max(layer, value_[v]);
        if (value_[v] >= 0 && body_.types[v].is_known()) read += body_.types[v].bytes();
      }
      const ValueId out = body_.outputs_of(record)[0];
      if (layer < 0 || !body_.types[out].is_known() || body_.types[out].bytes() >= read) continue;
      record_[r] = value_[out] = layer;
    }
  }

  const LoopAttrs& attrs_;
  const Graph& body_;
  std::vector<int> carry_, record_, value_;
  int count_ = 1;
};

/// Builds the loops, one per layer.
class LoopsOfLayers {
 public:
  LoopsOfLayers(Graph& to, const LoopAttrs& attrs, std::span<const ValueId> in,
                std::span<const ValueId> out, const Layers& layers, const Dim& time)
      : to_(to),
        attrs_(attrs),
        body_(*attrs.body.graph),
        in_(in),
        out_(out),
        layers_(layers),
        time_(time),
        env_(body_env(attrs, to.types_of(in))) {}

  /// Returns false if some value cannot be passed from layer to layer.
  bool prepare() {
    if (bears_dims()) return false;
    find_pipelined();
    return std::all_of(handed_on_.begin(), handed_on_.end(),
                       [&](ValueId v) { return can_be_stacked(v); });
  }
  void make() {
    const std::vector<TensorType> cost_types = attrs_.chunking.cost_types.empty()
                                                   ? step_types(attrs_, to_.types_of(in_))
                                                   : attrs_.chunking.cost_types;
    for (int layer = 0; layer < layers_.count(); ++layer) make(layer, cost_types);
  }

 private:
  bool knows(const TensorType& type) const {
    bool result = true;
    for_each_symbol(
        type, [&](const Dim& dim) { result = result && (dim.has_size() || env_.knows(dim)); });
    return result;
  }
  /// Returns true if iterations make dims: a record that mentions one need not read the record that
  /// makes it.
  bool bears_dims() const {
    bool result = false;
    for (const OpRecord& record : body_.records) {
      if (record.attrs)
        record.attrs->each_symbol(
            [&](const Dim& dim) { result = result || !(dim.has_size() || env_.knows(dim)); });
      for (const ValueId v : body_.outputs_of(record)) result = result || !knows(body_.types[v]);
    }
    return result;
  }
  /// Finds the values that a later layer reads.
  void find_pipelined() {
    const auto read = [&](ValueId v, int layer) {
      if (layers_.of_value(v) >= 0 && layers_.of_value(v) < layer &&
          std::find(handed_on_.begin(), handed_on_.end(), v) == handed_on_.end())
        handed_on_.push_back(v);
    };
    for (std::size_t r = 0; r < body_.records.size(); ++r)
      for (const ValueId v : body_.inputs_of(body_.records[r])) read(v, layers_.of_record(r));
    const auto carries = body_outputs(attrs_).carries;
    for (std::size_t i = 0; i < carries.size(); ++i) read(carries[i], layers_.of_carry(i));
  }
  bool can_be_stacked(ValueId v) {
    if (!knows(body_.types[v])) return false;
    const TensorType step = env_.resolve(body_.types[v]);
    if (step.is_list() || (step.rank() > 0 && step.is_named() != time_.is_named())) return false;
    return std::none_of(step.dims().begin(), step.dims().end(), [&](const Dim& dim) {
      return (dim.is_named() && dim == time_) || contains(dim.length_dims(), time_) ||
             is_unknown(dim);
    });
  }
  /// Returns the layer that makes the term of a stack or sum.
  int layer_of_term(ValueId v) const { return std::max(layers_.of_value(v), 0); }

  void make(int layer, const std::vector<TensorType>& cost_types) {
    LoopBuilder<ValueId> next(attrs_);
    std::vector<ValueId> outputs;
    add_inputs(next, layer, outputs);
    add_stacks(next, layer, outputs);
    const auto results = results_of(attrs_, out_);
    const auto sums = body_outputs(attrs_).sums;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (layer_of_term(sums[i]) != layer) continue;
      next.add_sum(sums[i], {});
      outputs.push_back(results.sums[i]);
    }
    const bool is_last = layer + 1 == layers_.count();
    outputs.push_back(is_last ? results.trips : to_.add_value(TensorType(i32)));
    LoopRemarks remarks(attrs_.debug.remarks);
    remarks.say(LoopRemark::Kind::apart,
                str("layer ", layer + 1, " of ", layers_.count(), " of ", attrs_.name));
    next.attrs().debug.remarks = remarks.finish();
    next.attrs().debug.origin = {};
    next.attrs().chunking.cost_types = cost_types;
    DimEnv names = env_;  // including symbols that inputs of other layers bind
    next.attrs().body = make_sub_graph(body_of(next, layer), names);
    to_.append(loop_op, make_attrs(std::move(next.attrs())), next.operands(), outputs);
  }
  /// Adds the layer's carries, and all slices and captures. Entries do not finish early, so these
  /// have FinishedFill::running; slices tell which are recomputed.
  void add_inputs(LoopBuilder<ValueId>& next, int layer, std::vector<ValueId>& outputs) const {
    const auto operands = operands_of(attrs_, in_);
    const auto results = results_of(attrs_, out_);
    const auto formals = body_inputs(attrs_);
    const auto terms = body_outputs(attrs_);
    next.set_trip_operands(operands);
    for (std::size_t i = 0; i < formals.carries.size(); ++i) {
      if (layers_.of_carry(i) != layer) continue;
      next.add_carry(formals.carries[i], terms.carries[i], operands.carries[i], {});
      outputs.push_back(results.carries[i]);
    }
    for (std::size_t i = 0; i < formals.slices.size(); ++i)
      next.add_slice(formals.slices[i], operands.slices[i], attrs_.slices[i]);
    for (const auto& [value, stacked] : stacks_)  // of earlier layers
      next.add_slice(value, stacked, {});
    for (const ValueId v : operands.captures) next.add_capture(v, {});
    for (std::size_t i = 0; i < formals.captures.size(); ++i)
      next.read_in_body(static_cast<std::size_t>(attrs_.body_captures[i]), formals.captures[i]);
  }
  /// Adds the layer's stacks, and those that later layers slice.
  void add_stacks(LoopBuilder<ValueId>& next, int layer, std::vector<ValueId>& outputs) {
    const auto stack = [&](ValueId inside, ValueId outside, LoopStack leaf) {
      leaf.dim = time_;
      leaf.adds_finished = false;
      next.add_stack(inside, leaf);
      outputs.push_back(outside);
    };
    const auto results = results_of(attrs_, out_).stacks;
    const auto terms = body_outputs(attrs_).stacks;
    for (std::size_t j = 0; j < terms.size(); ++j) {
      if (layer_of_term(terms[j]) != layer) continue;
      stack(terms[j], results[j], attrs_.stacks[j]);
      if (layers_.of_value(terms[j]) == layer) stacks_.emplace(terms[j], results[j]);
    }
    for (const ValueId v : handed_on_) {
      if (layers_.of_value(v) != layer || stacks_.count(v)) continue;
      Dims dims{time_};
      const TensorType step = env_.resolve(body_.types[v]);
      dims.insert(dims.end(), step.dims().begin(), step.dims().end());
      stack(v, stacks_[v] = to_.add_value(step.with(dims)), {});
    }
  }
  /// Returns the layer's records, with the inputs and outputs that `next` has.
  Ref<Graph> body_of(const LoopBuilder<ValueId>& next, int layer) const {
    GraphRewriter body(body_);
    for (std::size_t r = 0; r < body_.records.size(); ++r)
      if (layers_.of_record(r) == layer || layers_.of_record(r) < 0) body.keep(body_.records[r]);
    next.connect_body(body.to(), body_inputs(attrs_).position);
    return body.finish();
  }

  Graph& to_;
  const LoopAttrs& attrs_;
  const Graph& body_;
  std::span<const ValueId> in_, out_;
  const Layers& layers_;
  Dim time_;
  DimEnv env_;
  std::vector<ValueId> handed_on_;
  std::map<ValueId, ValueId> stacks_;  ///< body value -> stack outside
};

/// Returns attributes with which the loop's chunks are split, not the loop itself.
AttrsRef in_its_chunks(const LoopAttrs& attrs) {
  LoopAttrs next = attrs;
  next.chunking.is_pipelined = true;
  return make_attrs(std::move(next));
}

/// Appends to `to` the loops of the layers, or, under a policy, the loop marked for a split of its
/// chunks. Returns false, and appends nothing, if the loop cannot be split.
bool split(Graph& to, const OpRecord& record, std::span<const ValueId> in,
           std::span<const ValueId> out) {
  const auto& attrs = get<LoopAttrs>(record.attrs.get());
  const std::vector<TensorType> types = to.types_of(in);
  if (attrs.carries.size() < 2 || has_effects(record) || attrs.has_entries()) return false;
  for (const TensorType& carry : operands_of(attrs, types).carries)
    if (carry.is_list()) return false;
  for (const ValueId sum : results_of(attrs, out).sums)
    if (to.types[sum].is_list()) return false;
  const std::optional<Dim> time = divisible_loop_time_of(attrs, types);
  if (!time) return false;
  const Layers layers(attrs);
  if (layers.count() == 1) return false;
  LoopsOfLayers loops(to, attrs, in, out, layers, *time);
  if (!loops.prepare()) return false;
  // Checkpoints cover all layers, and one loop at a time locks recomputed residuals.
  if (attrs.keeps_few_steps() || attrs.has_windows())
    to.append(record, in_its_chunks(attrs), in, out);
  else
    loops.make();
  return true;
}

}  // namespace

Ref<Graph> split_loops(const Graph& graph) {
  const auto has_parts = [](const OpRecord& record) {
    return record.op == &cond_op ||
           (record.op == &loop_op && get<LoopAttrs>(record.attrs.get()).chunking.over_chunks);
  };
  GraphRewriter to(graph);
  for (const OpRecord& record : graph.records) {
    const InheritProvenance scope(record);
    const auto in = graph.inputs_of(record), out = graph.outputs_of(record);
    if (record.op == &loop_op && split(to.to(), record, in, out)) continue;
    to.keep(record, has_parts(record) ? with_sub_graphs(record, split_loops) : record.attrs);
  }
  return to.finish();
}

}  // namespace reel
