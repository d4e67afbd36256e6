// gather: elements by index.
#include "reel/core/ops/indexing/index.h"

#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/rows.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/along_axis.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/sliced_dims.h"
#include "reel/core/types/sizes.h"

namespace reel {

// ---- Dims ---------------------------------------------------------------------------------------

GatherAttrs match_dims(const TensorType& x, const TensorType& indices, GatherAttrs attrs) {
  attrs.matched.assign(indices.dims().size(), -1);
  for (std::size_t k = 0; k < attrs.matched.size(); ++k) {
    const Dim& dim = indices.dims()[k];
    const int at = dim.is_named() ? find(x.dims(), dim) : -1;
    if (!attrs.is_indexed(at)) attrs.matched[k] = at;
  }
  return attrs;
}

Tensor with_length_dims(const Tensor& indices, const TensorType& x, const GatherAttrs& attrs) {
  if (!is_masked(x, attrs.axis) || (indices.rank() && !indices.type().is_named())) return indices;
  Dims dims = indices.dims();
  for (const Dim& of : dim_at(x, attrs.axis).length_dims())
    if (!contains(dims, of)) dims.push_back(of);
  return dims.size() == indices.dims().size() ? indices : expand(indices, dims);
}

Dims gathered_dims(const TensorType& x, const TensorType& indices, const GatherAttrs& attrs) {
  if (attrs.matched.size() != indices.dims().size())
    throw ShapeError(
        str(attrs.function, ": indices ", indices, " should have ", attrs.matched.size(), " axes"));
  Dims dims(x.dims().begin(), x.dims().begin() + attrs.axis);
  for (std::size_t k = 0; k < attrs.matched.size(); ++k)
    if (attrs.matched[k] < 0) dims.push_back(indices.dims()[k]);
  dims.insert(dims.end(), x.dims().begin() + attrs.axis + attrs.count, x.dims().end());
  return dims;
}

void check_indices(std::string_view op, const TensorType& x, const TensorType& indices,
                   const GatherAttrs& attrs) {
  if (!is_integer(indices.dtype()))
    throw DTypeError(str(op, ": indices must be i32 or i64, got ", indices, "; cast them"));
  check_axes(x, attrs.axis, attrs.count);
  if (indices.rank() && x.is_named() != indices.is_named())
    throw ShapeError(str(op, ": indices ", indices,
                         indices.is_named() ? " have named dims, " : " have plain sizes, ", x,
                         indices.is_named() ? " has plain sizes" : " has named dims",
                         "; name the axes of both, or of none"));
  for (std::size_t k = 0; k < attrs.matched.size(); ++k) {
    if (attrs.matched[k] < 0) continue;
    const Dim &in_x = dim_at(x, attrs.matched[k]), &dim = dim_at(indices, static_cast<int>(k));
    if (in_x.has_size() && dim.has_size() && in_x.size() != dim.size())
      throw ShapeError(str(op, ": axis ", k, " of indices ", indices, " goes along with ",
                           axis_name(x, attrs.matched[k]), ", but their sizes are ", dim.size(),
                           " and ", in_x.size()));
  }
}

// ---- Ops ----------------------------------------------------------------------------------------

namespace {

void gather_type(TypeArgs& a) {
  const GatherAttrs& attrs = a.attr<GatherAttrs>();
  check_indices(attrs.function, a.in[0], a.in[1], attrs);
  a.out.push_back(a.in[0].with(gathered_dims(a.in[0], a.in[1], attrs)));
}

OpSample gather_sample(const Dims& x, const Dims& indices, int axis, DType dtype = i32,
                       IndexRule rule = IndexRule::from_end) {
  const TensorType in(f32, x), at(dtype, indices);
  const double size = static_cast<double>(in.sizes()[static_cast<std::size_t>(axis)]);
  const double lowest = rule == IndexRule::strict ? 0 : rule == IndexRule::optional ? -2 : -size;
  const double highest = rule == IndexRule::clip ? size + 1 : std::max(size - 1, 0.);
  return {{{in}, {at, lowest, highest, false}},
          make_attrs(match_dims(in, at, {.axis = axis, .rule = rule}))};
}

}  // namespace

OpSamples gather_samples() {
  const Dim batch("batch", 3), feature("feature", 2), classes("classes", 4), beam("beam", 2),
      none("none", 0);
  const Dim time("time", tensor({3, 0, 2}, {batch})), steps("steps", 3);
  OpSamples samples{gather_sample({4, 2}, {3}, 0),
                    gather_sample({2, 4}, {2, 2}, 1, i64),
                    gather_sample({3}, {}, 0),
                    gather_sample({2, 3, 2}, {}, 1),
                    gather_sample({classes, feature}, {batch, time}, 0),
                    gather_sample({batch, steps, feature}, {batch}, 1),
                    gather_sample({batch, classes, feature}, {beam, batch}, 1),
                    gather_sample({time, batch, feature}, {batch, time}, 2),
                    gather_sample({classes}, {none}, 0),
                    gather_sample({none, classes}, {beam}, 1),
                    gather_sample({0, 2}, {0}, 0),
                    gather_sample({4, 2}, {3}, 0, i64, IndexRule::strict),
                    gather_sample({2, 3}, {4}, 1, i32, IndexRule::clip),
                    gather_sample({batch, time, feature}, {beam, batch}, 1, i32, IndexRule::clip),
                    gather_sample({batch, classes}, {batch, time}, 1, i32, IndexRule::optional)};
  // One index for two axes, and indices for each entry of plain leading axes.
  samples.push_back({{{TensorType(f32, {2, 3, 2, 2})}, {TensorType(i32, {2, 4}), -1, 5, false}},
                     make_attrs(GatherAttrs{1, {0, -1}, 2, IndexRule::optional})});
  return samples;
}

namespace {

/// Gathers for all steps at once. If x is the same in every step, its rows are gathered; otherwise
/// the steps of x and of the indices are paired.
Tensors gather_across_iterations(const IterationBatch& at) {
  if (at.is_summed) return {};
  GatherAttrs attrs = at.attr<GatherAttrs>();
  if (at.is_many[0]) {
    if (at.time.is_ragged()) return {};
    ++attrs.axis;
    for (int& matched : attrs.matched)
      if (matched >= 0) ++matched;
    if (at.is_many[1]) attrs.matched.insert(attrs.matched.begin(), 0);
    return {bind(at.op, {at.in[0], at.in[1]}, make_attrs(std::move(attrs)))};
  }
  if (attrs.axis != 0) return {};
  for (const int matched : attrs.matched)
    if (matched >= 0) return {};
  attrs.matched.insert(attrs.matched.begin(), -1);
  return {bind(at.op, {at.in[0], at.in[1]}, make_attrs(std::move(attrs)))};
}

/// Returns true if gather reads whole rows of a table, and its cotangent may be rows.
bool gives_rows(const Vjp& at) {
  const GatherAttrs& attrs = at.attr<GatherAttrs>();
  const TensorType& x = at.input_type(0);
  if (!at.takes_rows(0) || attrs.axis != 0 || attrs.count != 1 || x.is_ragged()) return false;
  const auto has_elements = [](const Dim& dim) { return dim.has_size() && dim.size() > 0; };
  return std::all_of(x.dims().begin(), x.dims().end(), has_elements) &&
         std::all_of(attrs.matched.begin(), attrs.matched.end(), [](int i) { return i < 0; });
}

void add_gathered_rows(Vjp& at) {
  const TensorType& table = at.input_type(0);
  std::vector<std::int64_t> sizes = table.sizes();
  sizes[0] = -1;
  at.add_rows(0, reshape(at.cotangent(), sizes),
              row_numbers(at.input(1), table.sizes()[0], at.attr<GatherAttrs>()));
}

}  // namespace

void gathered_axes(const OpCall& call, AxisFactors& f) {
  const auto& attrs = call.attr<GatherAttrs>();
  int next = 0;
  const auto add_new_axes = [&] {
    for (std::size_t i = 0; i < attrs.matched.size(); ++i)
      if (attrs.matched[i] < 0) f.in(1, static_cast<int>(i)) = next++;
  };
  for (int axis = 0; axis < call.in[0].rank(); ++axis) {
    if (axis == attrs.axis) add_new_axes();
    if (!attrs.is_indexed(axis)) f.in(0, axis) = next++;
  }
  for (std::size_t i = 0; i < attrs.matched.size(); ++i)
    if (attrs.matched[i] >= 0) f.in(1, static_cast<int>(i)) = f.in(0, attrs.matched[i]);
}

// An axis without elements is refused by its size, whatever the indices are.
Failures index_fails(const Attrs* attrs) {
  const bool is_clipped = get<GatherAttrs>(attrs).rule == IndexRule::clip;
  return {.values = is_clipped ? 0 : 0b10u};
}
bool index_reads_lengths(const OpCall& call, std::size_t, int) {
  const auto& attrs = call.attr<GatherAttrs>();
  // Indices in padding are neither checked nor added.
  const bool skips_padding = attrs.rule != IndexRule::clip || call.in.size() > 2;
  if (skips_padding && call.in[1].is_ragged()) return true;
  if (attrs.rule != IndexRule::from_end && attrs.rule != IndexRule::clip) return false;
  const auto first = call.in[0].dims().begin() + attrs.axis;
  return std::any_of(first, first + attrs.count, [](const Dim& dim) { return dim.is_ragged(); });
}

const Op gather_op{
    .name = "gather",
    .type = gather_type,
    .kernel = gather_kernel,
    .vjp =
        [](Vjp& at) {
          if (gives_rows(at)) return add_gathered_rows(at);
          const bool reads_shape = at.attr<GatherAttrs>().reads_shape;
          at.add(0,
                 scatter_positions(reads_shape ? zeros_like(at.input(0)) : zeros(at.input_type(0)),
                                   at.input(1), at.cotangent(), at.attrs()));
        },
    .reads_by =
        [](const Attrs* attrs, std::uint32_t wanted) {
          return OpReads{.inputs = 0b10 | reads_shape<GatherAttrs>(attrs, wanted).inputs};
        },
    .samples =
        [] {
          const Dim batch("batch", 3), classes("classes", 4);
          const Dim time("time", tensor({3, 0, 2}, {batch}));
          OpSamples samples = gather_samples();
          // scatter_add relies on zero padding of updates if only the updates show that padding;
          // gather does not.
          samples.push_back(gather_sample({batch, classes}, {time}, 1));
          samples.push_back(gather_sample({time, classes}, {batch}, 1));
          samples.push_back({{{TensorType(f32, {4, 2})}, {TensorType(i32, {3}), -4, 3, false}},
                             make_attrs(GatherAttrs{.matched = {-1}, .reads_shape = true})});
          return samples;
        },
    .iteration_batching = gather_across_iterations,
    .axes = gathered_axes,
    .zero_if = [](const Attrs*, std::uint32_t zeros) { return (zeros & 0b1) != 0; },
    .fails = index_fails,
    .reads_lengths = index_reads_lengths,
};

Tensor gather_positions(const Tensor& x, const Tensor& indices, const AttrsRef& attrs) {
  const auto& given = get<GatherAttrs>(attrs.get());
  const bool reads_shape = has_unknown_size(x.type());
  if (given.reads_shape == reads_shape) return bind(gather_op, {x, indices}, attrs);
  GatherAttrs own = given;
  own.reads_shape = reads_shape;
  return bind(gather_op, {x, indices}, make_attrs(std::move(own)));
}

Tensor take_along(const Tensor& x, const Tensor& indices, int axis) {
  GatherAttrs attrs{.axis = axis, .rule = IndexRule::strict};
  for (int i = 0; i < x.rank(); ++i) attrs.matched.push_back(i == axis ? -1 : i);
  return gather_positions(x, indices, make_attrs(std::move(attrs)));
}

// ---- Public functions ---------------------------------------------------------------------------

namespace {

/// Pairs the first `count` plain axes of x and the indices.
void match_batch(GatherAttrs& attrs, const TensorType& x, const TensorType& indices, int count) {
  if (count == 0) return;
  if (x.is_named())
    throw ArgumentError(str("gather: batch_dims is ", count, ", but ", x,
                            " has named dims, which are matched by themselves; leave it out"));
  if (count < 0 || count > attrs.axis || count > indices.rank())
    throw ArgumentError(str("gather: batch_dims is ", count, ", but ", attrs.axis, " axes of ", x,
                            " lie before the one that is indexed, and indices ", indices, " have ",
                            indices.rank()));
  for (int k = 0; k < count; ++k) attrs.matched[static_cast<std::size_t>(k)] = k;
}

}  // namespace

Tensor gather(const Tensor& x, const Tensor& indices, const Axis& axis,
              const GatherOptions& options) {
  return gather_for("gather", x, indices, axis, options);
}

namespace {
/// Returns the key of the slices that an index takes. An element that all entries have is the same
/// under every rule; of an entry without it, the rules take different ones.
SliceKey key_of(const Dim& axis, const Tensor& indices, IndexRule rule) {
  const auto element = element_of(indices);
  const bool is_there = !axis.is_ragged() && axis.has_size() && element && *element < axis.size();
  if (element && (is_there || rule != IndexRule::clip || *element == 0))
    return key_of_element(axis, *element);
  SliceKey key = key_along("gather", {axis});
  add_value(key.number(rule), indices);
  return key;
}
}  // namespace

Tensor gather_for(std::string function, const Tensor& x, const Tensor& given, const Axis& along,
                  const GatherOptions& options) {
  check_defined(function, given);
  GatherAttrs attrs{.axis = along.in(x, function)};
  attrs.function = std::move(function);
  if (options.clip)
    attrs.rule = IndexRule::clip;
  else if (!options.from_end)
    attrs.rule = IndexRule::strict;
  check_indices(attrs.function, x.type(), given.type(), attrs);
  const Tensor indices =
      attrs.rule == IndexRule::strict ? given : with_length_dims(given, x.type(), attrs);
  attrs = match_dims(x.type(), indices.type(), std::move(attrs));
  match_batch(attrs, x.type(), indices.type(), options.batch_dims);
  if (!has_lengths_along(x.type(), attrs.axis))
    return gather_positions(x, indices, make_attrs(std::move(attrs)));
  // Lengths are gathered before x: an error names x.
  if (!is_tracing()) places_of(attrs.function, indices, x.type(), attrs);
  const Dim dim = dim_at(x.type(), attrs.axis);
  const auto take = [&](const Tensor& from, int axis) {
    GatherAttrs at{.axis = axis, .rule = attrs.rule, .function = attrs.function};
    const Tensor places =
        at.rule == IndexRule::strict ? given : with_length_dims(given, from.type(), at);
    at = match_dims(from.type(), places.type(), std::move(at));
    return gather_positions(from, places, make_attrs(std::move(at)));
  };
  AlongAxis gathered(
      {dim}, take,
      {.keeps_axis = contains(given.dims(), dim),
       .key = [&] { return key_of(dim, given, attrs.rule); },
       .entries = attrs.rule == IndexRule::strict ? Dims{} : with_entries_of({dim})});
  return gathered(x, attrs.axis);
}

namespace {
const Op* const kIndexOps[] = {&gather_op};
}
std::span<const Op* const> index_ops() { return kIndexOps; }

}  // namespace reel
