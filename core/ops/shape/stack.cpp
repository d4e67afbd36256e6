// Ops that stack tensors along a new axis, and take them apart: stack, unstack.
#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/functions/unranked.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/along_axis.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/join.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/shape.h"

namespace reel {
namespace {

struct StackAttrs {
  Dim dim{0};
  template <class F>
  static void fields(F&& f) {
    f("dim", &StackAttrs::dim);
  }
};
struct UnstackAttrs {
  std::int64_t count = 0;
  template <class F>
  static void fields(F&& f) {
    f("count", &UnstackAttrs::count);
  }
};

Tensors stack_across_iterations(const IterationBatch& at) {
  if (at.is_summed) return {};
  Tensors parts;
  for (std::size_t i = 0; i < at.in.size(); ++i) parts.push_back(at.many(i));
  return {with_axis_first(reel::bind(at.op, parts, at.attrs), 1)};
}

Tensors unstack_across_iterations(const IterationBatch& at) {
  if (at.is_summed) return {};
  return bind_all(at.op, {with_axis_first(at.in[0], 1)}, at.attrs);
}

}  // namespace

const Op stack_op{
    .name = "stack",
    .type =
        [](TypeArgs& a) {
          const Dim& dim = a.attr<StackAttrs>().dim;
          const auto count = static_cast<std::int64_t>(a.in.size());
          const Dims dims = shared_dims(a, -1);
          if (!dims.empty() && dims[0].is_named() != dim.is_named())
            throw ShapeError(
                dim.is_named() ? str("stack: tensors of type ", a.in[0], " have plain sizes, dim ",
                                     dim, " is named; name their axes, or stack along an axis")
                               : str("stack: tensors of type ", a.in[0],
                                     " have named dims; name the new one too, as in ",
                                     "stack(tensors, Dim(\"name\", ", count, "))"));
          if (dim.is_named() && contains(dims, dim))
            throw ShapeError(
                str("stack: tensors of type ", a.in[0], " have the dim ", dim, " already"));
          if (dim.has_size() && dim.size() != count)
            throw ShapeError(str("stack: dim ", dim, " has size ", dim.size(), ", but ", count,
                                 " tensors are stacked"));
          a.out.push_back(a.in[0].with(insert_dim(dims, 0, dim)));
        },
    .kernel =
        [](KernelArgs& a) {
          char* to = a.make().data<char>();
          const auto bytes = static_cast<std::size_t>(a.input(0).type().bytes());
          for (std::size_t i = 0; i < a.in.size(); ++i, to += bytes)
            std::copy_n(a.input(i).data<char>(), bytes, to);
        },
    .vjp =
        [](Vjp& at) {
          const Tensor g = without_padding(at.cotangent(), 0);
          add_parts(
              at, bind_all(unstack_op, {g},
                           make_attrs(UnstackAttrs{static_cast<std::int64_t>(at.input_count())})));
        },
    .samples =
        [] {
          const Dims& dims = sample_dims();
          const TensorType frame(f32, {dims[0], dims[2]}), empty(f32, {0});
          return OpSamples{
              {{{TensorType(f32, {3})}, {TensorType(f32, {3})}}, make_attrs(StackAttrs{2})},
              {{{TensorType(f32)}, {TensorType(f32)}}, make_attrs(StackAttrs{Dim("slot", 2)})},
              {{{frame}, {frame}, {frame}}, make_attrs(StackAttrs{dims[1]})},
              {{{TensorType(f32, dims)}}, make_attrs(StackAttrs{Dim("slot", 1)})},
              {{{empty}, {empty}}, make_attrs(StackAttrs{2})}};
        },
    .iteration_batching = stack_across_iterations,
    .axes =
        [](const OpCall& call, AxisFactors& f) {
          for (std::size_t i = 0; i < call.in.size(); ++i)
            for (int axis = 0; axis < call.in[i].rank(); ++axis) f.in(i, axis) = axis + 1;
        },
    .fails = fails_without_memory,
};

const Op unstack_op{
    .name = "unstack",
    .type =
        [](TypeArgs& a) {
          const TensorType& x = a.in[0];
          const std::int64_t count = a.attr<UnstackAttrs>().count;
          if (const Dim& dim = dim_at(x, 0); dim.has_size() && dim.size() != count)
            throw ShapeError(
                str("unstack: ", axis_name(x, 0), " has size ", dim.size(), ", not ", count));
          const TensorType slice = x.with(without_dim(x.dims(), 0));
          for (std::int64_t i = 0; i < count; ++i) a.out.push_back(slice);
        },
    .kernel =
        [](KernelArgs& a) {
          for (std::size_t i = 0; i < a.types.size(); ++i)
            a.alias(i, 0, static_cast<std::int64_t>(i) * a.types[i].bytes());
        },
    .storage = OpStorage::input,
    .vjp =
        [](Vjp& at) {
          at.add(0, reel::bind(stack_op, cotangents(at),
                               make_attrs(StackAttrs{at.input_type(0).dims()[0]})));
        },
    .samples =
        [] {
          const Dims& dims = sample_dims();
          return OpSamples{{{{TensorType(f32, {3, 2})}}, make_attrs(UnstackAttrs{3})},
                           {{{TensorType(f32, {2})}}, make_attrs(UnstackAttrs{2})},
                           {{{TensorType(f32, {Dim("beam", 3), dims[0], dims[1]})}},
                            make_attrs(UnstackAttrs{3})},
                           {{{TensorType(f32, {2, 0})}}, make_attrs(UnstackAttrs{2})}};
        },
    .iteration_batching = unstack_across_iterations,
    .axes =
        [](const OpCall& call, AxisFactors& f) {
          for (int axis = 1; axis < call.in[0].rank(); ++axis) f.in(0, axis) = axis - 1;
        },
    .fails = fails_without_memory,
};

// ---- Public functions ---------------------------------------------------------------------------

namespace {
bool some_are_unranked(const Tensors& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), is_unranked);
}
}  // namespace

Tensor stack(const Tensors& tensors, const Dim& dim) {
  need_tensors(tensors, "stack");
  if (some_are_unranked(tensors)) return stack_unranked(tensors, canonical(dim));
  Tensors ordered;
  for (const Tensor& x : tensors) ordered.push_back(in_order(x, tensors[0].dims(), -1));
  const Dim to = dim.is_undefined() ? Dim(dim.name(), static_cast<std::int64_t>(tensors.size()))
                                    : canonical(dim);
  return reel::bind(stack_op, ordered, make_attrs(StackAttrs{to}));
}

Tensor stack(const Tensors& tensors, int axis) {
  need_tensors(tensors, "stack");
  if (some_are_unranked(tensors)) return stack_unranked(tensors, axis);
  const int rank = tensors[0].rank() + 1;
  if (axis < -rank || axis >= rank)
    throw IndexError(str("stack: axis ", axis, " is out of range for the result, which has ", rank,
                         rank == 1 ? " axis" : " axes"));
  const Tensor result = stack(tensors, Dim(static_cast<std::int64_t>(tensors.size())));
  if (axis < 0) axis += rank;
  if (axis == 0) return result;
  std::vector<Axis> order;
  order.reserve(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) order.emplace_back(i < axis ? i + 1 : i == axis ? 0 : i);
  return transpose(result, order);
}

Tensors unstack_shown(const Tensor& x, int axis) {
  const Dim& dim = dim_at(x.type(), axis);
  if (!dim.has_size())
    throw TraceError(str("unstack: the size of ", axis_name(x.type(), axis),
                         " is not known while tracing; use scan to ",
                         "go through it, or a TensorArray"));
  if (dim.size() == 0) return {};
  std::vector<Axis> order{axis};
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) order.emplace_back(i);
  return bind_all(unstack_op, {axis == 0 ? x : transpose(x, order)},
                  make_attrs(UnstackAttrs{dim.size()}));
}

Tensors unstack(const Tensor& x, const Axis& along) {
  const int axis = along.in(x, "unstack");
  const Dim dim = dim_at(x.type(), axis);
  if (!has_lengths_along(x.type(), axis)) return unstack_shown(x, axis);
  std::vector<std::pair<Tensor, Tensors>> parts;  // of x, and of lengths
  std::size_t place = 0;
  const auto take = [&](const Tensor& of, int axis) {
    for (const auto& [whole, slices] : parts)
      if (whole.block() == of.block()) return slices[place];
    parts.emplace_back(of, unstack_shown(of, axis));
    return parts.back().second[place];
  };
  AlongAxis slices({dim}, take,
                   {.key = [&] { return key_of_element(dim, static_cast<std::int64_t>(place)); }});
  Tensors result(unstack_shown(x, axis).size());
  for (; place < result.size(); ++place) {
    slices.begin();
    result[place] = slices(x, axis);
  }
  return result;
}

}  // namespace reel
