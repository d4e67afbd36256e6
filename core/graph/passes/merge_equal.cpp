#include "reel/core/graph/passes/merge_equal.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "reel/core/ops/control/loop.h"

namespace reel {
namespace {

struct Emitted {
  const Op* op;
  AttrsRef attrs;
  std::vector<ValueId> in, out;
  SourceId source;
  Recompute recompute;
};

/// Returns the dim's name inside a body or branch; nothing if the name belongs to another dim
/// there.
std::optional<Dim> inside(const SubGraph& sub, const Dim& dim) {
  for (const auto& [symbol, outside] : sub.bindings)
    if (outside == dim) return symbol;
  for (const auto& [symbol, outside] : sub.bindings)
    if (symbol == dim) return std::nullopt;
  return dim;
}

/// Returns true if a value of the graph, or of a body or branch in it, has both dims.
bool meet(const Graph& graph, const Dim& a, const Dim& b) {
  const auto has_both = [&](const TensorType& type) {
    return contains(type.dims(), a) && contains(type.dims(), b);
  };
  if (std::any_of(graph.types.begin(), graph.types.end(), has_both)) return true;
  const auto meet_inside = [&](const SubGraph& sub) {
    if (!sub) return false;
    const std::optional<Dim> inside_a = inside(sub, a), inside_b = inside(sub, b);
    return inside_a && inside_b && meet(*sub.graph, *inside_a, *inside_b);
  };
  for (const OpRecord& record : graph.records) {
    if (record.op == &loop_op) {
      const auto& loop = get<LoopAttrs>(record.attrs.get());
      if (meet_inside(loop.body) || meet_inside(loop.cond)) return true;
    } else if (record.op == &cond_op) {
      const auto& cond = get<CondAttrs>(record.attrs.get());
      if (meet_inside(cond.on_true) || meet_inside(cond.on_false)) return true;
    }
  }
  return false;
}

class Merger {
 public:
  Merger(const Graph& from, std::size_t same_program_from)
      : from_(from), same_program_from_(same_program_from), value_(from.types.size(), ~0u) {}

  Ref<Graph> run(std::vector<ValueId>* values, std::size_t* boundary) {
    Ref<Graph> to(new Graph);
    to_ = to.get();
    to_->name = from_.name;
    to_->formal_count = from_.formal_count;
    for (const ValueId v : from_.inputs)
      to_->inputs.push_back(value_[v] = to_->add_value(from_.types[v]));
    std::size_t forward = 0;
    for (std::size_t r = 0; r < from_.records.size(); ++r) {
      if (boundary && r == *boundary) forward = emitted_.size();
      visit(r);
    }
    if (boundary) *boundary = *boundary >= from_.records.size() ? emitted_.size() : forward;
    for (const Emitted& e : emitted_)
      to_->append(*e.op, e.attrs, e.in, e.out, e.source, e.recompute);
    for (const ValueId v : from_.outputs) to_->outputs.push_back(value_[v]);
    to_->seal();
    if (values) *values = value_;
    return to;
  }

 private:
  void visit(std::size_t r) {
    const OpRecord& record = from_.records[r];
    Emitted next{record.op, record.attrs, {}, {}, record.source, record.recompute};
    for (const ValueId v : from_.inputs_of(record)) next.in.push_back(value_[v]);
    if (next.attrs && !merged_.empty()) next.attrs = next.attrs->resolve(renamed_);
    if (record.op->is_identity) {
      alias(from_.outputs_of(record)[0], next.in[0]);
      return;
    }
    if (record.op == &loop_op) {
      if (merge_loop(record, next)) return;
    } else if (r >= same_program_from_ || !has_effects(record)) {
      auto [it, end] = known_.equal_range(hash(next));
      for (; it != end; ++it) {
        Emitted& same = emitted_[it->second];
        if (same.op != next.op || same.in != next.in) continue;
        if (next.attrs ? !same.attrs || !same.attrs->equals(*next.attrs)
                       : static_cast<bool>(same.attrs))
          continue;
        const auto out = from_.outputs_of(record);
        if (dims_meet(out, same.out)) continue;
        for (std::size_t i = 0; i < out.size(); ++i) alias(out[i], same.out[i]);
        same.recompute = std::min(same.recompute, next.recompute);
        return;
      }
    }
    emit(record, std::move(next));
  }

  TensorType renamed(ValueId v) {
    return merged_.empty() ? from_.types[v] : renamed_.resolve(from_.types[v]);
  }

  void emit(const OpRecord& record, Emitted next) {
    for (const ValueId v : from_.outputs_of(record))
      next.out.push_back(value_[v] = to_->add_value(renamed(v)));
    if (record.op == &loop_op) loops_.emplace(hash_of_loop(next), emitted_.size());
    known_.emplace(hash(next), emitted_.size());
    emitted_.push_back(std::move(next));
  }

  /// Returns true if the values have different dims that must not become one, because a tensor has
  /// both.
  bool dims_meet(std::span<const ValueId> out, const std::vector<ValueId>& same) const {
    for (std::size_t k = 0; k < out.size(); ++k) {
      const TensorType &type = from_.types[out[k]], &other = to_->types[same[k]];
      for (std::size_t i = 0; type != other && i < type.dims().size(); ++i) {
        const Dim &a = type.dims()[i], &b = other.dims()[i];
        if (!a.is_symbol() || a.node() == b.node()) continue;
        if (meet(from_, a, b)) return true;
        for (const auto& [merged, into] : merged_)
          if (into == b && meet(from_, a, merged)) return true;
      }
    }
    return false;
  }

  /// Replaces value `v` by `same`, and the dims that `v` made by those of `same`.
  void alias(ValueId v, ValueId same) {
    value_[v] = same;
    if (!from_.types[v].node()->has_symbols || from_.types[v] == to_->types[same]) return;
    for (int i = 0; i < from_.types[v].rank(); ++i) {
      const Dim &dim = from_.types[v].dims()[i], &other = to_->types[same].dims()[i];
      if (dim.node() == other.node() || !dim.is_symbol()) continue;
      renamed_.bind(dim, other);
      merged_.emplace_back(dim, other);
    }
  }

  static std::size_t hash(const Emitted& e) {
    std::size_t result = reinterpret_cast<std::size_t>(e.op);
    for (const ValueId v : e.in) result = attr::mix(result, v);
    return e.attrs ? attr::mix(result, e.attrs->hash()) : result;
  }

  static const Graph* origin(const LoopAttrs& attrs) {
    return attrs.origin ? attrs.origin.get() : attrs.body.graph.get();
  }

  bool merge_loop(const OpRecord& record, const Emitted& next) {
    const auto& b = get<LoopAttrs>(next.attrs.get());
    const auto is_same = [&](const Emitted& first) {
      const auto& a = get<LoopAttrs>(first.attrs.get());
      return first.in == next.in && origin(a) == origin(b) && a.cond.graph == b.cond.graph &&
             a.is_reverse == b.is_reverse;
    };
    std::size_t found = emitted_.size();  // the first of several
    const auto [begin, end] = loops_.equal_range(hash_of_loop(next));
    for (auto it = begin; it != end; ++it)
      if (it->second < found && is_same(emitted_[it->second])) found = it->second;
    if (found == emitted_.size()) return false;
    Emitted& first = emitted_[found];
    unite(first, record, get<LoopAttrs>(first.attrs.get()), b);
    return true;
  }
  /// Hashes the properties that merged loops have in common.
  static std::size_t hash_of_loop(const Emitted& loop) {
    std::size_t result =
        reinterpret_cast<std::size_t>(origin(get<LoopAttrs>(loop.attrs.get()))) >> 4;
    for (const ValueId v : loop.in) result = attr::mix(result, v);
    return result;
  }

  /// Makes the first loop compute the second one's outputs too: concatenates both bodies over the
  /// same inputs and merges equal records.
  void unite(Emitted& first, const OpRecord& record, const LoopAttrs a, const LoopAttrs& b) {
    const Graph &left = *a.body.graph, &right = *b.body.graph;
    Graph both(left);
    std::vector<ValueId> place(right.types.size(), ~0u);
    for (std::size_t i = 0; i < right.inputs.size(); ++i) place[right.inputs[i]] = left.inputs[i];
    for (const OpRecord& r : right.records) {
      std::vector<ValueId> in, out;
      for (const ValueId v : right.inputs_of(r)) in.push_back(place[v]);
      for (const ValueId v : right.outputs_of(r))
        out.push_back(place[v] = both.add_value(right.types[v]));
      both.append(r, r.attrs, in, out);
    }
    for (const ValueId v : right.outputs) both.outputs.push_back(place[v]);
    both.seal();
    const Ref<Graph> merged = merge_equal(both, nullptr, nullptr, left.records.size());
    // merged->outputs: carries, stacks and sums of the left body, then of the right one.
    const std::vector<ValueId> outs = merged->outputs;
    const std::size_t left_count = left.outputs.size();
    const auto term = [&](bool is_right, int i) { return outs[(is_right ? left_count : 0) + i]; };

    LoopAttrs united = a;
    united.origin = Ref<const Graph>(origin(a));
    std::vector<ValueId> stacks, sums;
    std::vector<std::size_t> stack_place, sum_place;  // places of b's outputs among the united ones
    std::vector<std::uint8_t> collect_stacks, collect_sums;
    for (int i = 0; i < a.stacks; ++i)
      collect_stacks.push_back(a.output_adds_finished(a.carries + i));
    for (int i = 0; i < a.sums; ++i)
      collect_sums.push_back(a.output_adds_finished(a.carries + a.stacks + i));
    for (int i = 0; i < a.stacks; ++i) stacks.push_back(term(false, a.carries + i));
    for (int i = 0; i < a.sums; ++i) sums.push_back(term(false, a.carries + a.stacks + i));
    for (int i = 0; i < b.stacks; ++i) {
      const ValueId v = term(true, b.carries + i);
      std::size_t at = 0;
      const bool adds_finished_to_running = b.output_adds_finished(b.carries + i);
      // One value may be stacked along two dims: the dim of xs, and a shorter one that the loop
      // makes.
      const auto is_same = [&](std::size_t k) {
        return stacks[k] == v && united.stack_kinds[k] == b.stack_kinds[i] &&
               collect_stacks[k] == adds_finished_to_running &&
               (united.makes_dim || united.stack_dims[k] == b.stack_dims[i]);
      };
      while (at < stacks.size() && !is_same(at)) ++at;
      if (at == stacks.size()) {
        stacks.push_back(v);
        united.stack_kinds.push_back(b.stack_kinds[i]);
        collect_stacks.push_back(adds_finished_to_running);
        if (!united.makes_dim) united.stack_dims.push_back(b.stack_dims[i]);
      }
      stack_place.push_back(at);
    }
    for (int i = 0; i < b.sums; ++i) {
      const ValueId v = term(true, b.carries + b.stacks + i);
      const bool adds_finished_to_running = b.output_adds_finished(b.carries + b.stacks + i);
      std::size_t at = 0;
      while (at < sums.size() && (sums[at] != v || collect_sums[at] != adds_finished_to_running))
        ++at;
      if (at == sums.size()) {
        sums.push_back(v);
        collect_sums.push_back(adds_finished_to_running);
      }
      sum_place.push_back(at);
    }
    united.stacks = static_cast<int>(stacks.size());
    united.sums = static_cast<int>(sums.size());
    united.adds_finished_to_running.resize(a.carries);
    united.adds_finished_to_running.insert(united.adds_finished_to_running.end(),
                                           collect_stacks.begin(), collect_stacks.end());
    united.adds_finished_to_running.insert(united.adds_finished_to_running.end(),
                                           collect_sums.begin(), collect_sums.end());
    merged->outputs.assign(outs.begin(), outs.begin() + a.carries);
    merged->outputs.insert(merged->outputs.end(), stacks.begin(), stacks.end());
    merged->outputs.insert(merged->outputs.end(), sums.begin(), sums.end());
    merged->name = left.name;
    merged->seal();
    DimEnv names = a.body.env();
    for (const auto& [symbol, actual] : b.body.bindings) names.bind(symbol, actual);
    united.body = make_sub_graph(merged, names);

    // Outputs of the first loop keep their values; new values are added for the second loop's
    // others.
    const std::vector<ValueId> had = first.out;
    const auto second = from_.outputs_of(record);
    std::vector<ValueId> out(had.begin(), had.begin() + a.carries + a.stacks);
    for (int i = 0; i < b.carries; ++i) alias(second[i], had[i]);
    for (int i = 0; i < b.stacks; ++i) {
      if (stack_place[i] >= out.size() - a.carries)
        out.push_back(to_->add_value(renamed(second[b.carries + i])));
      alias(second[b.carries + i], out[a.carries + stack_place[i]]);
    }
    const std::size_t first_sum = out.size();
    out.insert(out.end(), had.begin() + a.carries + a.stacks,
               had.begin() + a.carries + a.stacks + a.sums);
    for (int i = 0; i < b.sums; ++i) {
      const ValueId v = second[b.carries + b.stacks + i];
      if (first_sum + sum_place[i] >= out.size()) out.push_back(to_->add_value(renamed(v)));
      alias(v, out[first_sum + sum_place[i]]);
    }
    const std::size_t a_rest = a.trips_output(), b_rest = b.trips_output();
    out.insert(out.end(), had.begin() + a_rest, had.end());
    for (std::size_t i = b_rest; i < second.size(); ++i) alias(second[i], had[a_rest + i - b_rest]);
    first.out = std::move(out);
    first.attrs = make_attrs(std::move(united));
  }

  const Graph& from_;
  std::size_t same_program_from_;
  Graph* to_ = nullptr;
  std::vector<ValueId> value_;
  std::vector<Emitted> emitted_;
  std::unordered_multimap<std::size_t, std::size_t> loops_;  ///< emitted ones, by hash_of_loop
  std::unordered_multimap<std::size_t, std::size_t> known_;
  DimEnv renamed_ = DimEnv::renaming();
  std::vector<std::pair<Dim, Dim>> merged_;  // a dim of from_, and the dim of *to_ that replaces it
};

}  // namespace

Ref<Graph> merge_equal(const Graph& graph, std::vector<ValueId>* values, std::size_t* boundary,
                       std::size_t same_program_from) {
  return Merger(graph, same_program_from).run(values, boundary);
}

}  // namespace reel
