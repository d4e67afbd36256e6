#include "reel/core/ops/loop/substitute_dims.h"

#include <algorithm>
#include <cstring>

#include "reel/core/dims/dim_slices.h"
#include "reel/core/ops.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/loop/entries.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/types/dim_expression.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

bool same_numbers(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() &&
         !std::memcmp(a.data<char>(), b.data<char>(), static_cast<std::size_t>(a.type().bytes()));
}

/// Returns a dim with other lengths and the same size.
Dim with_lengths(const Dim& dim, const Tensor& lengths) {
  const Dim other(dim.name(), lengths);
  Ref<DimNode> node(new DimNode);
  node->name = dim.name();
  node->kind = DimKind::ragged;
  node->size = dim.size();
  node->lengths = other.node()->lengths;
  node->length_dims = other.length_dims();
  node->is_full = other.node()->is_full && other.size() == dim.size();
  return Dim::of_node(std::move(node));
}

/// Returns the length of the longest entry.
std::int64_t longest(const Dim& dim) {
  const ModeScope plain({});
  const Tensor lengths(dim.node()->lengths);
  return lengths.numel() ? max(lengths).item<std::int32_t>() : 0;
}

}  // namespace

void SubstituteDims::set_running(const Tensor& running) {
  running_ = running;
  to_ = back_ = {};
  for (const Dim& dim : known_) find(dim);
}

void SubstituteDims::keep_sizes(const TensorType& type) {
  for (const Dim& dim : type.dims())
    if (dim.is_ragged() && !contains(sized_, dim)) sized_.push_back(dim);
}

void SubstituteDims::add(const Dim& dim) {
  if (!dim.is_named() || contains(known_, dim) || contains(kept_, dim)) return;
  if (const DimExpression* expression = expression_of(dim)) {
    for (const Dim& of : expression->operands) add(of);
    return;
  }
  if (!dim.is_ragged()) return;
  for (const Dim& of : dim.length_dims())
    add(of);  // lengths may run over another dim, which is added first
  known_.push_back(dim);
  if (running_.is_defined()) find(dim);
}
void SubstituteDims::add(const TensorType& type) {
  for (const Dim& dim : type.dims()) add(dim);
}

void SubstituteDims::find(const Dim& dim) {
  const bool is_over_shown = std::any_of(dim.length_dims().begin(), dim.length_dims().end(),
                                         [&](const Dim& of) { return to_.affects(of); });
  if (dim.node()->is_full && !is_over_shown) return;  // all entries have the same length
  ModeScope plain({});
  const Tensor lengths(dim.node()->lengths);
  const Tensor seen = filled(lengths);
  if (same_numbers(seen, lengths)) return;
  Dim shown = dim;
  for (auto& [from, last] : shown_)
    if (from == dim) {
      if (!same_numbers(seen, Tensor(last.node()->lengths))) {
        last = shown_as(dim, seen);
        copy_slice(dim, last);
      }
      shown = last;
    }
  if (shown == dim) {
    shown = shown_as(dim, seen);
    shown_.emplace_back(dim, shown);
    copy_slice(dim, shown);
  }
  to_.add(dim, shown);
  back_.add(shown, dim);
}

Dim SubstituteDims::shown_as(const Dim& dim, const Tensor& lengths) const {
  return contains(sized_, dim) ? with_lengths(dim, lengths) : Dim(dim.name(), lengths);
}

// The elements of a list are shared: a finished entry gets zeros if its own elements are too few.
Tensor SubstituteDims::filled(const Tensor& x, std::shared_ptr<FilledEntries> cache) const {
  if (x.type().is_list()) return affects(x.type()) ? list_resized(x, to_(x.dims()), true) : x;
  if (const auto shown = fill_running_as(x, running_, to_(x.dims()), std::move(cache)))
    return *shown;
  return fill_running(renamed(x), running_);
}

Tensor SubstituteDims::completed(const Tensor& made, const Tensor& before) const {
  if (made.type().is_list() || before.type().is_list() || !affects(before.type())) return made;
  for (const Dim& entry : running_.dims())
    if (contains(before.dims(), entry)) return made;  // each entry has its own elements
  Tensor result = made;
  for (const Dim& dim : before.dims()) {
    const Dim shown = to_(dim);
    if (shown == dim || !contains(made.dims(), dim)) continue;
    if (const std::int64_t covered = longest(shown); covered < dim.size())
      result = where(range(dim) < covered, result, before);
  }
  return result;
}

Tensor SubstituteDims::with(const Tensor& x, const DimChanges& changes) {
  if (!changes.affects(x.type())) return x;
  const Dims dims = changes(x.dims());
  return x.type().is_list() ? list_resized(x, dims) : resized(x, dims);
}

}  // namespace reel
