// Ops on whole lists: zeros and sums, for cotangents, and conversions to other list types.
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/list/list_data.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/core/types/mode.h"
#include "reel/core/types/partial_shape.h"

namespace reel {
namespace {

const Op list_zeros_like_op{
    .name = "list_zeros_like",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
    .kernel =
        [](KernelArgs& a) {
          Ref<ListData> data(new ListData);
          const TensorType element = a.types[0].element();
          ModeScope plain({});
          each_element(a.input(0), [&](std::int64_t i, const Tensor& x) {
            if (x.type().is_list())
              data->items.set(i, list_zeros_like(x));
            else if (x.type() != element)  // other elements read as zeros of this type anyway
              data->items.set(i, zeros(x.type()));
          });
          data->items.resize(element_count(a.input(0)));
          a.out[0] = Tensor(allocate_list(a.types[0], data));
        },
    .no_vjp = "zeros do not depend on values",
    .samples = [] { return OpSamples{}; },
    .takes_lists = 0b1,
    .takes_unranked = true,
};

const Op list_add_op{
    .name = "list_add",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
    .kernel =
        [](KernelArgs& a) {
          ModeScope plain({});
          // Merges into the list with more elements: cotangents of many reads grow by one element
          // at a time.
          const bool swap = items_of(a.input(1)).written() > items_of(a.input(0)).written();
          const PersistentList other = items_of(a.input(!swap));
          a.out[0] = edited(a, swap, [&](PersistentList& items) {
            items.merge(other, [](const Tensor& x, const Tensor& y) {
              return x.type().is_list() ? list_add(x, y) : add(x, named_alike(y, x.type()));
            });
          });
        },
    .vjp =
        [](Vjp& at) {
          at.add(0, at.cotangent());
          at.add(1, at.cotangent());
        },
    .samples = [] { return OpSamples{}; },
    .takes_lists = 0b11,
    .takes_unranked = true,
};

const Op list_retype_op{
    .name = "list_retype",
    .type = [](TypeArgs& a) { a.out.push_back(a.attr<ListTypeAttrs>().list.type); },
    .kernel = [](KernelArgs& a) { a.out[0] = with_dims_of(a.input(0), a.types[0]); },
    .vjp = [](Vjp& at) { at.add(0, list_of_type(at.cotangent(), at.input_type(0))); },
    .samples = [] { return OpSamples{}; },
    .takes_lists = 0b1,
};

struct ResizeAttrs {
  ListType list;
  bool clears_padding = false;
  std::vector<int> axes;  ///< axes with other dims in the result
  template <class F>
  static void fields(F&& f) {
    f("list", &ResizeAttrs::list);
    f("clears_padding", &ResizeAttrs::clears_padding);
    f("axes", &ResizeAttrs::axes);
  }
};

/// Returns `dims` with the dims of `from` at these axes. Elements may have dims of their own at the
/// other axes.
Dims with_axes(Dims dims, const std::vector<int>& axes, const Dims& from) {
  for (const int axis : axes) dims[axis] = from[axis];
  return dims;
}

const Op list_resize_op{
    .name = "list_resize",
    .type = [](TypeArgs& a) { a.out.push_back(a.attr<ResizeAttrs>().list.type); },
    .kernel =
        [](KernelArgs& a) {
          ModeScope plain({});
          const bool clears = a.attr<ResizeAttrs>().clears_padding;
          const std::vector<int>& axes = a.attr<ResizeAttrs>().axes;
          const auto changed = [&](const Tensor& x) {
            const Dims dims = with_axes(x.dims(), axes, a.types[0].dims());
            // An element may be a list: residuals of a loop inside another loop.
            return x.type().is_list() ? list_resized(x, dims, clears)
                                      : resized(clears ? mask_padding(x) : x, dims);
          };
          if (!residual_value(a.input(0))) {
            const PersistentList items = items_of(a.input(0));
            a.out[0] = edited(a, 0, [&](PersistentList& edit) {
              items.each([&](std::int64_t i, const Tensor& x) { edit.set(i, changed(x)); });
            });
            return;
          }
          // No op may change residuals of a loop: the result is a list in memory.
          Ref<ListData> data(new ListData);
          data->items.resize(element_count(a.input(0)));
          each_element(a.input(0),
                       [&](std::int64_t i, const Tensor& x) { data->items.set(i, changed(x)); });
          a.out[0] = Tensor(allocate_list(a.types[0], data));
        },
    .vjp =
        [](Vjp& at) {
          const Tensor cotangent = at.cotangent();
          const ResizeAttrs& attrs = at.attr<ResizeAttrs>();
          at.add(0, list_resized(cotangent,
                                 with_axes(cotangent.dims(), attrs.axes, at.input_type(0).dims()),
                                 attrs.clears_padding));
        },
    .samples = [] { return OpSamples{}; },
    .takes_lists = 0b1,
};

}  // namespace

Tensor list_zeros_like(const Tensor& list) { return bind(list_zeros_like_op, {list}); }
Tensor list_add(Tensor a, Tensor b) { return bind(list_add_op, {std::move(a), std::move(b)}); }

Tensor list_of_type(const Tensor& list, const TensorType& type) {
  if (list.type() == type) return list;
  return bind(list_retype_op, {list}, make_attrs(ListTypeAttrs{{type}}));
}
Tensor relax_elements(const Tensor& list, const PartialShape& shape) {
  Dims dims = list.dims();
  bool changes = false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool says =
        shape.has_rank() && (shape.dims()[i].is_named() || shape.dims()[i].has_size());
    if (says || dims[i].is_named() || !dims[i].has_size()) continue;
    dims[i] = Dim::unknown();
    changes = true;
  }
  if (!changes) return list;
  return list_of_type(list, list.type().with(dims));
}

Tensor list_resized(const Tensor& list, const Dims& dims, bool clears_padding) {
  std::vector<int> axes;
  for (int axis = 0; axis < list.rank(); ++axis)
    if (!(list.dims()[axis] == dims[axis])) axes.push_back(axis);
  return bind(list_resize_op, {list},
              make_attrs(ResizeAttrs{{list.type().with(dims)}, clears_padding, axes}));
}

namespace {
const Op* const kWholeListOps[] = {&list_zeros_like_op, &list_add_op, &list_retype_op,
                                   &list_resize_op};
}
std::span<const Op* const> whole_list_ops() { return kWholeListOps; }

}  // namespace reel
