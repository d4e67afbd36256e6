// Ops that merge axes and split one, and functions built on them: merge_dims, split_dim, squeeze.
#include "reel/core/ops/shape/merge.h"

#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/along_axis.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/types/dim_expression.h"
#include "reel/core/types/dim_node.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

/// Returns the product of sizes, or -1 if only a run determines it.
std::int64_t product(const Dims& dims, std::size_t first, std::size_t count,
                     std::string_view op = "merge_dims") {
  std::int64_t result = 1;
  for (std::size_t i = first; i < first + count; ++i) {
    if (!dims[i].has_size()) return -1;
    result = multiply_sizes(result, dims[i].size(), op);
  }
  return result;
}

/// Replaces `count` dims from an axis on.
Dims with_dims(const Dims& dims, int axis, int count, const Dims& others) {
  Dims result(dims.begin(), dims.begin() + axis);
  result.insert(result.end(), others.begin(), others.end());
  result.insert(result.end(), dims.begin() + axis + count, dims.end());
  return result;
}

std::vector<int> positions(int axis, std::size_t count) {
  std::vector<int> result;
  for (std::size_t i = 0; i < count; ++i) result.push_back(axis + static_cast<int>(i));
  return result;
}

// ---- merge_dims ---------------------------------------------------------------------------------

void merge_type(TypeArgs& a) {
  const auto& [axis, count, to, reads_shape] = a.attr<MergeDimsAttrs>();
  const TensorType& x = a.in[0];
  check_axes(x, axis, count);
  const std::int64_t size =
      product(x.dims(), static_cast<std::size_t>(axis), static_cast<std::size_t>(count));
  const Dims merged(x.dims().begin() + axis, x.dims().begin() + axis + count);
  const Dim dim =
      checked_dim("merge_dims", to, size, [&] { return str(merged, " of ", x, " together"); });
  a.out.push_back(x.with(with_dims(x.dims(), axis, count, {dim})));
}

Tensor merge_positions(const Tensor& x, MergeDimsAttrs attrs) {
  attrs.reads_shape = has_unknown_size(x.type());
  return bind(merge_dims_op, {x}, make_attrs(std::move(attrs)));
}
Tensor split_positions(const Tensor& x, SplitDimAttrs attrs) {
  attrs.reads_shape = has_unknown_size(x.type());
  return bind(split_dim_op, {x}, make_attrs(std::move(attrs)));
}

// ---- split_dim ----------------------------------------------------------------------------------

constexpr const char* kFillHint = "; {.fill = value} adds elements up to a multiple";

/// Returns the parts, with the open one computed if possible.
Dims closed_parts(const TensorType& x, const SplitDimAttrs& attrs) {
  const Dim& dim = dim_at(x, attrs.axis);
  Dims parts = attrs.parts;
  std::int64_t others = 1, open = -1;
  bool is_known = true;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].has_size()) {
      others = multiply_sizes(others, parts[i].size(), "split_dim");
    } else if (parts[i].is_named()) {
      is_known = false;
    } else {
      if (open >= 0 && dim.has_size())
        throw ShapeError(str("split_dim: ", parts, " leaves two sizes open; one may be unknown"));
      open = static_cast<std::int64_t>(i);
    }
  }
  if (!is_known || !dim.has_size()) return parts;
  if (open < 0 ? others != dim.size() : others == 0 || dim.size() % others)
    throw ShapeError(str("split_dim: ", axis_name(x, attrs.axis), " has size ", dim.size(),
                         ", but ", parts, open < 0 ? " make " : " take multiples of ", others,
                         others && (open >= 0 || !is_static(dim)) ? kFillHint : ""));
  if (open >= 0) parts[static_cast<std::size_t>(open)] = Dim(dim.size() / others);
  return parts;
}

void split_type(TypeArgs& a) {
  const SplitDimAttrs& attrs = a.attr<SplitDimAttrs>();
  const TensorType& x = a.in[0];
  a.out.push_back(x.with(with_dims(x.dims(), attrs.axis, 1, closed_parts(x, attrs))));
}

// ---- Both ---------------------------------------------------------------------------------------

}  // namespace

const Op merge_dims_op{
    .name = "merge_dims",
    .type = merge_type,
    .kernel = same_elements,
    .storage = OpStorage::input,
    .vjp =
        [](Vjp& at) {
          const auto& [axis, count, to, reads_shape] = at.attr<MergeDimsAttrs>();
          if (reads_shape) return reshape_to_input(at);
          const Dims& dims = at.input_type(0).dims();
          at.add(0,
                 split_positions(without_padding(at.cotangent(), axis),
                                 {axis, Dims(dims.begin() + axis, dims.begin() + axis + count)}));
        },
    .reads_by = reads_shape<MergeDimsAttrs>,
    .samples =
        [] {
          const Dims& dims = sample_dims();
          const Dim wider("time", tensor({6, 2}, {dims[0]})), all("all", 12), beam("beam", 2);
          return OpSamples{
              {{{TensorType(f32, {2, 3, 2})}}, make_attrs(MergeDimsAttrs{0, 2, {}})},
              {{{TensorType(f32, {2, 3, 2})}}, make_attrs(MergeDimsAttrs{0, 2, {}, true})},
              {{{TensorType(f32, {2, 0, 3})}}, make_attrs(MergeDimsAttrs{1, 2, {}})},
              {{{TensorType(f32, {3})}}, make_attrs(MergeDimsAttrs{0, 1, {}})},
              {{{TensorType(f32, dims)}}, make_attrs(MergeDimsAttrs{1, 2, wider})},
              {{{TensorType(f32, {beam, dims[2]})}},
               make_attrs(MergeDimsAttrs{0, 2, Dim("both", 4)})},
              {{{TensorType(f32, {dims[0], Dim("a", 3), Dim("b", 2)})}},
               make_attrs(MergeDimsAttrs{0, 3, all})}};
        },
    .iteration_batching = axis_across_iterations<MergeDimsAttrs>,
    .axes =
        [](const OpCall& call, AxisFactors& f) {
          const auto& merged = call.attr<MergeDimsAttrs>();
          axes_around(merged.axis, merged.count, 1, call, f);
        },
    .fails = never_fails,
};

const Op split_dim_op{
    .name = "split_dim",
    .type = split_type,
    .kernel = same_elements,
    .storage = OpStorage::input,
    .vjp =
        [](Vjp& at) {
          const SplitDimAttrs& attrs = at.attr<SplitDimAttrs>();
          if (attrs.reads_shape) return reshape_to_input(at);
          // Masks only padding along the parts.
          Tensor g = at.cotangent();
          if (reduces_padding(g.type(), positions(attrs.axis, attrs.parts.size())))
            g = mask_padding(g);
          at.add(0, merge_positions(g, {attrs.axis, static_cast<int>(attrs.parts.size()),
                                        named_dim(at.input_type(0), attrs.axis)}));
        },
    .reads_by = reads_shape<SplitDimAttrs>,
    .samples =
        [] {
          const Dims& dims = sample_dims();
          const Dim wider("time", tensor({6, 2}, {dims[0]})), all("all", 6), gate("gate", 4);
          return OpSamples{
              {{{TensorType(f32, {2, 6})}}, make_attrs(SplitDimAttrs{1, {3, 2}})},
              {{{TensorType(f32, {2, 6})}}, make_attrs(SplitDimAttrs{1, {3, 2}, true})},
              {{{TensorType(f32, {0, 2})}}, make_attrs(SplitDimAttrs{0, {3, 0}})},
              {{{TensorType(f32, {4})}}, make_attrs(SplitDimAttrs{0, {2, Dim::unknown()}})},
              {{{TensorType(f32, {all})}}, make_attrs(SplitDimAttrs{0, {dims[0], dims[1]}})},
              {{{TensorType(f32, {dims[0], wider})}},
               make_attrs(SplitDimAttrs{1, {dims[1], dims[2]}})},
              {{{TensorType(f32, {gate, dims[1]})}},
               make_attrs(SplitDimAttrs{0, {dims[0], dims[2]}})}};
        },
    .iteration_batching = axis_across_iterations<SplitDimAttrs>,
    .axes =
        [](const OpCall& call, AxisFactors& f) {
          const auto& split = call.attr<SplitDimAttrs>();
          axes_around(split.axis, 1, static_cast<int>(split.parts.size()), call, f);
        },
    .fails = never_fails,
};

// ---- Public functions ---------------------------------------------------------------------------

namespace {

/// True if entries of a ragged dim stay contiguous: each position becomes the same number of
/// positions.
bool keeps_entries(const Dims& merged) {
  if (!merged[0].is_ragged()) return false;
  return std::none_of(merged.begin() + 1, merged.end(), [&](const Dim& dim) {
    return dim.is_ragged() || contains(merged[0].length_dims(), dim);
  });
}

/// Returns true if merged axes stay ragged, so that padding of the first one stays padding. to: the
/// merged dim, or the caller's request for it.
bool stays_ragged(const Dims& merged, const std::optional<Dim>& to) {
  return keeps_entries(merged) && (!to || to->is_undefined() || to->is_ragged());
}

/// Returns true if padding becomes ordinary elements: padding of a merged dim, or of a dim with
/// lengths over merged dims.
bool shows_padding(const TensorType& x, int axis, const Dims& merged,
                   const std::optional<Dim>& to) {
  for (int i = 0; i < x.rank(); ++i) {
    if (!is_masked(x, i)) continue;
    const Dim& dim = dim_at(x, i);
    const bool stays = !contains(merged, dim) || (i == axis && stays_ragged(merged, to));
    if (!stays || std::any_of(dim.length_dims().begin(), dim.length_dims().end(),
                              [&](const Dim& of) { return contains(merged, of); }))
      return true;
  }
  return false;
}

/// Makes the axes adjacent, in the given order, at the place of the first one.
std::vector<Axis> side_by_side(const TensorType& x, const std::vector<int>& listed) {
  std::vector<Axis> order;
  const int axis = *std::min_element(listed.begin(), listed.end());
  for (int i = 0; i < x.rank(); ++i) {
    if (i == axis) order.insert(order.end(), listed.begin(), listed.end());
    if (!std::count(listed.begin(), listed.end(), i)) order.emplace_back(i);
  }
  return order;
}

}  // namespace

Tensor merged_axes(const Tensor& x, const std::vector<int>& listed,
                   const std::optional<Dim>& named) {
  const int axis = *std::min_element(listed.begin(), listed.end());
  Tensor ordered = transpose(x, side_by_side(x.type(), listed));
  const Dims merged(ordered.dims().begin() + axis,
                    ordered.dims().begin() + axis + static_cast<int>(listed.size()));
  if (shows_padding(ordered.type(), axis, merged, named)) ordered = mask_padding(ordered);
  return merge_positions(ordered, {axis, static_cast<int>(listed.size()), named});
}

namespace {

bool any_ragged(const Dims& dims) {
  return std::any_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is_ragged(); });
}

/// The key of merge_dims or split_dim: it names the dims that the axes are afterwards.
SliceKey key_of(std::string_view function, const Dims& axes, const Dims& to) {
  SliceKey key = key_along(function, axes);
  for (const Dim& dim : canonical(to)) key.dim(dim);
  return key;
}

}  // namespace

Tensor merge_dims(const Tensor& x, const Axes& axes, std::optional<Dim> to,
                  const PaddingOptions& options) {
  const std::vector<int> listed = axes.in(x, "merge_dims");
  if (listed.empty()) throw ArgumentError(str("merge_dims: takes at least one axis of ", x.type()));
  Dims merged;
  for (const int axis : listed) merged.push_back(dim_at(x.type(), axis));
  // Whether lengths differ is known eagerly only, so it does not count.
  for (std::size_t i = stays_ragged(merged, to); i < merged.size() && !options.counts_padding; ++i)
    if (has_its_lengths(x.type(), listed[i]))
      refuse_padding("merge_dims", x.type(), listed[i], merged);
  const bool is_given = to && !to->is_undefined();
  if (!to && merged[0].is_named()) {
    std::string name;
    for (const Dim& dim : merged) name += (name.empty() ? "" : "*") + dim.name();
    to = Dim(std::move(name));
  }
  const bool sizes_are_static = std::all_of(merged.begin(), merged.end(), is_static);
  auto named = changed_dim(
      merged[0], to, merged, sizes_are_static ? product(merged, 0, merged.size()) : -1, [&] {
        Tensor lengths =
            keeps_entries(merged) ? cast(merged[0].lengths(), i64) : extent_of(merged[0]);
        for (std::size_t i = 1; i < merged.size(); ++i) lengths = lengths * extent_of(merged[i]);
        return lengths;
      });
  // Entries of a given dim may be longer.
  const auto merge = [&](const Tensor& of, const std::vector<int>& axes) {
    return merged_axes(is_given ? mask_padding(of) : of, axes, named);
  };
  const auto undoes = [&] { return key_of("split_dim", {*named}, merged); };
  if (!has_lengths_along(x.type(), listed)) return with_original_dims(merge(x, listed), undoes);
  const auto take = [&](const Tensor& of, int) {
    return merge(of, Axes(merged).in(of, "merge_dims"));
  };
  return AlongAxis(merged, take,
                   {.keeps_axis = contains(merged, *named),
                    .key = [&] { return key_of("merge_dims", merged, {*named}); },
                    .undoes = undoes,
                    .entries = with_entries_of(merged),
                    .makes_places = any_ragged(merged)})(x, listed[0]);
}

namespace {

/// How an axis is split.
struct Split {
  Dims parts;
  /// The dim of the axis with elements up to a multiple of the parts; none to add no elements.
  std::optional<Dim> longer;
};

/// Splits an axis of x alone, without the lengths that run over the axis.
Tensor split_axis(const Tensor& x, int axis, const Split& split, double fill) {
  if (!split.longer) return split_positions(clear_padding(x, axis), {axis, split.parts});
  const Tensor none = computed_plainly([] { return full({}, 0, i32); });
  return split_positions(shift(mask_padding(x, fill), none, axis, *split.longer, fill),
                         {axis, split.parts});
}

/// Returns true if a dim is known to be `first` times `others`, so that each part is full. Its
/// lengths do not count: a trace does not know them.
bool is_product(const Dim& dim, const Dim& first, std::int64_t others) {
  if (first.is_undefined()) return others == 1;
  if (others < 1) return false;
  const DimMultiple whole = multiple_of(dim), part = multiple_of(first);
  if (whole.of == part.of && whole.times % others == 0 && whole.times / others == part.times)
    return true;
  // A symbol of an argument's dim need not tell that it is a product.
  return is_tracing() && thread_mode.builder->hides_operands() && first.is_named() &&
         dim_times(first, others) == dim;
}

/// Returns the index of the open part; parts.size() if no part is open.
std::size_t open_part(const Tensor& x, int axis, const Dims& parts) {
  std::size_t open = parts.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].is_undefined()) continue;
    if (open < parts.size())
      throw ShapeError(
          str("split_dim: ", parts, " leaves two sizes open; one dim may be a name only"));
    open = i;
  }
  if (!dim_at(x.type(), axis).is_ragged()) return open;
  const auto is_one_size = [](const Dim& part) {
    return !part.is_ragged() && !part.is_undefined();
  };
  if (parts.empty() || is_one_size(parts[0]) ||
      !std::all_of(parts.begin() + 1, parts.end(), is_one_size))
    throw ShapeError(str("split_dim: ", axis_name(x.type(), axis),
                         " is ragged, so the first new dim, and only that one, must be ragged ",
                         "or a name; got ", parts));
  return open;
}

[[noreturn]] void refuse_to_fill(const TensorType& x, int axis, const Dims& others) {
  Dims dims = dim_at(x, axis).length_dims();
  dims.push_back(dim_at(x, axis));
  throw ShapeError(
      str("split_dim: ", axis_name(x, axis),
          " is ragged, and entries whose lengths are no multiples of ", others,
          " would get padding as elements; max_pool and mean_pool take windows of valid elements, ",
          "pack(x, ", names_of(dims), ") has the valid elements alone, and {.fill = value} gives ",
          "the padding a value: 0 to stack frames, or what a pool over the parts ignores, 0 for a ",
          "sum, -infinity for a maximum"));
}

/// Returns the dim of an axis with elements up to a multiple of `step` (i64, a scalar). known: that
/// number; -1 if only a run determines it.
Dim longer_dim(const TensorType& x, int axis, const Tensor& step, std::int64_t known) {
  const Dim& dim = dim_at(x, axis);
  if (is_static(dim) && known > 0) {
    const std::int64_t size =
        multiply_sizes(add_sizes(dim.size(), known - 1, "split_dim") / known, known, "split_dim");
    return dim.is_named() ? Dim(dim.name(), size) : Dim(size);
  }
  if (!dim.is_named())
    throw TraceError(str("split_dim: the size of ", axis_name(x, axis), " is not known while ",
                         "tracing, nor how many elements it lacks; name the axis"));
  return Dim(dim.name(), computed_plainly([&] {
               return floor_divide(cast(dim.lengths(), i64) + (step - 1), step) * step;
             }));
}

/// Returns the parts but the open one, or but the first if all are given: elements are added up to
/// a multiple of them.
Dims other_parts(const Dims& parts, std::size_t open) {
  if (parts.empty()) return {};
  const auto unknown = std::find_if(parts.begin(), parts.end(), is_unknown);
  const auto left = open < parts.size()      ? parts.begin() + static_cast<std::ptrdiff_t>(open)
                    : unknown == parts.end() ? parts.begin()
                                             : unknown;
  Dims others(parts.begin(), left);
  others.insert(others.end(), left + 1, parts.end());
  return others;
}

Split split_of(const Tensor& x, int axis, const Dims& dims, bool fills) {
  const Dim dim = dim_at(x.type(), axis);
  Dims parts = canonical(dims);
  const std::size_t open = open_part(x, axis, parts);
  const bool has_open = open < parts.size();
  const Dims others = other_parts(parts, open);
  const std::int64_t known = product(others, 0, others.size(), "split_dim");
  // The type rule checks sizes that are all given.
  const bool may_fill =
      fills && known != 0 && std::none_of(others.begin(), others.end(), is_unknown);
  if (!dim.is_ragged() && !has_open && !may_fill) return {std::move(parts), {}};
  if (known == 0)
    throw ShapeError(
        str("split_dim: ", axis_name(x.type(), axis), " has no parts of size 0 in ", dims));
  const bool is_full = !parts.empty() && is_product(dim, parts[has_open ? open : 0], known);
  if (dim.is_ragged() && !fills && !is_full) refuse_to_fill(x.type(), axis, others);
  const bool is_known = is_static(dim) && std::all_of(others.begin(), others.end(), is_static);
  const bool divides = is_known && dim.size() % known == 0;
  if (is_known && !divides && !fills)
    throw ShapeError(str("split_dim: ", axis_name(x.type(), axis), " has size ", dim.size(),
                         ", but ", dims, " take multiples of ", known, kFillHint));
  const Tensor step = computed_plainly([&] {
    Tensor result = full({}, 1, i64);
    for (const Dim& part : others) result = result * extent_of(part);
    return result;
  });
  if (has_open) {
    Dims from = others;
    from.push_back(dim);
    parts[open] =
        *changed_dim(dim, parts[open], from, is_known ? (dim.size() + known - 1) / known : -1,
                     [&] { return floor_divide(cast(dim.lengths(), i64) + (step - 1), step); });
  }
  if (!fills || divides || is_full) return {std::move(parts), {}};
  return {std::move(parts), longer_dim(x.type(), axis, step, known)};
}

}  // namespace

Tensor split_dim(const Tensor& x, const Axis& along, const Dims& dims,
                 const SplitOptions& options) {
  const int axis = along.in(x, "split_dim");
  const Dim dim = dim_at(x.type(), axis);
  const double fill = options.fill.value_or(0);
  check_fits("split_dim", fill, x.type());
  const Split split = split_of(x, axis, dims, options.fill.has_value());
  const auto undoes = [&] { return key_of("merge_dims", split.parts, {dim}); };
  if (!has_lengths_along(x.type(), axis))
    return with_original_dims(split_axis(x, axis, split, fill), undoes);
  // Added elements have length 0, so `fill` would stand in padding.
  const auto take = [&](const Tensor& of, int axis) { return split_axis(of, axis, split, 0); };
  return AlongAxis({dim}, take,
                   {.keeps_axis = contains(split.parts, dim),
                    .key = [&] { return key_of("split_dim", {dim}, split.parts); },
                    .undoes = undoes,
                    .entries = with_entries_of({dim}),
                    .makes_places = split.longer.has_value()})(x, axis);
}

Tensor squeeze(const Tensor& x, const Axes& axes) {
  const std::vector<int> dropped = axes.in(x, "squeeze");
  Dims dims, ones;
  for (int i = 0; i < x.rank(); ++i) {
    const Dim& dim = dim_at(x.type(), i);
    if (!std::count(dropped.begin(), dropped.end(), i)) {
      dims.push_back(dim);
      continue;
    }
    ones.push_back(dim);
    if (!is_static(dim))
      throw ShapeError(str("squeeze: ", axis_name(x.type(), i),
                           " has no fixed size; use gather(x, scalar(0), axis)"));
    if (dim.size() != 1)
      throw ShapeError(
          str("squeeze: ", axis_name(x.type(), i), " has size ", dim.size(), ", not 1"));
  }
  if (!has_lengths_along(x.type(), dropped)) return reshape(x, dims);
  Tensor result = x;  // each element is the first one
  for (const Dim& dim : ones) result = gather(result, scalar(0), dim);
  return result;
}

}  // namespace reel
