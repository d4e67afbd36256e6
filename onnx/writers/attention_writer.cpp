#include "reel/onnx/writers/attention_writer.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "reel/onnx/writers/merged_axes.h"

namespace reel::exported {
namespace {

constexpr std::size_t kQ = 0, kK = 1, kV = 2, kBias = 3, kMask = 4, kOffset = 5;  // roles
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// The dims of a call, by the axes of the node.
struct AttentionAxes {
  Dims batch, heads, groups;   ///< groups: heads of queries for each head of keys
  std::optional<Dim> queries;  ///< as q has it
  Dim keys = 0, features = 0;
  Dims values;  ///< dims that only v has
};

AttentionAxes axes_of(const LabelledCall& at) {
  AttentionAxes axes;
  axes.keys = at.dim(0);
  axes.features = at.dim(1);
  const Dims &q = at.type(kQ)->dims(), &k = at.type(kK)->dims();
  const Dims rows = dims_without(q, {axes.features});
  const bool has_keys = contains(rows, axes.keys), is_counted = at.number(3) != 0;
  Dims own = dims_without(rows, dims_without(k, {axes.keys}));
  const Dims shared = dims_without(rows, own);
  if (has_keys)
    axes.queries = axes.keys;
  else if (is_counted)
    axes.queries = at.dim(2);
  else if (!own.empty())
    axes.queries = own.back();
  if (axes.queries) own = dims_without(own, {*axes.queries});
  axes.groups = own;
  axes.batch = shared;
  if (shared.size() > 1) {
    axes.heads = {shared.back()};
    axes.batch.pop_back();
  }
  axes.values = dims_without(at.type(kV)->dims(), shared);
  axes.values = dims_without(axes.values, {axes.keys});
  return axes;
}

/// The masks and the bias of a call, and the nodes that join them.
class Masks {
 public:
  Masks(GraphWriter& to, const LabelledCall& at, const AttentionAxes& axes)
      : to_(to),
        at_(at),
        axes_(axes),
        queries_(axes.queries ? to.twin(*axes.queries) : Dim("queries", 1)) {
    for (const Dims* dims : {&axes.batch, &axes.heads, &axes.groups})
      all_.insert(all_.end(), dims->begin(), dims->end());
    all_.push_back(queries_);
    all_.push_back(axes.keys);
    add_positions();
    if (at.type(kMask)) add(at.name(to, kMask), named(at.type(kMask)->dims()));
    if (axes.keys.is_ragged()) {
      Dims dims = axes.keys.length_dims();
      dims.push_back(axes.keys);
      add(to.mask(axes.keys), dims);
    }
  }

  bool is_causal() const { return is_causal_; }
  /// Returns the operand attn_mask: [batch or 1, heads or 1, queries, keys]; empty if there is
  /// none.
  Name joined() {
    if (at_.type(kBias)) return joined_bias();
    return mask_.empty() ? Name() : whole(in_axes(mask_, mask_dims_));
  }
  /// Returns true for queries that see a key: [batch or 1, heads or 1, queries, 1]; empty if all
  /// do.
  Name sees_any(const Name& joined) {
    if (joined.empty()) return {};
    const Name sees = at_.type(kBias)
                          ? to_.add("Greater", {joined, to_.model().number(kMinusInfinity, f32)})
                          : joined;
    return to_.unsqueeze(to_.any(sees, {3}), {3});
  }

 private:
  /// Returns the dims of a mask with one name for the dim of q.
  Dims named(Dims dims) const {
    const bool has_own_name = at_.number(3) != 0 && !(at_.dim(2) == axes_.keys);
    for (Dim& dim : dims)
      if ((has_own_name && dim == at_.dim(2)) ||
          (axes_.queries && !(*axes_.queries == axes_.keys) && dim == *axes_.queries))
        dim = queries_;
    return dims;
  }

  void add(const Name& mask, const Dims& dims) {
    if (mask_.empty()) {
      mask_ = mask;
      mask_dims_ = dims;
      return;
    }
    Dims both;
    for (const Dim& dim : all_)
      if (contains(mask_dims_, dim) || contains(dims, dim)) both.push_back(dim);
    mask_ = to_.add("And", {to_.aligned(mask_, mask_dims_, both), to_.aligned(mask, dims, both)});
    mask_dims_ = both;
  }

  /// Masks keys that `causal` and `window` hide. Without other masks, the node has an attribute.
  void add_positions() {
    const bool is_causal = at_.number(1) != 0, has_window = at_.number(2) >= 0;
    const bool has_others =
        at_.type(kMask) || at_.type(kBias) || at_.type(kOffset) || axes_.keys.is_ragged();
    is_causal_ = is_causal && !has_window && !has_others;
    if (is_causal_ || (!is_causal && !has_window)) return;
    const Name of_key = to_.range(axes_.keys, i32);
    Name of_query;
    Dims dims;
    if (axes_.queries && at_.number(3) != 0) {
      of_query = to_.range(*axes_.queries, i32);
      dims = {queries_};
    }
    if (at_.type(kOffset)) {
      Dims both = at_.type(kOffset)->dims();
      const Name offset = to_.cast(at_.name(to_, kOffset), i32);
      both.insert(both.end(), dims.begin(), dims.end());
      of_query = dims.empty()
                     ? offset
                     : to_.add("Add", {to_.unsqueeze(offset, {static_cast<int>(both.size()) - 1}),
                                       of_query});
      dims = both;
    }
    if (of_query.empty()) of_query = to_.model().integer(0, i32);
    of_query = to_.unsqueeze(of_query, {static_cast<int>(dims.size())});
    dims = named(dims);  // an offset may have the dim of q if no positions along it count
    dims.push_back(axes_.keys);
    if (is_causal) add(to_.add("LessOrEqual", {of_key, of_query}), dims);
    if (has_window) {
      const Name distance = to_.add("Abs", {to_.add("Sub", {of_query, of_key})});
      const auto window = static_cast<std::int64_t>(
          std::min<double>(at_.number(2), std::numeric_limits<std::int32_t>::max() / 2));
      add(to_.add("LessOrEqual", {distance, to_.model().integer(window, i32)}), dims);
    }
  }

  Name in_axes(const Name& x, const Dims& dims) {
    Dims heads = axes_.heads;
    heads.insert(heads.end(), axes_.groups.begin(), axes_.groups.end());
    return broadcast_to_axes(to_, x, dims, {axes_.batch, heads, {queries_}, {axes_.keys}});
  }
  /// onnxruntime broadcasts the first two axes only.
  Name whole(const Name& x) {
    const Name one = to_.model().integers({1});
    return to_.add("Expand",
                   {x, to_.concat({one, one, axes_.queries ? to_.size(*axes_.queries) : one,
                                   to_.size(axes_.keys)},
                                  0)});
  }
  Name joined_bias() {
    const Name bias = in_axes(at_.name(to_, kBias), named(at_.type(kBias)->dims()));
    if (mask_.empty()) return whole(bias);
    return whole(to_.add(
        "Where", {in_axes(mask_, mask_dims_), bias, to_.model().number(kMinusInfinity, f32)}));
  }

  GraphWriter& to_;
  const LabelledCall& at_;
  const AttentionAxes& axes_;
  const Dim queries_;  ///< the name of the dim of q in masks, which may have the dim of keys too
  Dims all_;           ///< in the order of the node's axes
  Name mask_;
  Dims mask_dims_;
  bool is_causal_ = false;
};

}  // namespace

bool fits_attention(const LabelledCall& at) {
  const Dim &keys = at.dim(0), &features = at.dim(1);
  const Dims& q = at.type(kQ)->dims();
  // Runtimes multiply q and k by the root of the scale. NaN fails, too.
  if (!(at.number(0) >= 0)) return false;
  const Dims of_k = dims_without(at.type(kK)->dims(), {keys, features});
  if (!dims_without(of_k, q).empty() || !dims_without(of_k, at.type(kV)->dims()).empty())
    return false;
  const AttentionAxes axes = axes_of(at);
  // v has no dims of queries.
  if (dims_without(axes.values, dims_without(q, {features})).size() != axes.values.size())
    return false;
  if (axes.queries && !contains(q, *axes.queries)) return false;
  if (keys.is_ragged() && !dims_without(keys.length_dims(), of_k).empty()) return false;
  return true;
}

Names write_attention(const WriteCall& call, const LabelledCall& at) {
  GraphWriter& to = call.to;
  const AttentionAxes axes = axes_of(at);
  Dims query_heads = axes.heads, queries;
  query_heads.insert(query_heads.end(), axes.groups.begin(), axes.groups.end());
  if (axes.queries) queries = {*axes.queries};
  const MergedAxes of_q{axes.batch, query_heads, queries, {axes.features}},
      of_k{axes.batch, axes.heads, {axes.keys}, {axes.features}},
      of_v{axes.batch, axes.heads, {axes.keys}, axes.values},
      of_y{axes.batch, query_heads, queries, axes.values};
  const Name zero = to.model().number(0, f32);
  // Zero times NaN is NaN, so padding is zero.
  const auto unpadded = [&](std::size_t role) {
    return to.mask_padding(at.name(to, role), *at.type(role), zero);
  };
  Masks masks(to, at, axes);
  const Name mask = masks.joined();
  Names inputs{to_axes(to, at.name(to, kQ), at.type(kQ)->dims(), of_q),
               to_axes(to, unpadded(kK), at.type(kK)->dims(), of_k),
               to_axes(to, unpadded(kV), at.type(kV)->dims(), of_v)};
  if (!mask.empty()) inputs.push_back(mask);
  Attributes attributes{{"scale", number(at.number(0))}};
  if (masks.is_causal()) attributes.emplace("is_causal", integer(1));
  Name y = to.add("Attention", inputs, attributes);
  if (const Name sees = masks.sees_any(mask); !sees.empty()) y = to.where(sees, y, zero, f32);
  return {from_axes(to, y, of_y, call.type_out().dims())};
}

}  // namespace reel::exported
