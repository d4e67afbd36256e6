#include "reel/trace/passes/batch_over_time.h"

#include <algorithm>
#include <map>
#include <optional>

#include "reel/core/bind.h"
#include "reel/core/graph_builder.h"
#include "reel/core/ops.h"
#include "reel/core/ops/loop.h"
#include "reel/core/ops/products.h"
#include "reel/core/over_time.h"

namespace reel {
namespace {

/// Where a value of the body can be had.
enum class Home : std::uint8_t {
  inside,  ///< only in the loop, step by step
  steps,   ///< outside, for all steps at once
  once,    ///< outside, the same in every step
};

/// The dim of the steps, if it is one that the rules can work with.
std::optional<Dim> time_of(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  if (!attrs.is_full || !attrs.entry_dims.empty() || !changing_dims(attrs).empty())
    return std::nullopt;
  std::optional<Dim> time;
  const auto add = [&](const Dim& dim) {
    if (!time) time = dim;
    return *time == dim && (dim.is_named() || dim.has_size());
  };
  for (int i = 0; i < attrs.slices; ++i) {
    const TensorType& slices = inputs[attrs.first_slice() + i];
    if (!slices.is_list() && !add(slices.dims()[0])) return std::nullopt;
  }
  for (int i = 0; i < attrs.stacks; ++i)
    if (!attrs.is_list(i) && !add(attrs.stack_dims[i])) return std::nullopt;
  if (!time || time->is_ragged()) return std::nullopt;
  return time;
}

/// The types of what the op gives mention nothing that only the body knows.
bool is_known_outside(const TensorType& type, const DimEnv& env) {
  bool result = true;
  for_each_symbol(type, [&](const Dim& symbol) { result = result && env.knows(symbol); });
  for (const Dim& dim : type.dims()) result = result && (dim.is_named() || dim.has_size());
  return result && !type.is_list();
}

/// What is decided about a body.
class Split {
 public:
  Split(const LoopAttrs& attrs, std::span<const TensorType> inputs, const Dim& time)
      : attrs_(attrs),
        body_(*attrs.body.graph),
        time_(time),
        env_(body_env(attrs, inputs)),
        prints_(has_effects(body_)),
        home(body_.types.size(), Home::inside),
        is_hoisted(body_.records.size()),
        is_sunk(body_.records.size()) {
    for (int i = 0; i < attrs.slices; ++i)
      if (!inputs[attrs.first_slice() + i].is_list())
        home[body_.inputs[1 + attrs.carries + i]] = Home::steps;
    for (std::size_t i = body_.formal_count; i < body_.inputs.size(); ++i)
      home[body_.inputs[i]] = Home::once;
    hoist();
    sink();
  }

  bool changes_anything() const {
    return std::count(is_sunk.begin(), is_sunk.end(), 1) ||
           std::count(is_hoisted.begin(), is_hoisted.end(), 1);
  }

 private:
  const LoopAttrs& attrs_;
  const Graph& body_;
  Dim time_;
  DimEnv env_;
  bool prints_;

 public:
  std::vector<Home> home;                ///< by value of the body
  std::vector<std::uint8_t> is_hoisted;  ///< by record: done before the loop
  std::vector<std::uint8_t> is_sunk;     ///< by record: done after it

 private:
  bool can_leave(const OpRecord& record) const {
    if (record.op->kernel_decides_types || has_effects(record)) return false;
    // What may fail stays behind what was printed before it.
    if (prints_ && !record.op->pointwise && record.op != &dot_op) return false;
    bool knows_dims = true;  // and not those that other records of the body make
    if (record.attrs)
      record.attrs->each_symbol(
          [&](const Dim& dim) { knows_dims = knows_dims && (dim.has_size() || env_.knows(dim)); });
    if (!knows_dims) return false;
    for (const ValueId v : body_.outputs_of(record))
      if (!is_known_outside(body_.types[v], env_)) return false;
    for (const ValueId v : body_.inputs_of(record))
      if (!is_known_outside(body_.types[v], env_)) return false;
    return true;
  }

  /// One step has the dim of the steps, or lengths over it: all steps would have it twice, or
  /// padding that a step has not.
  bool mentions_time(ValueId v) {
    const TensorType step = env_.resolve(body_.types[v]);
    return time_.is_named() &&
           std::any_of(step.dims().begin(), step.dims().end(), [&](const Dim& dim) {
             return dim == time_ || contains(dim.length_dims(), time_);
           });
  }

  /// The rule can do it: it is asked to, in a graph that is thrown away.
  bool has_rule(const OpRecord& record, const std::vector<std::uint8_t>& is_many) {
    const OverTimeRule rule = over_time_rule(*record.op);
    if (!rule) return false;
    const auto in = body_.inputs_of(record);
    for (const ValueId v : in)
      if (mentions_time(v)) return false;
    for (const ValueId v : body_.outputs_of(record))
      if (mentions_time(v)) return false;
    std::vector<TensorType> types;
    for (std::size_t i = 0; i < in.size(); ++i) types.push_back(outside(in[i], is_many[i]));
    bool result = false;
    try {
      const RecordedGraph trial = record_graph("trial", types, [&](const Tensors& inputs) {
        const Tensors made = apply(record, inputs, is_many, false);
        const auto out = body_.outputs_of(record);
        result = made.size() == out.size();
        for (std::size_t i = 0; result && i < out.size(); ++i)
          result = made[i].type() == outside(out[i], true);
        return Tensors();
      });
      return result && trial.captured.empty();
    } catch (const Error&) {  // attributes of one step need not fit all steps
      return false;
    }
  }

  /// A product of some rows of a step with a matrix that stays in the cache is as fast in every
  /// step as of all steps at once, and what it gives is read where it is still warm.
  bool is_fast_inside(const OpRecord& record) const {
    constexpr std::int64_t kRows = 8, kCached = 64 * 1024;
    if (record.op != &dot_op) return false;
    const auto in = body_.inputs_of(record);
    if (home[in[0]] == Home::once || home[in[1]] != Home::once) return false;
    const TensorType &a = body_.types[in[0]], &b = body_.types[in[1]];
    if (!a.is_known() || !b.is_known() || b.numel() == 0 || b.numel() > kCached) return false;
    std::int64_t inner = 1;
    for (const int axis : get<DotAttrs>(record.attrs.get()).a_contract)
      inner *= a.sizes()[static_cast<std::size_t>(axis)];
    return a.numel() >= kRows * inner;
  }

  /// Values that depend on no carry.
  void hoist() {
    for (std::size_t r = 0; r < body_.records.size(); ++r) {
      const OpRecord& record = body_.records[r];
      const auto in = body_.inputs_of(record);
      if (!can_leave(record)) continue;
      bool any_steps = false, any_inside = false;
      std::vector<std::uint8_t> is_many;
      for (const ValueId v : in) {
        any_steps = any_steps || home[v] == Home::steps;
        any_inside = any_inside || home[v] == Home::inside;
        is_many.push_back(home[v] == Home::steps);
      }
      if (any_inside || (any_steps && (is_fast_inside(record) || !has_rule(record, is_many))))
        continue;
      is_hoisted[r] = !in.empty();  // a constant costs nothing where it is
      for (const ValueId v : body_.outputs_of(record))
        home[v] = any_steps ? Home::steps : Home::once;
    }
  }

  /// What no carry and no list needs, from the first op on that gains by it.
  void sink() {
    std::vector<std::uint8_t> is_needed(body_.types.size());
    for (int i = 0; i < attrs_.carries; ++i) is_needed[body_.outputs[i]] = 1;
    for (int i = 0; i < attrs_.stacks; ++i)  // a list has each step's own
      if (attrs_.is_list(i)) is_needed[body_.outputs[attrs_.carries + i]] = 1;
    for (std::size_t r = body_.records.size(); r-- > 0;) {
      const OpRecord& record = body_.records[r];
      const auto out = body_.outputs_of(record);
      if (has_effects(record) ||
          std::any_of(out.begin(), out.end(), [&](ValueId v) { return is_needed[v]; }))
        for (const ValueId v : body_.inputs_of(record)) is_needed[v] = 1;
    }
    std::vector<std::uint8_t> is_after(body_.types.size());  // made by what is sunk
    for (std::size_t r = 0; r < body_.records.size(); ++r) {
      const OpRecord& record = body_.records[r];
      const auto in = body_.inputs_of(record), out = body_.outputs_of(record);
      if (is_hoisted[r] || in.empty() || !can_leave(record) ||
          std::any_of(out.begin(), out.end(), [&](ValueId v) { return is_needed[v]; }))
        continue;
      if ((!record.op->gains_over_time || is_fast_inside(record)) &&
          std::none_of(in.begin(), in.end(), [&](ValueId v) { return is_after[v]; }))
        continue;
      std::vector<std::uint8_t> is_many;
      for (const ValueId v : in) is_many.push_back(home[v] != Home::once);
      if (!has_rule(record, is_many)) continue;
      is_sunk[r] = 1;
      for (const ValueId v : out) is_after[v] = 1;
    }
    // What a record reads that stays must stay as well.
    std::vector<std::uint8_t> is_read(body_.types.size());
    for (std::size_t r = body_.records.size(); r-- > 0;) {
      const OpRecord& record = body_.records[r];
      const auto out = body_.outputs_of(record);
      if (std::any_of(out.begin(), out.end(), [&](ValueId v) { return is_read[v]; }))
        is_sunk[r] = 0;
      if (!is_sunk[r] && !is_hoisted[r])
        for (const ValueId v : body_.inputs_of(record)) is_read[v] = 1;
    }
  }

 public:
  /// The type of a value of the body outside, for one step or for all.
  TensorType outside(ValueId v, bool is_many) {
    const TensorType step = env_.resolve(body_.types[v]);
    if (!is_many) return step;
    Dims dims{time_};
    dims.insert(dims.end(), step.dims().begin(), step.dims().end());
    return step.with(dims);
  }

  /// A record of the body, applied in the graph that is being recorded.
  Tensors apply(const OpRecord& record, const Tensors& in, const std::vector<std::uint8_t>& is_many,
                bool is_summed) {
    AttrsRef attrs = record.attrs;
    if (attrs) attrs = attrs->resolve(env_);
    if (std::count(is_many.begin(), is_many.end(), 1) == 0) return bind_all(*record.op, in, attrs);
    std::vector<TensorType> step_out;
    for (const ValueId v : body_.outputs_of(record)) step_out.push_back(outside(v, false));
    return over_time_rule(*record.op)({*record.op, attrs, in, is_many, step_out, time_, is_summed});
  }
};

/// A graph that is being built from another, with what replaces some of its values.
class Rebuilt {
 public:
  explicit Rebuilt(const Graph& from) : graph_(new Graph) {
    graph_->name = from.name;
    graph_->types = from.types;
    graph_->inputs = from.inputs;
    graph_->formal_count = from.formal_count;
    for (ValueId v = 0; v < from.types.size(); ++v) value_.push_back(v);
  }
  ValueId now(ValueId v) const { return value_[v]; }
  void replace(ValueId v, ValueId by) { value_[v] = by; }
  Graph& graph() { return *graph_; }

  /// The records of a graph without captures, put here -> its outputs.
  std::vector<ValueId> inline_graph(const Graph& part, const std::vector<ValueId>& inputs) {
    std::vector<ValueId> value(part.types.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) value[part.inputs[i]] = inputs[i];
    const auto here = [&](std::span<const ValueId> values) {
      std::vector<ValueId> result;
      for (const ValueId v : values) result.push_back(value[v]);
      return result;
    };
    for (const OpRecord& record : part.records) {
      for (const ValueId v : part.outputs_of(record)) value[v] = graph_->add_value(part.types[v]);
      graph_->append(*record.op, record.attrs, here(part.inputs_of(record)),
                     here(part.outputs_of(record)));
    }
    return here(part.outputs);
  }

  Ref<Graph> finish(const std::vector<ValueId>& outputs) {
    for (const ValueId v : outputs) graph_->outputs.push_back(value_[v]);
    graph_->seal();
    return std::move(graph_);
  }

 private:
  Ref<Graph> graph_;
  std::vector<ValueId> value_;
};

/// Takes one loop apart.
class LoopSplitter {
 public:
  LoopSplitter(Rebuilt& to, const LoopAttrs& attrs, std::vector<ValueId> in,
               std::span<const ValueId> out, Split& split)
      : to_(to),
        attrs_(attrs),
        body_(*attrs.body.graph),
        in_(std::move(in)),
        out_(out.begin(), out.end()),
        split_(split) {
    for (int i = 0; i < attrs.slices; ++i) {
      const ValueId v = body_.inputs[1 + attrs.carries + i];
      if (split.home[v] == Home::steps) outside_[v] = in_[attrs.first_slice() + i];
    }
    for (std::size_t i = 0; i < attrs.body_captures.size(); ++i)
      outside_[body_.inputs[body_.formal_count + i]] =
          in_[attrs.first_capture() + attrs.body_captures[i]];
  }

  void run() {
    for (std::size_t r = 0; r < body_.records.size(); ++r) {
      const OpRecord& record = body_.records[r];
      const bool is_constant =
          body_.inputs_of(record).empty() && split_.home[body_.outputs_of(record)[0]] == Home::once;
      if (split_.is_hoisted[r] || is_constant) put(record);
    }
    make_loop();
    for (std::size_t r = 0; r < body_.records.size(); ++r)
      if (split_.is_sunk[r]) put(body_.records[r]);
    for (const auto& [output, term] : stacks_outside_) to_.replace(output, outside_.at(term));
    for (const auto& [output, term] : sums_outside_) to_.replace(output, sum_over_time(term));
  }

 private:
  bool is_many(ValueId v) const { return split_.home[v] != Home::once; }
  std::vector<std::uint8_t> are_many(const OpRecord& record) const {
    std::vector<std::uint8_t> result;
    for (const ValueId v : body_.inputs_of(record)) result.push_back(is_many(v));
    return result;
  }

  std::vector<ValueId> put_graph(const OpRecord& record, bool is_summed) {
    std::vector<TensorType> types;
    std::vector<ValueId> inputs;
    for (const ValueId v : body_.inputs_of(record)) {
      inputs.push_back(outside_.at(v));
      types.push_back(to_.graph().types[inputs.back()]);
    }
    const RecordedGraph part = record_graph("part", types, [&](const Tensors& given) {
      return split_.apply(record, given, are_many(record), is_summed);
    });
    return to_.inline_graph(*part.graph, inputs);
  }
  void put(const OpRecord& record) {
    const std::vector<ValueId> made = put_graph(record, false);
    const auto out = body_.outputs_of(record);
    for (std::size_t i = 0; i < out.size(); ++i) outside_[out[i]] = made[i];
  }

  ValueId sum_over_time(ValueId term) {
    for (std::size_t r = 0; r < body_.records.size(); ++r) {
      const OpRecord& record = body_.records[r];
      if (split_.is_sunk[r] && record.op->gains_over_time && body_.outputs_of(record)[0] == term)
        return put_graph(record, true)[0];
    }
    const RecordedGraph part =
        record_graph("part", {split_.outside(term, true)},
                     [&](const Tensors& given) { return Tensors{sum(given[0], 0)}; });
    return to_.inline_graph(*part.graph, {outside_.at(term)})[0];
  }

  /// What stays in the loop, fed with slices of what went before it, and giving what those after it
  /// need.
  void make_loop() {
    LoopAttrs next = attrs_;
    Ref<Graph> graph(new Graph);
    graph->name = body_.name;
    graph->types = body_.types;
    std::vector<std::uint8_t> is_sunk_value(body_.types.size()), is_read(body_.types.size());
    for (std::size_t r = 0; r < body_.records.size(); ++r) {
      const OpRecord& record = body_.records[r];
      for (const ValueId v : body_.outputs_of(record)) is_sunk_value[v] = split_.is_sunk[r];
      if (split_.is_sunk[r] || split_.is_hoisted[r]) continue;
      graph->append(*record.op, record.attrs, body_.inputs_of(record), body_.outputs_of(record));
      for (const ValueId v : body_.inputs_of(record)) is_read[v] = 1;
    }
    // Outputs: carries, stacks, sums.
    std::vector<ValueId> outputs(body_.outputs.begin(), body_.outputs.begin() + attrs_.carries);
    std::vector<ValueId> made(out_.begin(), out_.begin() + attrs_.carries);
    next.stack_dims.clear();
    next.stack_kinds.clear();
    std::map<ValueId, ValueId> stacked;  // body value -> value outside
    for (int i = 0; i < attrs_.stacks; ++i) {
      const ValueId term = body_.outputs[attrs_.carries + i], to = out_[attrs_.first_stack() + i];
      if (!attrs_.is_list(i) && (is_sunk_value[term] || split_.home[term] == Home::steps)) {
        stacks_outside_.emplace_back(to, term);
        continue;
      }
      outputs.push_back(term);
      made.push_back(to);
      next.stack_dims.push_back(attrs_.stack_dims[i]);
      next.stack_kinds.push_back(attrs_.stack_kinds[i]);
      if (!attrs_.is_list(i)) stacked.emplace(term, to);
    }
    for (std::size_t r = 0; r < body_.records.size(); ++r) {
      if (!split_.is_sunk[r]) continue;
      for (const ValueId v : body_.inputs_of(body_.records[r])) {
        if (is_sunk_value[v] || split_.home[v] != Home::inside) continue;
        auto [it, fresh] = stacked.try_emplace(v, 0);
        if (fresh) {
          it->second = to_.graph().add_value(split_.outside(v, true));
          outputs.push_back(v);
          made.push_back(it->second);
          next.stack_dims.push_back(to_.graph().types[it->second].dims()[0]);
          next.stack_kinds.push_back(0);
        }
        outside_[v] = it->second;
      }
    }
    next.stacks = static_cast<int>(next.stack_dims.size());
    next.sums = 0;
    for (int i = 0; i < attrs_.sums; ++i) {
      const ValueId term = body_.outputs[attrs_.carries + attrs_.stacks + i],
                    to = out_[attrs_.first_sum() + i];
      if (is_sunk_value[term] || split_.home[term] == Home::steps) {
        sums_outside_.emplace_back(to, term);
        continue;
      }
      outputs.push_back(term);
      made.push_back(to);
      ++next.sums;
    }
    made.push_back(out_[attrs_.trips_output()]);
    next.collects.assign(outputs.size(), 0);
    for (const ValueId v : outputs) is_read[v] = 1;

    // Inputs: position, carries, slices, captures.
    std::vector<ValueId> inputs(in_.begin(), in_.begin() + attrs_.first_capture());
    std::vector<ValueId> captures(in_.begin() + attrs_.first_capture(), in_.end());
    graph->inputs.assign(body_.inputs.begin(), body_.inputs.begin() + body_.formal_count);
    std::vector<ValueId> new_captures;
    for (std::size_t r = 0; r < body_.records.size(); ++r) {
      if (!split_.is_hoisted[r]) continue;
      for (const ValueId v : body_.outputs_of(body_.records[r])) {
        if (!is_read[v]) continue;
        if (split_.home[v] == Home::steps) {
          graph->inputs.push_back(v);
          inputs.push_back(outside_.at(v));
          ++next.slices;
        } else {
          new_captures.push_back(v);
        }
      }
    }
    graph->formal_count = graph->inputs.size();
    graph->inputs.insert(graph->inputs.end(), body_.inputs.begin() + body_.formal_count,
                         body_.inputs.end());
    for (const ValueId v : new_captures) {
      graph->inputs.push_back(v);
      next.body_captures.push_back(static_cast<int>(captures.size()));
      captures.push_back(outside_.at(v));
    }
    next.fills.assign(next.carries + next.slices + captures.size(), Fill::live);
    inputs.insert(inputs.end(), captures.begin(), captures.end());
    graph->outputs = std::move(outputs);
    graph->seal();
    DimEnv names = attrs_.body.env();
    next.body = make_sub_graph(std::move(graph), names);
    to_.graph().append(loop_op, make_attrs(std::move(next)), inputs, made);
  }

  Rebuilt& to_;
  const LoopAttrs& attrs_;
  const Graph& body_;
  std::vector<ValueId> in_, out_;
  Split& split_;
  std::map<ValueId, ValueId> outside_;  ///< where a value of the body is had outside the loop
  std::vector<std::pair<ValueId, ValueId>> stacks_outside_, sums_outside_;  ///< output, term
};

}  // namespace

Ref<Graph> batch_over_time(const Graph& graph) {
  Rebuilt to(graph);
  for (const OpRecord& record : graph.records) {
    std::vector<ValueId> in;
    for (const ValueId v : graph.inputs_of(record)) in.push_back(to.now(v));
    if (record.op == &cond_op) {
      CondAttrs attrs = get<CondAttrs>(record.attrs.get());
      for (SubGraph* branch : {&attrs.on_true, &attrs.on_false}) {
        DimEnv names = branch->env();
        *branch = make_sub_graph(batch_over_time(*branch->graph), names);
      }
      to.graph().append(cond_op, make_attrs(std::move(attrs)), in, graph.outputs_of(record));
      continue;
    }
    if (record.op != &loop_op) {
      to.graph().append(*record.op, record.attrs, in, graph.outputs_of(record));
      continue;
    }
    LoopAttrs attrs = get<LoopAttrs>(record.attrs.get());
    DimEnv names = attrs.body.env();
    attrs.body = make_sub_graph(batch_over_time(*attrs.body.graph), names);
    std::vector<TensorType> types;
    for (const ValueId v : in) types.push_back(to.graph().types[v]);
    if (const std::optional<Dim> time = time_of(attrs, types)) {
      Split split(attrs, types, *time);
      if (split.changes_anything()) {
        LoopSplitter(to, attrs, in, graph.outputs_of(record), split).run();
        continue;
      }
    }
    to.graph().append(loop_op, make_attrs(std::move(attrs)), in, graph.outputs_of(record));
  }
  return to.finish(graph.outputs);
}

}  // namespace reel
