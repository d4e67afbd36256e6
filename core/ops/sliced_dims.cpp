#include "reel/core/ops/sliced_dims.h"

#include <algorithm>

#include "reel/core/dim_expression.h"
#include "reel/core/graph_builder.h"
#include "reel/core/mode.h"
#include "reel/core/ops.h"
#include "reel/core/ops/dims.h"
#include "reel/core/ops/new_dims.h"
#include "reel/core/ops/slice.h"
#include "reel/core/str.h"

namespace reel {

Dim slice_of_dim(const Dim& whole, const Tensor& lengths, const std::string& key) {
  const Dim here = canonical(whole);
  if (const auto known = known_slice(here, key)) return *known;
  const Dim made(whole.name(), lengths);
  note_slice(made, is_tracing() ? here : whole, here, key);
  return made;
}

std::string text_of_index(const Tensor& index) {
  for (const GraphBuilder* at = thread_mode.builder; at && index.is_traced(); at = at->outer())
    if (const auto number = at->known_integer(index); number && *number >= 0)
      return str("element ", *number);
  if (index.is_traced()) return str("value ", index.block()->builder, ' ', index.block()->value);
  const Tensor seen = thread_mode.entries ? thread_mode.entries->visible(index) : index;
  std::string text;
  for (const Dim& dim : seen.dims())
    text += dim.is_named() ? str(reinterpret_cast<std::uintptr_t>(dim.node()), ',')
                           : str("size ", dim.raw_size(), ',');
  ModeScope plain({});
  const Tensor numbers = cast(seen, i64);
  if (!seen.rank() && *numbers.data<std::int64_t>() >= 0)
    return str("element ", *numbers.data<std::int64_t>());
  text.append(numbers.data<char>(), static_cast<std::size_t>(numbers.type().bytes()));
  return text;
}

// ---- Operands that meet -------------------------------------------------------------------------

bool meet_slices(std::span<Tensor* const> operands) {
  bool any = false;
  for (Tensor* const operand : operands) {
    DimChanges changes;
    const TensorType type = operand->type();
    if (!type.is_ragged() || type.is_list()) continue;
    for (int i = 0; i < type.rank(); ++i) {
      const Dim& dim = type.dims()[static_cast<std::size_t>(i)];
      if (!dim.is_ragged() || has_its_lengths(type, i)) continue;
      for (const Tensor* const other : operands) {
        const int place = other->type().is_list() ? -1 : find_axis(other->dims(), dim);
        if (place < 0 || contains(other->dims(), dim)) continue;
        changes.add(dim, other->dims()[static_cast<std::size_t>(place)]);
        break;
      }
    }
    if (changes.empty()) continue;
    *operand = resized(*operand, changes(type.dims()));
    any = true;
  }
  return any;
}

// ---- Elements along an axis ---------------------------------------------------------------------

namespace {
/// The dim at a position is masked, and its lengths run over `along` or over another such dim.
bool runs_along(const TensorType& type, int position, const Dim& along) {
  const Dim& dim = dim_at(type, position);
  if (dim == along || !has_its_lengths(type, position)) return false;
  return std::any_of(dim.length_dims().begin(), dim.length_dims().end(), [&](const Dim& of) {
    return of == along || (of.is_ragged() && runs_along(type, find(type.dims(), of), along));
  });
}
}  // namespace

bool has_lengths_along(const TensorType& x, int axis) {
  if (x.is_list() || !x.is_ragged() || !dim_at(x, axis).is_named()) return false;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis && runs_along(x, i, dim_at(x, axis))) return true;
  return false;
}

Tensor AlongAxis::lengths_of(const Dim& dim) {
  for (const auto& [known, lengths] : lengths_)
    if (known == dim) return lengths;
  return lengths_.emplace_back(dim, dim.lengths()).second;
}

void AlongAxis::find_slice(const Dim& dim) {
  if (changes_.affects(dim)) return;
  if (const DimExpression* expression = expression_of(dim)) {
    for (const Dim& of : expression->operands)
      if (of.is_ragged()) find_slice(of);
    return;
  }
  const bool has_axis = contains(dim.length_dims(), dim_);
  const Tensor lengths = computed_plainly([&] {
    const Tensor all = lengths_of(dim);
    return has_axis ? (*this)(all) : resized(all, changes_(all.dims()));
  });
  std::string key = key_ ? key_() : "";
  if (!key.empty()) key = str(reinterpret_cast<std::uintptr_t>(canonical(dim_).node()), ' ', key);
  changes_.add(dim, slice_of_dim(dim, lengths, key));
}

Tensor AlongAxis::operator()(const Tensor& x, int axis) {
  bool runs = false;
  if (x.type().is_ragged() && dim_.is_named())
    for (int i = 0; i < x.rank(); ++i)
      if (runs_along(x.type(), i, dim_)) {
        find_slice(dim_at(x.type(), i));
        runs = true;
      }
  return runs ? taken(x, axis) : take_(x, axis);
}

namespace {
/// A dim as long as the longest entry of another.
Dim extent_dim(const Dim& dim) {
  return Dim(dim.name(), computed_plainly([&] { return extent_of(dim); }));
}
}  // namespace

// Where the axis stays, its lengths are not those of the elements there until the dims are slices:
// no rule may mask by them meanwhile.
Tensor AlongAxis::taken(const Tensor& x, int axis) {
  Tensor shown = x;
  DimChanges to_slices = changes_;
  if (keeps_axis_) {
    DimChanges extents;
    for (int i = 0; i < x.rank(); ++i)
      if (const Dim& dim = dim_at(x.type(), i); changes_.affects(dim)) {
        extents.add(dim, extent_dim(dim));
        to_slices.add(extents(dim), changes_(dim));
      }
    for (int i = 0; i < x.rank(); ++i)
      if (const Dim& dim = dim_at(x.type(), i); extents.affects(dim))
        shown = rename(shown, i, extents(dim));  // with zeros in padding
  }
  const Tensor result = take_(shown, axis);
  return resized(result, to_slices(result.dims()));
}

}  // namespace reel
