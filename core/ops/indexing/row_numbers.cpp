// Ops that number the rows of a table: from gather's indices, and from a caller's row numbers.
#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/row_attrs.h"
#include "reel/core/ops/indexing/rows.h"
#include "reel/core/ops/indexing/sparse.h"
#include "reel/core/ops/registry.h"

namespace reel {
namespace {

// ---- row_numbers --------------------------------------------------------------------------------

const Op row_numbers_op{
    .name = "row_numbers",
    .type =
        [](TypeArgs& a) {
          const TensorType& indices = a.in[0];
          a.out.push_back(
              TensorType(i64, {indices.is_known() ? Dim(indices.numel()) : Dim::unknown()}));
        },
    .kernel =
        [](KernelArgs& a) {
          const RowNumbersAttrs& attrs = a.attr<RowNumbersAttrs>();
          GatherAttrs gather{.rule = attrs.rule, .function = attrs.function};
          gather.matched.assign(a.input(0).dims().size(), -1);
          const Places places =
              places_of(gather.function, a.input(0), TensorType(f32, {Dim(attrs.rows)}), gather);
          static_assert(kNoPlace == -1);
          std::copy(places.begin(), places.end(), a.make().data<std::int64_t>());
        },
    .no_vjp = "numbers are integers",
    .samples =
        [] {
          const Dims& dims = sample_dims();
          const AttrsRef four = make_attrs(RowNumbersAttrs{.rows = 4});
          return OpSamples{{{{TensorType(i32, {3}), -4, 3, false}}, four},
                           {{{TensorType(i64, {2, 2}), -4, 3, false}}, four},
                           {{{TensorType(i32), 0, 3, false}}, four},
                           {{{TensorType(i32, {0}), 0, 3, false}}, four},
                           {{{TensorType(i32, {dims[0], dims[1]}), 0, 3, false}}, four},
                           {{{TensorType(i32, {3}), -9, 9, false}},
                            make_attrs(RowNumbersAttrs{.rows = 4, .rule = IndexRule::clip})}};
        },
};

/// Converts row numbers from outside to i64. Throws IndexError for one beyond the table.
const Op check_rows_op{
    .name = "check_rows",
    .type =
        [](TypeArgs& a) {
          const TensorType& indices = a.in[0];
          if (!is_integer(indices.dtype()))
            throw DTypeError(str("IndexedSlices: indices are i32 or i64, got ", indices));
          check_row_indices(indices);
          a.out.push_back(indices.with(i64));
        },
    .kernel =
        [](KernelArgs& a) {
          const Tensor &indices = a.input(0), &out = a.make();
          const std::int64_t rows = a.attr<RowCountAttrs>().rows;
          visit(indices.dtype(), [&](auto zero) {
            const auto* index = indices.data<decltype(zero)>();
            for (std::int64_t i = 0; i < indices.type().numel(); ++i) {
              const auto row = static_cast<std::int64_t>(index[i]);
              if (row >= rows)
                throw IndexError(str("IndexedSlices: index ", row,
                                     place_of_element(i, indices.type()),
                                     " is out of range for a table with ", rows, " rows"));
              out.data<std::int64_t>()[i] = row;
            }
          });
        },
    .no_vjp = "numbers are integers",
    .samples =
        [] {
          return OpSamples{{{{TensorType(i32, {3}), -1, 3, false}}, make_attrs(RowCountAttrs{4})},
                           {{{TensorType(i64, {0}), -1, 3, false}}, make_attrs(RowCountAttrs{4})}};
        },
};

}  // namespace

Tensor row_numbers(const Tensor& indices, std::int64_t rows, const GatherAttrs& attrs) {
  return bind(row_numbers_op, {indices},
              make_attrs(RowNumbersAttrs{rows, attrs.rule, attrs.function}));
}

void check_row_indices(const TensorType& indices) {
  if (indices.rank() == 1 && !indices.is_named()) return;
  throw ShapeError(str("IndexedSlices: indices are a vector of a plain size, got ", indices,
                       indices.rank() > 1 ? "; rows of vmap each have theirs: call to_dense, or "
                                            "with_dense_tables, in the function given to vmap"
                                          : ""));
}

Tensor checked_row_numbers(const Tensor& indices, std::int64_t rows) {
  return bind(check_rows_op, {indices}, make_attrs(RowCountAttrs{rows}));
}

namespace {
const Op* const kRowNumberOps[] = {&row_numbers_op, &check_rows_op};
}
std::span<const Op* const> row_number_ops() { return kRowNumberOps; }

}  // namespace reel
