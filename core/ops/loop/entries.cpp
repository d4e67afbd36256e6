#include "reel/core/ops/loop/entries.h"

#include <algorithm>
#include <cstring>

#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/loop/entry_ops.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

// A ragged dim may have a length for each entry of the loop. A finished entry reads the values of
// the first running entry, and should have its length too:
//
//   entry              0      1      2
//   running            0      1      1
//   x                  a a a  b b    c
//   lengths            3      2      1
//   SubstituteDims     2      2      1      the same Dim gives finished entries these lengths
//   fill_running       b b    b b    c
//
// If the lengths of a Dim are not replaced, entry 0 stays longer than entry 1:
//
//   fill_running       b b a  b b    c
//
// Behind the end of entry 1, entry 0 keeps its own elements: invented numbers, above all zeros, are
// less safe as divisors.

/// Returns the type's dims with the dims of the mask in front.
Dims with_entries_first(const TensorType& type, const Tensor& mask) {
  Dims dims;
  dims.reserve(type.dims().size());
  dims.insert(dims.end(), mask.dims().begin(), mask.dims().end());
  for (const Dim& dim : type.dims())
    if (!contains(mask.dims(), dim)) dims.push_back(dim);
  return dims;
}

/// Applies fill_running_op or collect_running_op to x with its dims in any order.
Tensor apply_to_entries(const Op& op, const Tensor& x, const Tensor& running) {
  const std::optional<Tensor> mask = leaf_mask(x.type(), running);
  if (!mask) return x;
  const Dims dims = with_entries_first(x.type(), *mask);
  if (dims == x.dims()) return bind(op, {x, *mask});
  return transpose(bind(op, {transpose(x, dims), *mask}), x.dims());
}

/// Applies the op with `dims` for the result: x's sizes, and the lengths of running entries.
/// Requires a mask for x.
Tensor apply_with_dims(const Op& op, const Tensor& x, const Tensor& running, const Dims& dims,
                       std::shared_ptr<FilledEntries> cache = {}) {
  const Tensor mask = *leaf_mask(x.type(), running);
  const Dims order = with_entries_first(x.type(), mask);
  if (order == x.dims())
    return bind(op, {x, mask}, make_attrs(EntryOpAttrs{dims, 0, std::move(cache)}));
  Dims ordered;
  ordered.reserve(order.size());
  for (const Dim& dim : order)
    ordered.push_back(dims[static_cast<std::size_t>(find(x.dims(), dim))]);
  return transpose(bind(op, {transpose(x, order), mask},
                        make_attrs(EntryOpAttrs{std::move(ordered), 0, std::move(cache)})),
                   dims);
}

/// Returns where()'s result with its dims in the order of x's: where() begins with the dims of its
/// mask.
Tensor in_order_of(const Tensor& x, Tensor result) {
  return result.dims() == x.dims() ? result : transpose(result, x.dims());
}

/// Returns true if finished entries have the length of the first running entry. Returns false if
/// that is not known: in a trace, or if the lengths are ragged themselves.
bool has_running_lengths(const Dim& dim, const Tensor& running) {
  if (is_tracing() || running.is_traced() || !dim.node()->lengths) return false;
  ModeScope plain({});
  const Tensor lengths(dim.node()->lengths);
  if (lengths.type().is_ragged()) return false;
  const Tensor filled = apply_to_entries(fill_running_op, lengths, running);
  return !std::memcmp(filled.data<char>(), lengths.data<char>(),
                      static_cast<std::size_t>(lengths.type().bytes()));
}

bool has_length_for_each_entry(const Dim& dim, const Tensor& running) {
  return std::any_of(dim.length_dims().begin(), dim.length_dims().end(),
                     [&](const Dim& of) { return contains(running.dims(), of); });
}

/// Returns, for values of this type, a mask of the elements that the first running entry has too.
/// Returns nullopt if finished entries have exactly its elements.
std::optional<Tensor> elements_of_running(const TensorType& type, const Tensor& running) {
  bool differs = false;
  for (int i = 0; i < type.rank(); ++i)
    if (const Dim& dim = type.dims()[i];
        is_masked(type, i) && has_length_for_each_entry(dim, running))
      differs = differs || !has_running_lengths(dim, running);
  if (!differs) return std::nullopt;
  const Tensor valid = mask_padding(ones(type.dims(), boolean), false);
  return apply_to_entries(fill_running_op, valid, running);
}

bool is_eager(const Tensor& x) { return !is_tracing() && !x.is_traced(); }

}  // namespace

std::optional<Tensor> leaf_mask(const TensorType& type, const Tensor& running) {
  if (type.is_list() || !type.is_named()) return std::nullopt;
  std::vector<Axis> missing;
  for (const Dim& dim : running.dims())
    if (!contains(type.dims(), dim)) missing.push_back(dim);
  if (static_cast<int>(missing.size()) == running.rank()) return std::nullopt;
  if (missing.empty()) return running;
  return any(running, Axes(missing));
}

// The result has zeros in its padding. Padding of x may be NaN, and it would count where an array
// gives its elements their whole dims.
Tensor fill_running(const Tensor& x, const Tensor& running) {
  if (x.type().is_list()) return x;  // shared, whatever dims its elements have
  if (!leaf_mask(x.type(), running)) return mask_padding(x);
  const std::optional<Tensor> is_running = elements_of_running(x.type(), running);
  if (!is_running && x.type().is_ragged() && is_eager(x))
    return apply_with_dims(fill_running_op, x, running, x.dims());
  const Tensor valid = mask_padding(x), filled = apply_to_entries(fill_running_op, valid, running);
  return is_running ? in_order_of(x, where(*is_running, filled, valid)) : filled;
}
Tensor fill_running_with_padding(const Tensor& x, const Tensor& running) {
  if (x.type().is_list() || !leaf_mask(x.type(), running)) return x;
  const std::optional<Tensor> is_running = elements_of_running(x.type(), running);
  const Tensor filled = apply_to_entries(fill_running_op, x, running);
  return is_running ? in_order_of(x, where(*is_running, filled, x)) : filled;
}
std::optional<Tensor> fill_running_as(const Tensor& x, const Tensor& running, const Dims& dims,
                                      std::shared_ptr<FilledEntries> cache) {
  if (x.type().is_list() || !leaf_mask(x.type(), running)) return std::nullopt;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i].size() != x.dims()[i].size()) return std::nullopt;
  if (elements_of_running(x.type().with(dims), running)) return std::nullopt;
  return apply_with_dims(fill_running_op, x, running, dims, std::move(cache));
}
Tensor collect_running(const Tensor& x, const Tensor& running) {
  if (x.type().is_list()) return x;
  const std::optional<Tensor> is_running = elements_of_running(x.type(), running);
  if (!is_running && x.type().is_ragged() && is_eager(x) && leaf_mask(x.type(), running))
    return apply_with_dims(collect_running_op, x, running, x.dims());
  const Tensor valid = mask_padding(x);
  if (!is_running) return apply_to_entries(collect_running_op, valid, running);
  const Tensor zero = zeros_like(x);
  const Tensor moved = in_order_of(x, where(*is_running, valid, zero)),
               own = in_order_of(x, where(*is_running, zero, valid));
  return mask_padding(apply_to_entries(collect_running_op, moved, running) + own);
}

Tensor zero_finished(const Tensor& x, const Tensor& running) {
  const std::optional<Tensor> mask = leaf_mask(x.type(), running);
  if (!mask) return x;
  return in_order_of(x, where(*mask, x, zeros_like(x)));
}

Tensor keep_finished(const Tensor& next, const Tensor& before, const Tensor& running) {
  const std::optional<Tensor> mask = leaf_mask(next.type(), running);
  if (!mask) return next;
  return in_order_of(next, where(*mask, next, before));
}

bool all_running(const Tensor& running) {
  const bool* values = running.data<bool>();
  return std::all_of(values, values + running.type().numel(), [](bool b) { return b; });
}
bool any_running(const Tensor& running) {
  const bool* values = running.data<bool>();
  return std::any_of(values, values + running.type().numel(), [](bool b) { return b; });
}

}  // namespace reel
