#include "reel/trace/passes/analysis/liveness.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/shape/new_dims.h"

namespace reel {

DimMakers dim_makers(const Graph& graph, const Dims& given) {
  DimMakers makers;
  std::unordered_set<const DimNode*> from_inputs;
  for (const ValueId v : graph.inputs)
    for_each_bound(graph.types[v], [&](const Dim& d) { from_inputs.insert(d.node()); });
  // Dims known around the graph are not made here, even if no input binds them any more.
  for (const Dim& d : graph.schedule().free_symbols) from_inputs.insert(d.node());
  for (const Dim& d : given) from_inputs.insert(d.node());
  for (std::size_t r = 0; r < graph.records.size(); ++r)
    for (const ValueId v : graph.outputs_of(graph.records[r]))
      for_each_bound(graph.types[v], [&](const Dim& d) {
        if (!from_inputs.count(d.node())) makers.emplace(d.node(), r);
      });
  return makers;
}

std::vector<std::uint8_t> used_outputs(const Graph& graph, std::size_t record,
                                       const std::vector<std::uint8_t>& values,
                                       const Symbols& symbols, const DimMakers& makers) {
  const auto out = graph.outputs_of(graph.records[record]);
  std::vector<std::uint8_t> result;
  std::unordered_set<const DimNode*> said;
  for (const ValueId v : out) {
    result.push_back(values[v]);
    if (values[v]) for_each_bound(graph.types[v], [&](const Dim& d) { said.insert(d.node()); });
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    for_each_bound(graph.types[out[i]], [&](const Dim& d) {
      const auto maker = makers.find(d.node());
      const bool is_made_here = maker != makers.end() && maker->second == record;
      if (is_made_here && symbols.count(d.node()) && said.insert(d.node()).second) result[i] = 1;
    });
  return result;
}

Liveness liveness(const Graph& graph, const std::vector<std::uint8_t>& wanted, const Dims& given) {
  Liveness live{std::vector<std::uint8_t>(graph.types.size(), 0),
                std::vector<std::uint8_t>(graph.records.size(), 0),
                {}};
  const DimMakers makers = dim_makers(graph, given);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    if (wanted[i]) live.values[graph.outputs[i]] = 1;
  for (std::size_t r = graph.records.size(); r-- > 0;) {
    const OpRecord& record = graph.records[r];
    const std::vector<std::uint8_t> is_used =
        used_outputs(graph, r, live.values, live.symbols, makers);
    if (!has_effects(record) && std::none_of(is_used.begin(), is_used.end(), std::identity()))
      continue;
    live.records[r] = 1;
    const auto in = graph.inputs_of(record);
    if (record.op == &loop_op) {  // only the operands that the used outputs depend on
      const auto& attrs = get<LoopAttrs>(record.attrs.get());
      const LoopLiveness needed = loop_liveness(attrs, is_used, graph.types_of(in));
      for (const std::size_t i : live_inputs(attrs, needed)) live.values[in[i]] = 1;
      live.symbols.insert(needed.symbols.begin(), needed.symbols.end());
    } else {
      for (const ValueId v : in) live.values[v] = 1;
    }
    if (record.attrs)
      record.attrs->each_symbol([&](const Dim& d) { live.symbols.emplace(d.node(), d); });
  }
  return live;
}

namespace {

/// Returns true if the type binds a plain size that a live record mentions.
bool says_live_size(const Liveness& live, const TensorType& type) {
  bool result = false;
  for_each_bound(type, [&](const Dim& d) {
    result = result || (!d.is_named() && live.symbols.count(d.node()));
  });
  return result;
}

/// Adds the symbols around a loop for which symbols of its body or condition stand. The input that
/// bound a symbol inside may be dropped.
void add_outside(const Symbols& inside, DimEnv env, Symbols& outside) {
  for (const auto& [node, dim] : inside)
    if (env.knows(dim))
      for_each_symbol(env.resolve(dim), [&](const Dim& d) { outside.emplace(d.node(), d); });
}

/// Calls fn for every symbol from which a dim of the type is computed (hist, for hist + 1).
template <class Fn>
void for_each_operand(const TensorType& type, Fn&& fn) {
  for (const Dim& dim : type.dims())
    if (expression_of(dim)) for_each_symbol(dim, fn);
}

/// Marks unread list elements as live if they alone bind a dim that the body mentions, or a dim
/// computed from it. Another loop made such a dim in each iteration.
void keep_dims(Liveness& live, const LoopAttrs& attrs, const std::vector<TensorType>& types) {
  const Graph& body = *attrs.body.graph;
  const auto bind = [&](ValueId v) {
    for_each_bound(body.types[v], [&](const Dim& d) { live.symbols.erase(d.node()); });
  };
  const auto formals = body_inputs(attrs);
  const auto slices = operands_of(attrs, types).slices;
  // Dims known outside need no input that binds them.
  bind(formals.position);
  for (const ValueId v : formals.carries) bind(v);
  for (std::size_t i = 0; i < slices.size(); ++i)
    if (live.values[formals.slices[i]] || !slices[i].is_list()) bind(formals.slices[i]);
  for (const ValueId v : formals.captures) bind(v);
  // Binding hist + 1 does not bind hist, but a body may mention both.
  for (std::size_t i = 0; i < slices.size(); ++i)
    if (slices[i].is_list())
      for_each_operand(body.types[formals.slices[i]], [&](const Dim& d) {
        if (live.symbols.count(d.node())) live.values[formals.slices[i]] = 1;
      });
  for (const auto& [symbol, outside] : attrs.body.bindings) live.symbols.erase(symbol.node());
  for (const ValueId v : formals.slices) {
    for_each_bound(body.types[v], [&](const Dim& d) {
      if (live.symbols.count(d.node())) live.values[v] = 1;
    });
    if (live.values[v]) bind(v);
  }
}

/// Dims that iterations change, each with the carries that bind it.
class ChangingDims {
 public:
  explicit ChangingDims(const LoopAttrs& attrs)
      : dims_(changing_dims(attrs)), carries_(dims_.size()) {
    if (dims_.empty()) return;
    std::unordered_map<const DimNode*, std::size_t> places;
    for (std::size_t k = 0; k < dims_.size(); ++k) places.emplace(dims_[k].node(), k);
    const Graph& body = *attrs.body.graph;
    const auto carries = body_inputs(attrs).carries;
    for (std::size_t i = 0; i < carries.size(); ++i)
      for_each_bound(body.types[carries[i]], [&](const Dim& bound) {
        if (const auto place = places.find(bound.node()); place != places.end())
          carries_[place->second].push_back(i);
      });
  }
  /// Marks one more carry as live if it alone binds a dim that iterations change and the body
  /// mentions. Returns true if it did.
  bool keep_one(const Liveness& live, std::vector<std::uint8_t>& carry) const {
    for (std::size_t k = 0; k < dims_.size(); ++k) {
      if (carries_[k].empty() || !live.symbols.count(dims_[k].node())) continue;
      if (std::any_of(carries_[k].begin(), carries_[k].end(),
                      [&](std::size_t i) { return carry[i]; }))
        continue;
      carry[carries_[k].front()] = 1;
      return true;
    }
    return false;
  }

 private:
  Dims dims_;
  std::vector<std::vector<std::size_t>> carries_;  ///< by dim
};

/// Follows the values that outputs of a loop need, through its body and loops inside, from
/// iteration to iteration: one walk for a whole chain of carries. Finds a subset of the values that
/// liveness() finds: dims and conditions may need more.
class LoopNeeds {
 public:
  explicit LoopNeeds(const LoopAttrs& attrs)
      : attrs_(attrs),
        body_(*attrs.body.graph),
        made_(body_.types.size()),
        input_of_(body_.types.size(), kNone),
        is_live_(body_.types.size()),
        carry_(attrs.carries.size()) {
    for (std::size_t r = 0; r < body_.records.size(); ++r) {
      const auto out = body_.outputs_of(body_.records[r]);
      for (std::size_t k = 0; k < out.size(); ++k) made_[out[k]] = {r, k};
    }
    for (std::size_t i = 0; i < body_.inputs.size(); ++i) input_of_[body_.inputs[i]] = i;
  }
  /// By carry: whether an output that was asked for needs it.
  const std::vector<std::uint8_t>& carries() const { return carry_; }

  /// Calls found(i) for each input i of the loop that output k needs and none before it did.
  template <class Found>
  void need_output(std::size_t k, const Found& found) {
    if (k >= body_.outputs.size()) return;
    if (k < carry_.size()) need_carry(k, found);
    need(body_.outputs[k]);
    while (!waiting_.empty()) {
      const ValueId v = waiting_.back();
      waiting_.pop_back();
      if (input_of_[v] != kNone)
        need_input(input_of_[v], found);
      else if (made_[v].record != kNone)
        need_made(made_[v]);
    }
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Made {
    std::size_t record = kNone, output = 0;
  };

  void need(ValueId v) {
    if (!std::exchange(is_live_[v], 1)) waiting_.push_back(v);
  }
  template <class Found>
  void need_carry(std::size_t i, const Found& found) {
    if (std::exchange(carry_[i], 1)) return;
    found(operand_number(attrs_, {LeafKind::carry, i}));
    need(body_outputs(attrs_).carries[i]);
  }
  /// i: among the inputs of the body.
  template <class Found>
  void need_input(std::size_t i, const Found& found) {
    LoopLeaf leaf = body_input_at(attrs_, i);
    if (leaf.is(LeafKind::position)) return;
    if (leaf.is(LeafKind::carry)) return need_carry(leaf.index, found);
    if (leaf.is(LeafKind::capture))
      leaf.index = static_cast<std::size_t>(attrs_.body_captures[leaf.index]);
    found(operand_number(attrs_, leaf));
  }
  void need_made(const Made& made) {
    const OpRecord& record = body_.records[made.record];
    const auto in = body_.inputs_of(record);
    if (record.op != &loop_op) {
      for (const ValueId v : in) need(v);
      return;
    }
    std::unique_ptr<LoopNeeds>& inside = inside_[made.record];
    if (!inside) inside = std::make_unique<LoopNeeds>(get<LoopAttrs>(record.attrs.get()));
    const std::function<void(std::size_t)> found = [&](std::size_t i) { need(in[i]); };
    inside->need_output(made.output, found);
  }

  const LoopAttrs& attrs_;
  const Graph& body_;
  std::vector<Made> made_;             ///< by value: where it is made
  std::vector<std::size_t> input_of_;  ///< by value: its place among the body's inputs
  std::vector<std::uint8_t> is_live_;  ///< by value
  std::vector<std::uint8_t> carry_;    ///< by carry
  std::vector<ValueId> waiting_;       ///< live, and not followed yet
  std::unordered_map<std::size_t, std::unique_ptr<LoopNeeds>> inside_;  ///< by record
};

}  // namespace

bool bound_says_all(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  if (!attrs.trips.has_bound || attrs.trips.is_full) return attrs.trips.has_bound;
  for (const TensorType& slices : operands_of(attrs, inputs).slices)
    if (const Dim dim = leading_dim(slices); is_unknown(dim)) return false;
  return true;
}

namespace {

/// Finds the live leaves of one loop.
class LivenessOfLoop {
 public:
  LivenessOfLoop(const LoopAttrs& attrs, const std::vector<std::uint8_t>& is_used,
                 const std::vector<TensorType>& input_types)
      : attrs_(attrs), is_used_(is_used), input_types_(input_types) {
    const auto carries = results_of(attrs, is_used).carries;
    carry_.assign(carries.begin(), carries.end());
  }

  LoopLiveness find() {
    if (attrs_.cond) follow_cond();
    follow_body();
    add_outside(in_body_.symbols, body_env(attrs_, input_types_), result_.symbols);
    keep_dims(in_body_, attrs_, input_types_);
    find_slices();
    return std::move(result_);
  }

 private:
  /// Marks what the condition reads.
  void follow_cond() {
    const Graph& cond = *attrs_.cond.graph;
    const Liveness asked = liveness(cond, {1});
    result_.cond_values = asked.values;
    const auto carries = cond_inputs(attrs_).carries;
    for (std::size_t i = 0; i < carries.size(); ++i) {
      const ValueId v = carries[i];
      carry_[i] = carry_[i] || asked.values[v] || says_live_size(asked, cond.types[v]);
    }
    while (changing_.keep_one(asked, carry_)) {  // at most once for each carry
    }
    add_outside(asked.symbols, cond_env(attrs_, input_types_), result_.symbols);
  }

  /// Marks what live carries and used results need. Each round but the last marks at least one
  /// carry as live, so there are at most `carries` + 1 rounds.
  void follow_body() {
    LoopNeeds needs(attrs_);
    const auto ignore = [](std::size_t) {};
    for (std::size_t k = carry_.size(); k < body_.outputs.size(); ++k)
      if (is_used_[k]) needs.need_output(k, ignore);
    for (bool changed = true; changed;) {
      for (std::size_t i = 0; i < carry_.size(); ++i)
        if (carry_[i]) needs.need_output(i, ignore);
      for (std::size_t i = 0; i < carry_.size(); ++i) carry_[i] = carry_[i] || needs.carries()[i];
      in_body_ = liveness(body_, wanted_outputs());
      changed = mark_read_carries() || changing_.keep_one(in_body_, carry_);
    }
  }

  std::vector<std::uint8_t> wanted_outputs() const {
    const auto used = results_of(attrs_, is_used_);
    std::vector<std::uint8_t> wanted(carry_);
    wanted.insert(wanted.end(), used.stacks.begin(), used.stacks.end());
    wanted.insert(wanted.end(), used.sums.begin(), used.sums.end());
    return wanted;
  }

  /// Marks the carries that the body reads. Returns true if there is a new one.
  bool mark_read_carries() {
    const auto formals = body_inputs(attrs_).carries;
    bool changed = false;
    for (std::size_t i = 0; i < carry_.size(); ++i)
      if (!carry_[i] &&
          (in_body_.values[formals[i]] || says_live_size(in_body_, body_.types[formals[i]])))
        carry_[i] = changed = true;
    return changed;
  }

  /// Marks live slices. If slices decide the trip count, one operand stays. A list may have fewer
  /// elements, so it stays only if all slices are lists.
  void find_slices() {
    const bool has_dense = first_dense_slice(attrs_, input_types_).has_value();
    bool any_counts = bound_says_all(attrs_, input_types_);
    std::optional<std::size_t> last;  // slices that could decide the trip count
    const auto formals = body_inputs(attrs_).slices;
    const auto slices = operands_of(attrs_, input_types_).slices;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const bool is_live = in_body_.values[formals[i]];
      result_.slice.push_back(is_live);
      if (has_dense && slices[i].is_list()) continue;
      any_counts = any_counts || is_live;
      last = i;
    }
    if (!any_counts && last) result_.slice[*last] = 1;
  }

  const LoopAttrs& attrs_;
  const std::vector<std::uint8_t>& is_used_;
  const std::vector<TensorType>& input_types_;
  const Graph& body_ = *attrs_.body.graph;
  const ChangingDims changing_{attrs_};
  LoopLiveness result_;
  std::vector<std::uint8_t>& carry_ = result_.carry;
  Liveness& in_body_ = result_.body;
};

}  // namespace

LoopLiveness loop_liveness(const LoopAttrs& attrs, const std::vector<std::uint8_t>& is_used,
                           const std::vector<TensorType>& input_types) {
  return LivenessOfLoop(attrs, is_used, input_types).find();
}

std::vector<std::size_t> live_inputs(const LoopAttrs& attrs, const LoopLiveness& live) {
  std::vector<std::size_t> result;
  const std::size_t carry_operand = operand_number(attrs, {LeafKind::carry});
  for (std::size_t i = 0; i < carry_operand; ++i) result.push_back(i);
  const auto add = [&](LeafKind kind, std::size_t i, bool is_live) {
    if (is_live) result.push_back(operand_number(attrs, {kind, i}));
  };
  for (std::size_t i = 0; i < live.carry.size(); ++i) add(LeafKind::carry, i, live.carry[i]);
  for (std::size_t i = 0; i < live.slice.size(); ++i) add(LeafKind::slice, i, live.slice[i]);
  const auto captures = [&](std::span<const ValueId> formals,
                            const std::vector<std::uint8_t>& values,
                            const std::vector<int>& indices) {
    for (std::size_t i = 0; i < formals.size(); ++i)
      add(LeafKind::capture, static_cast<std::size_t>(indices[i]), values[formals[i]]);
  };
  captures(body_inputs(attrs).captures, live.body.values, attrs.body_captures);
  if (attrs.cond) captures(cond_inputs(attrs).captures, live.cond_values, attrs.cond_captures);
  return result;
}

}  // namespace reel
