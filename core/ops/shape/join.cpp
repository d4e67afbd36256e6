// Ops that join tensors along an existing axis, and take them apart: concat, split.
#include "reel/core/ops/shape/join.h"

#include <algorithm>
#include <cstring>

#include "reel/core/base/str.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/along_axis.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/joined_lengths.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/sizes.h"

namespace reel {

Tensors cotangents(Vjp& at) {
  Tensors result;
  for (std::size_t i = 0; i < at.output_count(); ++i) result.push_back(at.cotangent(i));
  return result;
}

void add_parts(Vjp& at, const Tensors& parts) {
  for (std::size_t i = 0; i < at.input_count(); ++i)
    if (at.needs(i)) at.add(i, parts[i]);
}

/// True for rows along dims of one name, of different lengths.
bool are_rows(const TensorType& a, const TensorType& b) {
  return a.is_named() && b.is_named() && a.rank() == 1 && b.rank() == 1 &&
         dim_at(a, 0).name() == dim_at(b, 0).name() && a.is_known() && b.is_known() &&
         a.sizes() != b.sizes();
}

Dims shared_dims(const TypeArgs& a, int axis) {
  const TensorType& first = a.in[0];
  Dims dims = first.dims();
  for (std::size_t k = 1; k < a.in.size(); ++k) {
    const TensorType& x = a.in[k];
    if (x.dtype() != first.dtype())
      throw DTypeError(str(a.op.name, ": dtypes differ: tensor 0 is ", first, ", tensor ", k,
                           " is ", x, "; cast one of them"));
    bool agrees = x.rank() == first.rank();
    for (int i = 0; agrees && i < x.rank(); ++i) {
      Dim& dim = dims[static_cast<std::size_t>(i)];
      if (i == axis || dim == dim_at(x, i)) continue;
      agrees = !dim.is_named() && !dim_at(x, i).is_named() &&
               !(dim.has_size() && dim_at(x, i).has_size());
      if (!dim.has_size()) dim = dim_at(x, i);
    }
    if (!agrees)
      throw ShapeError(str(
          a.op.name, ": dims differ: tensor 0 is ", first, ", tensor ", k, " is ", x,
          axis < 0 ? std::string("; all must have the same dims")
                   : str("; all dims but ", axis_name(first, axis), " must agree"),
          axis < 0 && are_rows(first, x) ? "; rows of different lengths make one ragged tensor: "
                                           "unpack(concat(rows, 0), 0, {batch, time})"
                                         : one_dim_hint(first.dims(), x.dims())));
  }
  return dims;
}

void need_tensors(const Tensors& tensors, std::string_view op) {
  if (tensors.empty()) throw ArgumentError(str(op, ": takes at least one tensor"));
  for (const Tensor& x : tensors) check_defined(op, x);
}

Tensor in_order(const Tensor& x, const Dims& dims, int axis) {
  if (x.rank() != static_cast<int>(dims.size()) || !x.type().is_named()) return x;
  std::vector<int> order(dims.size(), -1), left;
  for (int i = 0; i < x.rank(); ++i) {
    const int at = find(dims, dim_at(x.type(), i));
    if (at >= 0 && at != axis)
      order[static_cast<std::size_t>(at)] = i;
    else
      left.push_back(i);
  }
  if (left.size() != (axis < 0 ? 0u : 1u)) return x;
  if (axis >= 0) order[static_cast<std::size_t>(axis)] = left[0];
  return std::is_sorted(order.begin(), order.end())
             ? x
             : transpose(x, std::vector<Axis>(order.begin(), order.end()));
}

namespace {

/// Returns rows of x along an axis, from `first` on, as output i.
void cut(KernelArgs& a, std::size_t i, int axis, std::int64_t first) {
  const Tensor& x = a.input(0);
  const AxisView view = view_axis(x.type(), axis), part = view_axis(a.types[i], axis);
  const std::size_t item = size_of(x.dtype());
  const std::int64_t offset = first * view.inner * static_cast<std::int64_t>(item);
  if (view.outer == 1) {
    a.alias(i, 0, offset);
    return;
  }
  const std::int64_t row = part.size * part.inner;
  copy_strided(item, {{view.outer, row, view.size * view.inner}, {row, 1, 1}},
               a.make(i).data<void>(), x.data<char>() + offset);
}

// ---- concat -------------------------------------------------------------------------------------

void concat_type(TypeArgs& a) {
  const ConcatAttrs& attrs = a.attr<ConcatAttrs>();
  const int axis = attrs.axis;
  check_axis(a.in[0], axis);
  const Dims dims = shared_dims(a, axis);
  std::int64_t size = 0;
  for (const TensorType& x : a.in)
    size = size < 0 || !dim_at(x, axis).has_size()
               ? -1
               : add_sizes(size, dim_at(x, axis).size(), "concat");
  const Dim dim = checked_dim("concat", attrs.to, size,
                              [&] { return str("the result along ", axis_name(a.in[0], axis)); });
  a.out.push_back(a.in[0].with(with_dim(dims, axis, dim)));
}

void concat_kernel(KernelArgs& a) {
  const int axis = a.attr<ConcatAttrs>().axis;
  const Tensor& out = a.make();
  if (!out.type().numel()) return;
  const AxisView view = view_axis(out.type(), axis);
  const std::size_t item = size_of(out.dtype());
  const std::int64_t out_row = view.size * view.inner;
  // Short rows of all operands in turns, so that their neighbours are still in the cache.
  constexpr std::int64_t kShortRow = 1024, kCached = 128 * 1024;
  const std::int64_t bytes = out_row * static_cast<std::int64_t>(item);
  const std::int64_t together = bytes <= kShortRow ? kCached / bytes : view.outer;
  for (std::int64_t first = 0; first < view.outer; first += together) {
    const std::int64_t rows = std::min(together, view.outer - first);
    char* to = out.data<char>() + static_cast<std::size_t>(first * out_row) * item;
    for (std::size_t i = 0; i < a.in.size(); ++i) {
      const Tensor& x = a.input(i);
      const std::int64_t row = x.type().sizes()[static_cast<std::size_t>(axis)] * view.inner;
      copy_strided(item, {{rows, out_row, row}, {row, 1, 1}}, to,
                   x.data<char>() + static_cast<std::size_t>(first * row) * item);
      to += static_cast<std::size_t>(row) * item;
    }
  }
}

}  // namespace

const Op concat_op{
    .name = "concat",
    .type = concat_type,
    .kernel = concat_kernel,
    .vjp =
        [](Vjp& at) {
          UnconcatAttrs attrs{at.attr<ConcatAttrs>().axis, {}};
          for (std::size_t i = 0; i < at.input_count(); ++i)
            attrs.parts.push_back(dim_at(at.input_type(i), attrs.axis));
          const Tensor g = without_padding(at.cotangent(), attrs.axis);
          add_parts(at, bind_all(unconcat_op, {g}, make_attrs(std::move(attrs))));
        },
    .samples =
        [] {
          const Dims& dims = sample_dims();
          const Dim one("time", 1), longer("time", tensor({4, 2}, {dims[0]}));
          const TensorType x(f32, dims);
          return OpSamples{
              {{{TensorType(f32, {2, 3})}, {TensorType(f32, {1, 3})}},
               make_attrs(ConcatAttrs{0, {}})},
              {{{TensorType(f32, {2, 1})}, {TensorType(f32, {2, 0})}, {TensorType(f32, {2, 3})}},
               make_attrs(ConcatAttrs{1, {}})},
              {{{TensorType(f32, {0, 1})}, {TensorType(f32, {0, 2})}},
               make_attrs(ConcatAttrs{1, {}})},
              {{{x}, {x}}, make_attrs(ConcatAttrs{2, Dim("both", 4)})},
              {{{x.with({dims[0], one, dims[2]})}, {x}}, make_attrs(ConcatAttrs{1, longer})}};
        },
    .iteration_batching = axis_across_iterations<ConcatAttrs>,
    .axes = axes_beside_worked<ConcatAttrs>,
    .fails = fails_without_memory,
};

namespace {

Tensor concat_positions(const Tensors& tensors, int axis, std::optional<Dim> to) {
  return reel::bind(concat_op, tensors, make_attrs(ConcatAttrs{axis, std::move(to)}));
}

/// Adds the cotangents of the parts along an axis, joined, to that of the whole.
void add_joined_cotangents(Vjp& at, int axis) {
  Tensors parts;
  for (const Tensor& g : cotangents(at)) parts.push_back(without_padding(g, axis));
  at.add(0, concat_positions(parts, axis, named_dim(at.input_type(0), axis)));
}

}  // namespace

const Op unconcat_op{
    .name = "unconcat",
    .type =
        [](TypeArgs& a) {
          const auto& [axis, parts] = a.attr<UnconcatAttrs>();
          const TensorType& x = a.in[0];
          const Dim& whole = dim_at(x, axis);
          std::int64_t size = 0;
          for (const Dim& part : parts) {
            size = size < 0 || !part.has_size() ? -1 : add_sizes(size, part.size(), "unconcat");
            a.out.push_back(x.with(with_dim(x.dims(), axis, part)));
          }
          if (size >= 0 && whole.has_size() && whole.size() != size && !has_no_entry(whole))
            throw ShapeError(
                str("unconcat: parts of ", size, " elements do not make ", axis_name(x, axis)));
        },
    .kernel =
        [](KernelArgs& a) {
          const int axis = a.attr<UnconcatAttrs>().axis;
          std::int64_t first = 0;
          for (std::size_t i = 0; i < a.types.size(); ++i) {
            if (!a.input(0).type().numel()) {  // parts may have elements: a dim without entries
              const Tensor& part = a.make(i);
              std::memset(part.data<void>(), 0, static_cast<std::size_t>(part.type().bytes()));
              continue;
            }
            cut(a, i, axis, first);
            first += a.types[i].sizes()[static_cast<std::size_t>(axis)];
          }
        },
    .storage = OpStorage::input,
    .vjp = [](Vjp& at) { add_joined_cotangents(at, at.attr<UnconcatAttrs>().axis); },
    .samples =
        [] {
          const Dims& dims = sample_dims();
          const Dim one("time", 1), two("time", 2);
          return OpSamples{
              {{{TensorType(f32, {3, 2})}}, make_attrs(UnconcatAttrs{0, {1, 2}})},
              {{{TensorType(f32, {dims[0], Dim("time", 3), dims[2]})}},
               make_attrs(UnconcatAttrs{1, {one, two}})},
              {{{TensorType(f32, dims)}}, make_attrs(UnconcatAttrs{2, {one, Dim("rest", 1)}})}};
        },
    .iteration_batching = axis_across_iterations<UnconcatAttrs>,
    .axes = axes_beside_worked<UnconcatAttrs>,
    .fails = fails_without_memory,
    .makes_view =
        [](const OpCall& call) {
          return is_outermost(call.in[0], call.attr<UnconcatAttrs>().axis);
        },
};

// ---- split --------------------------------------------------------------------------------------

const Op split_op{
    .name = "split",
    .type =
        [](TypeArgs& a) {
          const SplitAttrs& attrs = a.attr<SplitAttrs>();
          const int axis = attrs.axis, parts = attrs.parts;
          const TensorType& x = a.in[0];
          const Dim& dim = dim_at(x, axis);
          if (parts < 1)
            throw ArgumentError(
                str("split: ", axis_name(x, axis), " cannot be split into ", parts, " parts"));
          if (dim.has_size() && dim.size() % parts)
            throw ShapeError(str("split: ", axis_name(x, axis), " has size ", dim.size(),
                                 ", which ", parts, " parts do not divide"));
          const std::int64_t size = dim.has_size() ? dim.size() / parts : -1;
          const Dim to = checked_dim("split", attrs.part, size, [&] {
            return str("each of ", parts, " parts of ", axis_name(x, axis));
          });
          if (to.is_named() && !(to == dim) && contains(x.dims(), to))
            throw ShapeError(str("split: ", x, " has the dim ", to,
                                 " already; make a second Dim for the parts"));
          const TensorType type = x.with(with_dim(x.dims(), axis, to));
          for (int i = 0; i < parts; ++i) a.out.push_back(type);
        },
    .kernel =
        [](KernelArgs& a) {
          const int axis = a.attr<SplitAttrs>().axis;
          const std::int64_t size = a.types[0].sizes()[static_cast<std::size_t>(axis)];
          for (std::size_t i = 0; i < a.types.size(); ++i)
            cut(a, i, axis, static_cast<std::int64_t>(i) * size);
        },
    .storage = OpStorage::input,
    .vjp = [](Vjp& at) { add_joined_cotangents(at, at.attr<SplitAttrs>().axis); },
    .samples =
        [] {
          const Dims& dims = sample_dims();
          const Dim gate("gate", 4);
          return OpSamples{
              {{{TensorType(f32, {4, 2})}}, make_attrs(SplitAttrs{0, 2, {}})},
              {{{TensorType(f32, {3, 4})}}, make_attrs(SplitAttrs{1, 4, {}})},
              {{{TensorType(f32, {dims[0], dims[1], gate})}},
               make_attrs(SplitAttrs{2, 2, dims[2]})},
              {{{TensorType(f32, {gate, dims[0]})}}, make_attrs(SplitAttrs{0, 2, dims[2]})},
              {{{TensorType(f32, {2, 0})}}, make_attrs(SplitAttrs{1, 3, {}})}};
        },
    .iteration_batching = axis_across_iterations<SplitAttrs>,
    .axes = axes_beside_worked<SplitAttrs>,
    .fails = fails_without_memory,
    .makes_view =
        [](const OpCall& call) { return is_outermost(call.in[0], call.attr<SplitAttrs>().axis); },
};

namespace {

/// Concatenates ragged entries: each begins where its predecessor ends. Moves one tensor at a time
/// there, and adds them.
Tensor concat_ragged(const Tensors& tensors, int axis, const Dim& to) {
  Tensor offset = full({}, 0, i32), result;
  for (const Tensor& x : tensors) {
    const Dim& dim = dim_at(x.type(), axis);
    for (const Dim& of : dim.length_dims())
      if (!contains(x.dims(), of))
        throw ShapeError(str("concat: ", x.type(), " has no dim ", of,
                             ", over which the lengths of ", dim,
                             " run; expand it, or give the result's dim as `to`"));
    const Tensor moved =
        shift(mask_padding(x), computed_plainly([&] { return neg(offset); }), axis, to);
    result = !result.is_defined()   ? moved
             : x.dtype() == boolean ? logical_or(result, moved)
                                    : add(result, moved);
    offset = computed_plainly([&] { return offset + dim.lengths(); });
  }
  return result;
}

}  // namespace

// ---- Public functions ---------------------------------------------------------------------------

Tensor concat(const Tensors& tensors, const Axis& along, std::optional<Dim> to) {
  need_tensors(tensors, "concat");
  const int axis = along.in(tensors[0], "concat");
  if (auto joined = JoinedLengths::of(tensors, axis)) {
    const Tensor result = concat(joined->extended(), axis, std::move(to));
    return joined->with_lengths(result, dim_at(result.type(), axis));
  }
  const Tensor& first = tensors[0];
  Tensors ordered;
  std::int64_t size = 0;
  bool any_ragged = false, inner_ragged = false;
  Dims joined_dims;
  for (const Tensor& x : tensors) {
    ordered.push_back(in_order(x, first.dims(), axis));
    if (x.rank() != first.rank() || x.type().is_named() != first.type().is_named())
      return concat_positions(tensors, axis, std::nullopt);  // throws: dims differ
    const Dim& dim = dim_at(ordered.back().type(), axis);
    size = size < 0 || !dim.has_size() ? -1 : add_sizes(size, dim.size(), "concat");
    inner_ragged = any_ragged;
    any_ragged = any_ragged || dim.is_ragged();
    joined_dims.push_back(dim);
  }
  auto named = changed_dim(joined_dims[0], to, joined_dims, any_ragged ? -1 : size, [&] {
    const bool may_wrap = size < 0 || size > kLargestI32;
    Tensor sum;
    for (const Tensor& x : ordered) {
      const Tensor lengths = dim_at(x.type(), axis).lengths();
      const Tensor term = may_wrap ? cast(lengths, i64) : lengths;
      sum = sum.is_defined() ? sum + term : term;
    }
    return sum;
  });
  if (inner_ragged && named->is_ragged()) return concat_ragged(ordered, axis, *named);
  for (Tensor& x : ordered) x = clear_padding(x, axis, to);
  return concat_positions(ordered, axis, std::move(named));
}

std::pair<Tensor, Dim> cum_concat(const Tensor& x, const Tensor& accum, const Axis& along) {
  check_defined("cum_concat", x);
  const int axis = along.in(accum, "cum_concat");
  const Dim dim = dim_at(accum.type(), axis);
  const Dims others = without_dim(accum.dims(), axis);
  bool fits = x.rank() == static_cast<int>(others.size());
  for (std::size_t i = 0; fits && i < others.size(); ++i)
    fits = dim.is_named()
               ? find_axis(x.dims(), others[i]) >= 0
               : !others[i].has_size() || !x.dims()[i].has_size() || others[i] == x.dims()[i];
  if (!fits)
    throw ShapeError(str("cum_concat: x must have all dims of accum but ",
                         axis_name(accum.type(), axis), ", got ", x.type(),
                         one_dim_hint(x.dims(), others)));
  if (x.dtype() != accum.dtype())
    throw DTypeError(str("cum_concat: dtypes differ: ", x.type(), " behind ", accum.type(),
                         "; cast one of them"));
  for (const Dim& of : dim.length_dims())
    if (!contains(accum.dims(), of))
      throw ShapeError(str("cum_concat: ", accum.type(), " has no dim ", of,
                           ", over which the lengths of ", dim, " run; expand it"));
  const auto one = dim.is_named() ? std::optional(Dim("step", 1)) : std::nullopt;
  // A dim of accum may be here a slice of it: of the letters of one word.
  Dims dims;
  for (const Dim& of : accum.dims())
    dims.push_back(of == dim ? one.value_or(of)
                             : (dim.is_named() ? x.dims()[find_axis(x.dims(), of)] : of));
  const Tensor step = dim.is_named() ? expand(x, dims) : reshape(x, insert_dim(x.dims(), axis, 1));
  const Tensor result = concat({accum, step}, axis, dim.is_named() ? std::optional(dim + 1) : one);
  return {result, result.dims()[static_cast<std::size_t>(axis)]};
}

Tensors split(const Tensor& x, const Axis& along, int parts, std::optional<Dim> part) {
  const int axis = along.in(x, "split");
  const Dim dim = dim_at(x.type(), axis);
  if (dim.is_ragged() && (!part || part->is_undefined()))
    throw ShapeError(str("split: ", axis_name(x.type(), axis),
                         " is ragged, so its entries have no equal parts; use ",
                         "slice, or give the dim of the parts to cut the extent"));
  const int divisor = std::max(parts, 1);
  auto named = changed_dim(dim, part, {&dim, 1}, dim.has_size() ? dim.size() / divisor : -1,
                           [&] { return floor_divide(dim.lengths(), divisor); });
  const auto all_parts = [&](const Tensor& of, int axis) {
    return bind_all(split_op, {clear_padding(of, axis, part)},
                    make_attrs(SplitAttrs{axis, parts, named}));
  };
  if (!has_lengths_along(x.type(), axis)) return all_parts(x, axis);
  std::vector<std::pair<Tensor, Tensors>> known;  // parts of x, and of lengths
  std::size_t place = 0;
  const auto take = [&](const Tensor& of, int axis) {
    for (const auto& [whole, cut] : known)
      if (whole.block() == of.block()) return cut[place];
    return known.emplace_back(of, all_parts(of, axis)).second[place];
  };
  AlongAxis part_of({dim}, take,
                    {.keeps_axis = *named == dim,
                     .key = [&] { return key_along("split", {dim}).number(place).dim(*named); },
                     .entries = with_entries_of({dim})});
  Tensors result;
  for (; place < static_cast<std::size_t>(parts); ++place) {
    part_of.begin();
    result.push_back(part_of(x, axis));
  }
  return result;
}

namespace {
const Op* const kJoinOps[] = {&concat_op, &unconcat_op, &stack_op, &unstack_op, &split_op};
}
std::span<const Op* const> join_ops() { return kJoinOps; }

}  // namespace reel
