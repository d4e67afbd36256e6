#include "reel/trace/passes/fusion/unfold_products.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/products/products.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/trace/passes/fusion/tile_ops.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// Values of fewer elements stay in the second-level cache between two ops.
constexpr std::int64_t kLargeElements = 1 << 16;
/// Sums of more terms are faster as products with a matrix.
constexpr std::int64_t kMaxTerms = 64;

/// For each axis of a product's elements, the operand's axis, or -1.
using From = std::vector<int>;

class Unfolding {
 public:
  explicit Unfolding(const Graph& from)
      : from_(from), to_(from), made_by_(from.types.size()), is_read_(from.types.size()) {
    for (const OpRecord& record : from.records) {
      for (const ValueId v : from.outputs_of(record)) made_by_[v] = &record;
      if (is_fusable(record))
        for (const ValueId v : from.inputs_of(record)) is_read_[v] = 1;
    }
  }

  Ref<Graph> run() {
    for (const OpRecord& record : from_.records)
      if (record.op != &dot_op || !unfold(record))
        to_.keep(record, with_all_sub_graphs(record, unfold_products));
    return to_.finish();
  }

 private:
  struct Axes {
    From a, b;
    Dims dims;
  };

  const TensorType& type(ValueId v) const { return from_.types[v]; }
  static std::size_t at(int axis) { return static_cast<std::size_t>(axis); }
  static bool has(const std::vector<int>& axes, int axis) {
    return std::ranges::find(axes, axis) != axes.end();
  }
  static bool is_large(const TensorType& type) {
    return is_float(type.dtype()) && least_elements(type) >= kLargeElements;
  }

  /// Returns the axes of all products of elements: pairs of a batch, free axes of a, free axes of
  /// b, then contracted pairs.
  Axes axes_of(const DotAttrs& attrs, const TensorType& a, const TensorType& b) const {
    Axes axes;
    const auto add = [&](int in_a, int in_b) {
      axes.a.push_back(in_a);
      axes.b.push_back(in_b);
      axes.dims.push_back(in_a >= 0 ? a.dims()[at(in_a)] : b.dims()[at(in_b)]);
    };
    for (std::size_t i = 0; i < attrs.a_batch.size(); ++i) add(attrs.a_batch[i], attrs.b_batch[i]);
    for (int axis = 0; axis < a.rank(); ++axis)
      if (!has(attrs.a_batch, axis) && !has(attrs.a_contract, axis)) add(axis, -1);
    for (int axis = 0; axis < b.rank(); ++axis)
      if (!has(attrs.b_batch, axis) && !has(attrs.b_contract, axis)) add(-1, axis);
    for (std::size_t i = 0; i < attrs.a_contract.size(); ++i)
      add(attrs.a_contract[i], attrs.b_contract[i]);
    return axes;
  }
  static bool is_in_order(const From& from) {
    int last = -1;
    for (const int axis : from) {
      if (axis >= 0 && axis < last) return false;
      last = std::max(last, axis);
    }
    return true;
  }
  static bool is_whole(const From& from) {
    return std::ranges::all_of(from, [](int axis) { return axis >= 0; });
  }

  /// Replaces a product. Returns false if it stays.
  bool unfold(const OpRecord& record) {
    const auto& attrs = get<DotAttrs>(record.attrs.get());
    const ValueId a = from_.inputs_of(record)[0], b = from_.inputs_of(record)[1],
                  made = from_.outputs_of(record)[0];
    const TensorType &of_a = type(a), &of_b = type(b);
    if (of_a.rank() == 0 || of_b.rank() == 0) return false;
    source_ = record.source;
    const Axes axes = axes_of(attrs, of_a, of_b);
    if (!is_in_order(axes.a) || !is_in_order(axes.b)) return false;
    if (attrs.a_contract.empty()) {
      if (!is_large(type(made)) || !is_read_[made]) return false;
      append(mul_op, {}, {expanded(a, axes.a, axes.dims), expanded(b, axes.b, axes.dims)}, made);
      return true;
    }
    const ValueId large = is_whole(axes.a) ? a : b;
    if (!is_whole(large == a ? axes.a : axes.b) || a == b || !sums_few(attrs, type(large)) ||
        !is_large(type(large)) || !made_by_[large] || !is_fusable(*made_by_[large]))
      return false;
    const ValueId other =
        large == a ? expanded(b, axes.b, axes.dims) : expanded(a, axes.a, axes.dims);
    const ValueId terms = to_.to().add_value(type(large));
    append(mul_op, {}, {to_[large], other}, terms);
    append(sum_op, reduce_attrs({type(large).rank() - 1}), {terms}, made);
    return true;
  }

  /// Returns true if one pair is contracted, with few elements and no padding. It is the last axis
  /// of an operand that has all axes.
  static bool sums_few(const DotAttrs& attrs, const TensorType& large) {
    const Dim& dim = large.dims().back();
    return attrs.a_contract.size() == 1 && large.rank() > 1 && dim.has_size() && dim.size() >= 2 &&
           dim.size() <= kMaxTerms && !dim.is_ragged();
  }

  /// Returns the value with these dims; appends an expand if it lacks some.
  ValueId expanded(ValueId v, const From& from, const Dims& dims) {
    if (is_whole(from)) return to_[v];
    ExpandAttrs attrs{from, {}};
    for (std::size_t axis = 0; axis < from.size(); ++axis)
      if (from[axis] < 0) attrs.added.push_back(dims[axis]);
    const ValueId made = to_.to().add_value(type(v).with(dims));
    append(expand_op, make_attrs(std::move(attrs)), {to_[v]}, made);
    return made;
  }
  void append(const Op& op, AttrsRef attrs, std::vector<ValueId> in, ValueId made) {
    to_.to().append(op, std::move(attrs), in, std::array{made}, source_);
  }

  const Graph& from_;
  GraphRewriter to_;
  std::vector<const OpRecord*> made_by_;  ///< by value; null: no record
  std::vector<std::uint8_t> is_read_;     ///< by value: an op that may be fused reads it
  SourceId source_ = kNoSource;           ///< of the product
};

}  // namespace

Ref<Graph> unfold_products(const Graph& graph) { return Unfolding(graph).run(); }

}  // namespace reel
