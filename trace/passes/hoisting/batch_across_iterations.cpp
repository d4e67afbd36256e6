#include "reel/trace/passes/hoisting/batch_across_iterations.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/loop/entries.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/loop/loop_builder.h"
#include "reel/core/ops/products/products.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/trace/passes/analysis/loop_time.h"
#include "reel/trace/passes/hoisting/loop_fission.h"
#include "reel/trace/passes/hoisting/loop_motion_uses.h"
#include "reel/trace/passes/support/loop_leaves.h"
#include "reel/trace/passes/support/remarks.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// Splits one loop into the ops before it, the remaining loop, and the ops behind it.
class LoopSplitter {
 public:
  LoopSplitter(GraphRewriter& to, const LoopAttrs& attrs, std::vector<ValueId> in,
               std::span<const ValueId> out, LoopFission& split, bool is_in_steps)
      : to_(to),
        attrs_(attrs),
        body_(*attrs.body.graph),
        in_(std::move(in)),
        out_(out.begin(), out.end()),
        split_(split),
        is_in_steps_(is_in_steps),
        needed_(attrs, split),
        rest_(attrs),
        is_read_(body_.types.size()) {
    const auto formals = body_inputs(attrs);
    for (std::size_t i = 0; i < formals.slices.size(); ++i)
      if (split.placement(formals.slices[i]) == Placement::batched)
        outside_[formals.slices[i]] = operands_of(attrs, in_).slices[i];
    for (std::size_t i = 0; i < formals.captures.size(); ++i)
      outside_[formals.captures[i]] = body_capture(attrs, in_, i);
  }

  void run() {
    for (std::size_t r = 0; r < body_.records.size(); ++r) {
      const OpRecord& record = body_.records[r];
      const bool is_constant =
          body_.inputs_of(record).empty() &&
          split_.placement(body_.outputs_of(record)[0]) == Placement::invariant;
      if ((split_.is_hoisted(r) && needed_.results_of(record)) || is_constant) put(record);
    }
    make_loop();
    for (std::size_t r = 0; r < body_.records.size(); ++r)
      if (split_.is_sunk(r) && needed_.results_of(body_.records[r])) put(body_.records[r]);
    for (const auto& [output, term, is_raw] : stacks_outside_)
      to_.replace(output, is_raw ? outside_.at(term) : with_zeros(term));
    for (const auto& [output, term] : sums_outside_)
      to_.replace(output, sum_across_iterations(term));
  }

 private:
  bool is_many(ValueId v) const { return split_.placement(v) != Placement::invariant; }
  std::vector<std::uint8_t> are_many(const OpRecord& record) const {
    std::vector<std::uint8_t> result;
    for (const ValueId v : body_.inputs_of(record)) result.push_back(is_many(v));
    return result;
  }

  std::vector<ValueId> put_graph(const OpRecord& record, bool is_summed) {
    const InheritProvenance scope(record);
    std::vector<TensorType> types;
    std::vector<ValueId> inputs;
    for (const ValueId v : body_.inputs_of(record)) {
      inputs.push_back(outside_.at(v));
      types.push_back(to_.to().types[inputs.back()]);
    }
    const RecordedGraph part = split_.record_part(types, [&](const Tensors& given) {
      return split_.apply(record, is_summed ? without_finished(record, given) : given,
                          are_many(record), is_summed);
    });
    return to_.inline_graph(*part.graph, inputs);
  }
  /// Returns true if the sum over time steps and entries is one product that skips padding,
  /// whatever values finished entries have there. Returns false inside another loop, which may
  /// later turn the sum into a product over its own iterations: that product would read the
  /// padding.
  bool leaves_out_padding(const OpRecord& record, const Tensors& given) const {
    const auto in = body_.inputs_of(record);
    if (record.op != &dot_op || is_in_steps_ || !is_many(in[0]) || !is_many(in[1])) return false;
    return counts_no_padding(summed_across_iterations(get<DotAttrs>(record.attrs.get())),
                             given[0].type(), given[1].type());
  }
  /// Zeroes the padding of operands, so that finished entries add nothing to a sum. Entries without
  /// a time step add nothing either, even if loop-invariant values computed for them are NaN.
  Tensors without_finished(const OpRecord& record, Tensors given) const {
    const auto in = body_.inputs_of(record);
    if (leaves_out_padding(record, given)) return given;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (!is_many(in[i]))
        given[i] = without_idle(in[i], given[i]);
      else if (split_.has_own_rows(in[i]) && !is_zero_if_finished_.count(in[i]))
        given[i] = mask_padding(given[i]);
    return given;
  }
  /// Returns x, computed as value v, with zeros for entries without a time step. No iteration of
  /// such an entry runs, so v is defined for it only outside the loop, where it may be 0/0.
  Tensor without_idle(ValueId v, const Tensor& x) const {
    return split_.has_own_rows(v) ? zero_finished(x, split_.time().lengths() > 0) : x;
  }
  void put(const OpRecord& record) {
    const std::vector<ValueId> made = put_graph(record, false);
    const auto out = body_.outputs_of(record);
    for (std::size_t i = 0; i < out.size(); ++i) outside_[out[i]] = made[i];
  }

  /// A stack has zeros for finished entries.
  ValueId with_zeros(ValueId term) {
    if (!split_.has_own_rows(term) || is_zero_if_finished_.count(term)) return outside_.at(term);
    const RecordedGraph part =
        split_.record_part({split_.outside(term, true)},
                           [&](const Tensors& given) { return Tensors{mask_padding(given[0])}; });
    return to_.inline_graph(*part.graph, std::array{outside_.at(term)})[0];
  }

  ValueId sum_across_iterations(ValueId term) {
    if (const auto known = sums_.find(term); known != sums_.end()) return known->second;
    const ValueId sum = put_sum(term);
    sums_.emplace(term, sum);
    return sum;
  }
  ValueId put_sum(ValueId term) {
    if (const OpRecord* const maker = split_.leaving_maker(term)) {
      if (split_.sums_come_first(*maker)) return apply_to_sums(*maker);
      if (maker->op->gains_from_batching) return put_graph(*maker, true)[0];
    }
    const RecordedGraph part =
        split_.record_part({split_.outside(term, true)},
                           [&](const Tensors& given) { return Tensors{sum(given[0], 0)}; });
    return to_.inline_graph(*part.graph, std::array{outside_.at(term)})[0];
  }

  ValueId apply_to_sums(const OpRecord& record) {
    const InheritProvenance scope(record);
    std::vector<ValueId> inputs;
    std::vector<TensorType> types;
    for (const ValueId v : body_.inputs_of(record)) {
      inputs.push_back(is_many(v) ? sum_across_iterations(v) : outside_.at(v));
      types.push_back(to_.to().types[inputs.back()]);
    }
    const std::vector<std::uint8_t> once(inputs.size(), 0);
    const bool scales = record.op == &mul_op || record.op == &div_op,
               may_turn_signs = scales || record.op == &neg_op;
    const auto in = body_.inputs_of(record);
    const RecordedGraph part = split_.record_part(types, [&](const Tensors& given) {
      Tensors made = split_.apply(record, given, once, false);
      for (std::size_t i = 0; scales && i < in.size(); ++i)
        if (!is_many(in[i])) made[0] = without_idle(in[i], made[0]);
      // A sum over iterations starts at +0 and is never -0.
      return may_turn_signs ? Tensors{made[0] + 0.0} : made;
    });
    return to_.inline_graph(*part.graph, inputs)[0];
  }

  // ---- The remaining loop: rest_, results_ ------------------------------------------------------

  /// Builds the remaining loop. It takes slices of hoisted values, and gives the values that sunk
  /// ops read as stacks and sums.
  void make_loop() {
    GraphRewriter body(body_);
    for (std::size_t r = 0; r < body_.records.size(); ++r) {
      const OpRecord& record = body_.records[r];
      if (split_.is_sunk(r) || split_.is_hoisted(r)) continue;
      body.keep(record);
      for (const ValueId v : body_.inputs_of(record)) is_read_[v] = 1;
    }
    keep_inputs();
    keep_stacks();
    stack_for_sunk();
    keep_sums();
    sum_for_outside();
    results_.push_back(results_of(attrs_, out_).trips);
    take_hoisted();
    rest_.connect_body(body.to(), body_inputs(attrs_).position);
    LoopAttrs& next = rest_.attrs();
    next.cond_captures = attrs_.cond_captures;  // captures keep their indices
    DimEnv names = attrs_.body.env();
    next.body = make_sub_graph(body.finish(), names);
    to_.to().append(loop_op, make_attrs(std::move(next)), rest_.operands(), results_);
  }

  /// Keeps all inputs of the body, and all carries.
  void keep_inputs() {
    const auto given = operands_of(attrs_, in_);
    const auto formals = body_inputs(attrs_);
    if (given.bound) rest_.set_bound(*given.bound);
    if (given.lengths) rest_.set_lengths(*given.lengths);
    if (given.chunk) rest_.set_chunk(*given.chunk);
    for (std::size_t i = 0; i < formals.carries.size(); ++i) {
      const ValueId next = body_outputs(attrs_).carries[i];
      rest_.add_carry(formals.carries[i], next, given.carries[i], attrs_.carries[i]);
      results_.push_back(results_of(attrs_, out_).carries[i]);
      is_read_[next] = 1;
    }
    for (std::size_t i = 0; i < formals.slices.size(); ++i)
      rest_.add_slice(formals.slices[i], given.slices[i], attrs_.slices[i]);
    for (std::size_t i = 0; i < given.captures.size(); ++i)
      rest_.add_capture(given.captures[i], attrs_.captures[i]);
    for (std::size_t i = 0; i < formals.captures.size(); ++i)
      rest_.read_in_body(static_cast<std::size_t>(attrs_.body_captures[i]), formals.captures[i]);
  }

  void add_stack(ValueId term, ValueId result, const LoopStack& stack) {
    rest_.add_stack(term, stack);
    results_.push_back(result);
    is_read_[term] = 1;
  }
  void add_sum(ValueId term, ValueId result, LoopSum sum) {
    rest_.add_sum(term, sum);
    results_.push_back(result);
    is_read_[term] = 1;
  }

  void keep_stacks() {
    for (std::size_t i = 0; i < attrs_.stacks.size(); ++i) {
      const LoopStack& stack = attrs_.stacks[i];
      const ValueId term = body_outputs(attrs_).stacks[i], to = results_of(attrs_, out_).stacks[i];
      if (needed_.makes(stack, term)) {
        stacks_outside_.push_back({to, term, stack.is_raw()});
        continue;
      }
      add_stack(term, to, stack);
      if (stack.is_list) continue;
      stacked_.emplace(term, to);
      if (!stack.is_raw()) is_zero_if_finished_.insert(term);
    }
  }
  /// Stacks the values that sunk records read.
  void stack_for_sunk() {
    for (std::size_t r = 0; r < body_.records.size(); ++r) {
      if (!split_.is_sunk(r)) continue;
      for (const ValueId v : body_.inputs_of(body_.records[r])) {
        if (needed_.leaves(v) || split_.placement(v) != Placement::in_loop || !needed_.values_of(v))
          continue;
        auto [it, is_new] = stacked_.try_emplace(v, 0);
        if (is_new) {
          const TensorType type = split_.outside(v, true);
          it->second = to_.to().add_value(type);
          add_stack(v, it->second, {.dim = type.dims()[0]});
          is_zero_if_finished_.insert(v);
        }
        outside_[v] = it->second;
      }
    }
  }

  void keep_sums() {
    for (std::size_t i = 0; i < attrs_.sums.size(); ++i) {
      const ValueId term = body_outputs(attrs_).sums[i], to = results_of(attrs_, out_).sums[i];
      if (needed_.makes(attrs_.sums[i], term))
        sums_outside_.emplace_back(to, term);
      else
        add_sum(term, to, attrs_.sums[i]);
    }
  }
  /// Adds up the values of the loop if their sums are needed outside.
  void sum_for_outside() {
    for (ValueId v = 0; v < body_.types.size(); ++v) {
      if (!needed_.sum_of(v) || needed_.leaves(v) || split_.placement(v) != Placement::in_loop)
        continue;
      sums_[v] = to_.to().add_value(split_.outside(v, false));
      add_sum(v, sums_[v], {});
    }
  }

  /// Takes the hoisted values that the remaining body reads as slices and captures.
  void take_hoisted() {
    for (std::size_t r = 0; r < body_.records.size(); ++r) {
      if (!split_.is_hoisted(r)) continue;
      for (const ValueId v : body_.outputs_of(body_.records[r])) {
        if (!is_read_[v]) continue;
        const FinishedFill fill = split_.fill_of_hoisted(v);
        if (split_.placement(v) == Placement::batched)
          rest_.add_slice(v, outside_.at(v), {.fill = fill});
        else
          rest_.read_in_body(rest_.add_capture(outside_.at(v), {fill}), v);
      }
    }
  }

  GraphRewriter& to_;
  const LoopAttrs& attrs_;
  const Graph& body_;
  std::vector<ValueId> in_, out_;
  LoopFission& split_;
  bool is_in_steps_;  ///< in the body of a loop that may be split as well
  const LoopMotionUses needed_;
  LoopBuilder<ValueId> rest_;
  std::vector<ValueId> results_;
  std::vector<std::uint8_t> is_read_;      ///< by value: the remaining body reads or returns it
  std::map<ValueId, ValueId> stacked_;     ///< body value -> the remaining loop's stack of it
  std::map<ValueId, ValueId> sums_;        ///< body value -> its sum over iterations
  std::set<ValueId> is_zero_if_finished_;  ///< body values stacked with zeros for finished entries
  std::map<ValueId, ValueId> outside_;     ///< body value -> its value outside the loop
  struct StackOutside {
    ValueId output, term;
    bool is_raw;
  };
  std::vector<StackOutside> stacks_outside_;
  std::vector<std::pair<ValueId, ValueId>> sums_outside_;  ///< output, term
};

/// is_in_steps: the graph is part of the body of a loop that may be split afterwards.
Ref<Graph> batched(const Graph& graph, const DimChanges& renames, LoopFission::Leaves leaves,
                   Packs packs, bool is_in_steps) {
  GraphRewriter to(graph);
  for (const OpRecord& record : graph.records) {
    const InheritProvenance scope(record);
    const std::vector<ValueId> in = to.inputs_of(record);
    if (record.op != &loop_op) {
      to.keep(record, with_all_sub_graphs(record, [&](const Graph& branch) {
                return batched(branch, renames, leaves, packs, is_in_steps);
              }));
      continue;
    }
    LoopAttrs attrs = get<LoopAttrs>(record.attrs.get());
    DimEnv names = attrs.body.env();
    attrs.body = make_sub_graph(
        batched(*attrs.body.graph, renames, leaves, packs, !attrs.chunking.over_chunks), names);
    if (attrs.cond) {
      DimEnv in_cond = attrs.cond.env();
      attrs.cond =
          make_sub_graph(batched(*attrs.cond.graph, renames, leaves, packs, true), in_cond);
    }
    const std::vector<TensorType> types = to.to().types_of(in);
    if (attrs.chunking.over_chunks) {  // the loop inside has been split
      to.keep(record, make_attrs(std::move(attrs)), in);
      continue;
    }
    LoopRemarks remarks(attrs.debug.remarks);
    std::string why;
    if (const std::optional<Dim> time = loop_time_of(attrs, types, why)) {
      LoopFission split(attrs, types, *time, renames, leaves, packs);
      split.write_remarks(remarks);
      if (split.changes_anything()) {
        attrs.debug.remarks = remarks.finish();
        LoopSplitter(to, attrs, in, graph.outputs_of(record), split, is_in_steps).run();
        continue;
      }
    } else if (leaves == LoopFission::Leaves::all) {
      remarks.say(LoopRemark::Kind::stays,
                  str(remarks.has(LoopRemark::Kind::hoisted) ? "all other ops" : "all ops",
                      ", because ", why));
    }
    attrs.debug.remarks = remarks.finish();
    to.keep(record, make_attrs(std::move(attrs)), in);
  }
  return to.finish();
}

}  // namespace

Ref<Graph> batch_across_iterations(const Graph& graph, Packs packs) {
  return batched(graph, graph.renames, LoopFission::Leaves::all, packs, false);
}

Ref<Graph> hoist_once(const Graph& graph) {
  // Ops computed once keep their own summation order, so packing does not matter.
  return batched(graph, graph.renames, LoopFission::Leaves::once, Packs::none, false);
}

}  // namespace reel
