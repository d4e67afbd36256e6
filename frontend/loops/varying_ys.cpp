#include "reel/frontend/loops/varying_ys.h"

#include <algorithm>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/loop/entries.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/frontend/tree/dim_lists.h"

namespace reel {

bool add_varying(VaryingYs& ys, std::size_t leaf, int axis) {
  for (VaryingY& y : ys) {
    if (y.leaf != leaf) continue;
    if (std::find(y.axes.begin(), y.axes.end(), axis) != y.axes.end()) return false;
    y.axes.insert(std::upper_bound(y.axes.begin(), y.axes.end(), axis), axis);
    return true;
  }
  ys.push_back({leaf, {axis}});
  return true;
}

const VaryingY* find_varying(const VaryingYs& ys, std::size_t leaf) {
  const auto found =
      std::find_if(ys.begin(), ys.end(), [&](const VaryingY& y) { return y.leaf == leaf; });
  return found == ys.end() ? nullptr : &*found;
}

namespace {

bool is_varying(const VaryingY& varying, int axis) {
  return std::find(varying.axes.begin(), varying.axes.end(), axis) != varying.axes.end();
}

}  // namespace

Dims varying_length_dims(const Dims& entry_dims, const Dims& of_y, const Dims& of_lengths) {
  Dims result;
  for (const Dim& dim : entry_dims)
    if (contains(of_y, dim)) result.push_back(dim);
  return with_more(std::move(result), of_lengths);
}

void check_varying(const ScanPlan& plan, const TensorType& y, const VaryingY& varying) {
  for (const int axis : varying.axes)
    for (const Dim& of : y.dims()[static_cast<std::size_t>(axis)].length_dims())
      for (const int other : varying.axes)
        if (of == y.dims()[static_cast<std::size_t>(other)])
          throw ShapeError(str(plan.what, ": y is ", y, ", whose dim ", dim_at(y, axis),
                               " has lengths over ", of,
                               ", which has another size in every iteration, so ys cannot be "
                               "stacked; give one of them a fixed size, or merge_dims them"));
}

// ---- Eager mode ---------------------------------------------------------------------------------

Tensor with_static_dims_of(const TensorType& first, Tensor y) {
  for (int axis = 0; axis < y.rank() && y.rank() == first.rank(); ++axis) {
    const Dim mine = dim_at(y.type(), axis), &wanted = dim_at(first, axis);
    const bool is_made_anew = mine.is_named() && wanted.is_named() && is_static(mine) &&
                              is_static(wanted) && mine.name() == wanted.name() &&
                              mine.size() == wanted.size();
    if (is_made_anew && !contains(first.dims(), mine) && !contains(y.dims(), wanted))
      y = rename(y, mine, wanted);
  }
  return y;
}

Tensor in_order_of_first(const Tensor& y, const TensorType& first, const VaryingY& varying) {
  if (y.rank() != first.rank() || y.dtype() != first.dtype()) return y;
  Dims order;
  for (int axis = 0; axis < first.rank(); ++axis) {
    const Dim& wanted = first.dims()[static_cast<std::size_t>(axis)];
    const Dim& here = y.dims()[static_cast<std::size_t>(axis)];
    order.push_back(is_varying(varying, axis) && !contains(first.dims(), here) ? here : wanted);
  }
  const bool fits = std::all_of(order.begin(), order.end(),
                                [&](const Dim& dim) { return contains(y.dims(), dim); });
  return fits ? transpose_to(y, order) : y;
}

bool differs_in_varying(const TensorType& y, const TensorType& first, const VaryingY& varying) {
  if (y.rank() != first.rank() || y.dtype() != first.dtype()) return false;
  for (int axis = 0; axis < y.rank(); ++axis) {
    const Dim &a = dim_at(y, axis), &b = dim_at(first, axis);
    if (!(a == b) && !(is_varying(varying, axis) && a.name() == b.name())) return false;
  }
  return true;
}

Tensor stack_varying(const ScanPlan& plan, const Tensors& ys, const Tensors& running,
                     const TensorType& first, const VaryingY& varying, const Dim& time) {
  const std::size_t steps = static_cast<std::size_t>(time.size());
  Dims whole = first.dims(), fixed = first.dims();
  for (const int axis : varying.axes) {
    const Dim& like = first.dims()[static_cast<std::size_t>(axis)];
    Dims over = varying_length_dims(plan.entry_dims, first.dims(), like.length_dims());
    if (ys.empty()) std::erase_if(over, [](const Dim& of) { return of.is_symbol(); });
    const Tensor lengths = computed_plainly([&] {
      Tensors each;
      for (std::size_t k = 0; k < std::min(steps, ys.size()); ++k) {
        const Dim& dim = ys[k].dims()[static_cast<std::size_t>(axis)];
        const Dims here = varying_length_dims(plan.entry_dims, first.dims(), dim.length_dims());
        if (here.size() != over.size() ||
            !std::all_of(here.begin(), here.end(),
                         [&](const Dim& of) { return contains(over, of); }))
          throw ShapeError(str(plan.what, ": y is ", ys[k].type(),
                               ", but y of the first iteration ", first,
                               "; the lengths of a dim run over the same dims in every "
                               "iteration"));
        Tensor length = expand(dim.lengths(), over);
        if (running[k].is_defined()) length = zero_finished(length, running[k]);
        each.push_back(length);
      }
      each.resize(steps);
      for (Tensor& length : each)
        if (!length.is_defined()) length = zeros(over, i32);
      if (each.empty()) return zeros(with_more({time}, over), i32);
      return stack(each, time);
    });
    whole[static_cast<std::size_t>(axis)] = Dim(like.name(), lengths);
    copy_slice(like, whole[static_cast<std::size_t>(axis)]);
    fixed[static_cast<std::size_t>(axis)] =
        Dim(like.name(), whole[static_cast<std::size_t>(axis)].size());
  }
  Tensors terms;
  for (std::size_t k = 0; k < std::min(steps, ys.size()); ++k)
    terms.push_back(resized(ys[k], fixed));
  terms.resize(steps);
  for (Tensor& term : terms)
    if (!term.is_defined()) term = zeros(first.with(fixed));
  const Tensor all =
      terms.empty() ? zeros(first.with(with_more({time}, fixed))) : stack(terms, time);
  return resized(all, with_more({time}, whole));
}

// ---- Traces -------------------------------------------------------------------------------------

Tensors body_terms(const Tensor& y, const VaryingY& varying, const Dims& entry_dims) {
  Tensors result{reshape(y, {-1})};
  for (int axis = 0; axis < y.rank(); ++axis) {
    const Dim& dim = y.dims()[static_cast<std::size_t>(axis)];
    if (is_varying(varying, axis))
      result.push_back(computed_plainly(
          [&] { return expand(dim.lengths(), with_more(entry_dims, dim.length_dims())); }));
    if (!dim.has_size())
      result.push_back(
          computed_plainly([&] { return expand(cast(extent_of(dim), i32), entry_dims); }));
  }
  return result;
}

std::size_t term_count(const TensorType& y, const VaryingY& varying) {
  const auto without_size = std::count_if(y.dims().begin(), y.dims().end(),
                                          [](const Dim& dim) { return !dim.has_size(); });
  return 1 + varying.axes.size() + static_cast<std::size_t>(without_size);
}

namespace {

/// Returns the dim of a stack. A slice in each iteration is a slice in the stack.
Dim stacked_dim(const Dim& inside, const Tensor& lengths, DimEnv& outside) {
  Dim result(inside.name(), lengths);
  if (const std::optional<Dim> whole = whole_of(inside)) {
    const Dim of = outside.resolve(*whole);
    note_slice(result, of, of);  // without a key: each iteration has lengths of its own
  }
  return result;
}

}  // namespace

Tensor stack_terms(const Tensors& terms, const TensorType& y, const VaryingY& varying,
                   const Dims& entry_dims, DimEnv outside, const Dim& time) {
  Dims missing;  // dims of entries that y lacks
  for (const Dim& dim : entry_dims)
    if (!contains(y.dims(), dim)) missing.push_back(dim);
  std::size_t next = 1;
  // Returns a term over the time, `over` and the entries of y: equal for all entries that run.
  const auto take = [&](const Dims& over) {
    const Tensor& term = terms[next++];
    Dims reduced;
    for (const Dim& dim : missing)
      if (!contains(over, dim)) reduced.push_back(dim);
    return reduced.empty() ? term : maximum(max(term, reduced), 0);
  };
  DimEnv dims = DimEnv::renaming(std::move(outside));
  Dims full{time};
  Tensors extents;
  for (int axis = 0; axis < y.rank(); ++axis) {
    const Dim& inside = y.dims()[static_cast<std::size_t>(axis)];
    full.push_back(is_varying(varying, axis)
                       ? stacked_dim(inside,
                                     computed_plainly([&] { return take(inside.length_dims()); }),
                                     dims)
                       : dims.resolve(inside));
    extents.push_back(inside.has_size() ? Tensor()
                                        : computed_plainly([&] { return cast(take({}), i64); }));
  }
  const Tensor places = computed_plainly([&] {
    Tensor place = zeros(full, i64), stride = scalar(1, i64);
    for (std::size_t axis = extents.size(); axis-- > 0;) {
      const Dim& dim = full[axis + 1];
      place = place + expand(cast(range(dim), i64), full) * expand(stride, full);
      stride = extents[axis].is_defined() ? stride * extents[axis] : stride * dim.size();
    }
    const Tensor begins = cumsum(stride, time, {.exclusive = true});
    Tensor is_element = ones(full, boolean);
    for (std::size_t axis = 1; axis < full.size(); ++axis) {
      const Dims& over = full[axis].length_dims();
      if (!over.empty() &&
          std::all_of(over.begin(), over.end(), [&](const Dim& of) { return contains(full, of); }))
        is_element = logical_and(is_element, expand(mask(full[axis]), full));
    }
    // Place 0 has a zero, for padding.
    return reshape(where(is_element, place + expand(begins, full) + 1, std::int64_t{0}), {-1});
  });
  const Tensor all = concat({zeros({1}, y.dtype()), list_concat(terms[0])}, 0);
  return reshape(gather(all, places, 0), full);
}

}  // namespace reel
