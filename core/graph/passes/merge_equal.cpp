#include "reel/core/graph/passes/merge_equal.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "reel/core/dims/dim_slices.h"
#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/graph/passes/dim_meetings.h"
#include "reel/core/graph/passes/unite_loops.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/types/dim_symbol.h"

namespace reel {
namespace {

struct Emitted {
  const Op* op;
  AttrsRef attrs;
  std::vector<ValueId> in, out;
  SourceId source;
  Recompute recompute;
};

class Merger {
 public:
  Merger(const Graph& from, std::size_t same_program_from)
      : from_(from),
        same_program_from_(same_program_from),
        meetings_(from),
        value_(from.types.size(), kNoValue) {}

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
    rename_earlier();
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
    if (next.attrs && !merged_into_.empty()) next.attrs = next.attrs->resolve(renamed_);
    if (record.op->is_identity) {
      alias(from_.outputs_of(record)[0], next.in[0]);
      return;
    }
    if (record.op == &loop_op) {
      if (merge_loop(record, next)) return;
    } else if (r >= same_program_from_ || !has_effects(record)) {
      if (const std::optional<std::size_t> found = first_equal(record, next)) {
        Emitted& same = emitted_[*found];
        const auto out = from_.outputs_of(record);
        for (std::size_t i = 0; i < out.size(); ++i) alias(out[i], same.out[i]);
        same.recompute = std::min(same.recompute, next.recompute);
        return;
      }
    }
    emit(record, std::move(next));
  }

  /// Returns the first emitted record with the same values, for a record that becomes `next`. A
  /// body that is recorded again makes its dims in the same order: by taking the first record, the
  /// n-th dim of each copy becomes one dim. Loops that read residuals of two copies rely on that.
  std::optional<std::size_t> first_equal(const OpRecord& record, const Emitted& next) {
    const auto is_same = [&](const Emitted& other) {
      const bool has_same_attrs =
          next.attrs ? other.attrs && other.attrs->equals(*next.attrs) : !other.attrs;
      return other.op == next.op && other.in == next.in && has_same_attrs &&
             !has_both_dims(from_.outputs_of(record), other.out);
    };
    std::optional<std::size_t> result;
    const auto [begin, end] = known_.equal_range(hash(next));
    for (auto it = begin; it != end; ++it)
      if ((!result || it->second < *result) && is_same(emitted_[it->second])) result = it->second;
    return result;
  }

  TensorType renamed(const TensorType& type) {
    if (merged_into_.empty() || !type.node()->has_symbols) return type;
    Dims dims;
    for (const Dim& dim : type.dims()) dims.push_back(renamed(dim));
    return type.with(dims);
  }
  /// Renames a dim. If its lengths run over a merged dim, they then run over the replacement.
  Dim renamed(const Dim& dim) {
    const Dim result = renamed_.resolve(dim);
    if (!dim.is_symbol() || dim.node() != result.node() || !dim.is_ragged()) return result;
    Dims length_dims;
    for (const Dim& of : dim.length_dims()) length_dims.push_back(renamed(of));
    if (length_dims == dim.length_dims()) return dim;
    const Dim made = dim_symbol(dim.name(), std::move(length_dims));
    copy_slice(dim, made);
    add_merged(dim, made);
    return made;
  }

  void emit(const OpRecord& record, Emitted next) {
    for (const ValueId v : from_.outputs_of(record))
      next.out.push_back(value_[v] = to_->add_value(renamed(from_.types[v])));
    if (record.op == &loop_op) loops_.emplace(hash_of_loop(next), emitted_.size());
    known_.emplace(hash(next), emitted_.size());
    emitted_.push_back(std::move(next));
  }

  /// Returns true if the values have different dims that must not become one, because a tensor has
  /// both.
  bool has_both_dims(std::span<const ValueId> out, const std::vector<ValueId>& same) {
    for (std::size_t k = 0; k < out.size(); ++k) {
      const TensorType &type = from_.types[out[k]], &other = to_->types[same[k]];
      for (std::size_t i = 0; type != other && i < type.dims().size(); ++i) {
        const Dim &a = type.dims()[i], &b = other.dims()[i];
        if (!a.is_symbol() || a.node() == b.node()) continue;
        if (meetings_.meet(a, b)) return true;
        const auto into_b = merged_into_.find(b.node());
        if (into_b != merged_into_.end() &&
            std::ranges::any_of(into_b->second,
                                [&](const Dim& merged) { return meetings_.meet(a, merged); }))
          return true;
      }
    }
    return false;
  }

  /// Replaces value `v` by `same`, and the dims that `v` made by the dims of `same`.
  void alias(ValueId v, ValueId same) {
    value_[v] = same;
    if (!from_.types[v].node()->has_symbols || from_.types[v] == to_->types[same]) return;
    for (int i = 0; i < from_.types[v].rank(); ++i) {
      const Dim &dim = from_.types[v].dims()[i], &other = to_->types[same].dims()[i];
      if (dim.node() == other.node() || !dim.is_symbol()) continue;
      add_merged(dim, other);
    }
  }

  void add_merged(const Dim& dim, const Dim& into) {
    renamed_.bind(dim, into);
    merged_into_[into.node()].push_back(dim);
  }

  /// Renames merged dims where they are mentioned before the record that makes them: an input that
  /// is added last, such as a cotangent, has dims that records make.
  void rename_earlier() {
    if (merged_into_.empty()) return;
    for (TensorType& type : to_->types) type = renamed(type);
    for (Emitted& e : emitted_)
      if (e.attrs) e.attrs = e.attrs->resolve(renamed_);
  }

  static std::size_t hash(const Emitted& e) {
    std::size_t result = reinterpret_cast<std::size_t>(e.op);
    for (const ValueId v : e.in) result = attr::mix(result, v);
    return e.attrs ? attr::mix(result, e.attrs->hash()) : result;
  }

  static const Graph* origin(const LoopAttrs& attrs) {
    return attrs.debug.origin ? attrs.debug.origin.get() : attrs.body.graph.get();
  }

  bool merge_loop(const OpRecord& record, const Emitted& next) {
    const auto& b = get<LoopAttrs>(next.attrs.get());
    const auto is_same = [&](const Emitted& first) {
      const auto& a = get<LoopAttrs>(first.attrs.get());
      return first.in == next.in && origin(a) == origin(b) && a.cond.graph == b.cond.graph &&
             a.trips.is_reverse == b.trips.is_reverse;
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

  /// Makes the first loop compute the second one's outputs too.
  void unite(Emitted& first, const OpRecord& record, const LoopAttrs a, const LoopAttrs& b) {
    UnitedLoops united = unite_loops(a, b, [](const Graph& both, std::size_t left) {
      return merge_equal(both, nullptr, nullptr, left);
    });
    united.attrs.debug.origin = Ref<const Graph>(origin(a));
    first.out = united_results(first.out, a, record, b, united);
    first.attrs = make_attrs(std::move(united.attrs));
  }

  /// Returns the results of two united loops. The first loop's results, `had`, keep their values.
  /// Results that only the second loop has get new values, and its old results are replaced.
  std::vector<ValueId> united_results(const std::vector<ValueId>& had, const LoopAttrs& a,
                                      const OpRecord& record, const LoopAttrs& b,
                                      const UnitedLoops& united) {
    const auto kept = results_of(a, had);
    const auto second = results_of(b, from_.outputs_of(record));
    const auto with_new = [&](std::span<const ValueId> old, std::span<const ValueId> more,
                              const std::vector<std::size_t>& place) {
      std::vector<ValueId> result(old.begin(), old.end());
      for (std::size_t j = 0; j < more.size(); ++j) {
        if (place[j] >= result.size())
          result.push_back(to_->add_value(renamed(from_.types[more[j]])));
        alias(more[j], result[place[j]]);
      }
      return result;
    };
    for (std::size_t i = 0; i < kept.carries.size(); ++i) alias(second.carries[i], kept.carries[i]);
    std::vector<ValueId> out(kept.carries.begin(), kept.carries.end());
    for (const auto& more : {with_new(kept.stacks, second.stacks, united.stack_places),
                             with_new(kept.sums, second.sums, united.sum_places)})
      out.insert(out.end(), more.begin(), more.end());
    out.push_back(kept.trips);
    alias(second.trips, kept.trips);
    for (const auto& [mine, other] :
         {std::pair{kept.lengths, second.lengths}, {kept.token, second.token}}) {
      if (!mine) continue;
      out.push_back(*mine);
      if (other) alias(*other, *mine);  // a loop that saves along a made dim has no token
    }
    return out;
  }

  const Graph& from_;
  std::size_t same_program_from_;
  DimMeetings meetings_;
  Graph* to_ = nullptr;
  std::vector<ValueId> value_;
  std::vector<Emitted> emitted_;
  std::unordered_multimap<std::size_t, std::size_t> loops_;  ///< emitted ones, by hash_of_loop
  std::unordered_multimap<std::size_t, std::size_t> known_;
  DimEnv renamed_ = DimEnv::renaming();
  std::unordered_map<const DimNode*, Dims> merged_into_;  ///< by dim of *to_: dims of from_
};

}  // namespace

Ref<Graph> merge_equal(const Graph& graph, std::vector<ValueId>* values, std::size_t* boundary,
                       std::size_t same_program_from) {
  return Merger(graph, same_program_from).run(values, boundary);
}

}  // namespace reel
