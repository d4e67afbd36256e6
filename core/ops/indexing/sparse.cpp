// Ops on elements at places that are tensors: scatter_places, gather_places, matrix_places.
#include "reel/core/ops/indexing/sparse.h"

#include <algorithm>
#include <cstring>

#include "reel/core/base/str.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/new_dims.h"

namespace reel {
namespace {

struct PlacesAttrs {
  std::string what;  ///< function that the user called, for messages
  template <class F>
  static void fields(F&& f) {
    f("what", &PlacesAttrs::what);
  }
};

/// Prints a type as [2,3]: indices and sizes were cast to i64 here from the user's dtype.
std::string without_dtype(const TensorType& type) {
  const std::string text = str(type);
  return text.substr(text.find('['));
}

// ---- Types --------------------------------------------------------------------------------------

void check_places(const std::string& what, const TensorType& places) {
  const bool is_list_of_places = places.rank() == 1 || places.rank() == 2;
  if (places.dtype() != i64 || !is_list_of_places || places.is_named())
    throw ShapeError(
        str(what, ": indices are [n,k] with plain sizes, got ", without_dtype(places)));
  if (places.rank() == 2 && !dim_at(places, 1).has_size())
    throw ShapeError(str(what, ": the number of indices of each element must be known, got ",
                         without_dtype(places), "; give it with ensure_shape"));
}

/// Returns the number of indices of a place.
std::int64_t depth_of(const TensorType& places) {
  return places.rank() == 1 ? 1 : dim_at(places, 1).size();
}

bool may_be_equal(const Dim& a, const Dim& b) { return !a.has_size() || !b.has_size() || a == b; }

void check_scatter(const std::string& what, const TensorType& places, const TensorType& updates,
                   const TensorType& shape) {
  check_places(what, places);
  if (shape.dtype() != i64 || shape.rank() != 1 || shape.is_named())
    throw ShapeError(
        str(what, ": dense_shape is a vector of plain size, got ", without_dtype(shape)));
  if (!dim_at(shape, 0).has_size())
    throw ShapeError(str(what, ": the rank must be known, but dense_shape is ",
                         without_dtype(shape), "; give it with ensure_shape"));
  if (updates.dtype() == boolean) throw DTypeError(str(what, ": takes numbers, got ", updates));
  const auto rank = static_cast<int>(dim_at(shape, 0).size());
  const auto depth = static_cast<int>(depth_of(places));
  if (updates.is_named() || updates.rank() != 1 + rank - depth ||
      !may_be_equal(dim_at(places, 0), dim_at(updates, 0)))
    throw ShapeError(str(what, ": values ", updates, ", indices ", without_dtype(places),
                         " and dense_shape ", without_dtype(shape),
                         " do not fit together: each of the values has one index for ",
                         depth == 1 ? "the first axis" : str("each of ", depth, " axes"),
                         ", and sizes for all others of ", rank));
}

void scatter_type(TypeArgs& a) {
  check_scatter(a.attr<PlacesAttrs>().what, a.in[0], a.in[1], a.in[2]);
  Dims dims;
  while (static_cast<std::int64_t>(dims.size()) < dim_at(a.in[2], 0).size())
    dims.push_back(Dim::unknown());  // a new unknown dim for each axis
  a.out.push_back(a.in[1].with(dims));
}

void gather_values_type(TypeArgs& a) {
  const std::string& what = a.attr<PlacesAttrs>().what;
  const TensorType &x = a.in[0], &places = a.in[1];
  check_places(what, places);
  const auto depth = static_cast<int>(depth_of(places));
  if (x.is_named() || x.is_list() || x.rank() < depth)
    throw ShapeError(str(what, ": places ", without_dtype(places), " do not index ", x,
                         ", which should have plain sizes and at least ", depth, " axes"));
  Dims dims{dim_at(places, 0)};
  dims.insert(dims.end(), x.dims().begin() + depth, x.dims().end());
  a.out.push_back(x.with(dims));
}

void check_matrix(const TensorType& places, const TensorType& values, const TensorType& shape,
                  const TensorType& b) {
  const Dim two(2);
  const auto is = [](const TensorType& type, int rank) {
    return type.rank() == rank && !type.is_named() && !type.is_list();
  };
  if (!is(places, 2) || !may_be_equal(dim_at(places, 1), two) || !is(values, 1) || !is(b, 2))
    throw ShapeError(str("matmul: takes a sparse matrix and a matrix with plain sizes, got values ",
                         values, " at indices ", without_dtype(places), ", and ", b));
  if (!may_be_equal(dim_at(places, 0), dim_at(values, 0)))
    throw ShapeError(str("matmul: values and indices of a sparse matrix differ in number: values ",
                         values, " at indices ", without_dtype(places)));
  if (!is(shape, 1) || !may_be_equal(dim_at(shape, 0), two))
    throw ShapeError(
        str("matmul: dense_shape of a sparse matrix is the number of its rows and that of its "
            "columns, got ",
            without_dtype(shape)));
  if (values.dtype() != b.dtype())
    throw DTypeError(
        str("matmul: dtypes differ: values ", values, " and ", b, "; cast one of them"));
}

void matrix_places_type(TypeArgs& a) {
  check_matrix(a.in[0], a.in[1], a.in[2], a.in[3]);
  a.out.push_back(TensorType(i64, {dim_at(a.in[0], 0), Dim(2)}));
}

// ---- Kernels ------------------------------------------------------------------------------------

/// Iterates over places. inner(): the number of elements at a place.
class PlaceWalk {
 public:
  PlaceWalk(const std::string& what, const Tensor& places, const TensorType& type)
      : what_(what), places_(places), type_(type) {
    const auto depth = static_cast<std::size_t>(depth_of(places.type()));
    for (std::size_t axis = depth; axis < type.sizes().size(); ++axis) inner_ *= type.sizes()[axis];
  }
  std::int64_t inner() const { return inner_; }

  /// Calls fn(first element, or -1) for each place, in order.
  template <class Fn>
  void each(Fn&& fn) const {
    const std::int64_t count = places_.type().sizes()[0], depth = depth_of(places_.type());
    const auto* index = places_.data<std::int64_t>();
    for (std::int64_t i = 0; i < count; ++i, index += depth) {
      std::int64_t flat = 0;
      const bool is_place = std::all_of(index, index + depth, [](auto k) { return k >= 0; });
      for (std::int64_t k = 0; is_place && k < depth; ++k) {
        const std::int64_t size = type_.sizes()[static_cast<std::size_t>(k)];
        if (index[k] >= size) refuse(i, k, index[k], size);
        flat = flat * size + index[k];
      }
      fn(is_place ? flat * inner_ : -1);
    }
  }

 private:
  [[noreturn]] void refuse(std::int64_t i, std::int64_t axis, std::int64_t index,
                           std::int64_t size) const {
    const std::string at = places_.rank() == 1 ? str(i) : str(i, ",", axis);
    throw IndexError(str(what_, ": index ", index, " at indices[", at,
                         "] is out of range for axis ", axis, " of ", type_, ", which has size ",
                         size));
  }
  const std::string& what_;
  const Tensor& places_;
  const TensorType& type_;
  std::int64_t inner_ = 1;
};

/// Returns plain dims of the sizes in a vector. Throws ShapeError for negative sizes, and unless
/// the updates have these sizes behind their places.
Dims sizes_in(const std::string& what, const Tensor& shape, const TensorType& updates) {
  Dims dims;
  const auto* sizes = shape.data<std::int64_t>();
  const std::int64_t rank = shape.type().numel();
  const std::int64_t depth = rank - (updates.rank() - 1);
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    if (sizes[axis] < 0)
      throw ShapeError(str(what, ": sizes are not negative, got ", sizes[axis], " for axis ", axis,
                           " in dense_shape"));
    if (axis >= depth && sizes[axis] != updates.sizes()[static_cast<std::size_t>(axis - depth + 1)])
      throw ShapeError(str(what, ": dense_shape says size ", sizes[axis], " for axis ", axis,
                           ", but values are ", updates));
    dims.emplace_back(sizes[axis]);
  }
  return dims;
}

void scatter_values_kernel(KernelArgs& a) {
  const std::string& what = a.attr<PlacesAttrs>().what;
  const Tensor &places = a.input(0), &updates = a.input(1);
  check_scatter(what, places.type(), updates.type(), a.input(2).type());
  const TensorType type = as_function(
      what, [&] { return updates.type().with(sizes_in(what, a.input(2), updates.type())); });
  const Tensor out(allocate_block(type));
  std::memset(out.data<char>(), 0, static_cast<std::size_t>(type.bytes()));
  const PlaceWalk walk(what, places, type);
  visit(type.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, bool>) {
      const T* from = updates.data<T>();
      walk.each([&](std::int64_t first) {
        if (first >= 0)
          for (std::int64_t k = 0; k < walk.inner(); ++k) out.data<T>()[first + k] += from[k];
        from += walk.inner();
      });
    }
  });
  a.decided->push_back(out);
}

void gather_kernel(KernelArgs& a) {
  const Tensor &x = a.input(0), &places = a.input(1), &out = a.make();
  const PlaceWalk walk(a.attr<PlacesAttrs>().what, places, x.type());
  const std::size_t bytes = static_cast<std::size_t>(walk.inner()) * size_of(x.dtype());
  char* to = out.data<char>();
  walk.each([&](std::int64_t first) {
    if (first < 0)
      std::memset(to, 0, bytes);
    else
      std::memcpy(to, x.data<char>() + static_cast<std::size_t>(first) * size_of(x.dtype()), bytes);
    to += bytes;
  });
}

void matrix_places_kernel(KernelArgs& a) {
  const Tensor &places = a.input(0), &b = a.input(3);
  check_matrix(places.type(), a.input(1).type(), a.input(2).type(), b.type());
  const auto* sizes = a.input(2).data<std::int64_t>();
  if (sizes[1] != b.type().sizes()[0])
    throw ShapeError(str("matmul: inner sizes differ: dense_shape [", sizes[0], ",", sizes[1],
                         "] of the sparse matrix has ", sizes[1], " columns, rhs ", b.type(),
                         " has ", b.type().sizes()[0], " rows"));
  const std::int64_t count = places.type().sizes()[0];
  const auto* from = places.data<std::int64_t>();
  auto* to = a.make().data<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i, from += 2, to += 2) {
    const bool is_place = from[0] >= 0 && from[1] >= 0;
    for (int axis = 0; axis < 2; ++axis) {
      if (is_place && from[axis] >= sizes[axis])
        throw IndexError(str("matmul: index ", from[axis], " at indices[", i, ",", axis,
                             "] is out of range for axis ", axis,
                             " of a sparse matrix of dense_shape [", sizes[0], ",", sizes[1], "]"));
      to[axis] = is_place ? from[axis] : -1;
    }
  }
}

// ---- Ops ----------------------------------------------------------------------------------------

const Op shape_of_op{
    .name = "shape_of",
    .type = [](TypeArgs& a) { a.out.push_back(TensorType(i64, {Dim(a.in[0].rank())})); },
    .kernel =
        [](KernelArgs& a) {
          const auto& sizes = a.input(0).type().sizes();
          std::copy(sizes.begin(), sizes.end(), a.make().data<std::int64_t>());
        },
    .no_vjp = "sizes do not depend on values",
    .samples =
        [] {
          return OpSamples{{{{TensorType(f32, {2, 3}), -2, 2, false}}},
                           {{{TensorType(f32), -2, 2, false}}},
                           {{{TensorType(i32, {0}), -2, 2, false}}}};
        },
};

const Op scatter_places_op{
    .name = "scatter_places",
    .type = scatter_type,
    .kernel = scatter_values_kernel,
    .vjp =
        [](Vjp& at) {
          at.add(1, gather_places(at.attr<PlacesAttrs>().what, at.cotangent(), at.input(0)));
        },
    .reads = {.inputs = 0b1},
    .samples =
        [] {
          const AttrsRef attrs = make_attrs(PlacesAttrs{"to_dense"});
          const auto sample = [&](const Dims& places, const Dims& updates, std::int64_t rank) {
            return OpSample{{{TensorType(i64, places), 0, 2, false},
                             {TensorType(f32, updates)},
                             {TensorType(i64, {Dim(rank)}), 3, 3, false}},
                            attrs};
          };
          return OpSamples{sample({5, 2}, {5}, 2), sample({4, 1}, {4, 3}, 2),
                           sample({0, 2}, {0}, 2), sample({2, 3}, {2}, 3), sample({4}, {4, 3}, 2)};
        },
    .kernel_decides_types = true,
};

const Op gather_places_op{
    .name = "gather_places",
    .type = gather_values_type,
    .kernel = gather_kernel,
    .vjp =
        [](Vjp& at) {
          const Tensor whole = scatter_places(at.attr<PlacesAttrs>().what, at.input(1),
                                              at.cotangent(), shape_of(at.input(0)));
          at.add(0, whole);
        },
    .reads = {.inputs = 0b11},
    .samples =
        [] {
          const AttrsRef attrs = make_attrs(PlacesAttrs{"to_dense"});
          const auto sample = [&](const Dims& x, const Dims& places) {
            return OpSample{{{TensorType(f32, x)}, {TensorType(i64, places), 0, 2, false}}, attrs};
          };
          return OpSamples{sample({3, 3}, {5, 2}), sample({3, 2}, {4, 1}), sample({3, 3}, {0, 2}),
                           sample({3, 2}, {4})};
        },
};

const Op matrix_places_op{
    .name = "matrix_places",
    .type = matrix_places_type,
    .kernel = matrix_places_kernel,
    .no_vjp = "indices do not depend on values",
    .samples =
        [] {
          const auto sample = [](std::int64_t count) {
            return OpSample{{{TensorType(i64, {count, 2}), 0, 2, false},
                             {TensorType(f32, {count}), -2, 2, false},
                             {TensorType(i64, {2}), 3, 3, false},
                             {TensorType(f32, {3, 4}), -2, 2, false}}};
          };
          return OpSamples{sample(5), sample(0)};
        },
};

}  // namespace

// ---- Functions ----------------------------------------------------------------------------------

Tensor scatter_places(const std::string& what, const Tensor& places, const Tensor& updates,
                      const Tensor& shape) {
  return bind(scatter_places_op, {places, updates, shape}, make_attrs(PlacesAttrs{what}));
}
Tensor gather_places(const std::string& what, const Tensor& x, const Tensor& places) {
  return bind(gather_places_op, {x, places}, make_attrs(PlacesAttrs{what}));
}
Tensor matrix_places(const Tensor& places, const Tensor& values, const Tensor& shape,
                     const Tensor& b) {
  return bind(matrix_places_op, {places, values, shape, b});
}
Tensor shape_of(const Tensor& x) { return bind(shape_of_op, {x}); }

namespace {
const Op* const kSparseOps[] = {&shape_of_op, &scatter_places_op, &gather_places_op,
                                &matrix_places_op};
}
std::span<const Op* const> sparse_ops() { return kSparseOps; }

}  // namespace reel
