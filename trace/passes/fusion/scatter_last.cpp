#include "reel/trace/passes/fusion/scatter_last.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <vector>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/op/facts.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/creation/creation.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/indexing/index.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

class ScatteringLast {
 public:
  explicit ScatteringLast(const Graph& from)
      : from_(from), to_(from), maker_(from.types.size(), kNone), readers_(from.types.size()) {
    for (std::size_t r = 0; r < from.records.size(); ++r) {
      for (const ValueId v : from.outputs_of(from.records[r])) maker_[v] = r;
      for (const ValueId v : from.inputs_of(from.records[r])) readers_[v].push_back(r);
    }
    for (const ValueId v : from.outputs) readers_[v].push_back(kNone);
    for (std::size_t r = 0; r < from.records.size(); ++r)
      if (const auto difference = difference_of(r)) take(r, *difference);
    drop_zeros();
  }

  Ref<Graph> run() {
    for (std::size_t r = 0; r < from_.records.size(); ++r) {
      const OpRecord& record = from_.records[r];
      if (const auto change = changes_.find(r); change == changes_.end())
        to_.keep(record, with_all_sub_graphs(record, scatter_last));
      else if (change->second.kind == Kind::sum)
        append_sum(record, from_.records[change->second.scatter]);
      else if (change->second.kind == Kind::difference)
        append_scatter(record, from_.records[change->second.scatter]);
    }
    return to_.finish();
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  enum class Kind { dropped, sum, difference };
  struct Change {
    Kind kind;
    std::size_t scatter;  ///< the record
  };

  const TensorType& type(ValueId v) const { return from_.types[v]; }

  /// Returns true for full(+0): g + 0 is not g + -0 if g is -0.
  static bool is_full_of_plus_zero(const OpRecord& record) {
    return record.op == &full_op && makes_zeros(full_op, record.attrs.get()) &&
           !std::signbit(get<FullAttrs>(record.attrs.get()).number);
  }

  /// Returns true if a scatter_add gives zeros exactly one number for each position along the axes
  /// that are not indexed.
  bool scatters_one_number(const OpRecord& record) const {
    if (record.op != &scatter_add_op) return false;
    const auto in = from_.inputs_of(record);
    const auto& attrs = get<GatherAttrs>(record.attrs.get());
    const TensorType& of = type(in[0]);
    if (maker_[in[0]] == kNone || attrs.rule == IndexRule::optional || !is_float(of.dtype()))
      return false;
    if (!is_full_of_plus_zero(from_.records[maker_[in[0]]])) return false;
    for (int axis = attrs.axis; axis < attrs.axis + attrs.count; ++axis)
      if (of.dims()[static_cast<std::size_t>(axis)].is_ragged()) return false;
    return std::ranges::all_of(attrs.matched, [](int axis) { return axis >= 0; });
  }

  /// Returns true if a record sums the scattered tensor over the indexed axes.
  bool sums_indexed(const OpRecord& record, const OpRecord& scatter) const {
    if (record.op != &sum_op) return false;
    const auto& attrs = get<GatherAttrs>(scatter.attrs.get());
    const std::vector<int>& axes = get<ReduceAttrs>(record.attrs.get()).axes;
    if (static_cast<int>(axes.size()) != attrs.count || axes.empty() || axes[0] != attrs.axis ||
        axes.back() != attrs.axis + attrs.count - 1)
      return false;
    return type(from_.outputs_of(record)[0]) == type(from_.inputs_of(scatter)[2]);
  }

  bool subtracts_from(const OpRecord& record, ValueId v) const {
    if (record.op != &sub_op) return false;
    const auto in = from_.inputs_of(record);
    return in[0] == v && in[1] != v && type(in[1]) == type(v) &&
           type(from_.outputs_of(record)[0]) == type(v);
  }

  /// Returns the difference into which record r can scatter instead; nothing if there is none.
  std::optional<std::size_t> difference_of(std::size_t r) const {
    const OpRecord& scatter = from_.records[r];
    if (!scatters_one_number(scatter)) return std::nullopt;
    const ValueId scattered = from_.outputs_of(scatter)[0];
    std::optional<std::size_t> result;
    for (const std::size_t reader : readers_[scattered]) {
      if (reader == kNone) return std::nullopt;
      if (sums_indexed(from_.records[reader], scatter)) continue;
      if (result || !subtracts_from(from_.records[reader], scattered)) return std::nullopt;
      result = reader;
    }
    // An index that does not exist throws later than before: no other error or effect may overtake.
    for (std::size_t between = r + 1; result && between < *result; ++between) {
      const OpRecord& record = from_.records[between];
      if (record.op->has_effect || has_effects(record) ||
          fails_for_values(*record.op, record.attrs.get()))
        return std::nullopt;
    }
    return result;
  }

  /// Notes the changes for a scatter_add and its difference.
  void take(std::size_t scatter, std::size_t difference) {
    const OpRecord& record = from_.records[scatter];
    changes_.emplace(scatter, Change{Kind::dropped, scatter});
    for (const std::size_t reader : readers_[from_.outputs_of(record)[0]])
      changes_.emplace(reader,
                       Change{reader == difference ? Kind::difference : Kind::sum, scatter});
  }

  /// Notes zeros that only dropped records read.
  void drop_zeros() {
    const auto is_dropped = [&](std::size_t r) {
      const auto change = changes_.find(r);
      return change != changes_.end() && change->second.kind == Kind::dropped;
    };
    std::vector<std::size_t> unread;
    for (const auto& [r, change] : changes_) {
      const ValueId zeros = from_.inputs_of(from_.records[change.scatter])[0];
      if (change.kind == Kind::dropped && std::ranges::all_of(readers_[zeros], is_dropped))
        unread.push_back(maker_[zeros]);
    }
    for (const std::size_t r : unread) changes_.emplace(r, Change{Kind::dropped, r});
  }

  ValueId zero(DType dtype, const OpRecord& as) {
    const TensorType scalar(dtype);
    const ValueId made = to_.to().add_value(scalar);
    to_.to().append(full_op, make_attrs(FullAttrs{.type = scalar}), {}, std::array{made}, as.source,
                    as.recompute);
    return made;
  }

  /// Appends g + 0 instead of a sum of g and zeros: -0 becomes 0.
  void append_sum(const OpRecord& sum, const OpRecord& scatter) {
    const ValueId g = from_.inputs_of(scatter)[2];
    const std::array in{to_[g], zero(type(g).dtype(), sum)};
    to_.to().append(add_op, {}, in, from_.outputs_of(sum), sum.source, sum.recompute);
  }

  /// Appends 0 - e, and adds g to it instead of subtracting e from g.
  void append_scatter(const OpRecord& sub, const OpRecord& scatter) {
    const ValueId e = from_.inputs_of(sub)[1];
    const ValueId difference = to_.to().add_value(type(e));
    const std::array of_sub{zero(type(e).dtype(), sub), to_[e]};
    to_.keep(sub, sub.attrs, of_sub, std::array{difference});
    const auto of_scatter = from_.inputs_of(scatter);
    const std::array in{difference, to_[of_scatter[1]], to_[of_scatter[2]]};
    to_.keep(scatter, scatter.attrs, in, from_.outputs_of(sub));
  }

  const Graph& from_;
  GraphRewriter to_;
  std::vector<std::size_t> maker_;                   ///< by value: a record, or kNone
  std::vector<std::vector<std::size_t>> readers_;    ///< by value; kNone: an output of the graph
  std::unordered_map<std::size_t, Change> changes_;  ///< by record
};

}  // namespace

Ref<Graph> scatter_last(const Graph& graph) { return ScatteringLast(graph).run(); }

}  // namespace reel
