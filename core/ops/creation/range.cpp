// Ops that create tensors from positions along a dim: range, one_hot.
#include <algorithm>
#include <cstring>
#include <limits>

#include "reel/core/base/str.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/creation/creation.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

struct DimAttrs {
  Dim dim{0};
  DType dtype = i32;
  template <class F>
  static void fields(F&& f) {
    f("dim", &DimAttrs::dim);
    f("dtype", &DimAttrs::dtype);
  }
};

/// Sets element i to i. Each is rounded by itself: a float that counts up stops at 2^24. Vectors
/// convert numbers of 32 bits only.
template <class T>
__attribute__((optimize("O3"))) void set_positions(T* to, std::int64_t count) {
  constexpr std::int64_t kMaxI32 = std::numeric_limits<std::int32_t>::max();
  const auto few = static_cast<std::int32_t>(std::min(count, kMaxI32));
  for (std::int32_t i = 0; i < few; ++i) to[i] = static_cast<T>(i);
  for (std::int64_t i = few; i < count; ++i) to[i] = static_cast<T>(i);
}

}  // namespace

const Op range_op{
    .name = "range",
    .type =
        [](TypeArgs& a) {
          const auto& [dim, dtype] = a.attr<DimAttrs>();
          if (dtype == boolean)
            throw DTypeError(str("range: positions along ", dim, " are numbers, not boolean"));
          TensorType type(dtype, {dim});
          if (dtype == i32) check_positions_fit("range", type, 0);
          a.out.push_back(std::move(type));
        },
    .kernel =
        [](KernelArgs& a) {
          const Tensor& out = a.make();
          visit(out.dtype(), [&](auto zero) {
            using T = decltype(zero);
            if constexpr (!std::is_same_v<T, bool>)
              set_positions(out.data<T>(), out.type().numel());
          });
        },
    .no_vjp = "has no inputs",
    .samples =
        [] {
          return OpSamples{{{}, make_attrs(DimAttrs{Dim(5), i32})},
                           {{}, make_attrs(DimAttrs{Dim("time", 3), f64})},
                           {{}, make_attrs(DimAttrs{sample_dims()[1], f32})},
                           {{}, make_attrs(DimAttrs{Dim(0), i64})}};
        },
};

namespace {

template <class Index>
void set_hot(const Tensor& indices, const Tensor& out, std::int64_t classes) {
  const Index* at = indices.data<Index>();
  visit(out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* row = out.data<T>();
    for (std::int64_t i = 0; i < indices.type().numel(); ++i, row += classes)
      if (at[i] >= 0 && at[i] < classes) row[at[i]] = T{1};
  });
}

Tensors one_hot_across_iterations(const IterationBatch& at) {
  if (at.is_summed) return {};
  return {bind(at.op, {at.in[0]}, at.attrs)};
}

}  // namespace

const Op one_hot_op{
    .name = "one_hot",
    .type =
        [](TypeArgs& a) {
          const auto& [classes, dtype] = a.attr<DimAttrs>();
          const TensorType& indices = a.in[0];
          if (!is_integer(indices.dtype()))
            throw DTypeError(
                str("one_hot: indices must be integers, got ", indices, "; cast them to i32"));
          if (classes.is_named() && contains(indices.dims(), classes))
            throw ShapeError(str("one_hot: indices ", indices, " have the dim ", classes,
                                 " of the classes already"));
          a.out.push_back(TensorType(dtype, insert_dim(indices.dims(), indices.rank(), classes)));
        },
    .kernel =
        [](KernelArgs& a) {
          const Tensor& indices = a.input(0);
          const Tensor& out = a.make();
          if (out.type().bytes() == 0) return;
          std::memset(out.data<void>(), 0, static_cast<std::size_t>(out.type().bytes()));
          const std::int64_t classes = out.type().sizes().back();
          indices.dtype() == i32 ? set_hot<std::int32_t>(indices, out, classes)
                                 : set_hot<std::int64_t>(indices, out, classes);
        },
    .no_vjp = "indices are integers",
    .samples =
        [] {
          return OpSamples{
              {{{TensorType(i32, {2, 3}), -1, 4, false}}, make_attrs(DimAttrs{Dim(4), f32})},
              {{{TensorType(i64), 0, 3, false}}, make_attrs(DimAttrs{Dim("classes", 4), boolean})},
              {{{TensorType(i32, {sample_dims()[0], sample_dims()[1]}), 0, 3, false}},
               make_attrs(DimAttrs{Dim("classes", 4), f64})},
              {{{TensorType(i32, {0}), 0, 3, false}}, make_attrs(DimAttrs{Dim(4), i32})}};
        },
    .iteration_batching = one_hot_across_iterations,
    .axes = same_axes,
    .fails = fails_without_memory,
};

Tensor range(std::int64_t size, DType dtype) {
  if (size < 0)
    throw ArgumentError(str("range: a size must not be negative, got ", size,
                            "; range(n) has the numbers 0 to n - 1"));
  return range(Dim(size), dtype);
}
Tensor range(const Dim& dim, DType dtype) {
  return bind(range_op, {}, make_attrs(DimAttrs{canonical(dim), dtype}));
}
Tensor one_hot(const Tensor& indices, const Dim& classes, DType dtype) {
  return bind(one_hot_op, {indices}, make_attrs(DimAttrs{canonical(classes), dtype}));
}

}  // namespace reel
