// expand: repeats x along dims that it lacks.
#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/partial_shape.h"

namespace reel {

bool only_adds_ones(const ExpandAttrs& attrs, const TensorType& out) {
  int last = -1;
  for (std::size_t i = 0; i < attrs.from.size(); ++i) {
    if (attrs.from[i] < 0 && out.sizes()[i] != 1) return false;
    if (attrs.from[i] >= 0 && attrs.from[i] < last) return false;
    last = std::max(last, attrs.from[i]);
  }
  return true;
}

namespace {

Tensor expand_from(const Tensor& x, const std::vector<int>& from, Dims added);

Dims expanded_dims(const TensorType& x, const std::vector<int>& from, const Dims& added) {
  Dims dims;
  auto next = added.begin();
  for (int axis : from) dims.push_back(axis < 0 ? *next++ : dim_at(x, axis));
  return dims;
}
/// Throws ShapeError, in the name of `op`, if axes with more than one element are left out.
void check_expand(std::string_view op, const TensorType& x, const std::vector<int>& from,
                  const Dims& added) {
  for (int i = 0; i < x.rank(); ++i) {
    const Dim& dim = dim_at(x, i);
    if (std::count(from.begin(), from.end(), i) ||
        (!dim.is_named() && (!dim.has_size() || dim.size() == 1)))
      continue;
    const Dims dims = expanded_dims(x, from, added);
    throw ShapeError(dim.is_named() ? str(op, ": dim ", dim, " of ", x, " is not among ", dims,
                                          "; ", op, " only adds dims, list those of the tensor too",
                                          one_dim_hint({dim}, dims))
                                    : str(op, ": axis ", i, " of ", x, " has size ", dim,
                                          ", which does not broadcast to ", dims));
  }
}

}  // namespace

Tensors expand_across_iterations(const IterationBatch& at) {
  ExpandAttrs attrs = at.attr<ExpandAttrs>();
  for (int& axis : attrs.from) axis += axis >= 0;
  attrs.from.insert(attrs.from.begin(), 0);
  return {bind(at.op, {at.in[0]}, make_attrs(std::move(attrs)))};
}

const Op expand_op{
    .name = "expand",
    .type =
        [](TypeArgs& a) {
          const auto& [from, added] = a.attr<ExpandAttrs>();
          check_expand("expand", a.in[0], from, added);
          a.out.push_back(a.in[0].with(expanded_dims(a.in[0], from, added)));
        },
    .kernel =
        [](KernelArgs& a) {
          const std::vector<int>& from = a.attr<ExpandAttrs>().from;
          const Tensor& x = a.input(0);
          if (only_adds_ones(a.attr<ExpandAttrs>(), a.types[0])) {
            a.alias(0, 0);
            return;
          }
          const Tensor& out = a.make();
          const Steps steps = steps_of(x.type()), to = steps_of(out.type());
          StridedAxes axes;
          for (std::size_t i = 0; i < from.size(); ++i)
            axes.push_back({out.type().sizes()[i], to[i],
                            from[i] < 0 ? 0 : steps[static_cast<std::size_t>(from[i])]});
          copy_strided(size_of(x.dtype()), axes, out.data<void>(), x.data<void>());
        },
    .storage = OpStorage::input,
    // Sums over the added axes. Axes of one element that were repeated are restored with size one.
    .vjp =
        [](Vjp& at) {
          const std::vector<int>& from = at.attr<ExpandAttrs>().from;
          std::vector<Axis> added;
          std::vector<int> back(static_cast<std::size_t>(at.input_type(0).rank()), -1);
          int kept = 0;
          for (std::size_t i = 0; i < from.size(); ++i) {
            if (from[i] < 0)
              added.emplace_back(static_cast<int>(i));
            else
              back[static_cast<std::size_t>(from[i])] = kept++;
          }
          const Tensor g = at.cotangent();
          at.add(0, expand_from(added.empty() ? g : sum(g, added), back,
                                Dims(back.size() - static_cast<std::size_t>(kept), 1)));
        },
    .samples =
        [] {
          const Dims& dims = sample_dims();
          return OpSamples{
              {{{TensorType(f32, {3})}}, make_attrs(ExpandAttrs{{-1, 0}, {2}})},
              {{{TensorType(f32, {3, 1})}}, make_attrs(ExpandAttrs{{-1, 0, -1}, {2, 4}})},
              {{{TensorType(f32)}}, make_attrs(ExpandAttrs{{-1, -1, -1}, dims})},
              {{{TensorType(f32, {dims[0], dims[2]})}},
               make_attrs(ExpandAttrs{{0, -1, 1}, {dims[1]}})},
              {{{TensorType(f32, {dims[1]})}}, make_attrs(ExpandAttrs{{-1, 0}, {dims[0]}})},
              {{{TensorType(f32, {dims[2], dims[0]})}},
               make_attrs(ExpandAttrs{{1, 0, -1}, {Dim("more", 3)}})},
              {{{TensorType(f32, {3})}}, make_attrs(ExpandAttrs{{-1, 0}, {0}})},
              {{{TensorType(f32, {0})}}, make_attrs(ExpandAttrs{{-1, 0}, {2}})}};
        },
    .iteration_batching = expand_across_iterations,
    .axes =
        [](const OpCall& call, AxisFactors& f) {
          const std::vector<int>& from = call.attr<ExpandAttrs>().from;
          for (std::size_t i = 0; i < from.size(); ++i)
            if (const int axis = static_cast<int>(i); from[i] >= 0)
              f.in(0, from[i]) = axis;
            else
              f.out(0, axis) = f.add(Role::repeated);
        },
    .fails = fails_without_memory,
    .padding = Padding::apart,
    .makes_view =
        [](const OpCall& call) { return only_adds_ones(call.attr<ExpandAttrs>(), call.out[0]); },
};

namespace {

Tensor expand_from(const Tensor& x, const std::vector<int>& from, Dims added) {
  if (added.empty()) return transposed(x, from);
  return bind(expand_op, {x}, make_attrs(ExpandAttrs{from, std::move(added)}));
}

/// Plain sizes are aligned at the last axis, as in NumPy's broadcast_to.
Tensor expand_plain(std::string_view op, const Tensor& x, const Dims& dims) {
  const int offset = static_cast<int>(dims.size()) - x.rank();
  if (offset < 0) throw ShapeError(str(op, ": ", x.type(), " has more axes than ", dims));
  std::vector<int> from(dims.size(), -1);
  Dims added;
  bool learns_sizes = false;
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    const Dim& to = dims[static_cast<std::size_t>(i)];
    const std::int64_t size =
        i < offset ? 1 : x.type().sizes()[static_cast<std::size_t>(i - offset)];
    if (i < offset || (size >= 0 && to.raw_size() != size)) {
      added.push_back(to);
    } else {
      from[static_cast<std::size_t>(i)] = i - offset;
      learns_sizes = learns_sizes || (size < 0 && to.has_size());
    }
  }
  check_expand(op, x.type(), from, added);
  const Tensor result = expand_from(x, from, std::move(added));
  return learns_sizes ? ensure_shape(result, PartialShape(dims)) : result;
}

Tensor expand_to(std::string_view op, const Tensor& x, const Dims& dims) {
  check_defined(op, x);
  const Dims to = canonical(dims);
  const bool is_named =
      std::any_of(to.begin(), to.end(), [](const Dim& dim) { return dim.is_named(); });
  if (x.rank() && !to.empty() && x.type().is_named() != is_named)
    throw ShapeError(str(op, ": ", x.type(), is_named ? " has plain sizes, " : " has named dims, ",
                         to, is_named ? " are named" : " are plain sizes",
                         "; give all axes names (reshape(x, dims)), or none"));
  if (x.rank() && !is_named) return expand_plain(op, x, to);
  for (std::size_t i = 0; i < to.size(); ++i)
    if (to[i].is_named() && std::count(to.begin(), to.end(), to[i]) > 1)
      throw ShapeError(str(op, ": dim ", to[i], " is there twice among ", to,
                           "; make a second Dim for one of the axes"));
  std::vector<int> from;
  Dims added;
  for (const Dim& dim : to) {
    from.push_back(dim.is_named() ? find(x.dims(), dim) : -1);
    if (from.back() < 0) added.push_back(dim);
  }
  check_expand(op, x.type(), from, added);
  return expand_from(x, from, std::move(added));
}

}  // namespace

// ---- Public functions ---------------------------------------------------------------------------

Tensor expand(const Tensor& x, const Dims& dims) { return expand_to("expand", x, dims); }
Tensor broadcast_to(const Tensor& x, const Dims& dims) {
  return expand_to("broadcast_to", x, dims);
}

}  // namespace reel
