#include "reel/core/ops/shape/sliced_dims.h"

#include "reel/core/dims/dim_changes.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/types/mode.h"

namespace reel {

Dim slice_of_dim(const Dim& whole, const Tensor& lengths, const SliceKey& key) {
  const Dim here = canonical(whole);
  if (const auto known = known_slice(here, key)) return *known;
  const Dim made(whole.name(), lengths);
  note_slice(made, is_tracing() ? here : whole, here, key);
  return made;
}

std::optional<std::int64_t> element_of(const Tensor& index) {
  std::optional<std::int64_t> number;
  if (index.is_traced()) {
    for (const GraphBuilder* at = thread_mode.builder; at && !number; at = at->outer())
      number = at->known_integer(index);
  } else if (index.rank() == 0) {
    const ModeScope plain({});
    number = *cast(index, i64).data<std::int64_t>();
  }
  return number && *number >= 0 ? number : std::nullopt;
}

void add_value(SliceKey& key, const Tensor& value) {
  key.by_value().number(value.is_traced());
  if (value.is_traced()) {
    key.number(value.block()->builder).number(static_cast<std::uint64_t>(value.block()->value));
    return;
  }
  const Tensor seen = thread_mode.entries ? thread_mode.entries->visible(value) : value;
  const ModeScope plain({});
  const Tensor shown = mask_padding(seen.dtype() == boolean ? seen : cast(seen, i64));
  key.number(shown.dtype()).number(shown.dims().size());
  for (const Dim& dim : shown.dims()) {
    key.number(dim.is_named());
    if (dim.is_named())
      key.dim(dim);
    else
      key.number(static_cast<std::uint64_t>(dim.raw_size()));
  }
  key.text({shown.data<char>(), static_cast<std::size_t>(shown.type().bytes())});
}

bool meet_slices(std::span<Tensor* const> operands) {
  bool any = false;
  for (Tensor* const operand : operands) {
    DimChanges changes;
    const TensorType type = operand->type();
    if (!type.is_ragged() || type.is_list()) continue;
    Dims dims = type.dims();
    for (int i = 0; i < type.rank(); ++i) {
      const Dim& dim = type.dims()[static_cast<std::size_t>(i)];
      if (!dim.is_ragged() || has_its_lengths(type, i)) continue;
      for (const Tensor* const other : operands) {
        const int place = other->type().is_list() ? -1 : find_axis(other->dims(), dim);
        if (place < 0 || contains(other->dims(), dim)) continue;
        // An operand that has the slice beside the whole dim meets the other operand at its slice.
        const Dim& slice = other->dims()[static_cast<std::size_t>(place)];
        if (contains(dims, slice)) continue;
        dims[static_cast<std::size_t>(i)] = slice;
        changes.add(dim, slice);
        break;
      }
    }
    if (changes.empty()) continue;
    *operand = resized(*operand, changes(type.dims()));
    any = true;
  }
  return any;
}

}  // namespace reel
