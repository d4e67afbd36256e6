// Values of unknown rank: lists with one element, the value. A cotangent without an element stands
// for zeros.
#include "reel/core/functions/unranked.h"

#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/list/list_data.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

OpSamples no_samples() { return {}; }

Tensor unranked_value(const Tensor& x) {
  Ref<ListData> data(new ListData);
  data->items.set(0, x);
  return Tensor(allocate_list(TensorType::unranked(x.dtype()), data));
}

Tensor ranked_like(const Tensor& x, const Tensor& like);

const Op as_unranked_op{
    .name = "as_unranked",
    .type = [](TypeArgs& a) { a.out.push_back(TensorType::unranked(a.in[0].dtype())); },
    .kernel = [](KernelArgs& a) { a.out[0] = unranked_value(a.input(0)); },
    .storage = OpStorage::any,
    .vjp = [](Vjp& at) { at.add(0, ranked_like(at.cotangent(), at.input(0))); },
    .reads = {.inputs = 0b1},
    .samples = no_samples,
};

/// Returns a cotangent with the dims of the value in their order. Throws ShapeError if it has other
/// dims.
Tensor in_order_of(const Tensor& given, const Tensor& value) {
  const Tensor cotangent = named_alike(given, value.type());
  const Dims &from = cotangent.dims(), &to = value.dims();
  if (from == to) return cotangent;
  if (!value.type().is_named() ||
      !std::is_permutation(from.begin(), from.end(), to.begin(), to.end()))
    throw ShapeError(str("gradient: a cotangent of type ", cotangent.type(),
                         " was given for a value of type ", value.type()));
  return transpose(cotangent, to);
}

/// Returns the value of input 0; zeros of the type of input 1 if it has none.
const Op ranked_like_op{
    .name = "ranked_like",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[1]); },
    .kernel =
        [](KernelArgs& a) {
          const Tensor& x = ranked_value(a.input(0));
          ModeScope plain({});
          a.decided->push_back(x.is_defined() ? in_order_of(x, a.input(1))
                                              : zeros(a.input(1).type()));
        },
    .storage = OpStorage::any,
    .vjp = [](Vjp& at) { at.add(0, as_unranked(at.cotangent())); },
    .samples = no_samples,
    .kernel_decides_types = true,
    .takes_unranked = true,
};
Tensor ranked_like(const Tensor& x, const Tensor& like) { return bind(ranked_like_op, {x, like}); }

/// Attributes of as_ranked. Without a rank, which no trace allows, every shape fits.
struct RankedAttrs {
  bool has_rank = true;
  Dims dims;
  template <class F>
  static void fields(F&& f) {
    f("has_rank", &RankedAttrs::has_rank);
    f("dims", &RankedAttrs::dims);
  }
};

const Op as_ranked_op{
    .name = "ensure_shape_unranked",
    .type =
        [](TypeArgs& a) {
          Dims dims = a.attr<RankedAttrs>().dims;
          for (Dim& dim : dims)
            if (is_unknown(dim)) dim = Dim::unknown();
          a.out.push_back(TensorType(a.in[0].dtype(), dims));
        },
    .kernel =
        [](KernelArgs& a) {
          const Tensor& x = ranked_value(a.input(0));
          const RankedAttrs& attrs = a.attr<RankedAttrs>();
          if (attrs.has_rank && !PartialShape(attrs.dims).allows(x.dims()))
            throw ShapeError(str("ensure_shape: ", x.type(), " does not have the shape ",
                                 PartialShape(attrs.dims)));
          for (int axis = 0; attrs.has_rank && axis < x.rank(); ++axis)
            if (x.dims()[axis].is_named() && !attrs.dims[axis].is_named())
              throw ShapeError(str("ensure_shape: ", x.type(), " has a named dim where the shape ",
                                   PartialShape(attrs.dims),
                                   " has none; a trace knows only names that are given"));
          a.decided->push_back(x);
        },
    .storage = OpStorage::any,
    .vjp = [](Vjp& at) { at.add(0, as_unranked(at.cotangent())); },
    .samples = no_samples,
    .kernel_decides_types = true,
    .takes_unranked = true,
};

/// Attributes of stack_unranked, and of slice_unranked, its gradient by input `position`.
struct NewAxisAttrs {
  int axis = 0;
  std::optional<Dim> dim;
  std::int64_t count = 0, position = 0;
  template <class F>
  static void fields(F&& f) {
    f("axis", &NewAxisAttrs::axis);
    f("dim", &NewAxisAttrs::dim);
    f("count", &NewAxisAttrs::count);
    f("position", &NewAxisAttrs::position);
  }
};

Tensor slice_unranked(const Tensor& x, NewAxisAttrs attrs, std::int64_t position);
Tensor stack_values(const Tensors& values, NewAxisAttrs attrs);

/// Inputs without a value are zeros, as in cotangents.
const Op stack_unranked_op{
    .name = "stack_unranked",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
    .kernel =
        [](KernelArgs& a) {
          const NewAxisAttrs& attrs = a.attr<NewAxisAttrs>();
          Tensors values;
          Tensor one;
          for (const OpInput& input : a.in) {
            values.push_back(ranked_value(*input.tensor));
            if (values.back().is_defined()) one = values.back();
          }
          Tensor result;
          if (one.is_defined()) {
            for (Tensor& value : values)
              if (!value.is_defined()) value = zeros(one.type());
            result = attrs.dim ? stack(values, *attrs.dim) : stack(values, attrs.axis);
          }
          a.decided->push_back(result.is_defined() ? unranked_value(result)
                                                   : empty_list(a.input(0).type()));
        },
    .storage = OpStorage::any,
    .vjp =
        [](Vjp& at) {
          for (std::size_t i = 0; i < at.input_count(); ++i)
            if (at.needs(i))
              at.add(i, slice_unranked(at.cotangent(), at.attr<NewAxisAttrs>(),
                                       static_cast<std::int64_t>(i)));
        },
    .samples = no_samples,
    .kernel_decides_types = true,
    .takes_unranked = true,
};

const Op slice_unranked_op{
    .name = "slice_unranked",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
    .kernel =
        [](KernelArgs& a) {
          const NewAxisAttrs& attrs = a.attr<NewAxisAttrs>();
          const Tensor& x = ranked_value(a.input(0));
          if (!x.is_defined()) return a.decided->push_back(a.input(0));
          Axis axis(attrs.axis);
          if (attrs.dim && attrs.dim->is_undefined())
            axis = Axis(0);  // stack() has made another dim, in front of the others
          else if (attrs.dim)
            axis = Axis(*attrs.dim);
          a.decided->push_back(unranked_value(gather(x, scalar(attrs.position, i64), axis)));
        },
    .storage = OpStorage::any,
    .vjp =
        [](Vjp& at) {
          const NewAxisAttrs& attrs = at.attr<NewAxisAttrs>();
          Tensors parts(static_cast<std::size_t>(attrs.count), empty_list(at.input_type(0)));
          parts[static_cast<std::size_t>(attrs.position)] = at.cotangent();
          at.add(0, stack_values(parts, attrs));
        },
    .samples = no_samples,
    .kernel_decides_types = true,
    .takes_unranked = true,
};

Tensor slice_unranked(const Tensor& x, NewAxisAttrs attrs, std::int64_t position) {
  attrs.position = position;
  return bind(slice_unranked_op, {x}, make_attrs(std::move(attrs)));
}
Tensor stack_values(const Tensors& values, NewAxisAttrs attrs) {
  attrs.position = 0;
  return bind(stack_unranked_op, values, make_attrs(std::move(attrs)));
}

Tensors as_unranked(const Tensors& values) {
  Tensors result;
  for (const Tensor& value : values) result.push_back(reel::as_unranked(value));
  return result;
}

}  // namespace

const Tensor& ranked_value(const Tensor& unranked) { return items_of(unranked).get(0); }

Tensor as_unranked(const Tensor& x) { return is_unranked(x) ? x : bind(as_unranked_op, {x}); }
Tensor as_ranked(const Tensor& x, const PartialShape& shape) {
  return bind(as_ranked_op, {x}, make_attrs(RankedAttrs{shape.has_rank(), shape.dims()}));
}
Tensor stack_unranked(const Tensors& values, int axis) {
  return stack_values(as_unranked(values), {axis, {}, static_cast<std::int64_t>(values.size())});
}
Tensor stack_unranked(const Tensors& values, const Dim& dim) {
  return stack_values(as_unranked(values), {0, dim, static_cast<std::int64_t>(values.size())});
}

namespace {
const Op* const kUnrankedOps[] = {&as_unranked_op, &ranked_like_op, &as_ranked_op,
                                  &stack_unranked_op, &slice_unranked_op};
}
std::span<const Op* const> unranked_ops() { return kUnrankedOps; }

}  // namespace reel
