#include "reel/trace/passes/cleanup/sink_transposes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/convolutions/window_max.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/types/type_list.h"
#include "reel/trace/passes/cleanup/drop_dead.h"

namespace reel {
namespace {

using Order = std::vector<int>;

/// Operands that are rearranged by a copy have at most this share of the result's elements.
constexpr std::int64_t kCopiedShare = 4;

bool is_identity(const Order& order) { return std::is_sorted(order.begin(), order.end()); }

Order inverse(const Order& order) {
  Order result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    result[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  return result;
}

/// Returns the type before a transpose to this order.
TensorType before(const TensorType& type, const Order& order) {
  Dims dims = type.dims();
  for (std::size_t i = 0; i < order.size(); ++i)
    dims[static_cast<std::size_t>(order[i])] = type.dims()[i];
  return type.with(dims);
}

bool is_plain(const TensorType& type) {
  return !type.is_list() && !type.is_named() && type.is_known() && !type.node()->has_symbols;
}

/// Returns the bytes that the transposes of a graph make; 1 for each transpose of unknown size.
std::int64_t transposed_bytes(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const OpRecord& record : graph.records) {
    if (record.op != &transpose_op) continue;
    const TensorType& made = graph.types[graph.outputs_of(record)[0]];
    bytes += made.numel() < 0 ? 1 : made.bytes() + 1;
  }
  return bytes;
}

/// A value that is the transpose of another one.
struct Transposed {
  ValueId of;
  Order order;
};

class SinkingTransposes {
 public:
  explicit SinkingTransposes(const Graph& from) : from_(from), to_(from) {}

  Ref<Graph> run() {
    for (const OpRecord& record : from_.records) {
      if (record.op == &transpose_op)
        join(record);
      else if (!(record.op->pointwise && sink_elementwise(record)) &&
               !(record.op == &window_max_op && sink_window_max(record)))
        to_.keep(record);
    }
    return changes_ ? to_.finish() : Ref<Graph>();
  }

 private:
  const TensorType& type(ValueId v) const { return to_.to().types[v]; }
  const Transposed* transposed(ValueId v) const {
    const auto found = transposed_.find(v);
    return found == transposed_.end() ? nullptr : &found->second;
  }
  /// Appends a transpose that makes `out`.
  void append_transpose(const OpRecord& record, ValueId of, Order order, ValueId out) {
    to_.to().append(transpose_op, make_attrs(TransposeAttrs{order}), std::array{of},
                    std::array{out}, record.source, record.recompute);
    transposed_.insert_or_assign(out, Transposed{of, std::move(order)});
  }

  /// Replaces a transpose of a transpose by one transpose of the first operand.
  void join(const OpRecord& record) {
    const ValueId in = to_.inputs_of(record)[0], out = from_.outputs_of(record)[0];
    Order order = get<TransposeAttrs>(record.attrs.get()).order;
    const Transposed* const first = transposed(in);
    if (!first) return append_transpose(record, in, std::move(order), out);
    changes_ = true;
    for (int& axis : order) axis = first->order[static_cast<std::size_t>(axis)];
    if (is_identity(order))
      to_.replace(out, first->of);
    else
      append_transpose(record, first->of, std::move(order), out);
  }

  bool sink_elementwise(const OpRecord& record) {
    const auto outs = from_.outputs_of(record);
    if (outs.size() != 1 || record.op->has_effect || !is_plain(type(outs[0]))) return false;
    const TensorType made = type(outs[0]);  // new values move the list of types
    std::vector<ValueId> in = to_.inputs_of(record);
    const Order* order = nullptr;
    for (const ValueId v : in)
      if (const Transposed* at = transposed(v); at && type(v).sizes() == made.sizes())
        order = &at->order;
    if (!order) return false;
    const Order kept = *order;  // new transposes move the elements of the map
    for (const ValueId v : in)
      if (!fits(v, made, kept)) return false;
    if (record.attrs && !moves_with_axes(record, in, made, kept)) return false;
    for (ValueId& v : in) v = rearranged(record, v, made, kept);
    const ValueId value = to_.to().add_value(before(made, kept));
    to_.keep(record, record.attrs, in, std::array{value});
    append_transpose(record, value, kept, outs[0]);
    return changes_ = true;
  }

  bool is_in_order(ValueId v, const TensorType& made, const Order& order) const {
    const Transposed* const at = transposed(v);
    return at && at->order == order && type(v).rank() == made.rank();
  }
  /// Returns true if the operand is in the order of axes before the transpose, or is rearranged at
  /// little cost.
  bool fits(ValueId v, const TensorType& made, const Order& order) const {
    if (!is_plain(type(v)) || type(v).rank() > made.rank()) return false;
    return type(v).numel() == 1 || is_in_order(v, made, order) ||
           (type(v).numel() < made.numel() &&
            (reshaped(v, made, order) || type(v).numel() <= made.numel() / kCopiedShare));
  }
  /// Returns the sizes of an operand with as many axes as the result has.
  std::vector<std::int64_t> full_sizes(ValueId v, const TensorType& made) const {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(made.rank() - type(v).rank()), 1);
    sizes.insert(sizes.end(), type(v).sizes().begin(), type(v).sizes().end());
    return sizes;
  }
  /// Returns the dims that a reshape gives the operand in the order before the transpose; nothing
  /// if elements would have to move.
  std::optional<Dims> reshaped(ValueId v, const TensorType& made, const Order& order) const {
    const std::vector<std::int64_t> sizes = full_sizes(v, made);
    int last = -1;  // the axis of the result of the last one with several elements
    Dims dims;
    for (const int axis : inverse(order)) {
      const std::int64_t size = sizes[static_cast<std::size_t>(axis)];
      if (size != 1 && axis < last) return std::nullopt;
      if (size != 1) last = axis;
      if (size != 1 || !dims.empty()) dims.emplace_back(size);
    }
    return dims;
  }
  /// Returns the operand in the order of axes before the transpose. Requires fits().
  ValueId rearranged(const OpRecord& record, ValueId v, const TensorType& made,
                     const Order& order) {
    if (type(v).numel() == 1) return v;
    if (is_in_order(v, made, order)) return transposed(v)->of;
    if (const std::optional<Dims> dims = reshaped(v, made, order)) return reshape(record, v, *dims);
    const std::vector<std::int64_t> sizes = full_sizes(v, made);
    const ValueId full = reshape(record, v, Dims(sizes.begin(), sizes.end()));
    const ValueId value = to_.to().add_value(before(type(full), order));
    append_transpose(record, full, inverse(order), value);
    return value;
  }
  /// Returns the type of rearranged().
  TensorType rearranged_type(ValueId v, const TensorType& made, const Order& order) const {
    if (type(v).numel() == 1) return type(v);
    if (is_in_order(v, made, order)) return type(transposed(v)->of);
    if (const std::optional<Dims> dims = reshaped(v, made, order)) return type(v).with(*dims);
    const std::vector<std::int64_t> sizes = full_sizes(v, made);
    return before(type(v).with(Dims(sizes.begin(), sizes.end())), order);
  }
  /// Returns true if the type rule of the op accepts operands in the order before the transpose.
  /// Attributes may name axes or sizes, as attributes of ensure_shape do.
  bool moves_with_axes(const OpRecord& record, const std::vector<ValueId>& in,
                       const TensorType& made, const Order& order) const {
    std::vector<TensorType> types;
    for (const ValueId v : in) types.push_back(rearranged_type(v, made, order));
    TypeList out;
    TypeArgs args{*record.op, record.attrs.get(), types, out};
    try {
      record.op->type(args);
    } catch (const Error&) {
      return false;
    }
    return out.span()[0] == before(made, order);
  }
  ValueId reshape(const OpRecord& record, ValueId v, const Dims& dims) {
    if (type(v).dims() == dims) return v;
    const ValueId value = to_.to().add_value(type(v).with(dims));
    to_.to().append(reshape_op, make_attrs(ReshapeAttrs{{}, dims}), std::array{v},
                    std::array{value}, record.source, record.recompute);
    return value;
  }

  /// Axes of windows must lie side by side before the transpose, too.
  bool sink_window_max(const OpRecord& record) {
    const ValueId in = to_.inputs_of(record)[0];
    const Transposed* const at = transposed(in);
    if (!at || !is_plain(type(in))) return false;
    const Order order = at->order;
    PoolAttrs attrs = get<PoolAttrs>(record.attrs.get());
    const auto first = order.size() - static_cast<std::size_t>(attrs.inner + attrs.spatial());
    for (std::size_t i = 0; i < attrs.windows.size(); ++i)
      if (order[first + i] != order[first] + static_cast<int>(i)) return false;
    attrs.inner = type(in).rank() - order[first] - attrs.spatial();
    const auto outs = from_.outputs_of(record);
    const std::array made{to_.to().add_value(before(type(outs[0]), order)),
                          to_.to().add_value(before(type(outs[1]), order))};
    to_.to().append(record, make_attrs(std::move(attrs)), std::array{at->of}, made);
    for (std::size_t i = 0; i < made.size(); ++i) append_transpose(record, made[i], order, outs[i]);
    return changes_ = true;
  }

  const Graph& from_;
  GraphRewriter to_;
  std::unordered_map<ValueId, Transposed> transposed_;  ///< by value
  bool changes_ = false;                                ///< a transpose moved
};

}  // namespace

Ref<Graph> sink_transposes(const Graph& graph) {
  Ref<Graph> moved = SinkingTransposes(graph).run();
  const bool pays = moved && transposed_bytes(*drop_dead(*moved)) < transposed_bytes(graph);
  return pays ? std::move(moved) : Ref<Graph>();
}

}  // namespace reel
