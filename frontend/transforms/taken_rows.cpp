#include "reel/frontend/transforms/taken_rows.h"

#include <algorithm>

#include "reel/core/ops.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/trace/passes/analysis/row_axes.h"

namespace reel {

namespace {

/// Returns the dim of as many rows as the mask selects.
Rows count_rows(const Tensor& mask, const Rows& all) {
  const Dim taken("taken", computed_plainly([&] { return sum(cast(mask, i32), Axes(all.named)); }));
  return {taken, computed_plainly([&] { return reshape(range(taken), {-1}); }).dims()[0]};
}

}  // namespace

TakenRows::TakenRows(Tensor mask, const Rows& all)
    : mask_(std::move(mask)), all_(all), taken_(count_rows(mask_, all)) {}

/// Returns a value without rows. An empty TensorArray, and the token of a dim, may have dims with
/// lengths of rows all the same.
Tensor TakenRows::with_packed_dims(const Tensor& x) const {
  Dims dims = x.dims();
  for (Dim& dim : dims)
    if (runs_over(dim, all_.named)) dim = pack(dim);
  if (dims == x.dims()) return x;
  if (x.type().is_list()) return list_resized(x, dims);
  if (!(x.type() == token_type(x.dims().back())))
    throw RowsRefused("a value that all rows share has a dim with a length for each row");
  return dim_token(dims.back());
}

RowValue TakenRows::pack(const RowValue& value) const {
  if (!value.is_many) return {with_packed_dims(value.value), false};
  if (value.value.type().is_list())
    throw RowsRefused("a TensorArray in a branch that rows may take");
  if (has_lengths_of_absent(value.value.type(), all_.named))  // pack leaves these over all rows
    throw RowsRefused("a branch that rows may take reads an axis that lacks dims of its lengths");
  const Tensor named = in_named_form(value.value, all_);
  const Tensor packed = reel::pack(named, mask_, Axes(all_.named), taken_.named);
  TensorType row = type_of_row(value);
  if (row.is_named()) row = type_of_row({packed, true});
  return {from_named_form(packed, row, taken_), true};
}

/// Packs a tensor without elements, because pack makes one dim for all tensors with the same dim.
Dim TakenRows::pack(const Dim& dim) const {
  Dims dims{all_.named, Dim("none", 0)};
  const auto add = [&](const auto& self, const Dim& of) -> void {
    for (const Dim& over : of.length_dims()) self(self, over);
    if (!contains(dims, of)) dims.push_back(of);
  };
  add(add, dim);
  return reel::pack(zeros(dims), mask_, Axes(all_.named), taken_.named).dims().back();
}

SubGraph TakenRows::pack(const SubGraph& graph) const {
  SubGraph result = graph;
  for (auto& [symbol, actual] : result.bindings)
    if (runs_over(actual, all_.named)) actual = pack(actual);
  return result;
}

Tensor TakenRows::unpack(const RowValue& value) const {
  const Tensor many = as_many(value, taken_);
  const Tensor all =
      reel::unpack(in_named_form(many, taken_), Axis(taken_.named), mask_, Axes(all_.named));
  TensorType row = type_of_row(value);
  if (row.is_named()) row = type_of_row({all, true});
  return from_named_form(all, row, all_);
}

}  // namespace reel
