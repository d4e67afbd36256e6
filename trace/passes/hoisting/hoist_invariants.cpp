#include "reel/trace/passes/hoisting/hoist_invariants.h"

#include <algorithm>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/op/facts.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/trace/passes/analysis/filled_padding.h"
#include "reel/trace/passes/support/grows_large.h"
#include "reel/trace/passes/support/loop_leaves.h"
#include "reel/trace/passes/support/remarks.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// Finds the records of a loop's body that can be hoisted, along with the constants that they read.
class Hoist {
 public:
  Hoist(const LoopAttrs& attrs, bool takes_all) : attrs_(attrs), body_(*attrs.body.graph) {
    is_outside_.assign(body_.types.size(), 0);
    is_constant_.assign(body_.types.size(), 0);
    const auto captures = body_inputs(attrs).captures;
    for (std::size_t i = 0; i < captures.size(); ++i)
      is_outside_[captures[i]] =
          !attrs.has_entries() || fill_of(attrs, {LeafKind::capture, i}) == FinishedFill::running;
    takes_all = takes_all && !attrs.has_entries();
    has_filled_padding_ = find_filled_padding(attrs);
    moves_.assign(body_.records.size(), 0);
    for (std::size_t r = 0; r < body_.records.size(); ++r) {
      const OpRecord& record = body_.records[r];
      const auto in = body_.inputs_of(record), out = body_.outputs_of(record);
      if (record.op->has_effect || body_.schedule().attrs_have_symbols[r]) continue;
      if (in.empty() && out.size() == 1 && !record.op->kernel_decides_types)
        is_constant_[out[0]] = 1;
      moves_[r] =
          (takes_all ? !fails_for_values(*record.op, record.attrs.get()) : record.op->pointwise) &&
          !record.op->kernel_decides_types && out.size() == 1 &&
          std::any_of(in.begin(), in.end(), [&](ValueId v) { return is_outside_[v]; }) &&
          std::all_of(in.begin(), in.end(),
                      [&](ValueId v) { return is_outside_[v] || is_constant_[v]; }) &&
          !grows_large(body_.types[out[0]], body_.types_of(in));
      if (moves_[r]) is_outside_[out[0]] = 1;
    }
  }

  bool any() const { return std::count(moves_.begin(), moves_.end(), 1) != 0; }

  /// Appends the hoisted records to `outside` and their results to `inputs`, the loop's inputs.
  /// Returns the remaining loop.
  LoopAttrs apply(GraphRewriter& outside, std::vector<ValueId>& inputs) const {
    DimEnv names = body_env(attrs_, outside.to().types_of(inputs));
    std::vector<ValueId> place(body_.types.size(), kNoValue);
    const auto captures = body_inputs(attrs_).captures;
    for (std::size_t i = 0; i < captures.size(); ++i)
      place[captures[i]] = body_capture(attrs_, inputs, i);
    LoopAttrs next = attrs_;
    LoopRemarks remarks(attrs_.debug.remarks);
    if (!next.debug.origin) next.debug.origin = attrs_.body.graph;
    GraphRewriter body(body_);
    const auto emit = [&](const OpRecord& record) {
      std::vector<ValueId> in, out;
      for (const ValueId v : body_.inputs_of(record)) in.push_back(place[v]);
      const ValueId made = body_.outputs_of(record)[0];
      out.push_back(place[made] = outside.to().add_value(names.resolve(body_.types[made])));
      outside.keep(record, record.attrs, in, out);
    };
    std::vector<const OpRecord*> constants(body_.types.size(), nullptr);
    for (std::size_t r = 0; r < body_.records.size(); ++r) {
      const OpRecord& record = body_.records[r];
      const auto in = body_.inputs_of(record), out = body_.outputs_of(record);
      if (!moves_[r]) {
        if (!out.empty() && is_constant_[out[0]]) constants[out[0]] = &record;
        body.keep(record);
        continue;
      }
      for (const ValueId v : in)
        if (place[v] == kNoValue) emit(*constants[v]);
      emit(record);
      remarks.say(LoopRemark::Kind::hoisted, *record.op, {}, {}, "once");
      const bool fills = has_filled_padding_[out[0]];
      add_body_capture(next, inputs, place[out[0]], body.to(), out[0],
                       {fills ? FinishedFill::running_padding : FinishedFill::running});
    }
    next.debug.remarks = remarks.finish();
    DimEnv env = attrs_.body.env();
    next.body = make_sub_graph(body.finish(), env);
    return next;
  }

 private:
  const LoopAttrs& attrs_;
  const Graph& body_;
  std::vector<std::uint8_t> is_outside_, is_constant_, moves_;
  std::vector<std::uint8_t> has_filled_padding_;  // by value
};

template <bool takes_all>
Ref<Graph> hoist(const Graph& graph) {
  GraphRewriter to(graph);
  for (const OpRecord& record : graph.records) {
    AttrsRef attrs = with_sub_graphs(record, hoist<takes_all>);
    std::vector<ValueId> inputs = to.inputs_of(record);
    if (record.op == &loop_op) {
      const auto& loop = get<LoopAttrs>(attrs.get());
      const Hoist moved(loop, takes_all);
      if (moved.any()) attrs = make_attrs(moved.apply(to, inputs));
    }
    to.keep(record, attrs, inputs);
  }
  return to.finish();
}

}  // namespace

Ref<Graph> hoist_invariants(const Graph& graph) { return hoist<false>(graph); }
Ref<Graph> hoist_all_invariants(const Graph& graph) { return hoist<true>(graph); }

}  // namespace reel
