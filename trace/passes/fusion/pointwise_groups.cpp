#include "reel/trace/passes/fusion/pointwise_groups.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/elementwise/broadcast.h"
#include "reel/core/ops/elementwise/element_loop.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/scans/linear_scan.h"
#include "reel/core/ops/shape/join.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/trace/passes/fusion/relation.h"
#include "reel/trace/passes/fusion/tile_ops.h"

namespace reel {
namespace {

/// Returns true if every size is known, or known from the type of an input.
bool has_sizes(const TensorType& type) {
  return !type.is_list() && std::all_of(type.dims().begin(), type.dims().end(), [](const Dim& dim) {
    return dim.is_named() || dim.has_size();
  });
}

/// Returns true if the operand's dims are some of the result's, in the same order.
bool is_in_order(const TensorType& operand, const TensorType& result) {
  if (!result.is_named()) return true;  // plain axes are matched from the end
  int last = -1;
  for (const Dim& dim : operand.dims()) {
    const int at = find(result.dims(), dim);
    if (at <= last) return false;
    last = at;
  }
  return true;
}

/// Rows of at most this many elements stay in the L2 cache while a tile program works on them.
constexpr std::int64_t kLongestRow = 2048;

/// Returns true if `dims` hold one number for each row of `rows`: they lack its last axis, or have
/// one element there.
bool is_of_rows(const Dims& dims, const Dims& rows) {
  const std::size_t last = rows.size() - 1;
  const bool has_last = dims.size() == rows.size() && dims[last] == Dim(1) && rows[last] != Dim(1);
  return (has_last || dims.size() == last) &&
         std::equal(rows.begin(), rows.end() - 1, dims.begin());
}

/// Returns true for a sum over each row, of at least two elements.
bool sums_rows(const OpRecord& record, const TensorType& x) {
  if (tile_op(*record.op) != TileOp::sum || x.rank() < 2 || !is_float(x.dtype())) return false;
  const std::int64_t row = x.sizes().back();
  return get<ReduceAttrs>(record.attrs.get()).axes == std::vector<int>{x.rank() - 1} && row >= 2 &&
         row <= kLongestRow;
}

/// Returns true for an expand that writes elements, without moving axes.
bool repeats_in_order(const OpRecord& record, const TensorType& result) {
  const auto& attrs = get<ExpandAttrs>(record.attrs.get());
  int last = -1;
  for (const int axis : attrs.from) {
    if (axis >= 0 && axis < last) return false;
    last = std::max(last, axis);
  }
  return !only_adds_ones(attrs, result);
}

/// Returns true if an expand repeats one number of each row along the row. Plain axes of equal
/// sizes do not tell this: [2] becomes [2,2] along either.
bool repeats_rows(const OpRecord& record, const TensorType& read, const TensorType& made) {
  if (read.rank() == 0 || !is_of_rows(read.dims(), made.dims())) return false;
  const std::vector<int>& from = get<ExpandAttrs>(record.attrs.get()).from;
  for (int axis = 0; axis + 1 < made.rank(); ++axis)
    if (from[static_cast<std::size_t>(axis)] != axis) return false;
  return from.back() < 0 || from.back() == made.rank() - 1;
}

/// The axis of a linear recurrence, and the end from which it begins.
struct Walk {
  int axis;
  bool is_reverse;

  bool operator==(const Walk&) const = default;
};

/// Returns the walk of a recurrence that runs tile by tile, with all its operands and results over
/// time, except for operands that repeat.
std::optional<Walk> walk_of(const OpRecord& record, const TensorType& full) {
  // Fewer channels are walked one by one.
  constexpr std::int64_t kLeastChannels = 8;
  if (!is_scan(tile_op(*record.op))) return std::nullopt;
  const auto& attrs = get<LinearScanAttrs>(record.attrs.get());
  if (attrs.wanted & ~attrs.over_time) return std::nullopt;
  std::int64_t channels = 1;
  for (int axis = attrs.axis + 1; axis < full.rank(); ++axis)
    channels *= full.sizes()[static_cast<std::size_t>(axis)];
  if (channels < kLeastChannels) return std::nullopt;
  return Walk{attrs.axis, *walks_back(record)};
}

/// Records that become one op.
struct Group {
  Dims dims;                        ///< of the elements walked over
  bool has_sums = false;            ///< it sums over rows; records with one number per row may join
  bool has_short_runs = false;      ///< an operand repeats after few rows
  std::vector<const Dims*> wholes;  ///< dims of values that are split into, or joined of, these
  int axis = 0;                     ///< the axis along which they are split or joined
  std::optional<Walk> walk;         ///< of its recurrences
  std::vector<std::size_t> records;
  int walks = 0;  ///< walks over elements that its records would make unfused
};

}  // namespace

/// Finds the groups. Keeps the facts that a merge needs by group instead of searching its records:
/// an unrolled loop is one group of thousands of records, which grows by one at a time.
class PointwiseGroups::Grouping {
 public:
  explicit Grouping(const Graph& graph)
      : graph_(graph),
        made_by_(graph.types.size(), kNone),
        head_(graph.records.size()),
        needs_(graph.records.size()),
        apart_(graph.records.size()),
        groups_(graph.records.size()) {
    std::iota(head_.begin(), head_.end(), 0);
    find_fed_walks();
    std::size_t effect = kNone;
    for (const ValueId v : graph.inputs)
      for_each_bound(type(v), [&](const Dim& dim) { bound_by_.emplace(dim.node(), kNone); });
    for (const OpRecord& record : graph.records) {
      if (tile_op(*record.op) != TileOp::sum) continue;
      const TensorType& x = type(graph.inputs_of(record)[0]);
      if (sums_rows(record, x) && !are_rows_summed(x.dims())) summed_.push_back(&x.dims());
    }
    for (std::size_t r = 0; r < graph.records.size(); ++r) {
      const OpRecord& record = graph.records[r];
      heads_.push_back(r);
      for (const ValueId v : graph.inputs_of(record))
        if (made_by_[v] != kNone) depend(r, head(made_by_[v]));
      depend_on_dims(r);
      if (has_effects(record)) {  // effects keep their order
        if (effect != kNone) depend(r, head(effect));
        effect = r;
      }
      for (const ValueId v : graph.outputs_of(record)) made_by_[v] = r;
      join(r);
    }
    join_readers();
    for (std::size_t r = 0; r < head_.size(); ++r) head_[r] = head(r);
    for (const std::size_t each : heads_)
      if (groups_[each]) std::sort(groups_[each]->records.begin(), groups_[each]->records.end());
  }

  std::size_t head(std::size_t r) const {
    for (; head_[r] != r; r = head_[r]) head_[r] = head_[head_[r]];  // halves the path
    return r;
  }
  const std::optional<Group>& group(std::size_t head) const { return groups_[head]; }
  /// Returns false if fusing the group saves nothing.
  bool is_fused(std::size_t head) const { return groups_[head] && groups_[head]->walks >= 2; }
  bool needs(std::size_t head, std::size_t other) const { return needs_.has(head, other); }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  enum : std::uint8_t { kForwards = 1, kBackwards = 2 };

  void depend(std::size_t r, std::size_t on) {
    needs_.set(r, on);
    needs_.add_all(r, on);
  }

  /// A record that mentions a dim depends on the record that makes it.
  void depend_on_dims(std::size_t r) {
    const OpRecord& record = graph_.records[r];
    const auto need = [&](const Dim& dim) {
      const auto found = bound_by_.find(dim.node());
      if (found != bound_by_.end() && found->second != kNone && head(found->second) != r)
        depend(r, head(found->second));
    };
    if (record.attrs) record.attrs->each_symbol(need);
    for (const ValueId v : graph_.inputs_of(record)) for_each_symbol(type(v), need);
    for (const ValueId v : graph_.outputs_of(record)) {
      for_each_symbol(type(v), need);
      for_each_bound(type(v), [&](const Dim& dim) { bound_by_.emplace(dim.node(), r); });
    }
  }

  const TensorType& type(ValueId v) const { return graph_.types[v]; }

  /// Returns a group of this record only; nothing if its op cannot be fused.
  std::optional<Group> alone(std::size_t r) const {
    const OpRecord& record = graph_.records[r];
    const auto in = graph_.inputs_of(record), out = graph_.outputs_of(record);
    const auto is_sized = [&](ValueId v) { return has_sizes(type(v)); };
    if (in.empty() || record.op->has_effect || !std::ranges::all_of(in, is_sized) ||
        !std::ranges::all_of(out, is_sized))
      return std::nullopt;
    const TileOp op = tile_op(*record.op);
    Group group;
    group.records = {r};
    group.dims = type(out[0]).dims();
    if (op == TileOp::split) return of_split(record, std::move(group));
    if (op == TileOp::concat) return of_concat(record, std::move(group));
    if (op == TileOp::spread) {
      group.walks = 1;
      return group;
    }
    if (op == TileOp::expand) {
      const std::vector<int>& from = get<ExpandAttrs>(record.attrs.get()).from;
      if (!repeats_in_order(record, type(out[0]))) return std::nullopt;
      group.walks = 1;
      group.has_short_runs = breaks_rows(
          type(out[0]), [&](int axis) { return from[static_cast<std::size_t>(axis)] >= 0; });
      return group;
    }
    if (is_scan(op)) {
      group.walk = walk_of(record, type(out[0]));
      group.walks = 1;
      if (!group.walk) return std::nullopt;
      return group;
    }
    if (sums_rows(record, type(in[0]))) {
      group.dims = type(in[0]).dims();
      group.has_sums = true;
      group.walks = 1;
      return group;
    }
    if (!element_loop(*record.op)) return std::nullopt;
    for (const ValueId v : in) {
      if (!is_in_order(type(v), type(out[0]))) return std::nullopt;
      group.has_short_runs = group.has_short_runs || breaks_rows(type(v), type(out[0]));
    }
    group.walks = 1;
    return group;
  }

  std::optional<Group> of_split(const OpRecord& record, Group group) const {
    const auto& attrs = get<SplitAttrs>(record.attrs.get());
    if (attrs.parts < 2) return std::nullopt;
    group.wholes = {&type(graph_.inputs_of(record)[0]).dims()};
    group.axis = attrs.axis;
    return group;
  }
  std::optional<Group> of_concat(const OpRecord& record, Group group) const {
    const auto in = graph_.inputs_of(record);
    const Dims& part = type(in[0]).dims();
    const auto is_alike = [&](ValueId v) { return same_dims(type(v).dims(), part); };
    if (in.size() < 2 || !std::ranges::all_of(in, is_alike)) return std::nullopt;
    group.dims = part;
    group.wholes = {&type(graph_.outputs_of(record)[0]).dims()};
    group.axis = get<ConcatAttrs>(record.attrs.get()).axis;
    group.walks = 1;
    return group;
  }

  /// Merges groups that read the same elements, which are then loaded once.
  void join_readers() {
    std::vector<std::vector<std::size_t>> readers(graph_.types.size());
    for (std::size_t r = 0; r < graph_.records.size(); ++r) {
      if (!groups_[head(r)]) continue;
      for (const ValueId v : graph_.inputs_of(graph_.records[r]))
        if (same_dims(type(v).dims(), groups_[head(r)]->dims)) readers[v].push_back(r);
    }
    for (const std::vector<std::size_t>& of_one : readers)
      for (std::size_t i = 1; i < of_one.size(); ++i) merge_if_possible(of_one[i - 1], of_one[i]);
  }

  /// Merges the record into the groups that make its operands, if they fit.
  void join(std::size_t r) {
    groups_[r] = alone(r);
    if (!groups_[r]) return;
    for (const ValueId v : graph_.inputs_of(graph_.records[r]))
      if (made_by_[v] != kNone && (!may_read(v, r) || feeds_other_walk(r, head(made_by_[v]))))
        keep_apart(r, head(made_by_[v]));
    for (const ValueId v : graph_.inputs_of(graph_.records[r]))
      if (made_by_[v] != kNone) merge_if_possible(made_by_[v], r);
  }
  /// Finds records with results that only recurrences of one direction read, or ops before these.
  void find_fed_walks() {
    const std::size_t count = graph_.records.size();
    feeds_.resize(count);
    std::vector<std::uint8_t> is_read(graph_.types.size()),
        feeds(graph_.types.size(), kForwards | kBackwards);
    for (const ValueId v : graph_.outputs) feeds[v] = 0;
    for (std::size_t r = count; r-- > 0;) {
      const OpRecord& record = graph_.records[r];
      std::uint8_t fed = 0;
      if (const auto back = walks_back(record)) {
        fed = *back ? kBackwards : kForwards;
      } else if (element_loop(*record.op)) {
        const ValueId made = graph_.outputs_of(record)[0];
        if (is_read[made]) feeds_[r] = fed = feeds[made];
      }
      for (const ValueId v : graph_.inputs_of(record)) is_read[v] = 1, feeds[v] &= fed;
    }
  }
  /// Returns true if a record belongs to a recurrence that cannot be in the group.
  bool feeds_other_walk(std::size_t r, std::size_t group) const {
    return feeds_[r] && groups_[group] && groups_[group]->walk &&
           feeds_[r] != (groups_[group]->walk->is_reverse ? kBackwards : kForwards);
  }
  void merge_if_possible(std::size_t a, std::size_t b) {
    const std::size_t from = head(a), to = head(b);
    if (from == to || !groups_[from] || !groups_[to] || apart_.has(to, from)) return;
    if (go_together(*groups_[from], *groups_[to]) && !is_between(from, to)) merge(from, to);
  }
  void keep_apart(std::size_t a, std::size_t b) {
    apart_.set(a, b);
    apart_.set(b, a);
  }
  /// Returns true if the record may read v within a group: v has the size that the record walks
  /// over, or one number per row, which the columns repeat.
  bool may_read(ValueId v, std::size_t r) const {
    const OpRecord& record = graph_.records[r];
    const TileOp op = tile_op(*record.op);
    if (op == TileOp::split || op == TileOp::concat || op == TileOp::sum) return true;
    const TensorType &read = type(v), &made = type(graph_.outputs_of(record)[0]);
    if (op == TileOp::spread)
      return get<SpreadAttrs>(record.attrs.get()).axes == std::vector<int>{made.rank() - 1};
    if (op == TileOp::expand) return repeats_rows(record, read, made);
    if (is_scan(op)) return same_dims(read.dims(), made.dims()) && !is_lagged(v, record);
    const bool has_rows = made.rank() > 0 && (made.is_named() || read.rank() == made.rank());
    return same_dims(read.dims(), made.dims()) ||
           (has_rows && is_of_rows(read.dims(), made.dims()));
  }

  /// Returns true if a gradient reads the value one step behind its own.
  bool is_lagged(ValueId v, const OpRecord& record) const {
    if (tile_op(*record.op) != TileOp::scan_gradient) return false;
    const int h = ScanGradOperands(get<LinearScanAttrs>(record.attrs.get())).h;
    return h >= 0 && graph_.inputs_of(record)[static_cast<std::size_t>(h)] == v;
  }

  static bool has_dims(const Group& group, const Dims& dims) { return same_dims(group.dims, dims); }
  static bool is_whole(const Group& parts, const Dims& dims) {
    return std::any_of(parts.wholes.begin(), parts.wholes.end(),
                       [&](const Dims* whole) { return same_dims(*whole, dims); });
  }
  static bool is_of_rows_of(const Group& group, const Group& other) {
    return other.has_sums && !group.has_sums && group.wholes.empty() && !group.walk &&
           is_of_rows(group.dims, other.dims);
  }
  /// Returns true if an operand of these dims repeats after few rows, so that tiles of whole rows
  /// would have few elements.
  static bool breaks_rows(const TensorType& operand, const TensorType& result) {
    if (operand.rank() == 0) return false;
    return breaks_rows(result, [&](int axis) {
      const Dim& dim = result.dims()[static_cast<std::size_t>(axis)];
      if (result.is_named()) return find(operand.dims(), dim) >= 0;
      const int at = axis - (result.rank() - operand.rank());
      return at >= 0 && !(operand.dims()[static_cast<std::size_t>(at)] == Dim(1));
    });
  }
  /// varies_along(axis): true if the operand has the result's axis.
  template <class VariesAlong>
  static bool breaks_rows(const TensorType& result, const VariesAlong& varies_along) {
    constexpr std::int64_t kFewElements = 256;
    const int rank = result.rank();
    if (rank < 3) return false;
    std::int64_t elements = result.sizes().back();
    std::optional<bool> varies;
    for (int axis = rank - 2; axis >= 0; --axis) {
      const std::int64_t size = result.sizes()[static_cast<std::size_t>(axis)];
      if (size == 1) continue;
      if (varies.value_or(varies_along(axis)) != varies_along(axis)) return elements < kFewElements;
      if (size < 0) return false;  // size known only in a run
      varies = varies_along(axis);
      elements *= size;
    }
    return false;
  }

  bool are_rows_summed(const Dims& dims) const {
    return std::any_of(summed_.begin(), summed_.end(),
                       [&](const Dims* other) { return same_dims(*other, dims); });
  }
  /// Returns true if recurrences of the groups take the same walk, which passes each part alone.
  static bool may_walk(const Group& a, const Group& b) {
    if (a.walk && b.walk) return *a.walk == *b.walk && has_dims(a, b.dims);
    const auto fit = [](const Group& walking, const Group& other) {
      return !walking.walk || other.wholes.empty() ||
             (other.axis != walking.walk->axis && has_dims(walking, other.dims));
    };
    return fit(a, b) && fit(b, a);
  }
  bool go_together(const Group& a, const Group& b) const {
    if (!may_walk(a, b)) return false;
    if ((a.has_sums || b.has_sums) && (a.has_short_runs || b.has_short_runs)) return false;
    if (is_of_rows_of(a, b) || is_of_rows_of(b, a)) return true;
    if (!a.wholes.empty() && !b.wholes.empty()) return has_dims(a, b.dims) && a.axis == b.axis;
    // An op on the whole runs part by part, unless its rows are summed: the sum, its operands and
    // its readers are better fused with each other.
    const auto fits = [&](const Group& group, const Group& parts) {
      return has_dims(group, parts.dims) ||
             (is_whole(parts, group.dims) && !are_rows_summed(group.dims));
    };
    if (!b.wholes.empty()) return fits(a, b);
    if (!a.wholes.empty()) return fits(b, a);
    return has_dims(a, b.dims);
  }
  /// Returns the merged group. Appends the shorter list of records to the longer one, so their
  /// order is lost.
  static Group together(Group a, Group b) {
    if (a.records.size() < b.records.size()) a.records.swap(b.records);
    a.records.insert(a.records.end(), b.records.begin(), b.records.end());
    a.walks += b.walks;
    if (a.wholes.empty() && (!b.wholes.empty() || b.has_sums)) a.dims = b.dims;
    a.has_sums = a.has_sums || b.has_sums;
    a.has_short_runs = a.has_short_runs || b.has_short_runs;
    if (a.wholes.empty()) a.axis = b.axis;
    if (!a.walk) a.walk = b.walk;
    for (const Dims* whole : b.wholes)
      if (!is_whole(a, *whole)) a.wholes.push_back(whole);
    return a;
  }

  /// Returns true if a third group reads a result of one group, and the other reads its result.
  bool is_between(std::size_t a, std::size_t b) const {
    return needs_.any_of(b, [&](std::size_t x) { return needs_.has(x, a); }) ||
           needs_.any_of(a, [&](std::size_t x) { return needs_.has(x, b); });
  }

  void merge(std::size_t from, std::size_t to) {
    head_[from] = to;
    heads_.erase(std::lower_bound(heads_.begin(), heads_.end(), from));
    needs_.add_all(to, from);
    needs_.clear(to, from);
    needs_.clear(to, to);
    apart_.add_all(to, from);
    for (const std::size_t x : heads_) {
      if (x == to) continue;
      if (apart_.has(from, x)) apart_.set(x, to);
      if (needs_.has(x, from)) needs_.set(x, to);
      needs_.clear(x, from);
      if (needs_.has(x, to)) needs_.add_all(x, to);
    }
    groups_[to] = together(std::move(*groups_[from]), std::move(*groups_[to]));
    groups_[from].reset();
  }

  const Graph& graph_;
  std::unordered_map<const DimNode*, std::size_t> bound_by_;  ///< the record; kNone: an input
  std::vector<std::size_t> made_by_;                          ///< by value, the record
  mutable std::vector<std::size_t>
      head_;                        ///< by record: the head of its group, or a record nearer to it
  std::vector<std::size_t> heads_;  ///< ascending
  Relation needs_;                  ///< by head: the heads that must run before
  Relation apart_;  ///< by head: the heads that must not join it, as one reads a value of the other
                    ///< that it may not
  std::vector<std::optional<Group>> groups_;
  std::vector<std::uint8_t> feeds_;  ///< by record: the direction of recurrences behind it, or 0
  std::vector<const Dims*> summed_;  ///< dims of values that are summed over rows, each once
};

PointwiseGroups::PointwiseGroups(const Graph& graph)
    : grouping_(std::make_unique<const Grouping>(graph)) {}
PointwiseGroups::~PointwiseGroups() = default;
std::size_t PointwiseGroups::head(std::size_t record) const { return grouping_->head(record); }
bool PointwiseGroups::is_fused(std::size_t head) const { return grouping_->is_fused(head); }
const std::vector<std::size_t>& PointwiseGroups::records(std::size_t head) const {
  return grouping_->group(head)->records;
}
bool PointwiseGroups::needs(std::size_t head, std::size_t other) const {
  return grouping_->needs(head, other);
}

}  // namespace reel
