#include "reel/core/ops/loop/entry_ops.h"

#include <algorithm>
#include <cstring>

#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/padding_runs.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

/// Returns null if the op has no attributes.
const EntryOpAttrs* attrs_of(const Attrs* attrs) {
  return attrs ? &get<EntryOpAttrs>(attrs) : nullptr;
}
bool clears_padding(const EntryOpAttrs* attrs) { return attrs && !attrs->dims.empty(); }

void entries_type(TypeArgs& a) {
  const TensorType &x = a.in[0], &mask = a.in[1];
  if (mask.rank() > x.rank()) refuse_axis(x, mask.rank() - 1);
  check_operand(a.op.name, "the mask", mask,
                TensorType(boolean, {x.dims().begin(), x.dims().begin() + mask.rank()}));
  const EntryOpAttrs* const attrs = attrs_of(a.attrs);
  if (attrs && attrs->rows > mask.rank()) refuse_axis(mask, attrs->rows - 1);
  if (clears_padding(attrs)) check_operand(a.op.name, "the value", x, x.with(attrs->dims));
  a.out.push_back(clears_padding(attrs) ? x.with(attrs->dims) : x);
}

/// A row of entries. The elements of entry i begin i * bytes behind the first element of x.
struct EntryRow {
  std::int64_t begin, end;     ///< entries
  std::int64_t bytes;          ///< of an entry
  std::int64_t first_running;  ///< -1: none
};
template <class Fn>
void each_row(const Tensor& x, const Tensor& mask, const EntryOpAttrs* attrs, Fn&& fn) {
  const std::int64_t all = mask.type().numel();
  if (!all) return;
  std::int64_t rows = 1;
  for (int axis = 0; attrs && axis < attrs->rows; ++axis)
    rows *= mask.type().sizes()[static_cast<std::size_t>(axis)];
  const bool* running = mask.data<bool>();
  for (std::int64_t row = 0, count = all / rows; row < rows; ++row) {
    const std::int64_t begin = row * count, end = begin + count;
    const std::int64_t first = std::find(running + begin, running + end, true) - running;
    fn(EntryRow{begin, end, x.type().bytes() / all, first < end ? first : -1});
  }
}

void zero_padding(const Tensor& x) {
  const auto item = static_cast<std::int64_t>(size_of(x.dtype()));
  for_each_padding(x.type(), [&](std::int64_t first, std::int64_t count) {
    std::memset(x.data<char>() + first * item, 0, static_cast<std::size_t>(count * item));
  });
}

bool same_mask(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() &&
         !std::memcmp(a.data<bool>(), b.data<bool>(), static_cast<std::size_t>(a.type().bytes()));
}

void fill_running_kernel(KernelArgs& a) {
  const Tensor &x = a.input(0), &mask = a.input(1);
  const EntryOpAttrs* const attrs = attrs_of(a.attrs);
  FilledEntries* const cache = attrs ? attrs->cache.get() : nullptr;
  if (cache && cache->value.is_defined() && same_mask(cache->mask, mask) &&
      std::ranges::equal(cache->value.type().sizes(), a.types[0].sizes())) {
    a.out[0] = with_dims_of(cache->value, a.types[0]);
    return;
  }
  Tensor& out = a.make();
  each_row(x, mask, attrs, [&](const EntryRow& row) {
    for (std::int64_t i = row.begin; i < row.end; ++i) {
      const bool is_own = mask.data<bool>()[i] || row.first_running < 0;
      std::memcpy(out.data<char>() + i * row.bytes,
                  x.data<char>() + (is_own ? i : row.first_running) * row.bytes,
                  static_cast<std::size_t>(row.bytes));
    }
  });
  if (clears_padding(attrs)) zero_padding(out);
  if (cache) *cache = {out, mask};
}

/// Returns by entry: it is in the padding of a ragged entry dim.
std::vector<std::uint8_t> entries_in_padding(const Tensor& mask) {
  std::vector<std::uint8_t> result(static_cast<std::size_t>(mask.type().numel()));
  for_each_padding(mask.type(), [&](std::int64_t first, std::int64_t count) {
    std::fill_n(result.begin() + first, count, 1);
  });
  return result;
}

/// Entries in padding add nothing: their elements may be anything.
template <class T>
void collect_row(const EntryRow& row, const bool* running, const std::uint8_t* is_padding,
                 const T* from, T* to) {
  const std::int64_t width = row.bytes / static_cast<std::int64_t>(sizeof(T));
  if (row.first_running < 0) {
    std::copy(from + row.begin * width, from + row.end * width, to + row.begin * width);
    return;
  }
  T* first = to + row.first_running * width;
  std::copy_n(from + row.first_running * width, width, first);
  for (std::int64_t i = row.begin; i < row.end; ++i) {
    if (i == row.first_running) continue;
    if (running[i]) {
      std::copy_n(from + i * width, width, to + i * width);
      continue;
    }
    std::fill_n(to + i * width, width, T{});
    for (std::int64_t k = 0; k < width && !is_padding[i]; ++k)
      first[k] = static_cast<T>(first[k] + from[i * width + k]);
  }
}

void collect_running_kernel(KernelArgs& a) {
  const Tensor &g = a.input(0), &mask = a.input(1);
  const EntryOpAttrs* const attrs = attrs_of(a.attrs);
  Tensor& out = a.make();
  const std::vector<std::uint8_t> is_padding = entries_in_padding(mask);
  visit(g.dtype(), [&](auto zero) {
    using T = decltype(zero);
    each_row(g, mask, attrs, [&](const EntryRow& row) {
      collect_row(row, mask.data<bool>(), is_padding.data(), g.data<T>(), out.data<T>());
    });
  });
  if (clears_padding(attrs)) zero_padding(out);
}

void entries_vjp(Vjp& at, const Op& transposed) {
  const Tensor g = at.cotangent();
  const EntryOpAttrs* const attrs = attrs_of(at.attrs().get());
  if (!attrs)
    at.add(0, bind(transposed, {mask_padding(g), at.input(1)}));
  else if (!clears_padding(attrs))
    at.add(0, bind(transposed, {mask_padding(g), at.input(1)},
                   make_attrs(EntryOpAttrs{.rows = attrs->rows})));
  else
    at.add(0, bind(transposed, {g, at.input(1)},
                   make_attrs(EntryOpAttrs{at.input_type(0).dims(), attrs->rows})));
}

/// The iterations become rows, since each has a mask of its own.
Tensors entries_across_iterations(const IterationBatch& at) {
  if (at.is_summed) return {};
  EntryOpAttrs attrs;
  if (at.attrs) attrs = at.attr<EntryOpAttrs>();
  attrs.cache = {};
  if (!attrs.dims.empty()) attrs.dims = at.with_time(attrs.dims);
  ++attrs.rows;
  return {bind(at.op, {at.many(0), at.many(1)}, make_attrs(std::move(attrs)))};
}

OpSamples entries_samples() {
  const Dim row("row", 2), batch("batch", 3), time("time", tensor({2, 1, 2}, {batch}));
  const TensorType mask(boolean, {batch});
  return OpSamples{
      {{{TensorType(f32, {batch, Dim("width", 2)})}, {mask, 0, 1, false}}},
      {{{TensorType(f32, {batch, time})}, {mask, 1, 1, false}},  // all run: equal lengths
       make_attrs(EntryOpAttrs{{batch, time}})},
      {{{TensorType(f32, {row, batch, Dim("width", 2)})},
        {TensorType(boolean, {row, batch}), 0, 1, false}},
       make_attrs(EntryOpAttrs{.rows = 1})}};
}

}  // namespace

const Op fill_running_op{
    .name = "fill_running",
    .type = entries_type,
    .kernel = fill_running_kernel,
    .storage = OpStorage::any,
    .vjp = [](Vjp& at) { entries_vjp(at, collect_running_op); },
    .reads = {.inputs = 0b10},
    .samples = entries_samples,
    .iteration_batching = entries_across_iterations,
};
const Op collect_running_op{
    .name = "collect_running",
    .type = entries_type,
    .kernel = collect_running_kernel,
    .vjp = [](Vjp& at) { entries_vjp(at, fill_running_op); },
    .reads = {.inputs = 0b10},
    .samples = entries_samples,
    .iteration_batching = entries_across_iterations,
};

Tensor fill_entries_in_front(const Tensor& x, const Tensor& running) {
  return bind(fill_running_op, {x, running});
}

int rows_of_entry_op(const Attrs* attrs) { return attrs ? get<EntryOpAttrs>(attrs).rows : 0; }

namespace {
const Op* const kEntryOps[] = {&fill_running_op, &collect_running_op};
}
std::span<const Op* const> entry_ops() { return kEntryOps; }

}  // namespace reel
