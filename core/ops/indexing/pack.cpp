// The op that finds the elements a mask selects, and functions built on it: pack, unpack.
#include "reel/core/ops/indexing/pack.h"

#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/along_axis.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/merge.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/ops/shape/sliced_dims.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

// ---- true_positions -----------------------------------------------------------------------------

struct PositionsAttrs {
  int axis = 0;
  std::optional<Dim> to;    ///< none for a plain axis, which is then the only one
  bool is_inverse = false;  ///< called by unpack
  template <class F>
  static void fields(F&& f) {
    f("axis", &PositionsAttrs::axis);
    f("to", &PositionsAttrs::to);
    f("is_inverse", &PositionsAttrs::is_inverse);
  }
};

void check_mask(const PositionsAttrs& attrs, const TensorType& mask) {
  const char* const op = attrs.is_inverse ? "unpack" : "pack";
  if (!attrs.to && mask.rank() != 1)
    throw ShapeError(str(op, ": a mask with plain sizes has one axis, got ", mask));
  check_positions_fit(op, mask, attrs.axis);
}

/// Returns the positions along an axis where the mask is true, in order: i32, with `to` in place of
/// the axis. Missing positions are 0.
const Op true_positions_op{
    .name = "true_positions",
    .type =
        [](TypeArgs& a) {
          const auto& [axis, to, is_inverse] = a.attr<PositionsAttrs>();
          check_mask(a.attr<PositionsAttrs>(), a.in[0]);
          a.out.push_back(
              TensorType(i32, with_dim(a.in[0].dims(), axis, to ? *to : Dim::unknown())));
        },
    .kernel =
        [](KernelArgs& a) {
          const auto& [axis, to, is_inverse] = a.attr<PositionsAttrs>();
          const Tensor& mask = a.input(0);
          const bool* in = mask.data<bool>();
          const ModeScope plain({});
          check_mask(a.attr<PositionsAttrs>(), mask.type());
          const AxisView view = view_axis(mask.type(), axis);
          const Dim dim = to ? *to : Dim(std::count(in, in + view.size, true));
          const Tensor out(allocate_block(TensorType(i32, with_dim(mask.dims(), axis, dim))));
          auto* places = out.data<std::int32_t>();
          std::fill_n(places, out.type().numel(), 0);
          for_each_entry(
              out.type(), axis, dim.lengths(),
              [&, is_inverse = is_inverse](std::int64_t outer, std::int64_t first, std::int64_t run,
                                           std::int64_t length) {
                for (std::int64_t inner = first; inner < first + run; ++inner) {
                  std::int64_t count = 0;
                  for (std::int64_t p = 0; p < view.size; ++p) {
                    if (!in[(outer * view.size + p) * view.inner + inner]) continue;
                    if (count < length)
                      places[(outer * dim.size() + count) * view.inner + inner] =
                          static_cast<std::int32_t>(p);
                    ++count;
                  }
                  if (count != length)
                    throw ShapeError(str(is_inverse ? "un" : "", "pack: a mask of type ",
                                         mask.type(), " selects ", count, " elements, but ",
                                         dim.is_named() ? str("dim ", dim) : "the packed axis",
                                         " has ", length, " there"));
                }
              });
          a.decided->push_back(out);
        },
    .no_vjp = "positions are integers",
    .samples =
        [] {
          const Dim batch("batch", 2), none("none", 0);
          return OpSamples{
              {{{TensorType(boolean, {5}), 0, 1, false}}, make_attrs(PositionsAttrs{0, {}})},
              {{{TensorType(boolean, {0}), 0, 1, false}}, make_attrs(PositionsAttrs{0, {}})},
              {{{TensorType(boolean, {batch, Dim("time", 3)}), 1, 1, false}},
               make_attrs(PositionsAttrs{1, Dim("packed", tensor({3, 3}, {batch}))})},
              {{{TensorType(boolean, {none}), 0, 1, false}},
               make_attrs(PositionsAttrs{0, Dim("packed", 0)})}};
        },
    .kernel_decides_types = true,
};

// ---- Shared by pack and unpack ------------------------------------------------------------------

/// A mask that selects no padding, with its packed axes merged.
struct Selection {
  Dims packed;  ///< the dims of the packed axes, in order
  Dims dims;    ///< all dims of the mask
  Tensor flat;  ///< the mask with one dim for all of them
  int axis;     ///< position of the merged dim
};

/// Whether a mask selects all valid elements, or is given by the caller.
enum class MaskKind : std::uint8_t { valid, given };

/// The key of lengths that a mask packed: pack makes dims by it, which unpack undoes.
SliceKey key_of(const Dims& packed, const Tensor& mask, MaskKind kind, const Dim& to) {
  SliceKey key = key_along("pack", packed);
  key.dim(canonical(to)).number(kind);
  if (kind == MaskKind::given) add_value(key, mask);
  return key;
}

Selection select(std::string_view op, Tensor mask, const Axes& axes) {
  if (mask.dtype() != boolean)
    throw DTypeError(str(op, ": the mask must be boolean, got ", mask.type()));
  const std::vector<int> listed = axes.in(mask, op);
  if (listed.empty()) throw ArgumentError(str(op, ": takes at least one axis of ", mask.type()));
  if (!mask.type().is_named() && static_cast<int>(listed.size()) != mask.rank())
    throw ShapeError(str(op, ": the mask ", mask.type(), " has plain sizes, of which ",
                         listed.size(), " are packed; pack all of them, or name them, because ",
                         "entries of the others may select differently"));
  Selection result;
  result.dims = mask.dims();
  for (const int axis : listed) result.packed.push_back(dim_at(mask.type(), axis));
  result.axis = *std::min_element(listed.begin(), listed.end());
  for (int axis = result.axis; axis-- > 0;)
    result.axis -= std::count(listed.begin(), listed.end(), axis) != 0;
  result.flat = computed_plainly(
      [&] { return merge_dims(mask_padding(mask), axes, {.counts_padding = true}); });
  return result;
}

/// Returns the mask with x's padding along the listed dims removed.
Tensor valid_part(Tensor mask, const TensorType& x, const Axes& axes) {
  for (const int axis : axes.in(mask, "pack")) {
    const Dim dim = dim_at(mask.type(), axis);
    if (!dim.is_named() || is_masked(mask.type(), axis) || !is_masked(x, find(x.dims(), dim)))
      continue;
    Dims dims = mask.dims();
    for (const Dim& of : dim.length_dims())
      if (!contains(dims, of)) dims.insert(dims.begin(), of);
    mask = computed_plainly([&] { return logical_and(expand(mask, dims), reel::mask(dim)); });
  }
  return mask;
}

Tensor positions_of(const Selection& selection, std::optional<Dim> to, bool is_inverse = false) {
  return bind(true_positions_op, {selection.flat},
              make_attrs(PositionsAttrs{selection.axis, std::move(to), is_inverse}));
}

Axes all_axes(std::string_view op, const Tensor& mask) {
  check_defined(op, mask);
  std::vector<Axis> axes;
  for (int i = 0; i < mask.rank(); ++i) axes.emplace_back(i);
  return axes;
}

/// Arranges the mask to match a tensor that was unpacked from `axis` on. As a condition of where,
/// it then keeps the tensor's order of dims.
Tensor in_place(const Tensor& mask, const Axes& axes, const Tensor& unpacked, int axis) {
  if (mask.type().is_named())
    return mask.rank() == unpacked.rank() ? transpose(mask, unpacked.dims()) : mask;
  Dims dims(static_cast<std::size_t>(unpacked.rank()), Dim(1));
  const Tensor ordered = transpose(mask, axes);
  std::copy(ordered.dims().begin(), ordered.dims().end(), dims.begin() + axis);
  return reshape(ordered, dims);
}

/// Returns the mask of elements that are no padding along named dims of a tensor that is packed or
/// will be unpacked. type: its other dims.
Tensor valid_mask(std::string_view op, const Dims& dims, const TensorType& type) {
  Dims all = dims;
  for (const Dim& dim : dims) {
    if (!dim.is_named())
      throw ShapeError(
          str(op, ": ", dims, " are plain sizes, and all their elements valid; use ", "reshape"));
    for (const Dim& of : dim.length_dims())
      if (!contains(all, of) && contains(type.dims(), of)) all.insert(all.begin(), of);
  }
  return computed_plainly([&] { return mask_padding(full(all, 1, boolean)); });
}

}  // namespace

SliceKey key_of_packing(const Tensor& mask, const Dim& to) {
  return key_of(mask.dims(), mask, MaskKind::given, to);
}

// ---- Public functions ---------------------------------------------------------------------------

namespace {

Tensor pack_by(const Tensor& x, const Tensor& given, MaskKind kind, const Axes& axes,
               std::optional<Dim> to) {
  check_defined("pack", x);
  check_defined("pack", given);
  const TensorType& type = given.type();
  bool fits = type.rank() <= x.rank() && (!type.rank() || type.is_named() == x.type().is_named());
  for (int i = 0; fits && i < type.rank(); ++i) {
    const Dim& dim = dim_at(type, i);
    const Dim other = dim.is_named() ? dim : dim_at(x.type(), i);
    fits = dim.is_named() ? contains(x.dims(), dim)
                          : !dim.has_size() || !other.has_size() || dim == other;
  }
  if (!fits)
    throw ShapeError(str("pack: the mask ", type, " does not fit ", x.type(),
                         type.is_named() ? ", which must have all its dims"
                                         : "; plain sizes are those of the leading axes",
                         one_dim_hint(type.dims(), x.type().dims())));
  if (to && type.rank() && to->is_named() != x.type().is_named())
    throw ShapeError(
        str("pack: the new dim is ", *to, ", but ", x.type(), " has ",
            to->is_named() ? "plain sizes; leave it out" : "named dims; give it a name"));
  std::vector<Axis> in_x;
  Dims packed;
  for (const int axis : axes.in(type, "pack")) {
    packed.push_back(dim_at(type, axis));
    in_x.push_back(type.is_named() ? Axis(dim_at(type, axis)) : Axis(axis));
  }
  if (to && to->is_named() && contains(x.dims(), *to) && !contains(packed, *to))
    throw ShapeError(str("pack: ", x.type(), " has the dim ", *to,
                         " already; make a second Dim for the packed elements"));
  const Axes listed = type.is_named() ? Axes(in_x) : axes;
  const Selection selection = select("pack", valid_part(given, x.type(), listed), listed);
  const Dim& flat = dim_at(selection.flat.type(), selection.axis);
  const auto named =
      changed_dim(flat,
                  to                ? to
                  : flat.is_named() ? std::optional(Dim("packed"))
                                    : to,
                  {}, -1, [&] { return sum(cast(selection.flat, i32), selection.axis); });
  Tensor positions;
  const auto take = [&](const Tensor& of, int) {
    const Tensor merged = merged_axes(of, Axes(in_x).in(of, "pack"),
                                      named_dim(selection.flat.type(), selection.axis));
    if (!positions.is_defined()) positions = positions_of(selection, named);
    return gather(merged, positions, flat.is_named() ? Axis(flat) : Axis(0));
  };
  if (!has_lengths_along(x.type(), Axes(in_x).in(x, "pack"))) return take(x, 0);
  return AlongAxis(packed, take,
                   {.keeps_axis = contains(packed, *named),
                    .key = [&] { return key_of(packed, given, kind, *named); },
                    .entries = with_entries_of(selection.dims)})(x, find(x.dims(), packed[0]));
}

}  // namespace

Tensor pack(const Tensor& x, const Tensor& mask, const Axes& axes, std::optional<Dim> to) {
  return pack_by(x, mask, MaskKind::given, axes, std::move(to));
}
Tensor pack(const Tensor& x, const Tensor& mask) { return pack(x, mask, all_axes("pack", mask)); }

Tensor pack(const Tensor& x, const Axes& axes, std::optional<Dim> to) {
  Dims dims;
  for (const int axis : axes.in(x, "pack")) dims.push_back(dim_at(x.type(), axis));
  return pack_by(x, valid_mask("pack", dims, x.type()), MaskKind::valid, dims, std::move(to));
}

namespace {

void check_unpack(const TensorType& x, const TensorType& mask, const Selection& selection,
                  const Arg& backup) {
  for (const Dim& dim : mask.dims())
    if (dim.is_named() && !contains(selection.packed, dim) && !contains(x.dims(), dim))
      throw ShapeError(str("unpack: the mask ", mask, " selects in every entry of ", dim,
                           ", which is no dim of ", x));
  if (backup.is_number()) return;
  const TensorType& other = backup.tensor().type();
  if (other.dtype() != x.dtype())
    throw DTypeError(
        str("unpack: dtypes differ: ", x, ", the backup is ", other, "; cast one of them"));
  for (const Dim& dim : other.dims())
    if (dim.is_named() && !contains(selection.packed, dim) && find_axis(x.dims(), dim) < 0)
      throw ShapeError(str("unpack: the backup ", other, " has the dim ", dim, ", which neither ",
                           x, " nor the mask ", mask, " has"));
}

/// Returns the dim if it has a name or a size.
std::optional<Dim> known_dim(const TensorType& type, int axis) {
  const Dim& dim = dim_at(type, axis);
  return dim.is_named() || dim.has_size() ? std::optional(dim) : std::nullopt;
}

/// unpack of x alone, with zeros between: lengths that run over the axis do not go along.
Tensor unpacked_axis(const Tensor& x, int axis, const Selection& selection) {
  const Dim& flat = dim_at(selection.flat.type(), selection.axis);
  const bool is_boolean = x.dtype() == boolean;
  const Tensor values = is_boolean ? cast(x, i32) : x;
  // Zeros over the dims of x, with the merged ones for the packed one.
  const Dims dims = with_dim(x.dims(), axis, flat);
  Tensor start;
  if (flat.is_named()) {
    start = zeros(dims, values.dtype());
  } else {
    std::vector<std::int64_t> ones(dims.size(), 1);
    ones[static_cast<std::size_t>(axis)] = -1;
    start = expand(reshape(cast(zeros_like(selection.flat), values.dtype()), ones), dims);
  }
  Tensor result =
      scatter_add(start, positions_of(selection, known_dim(x.type(), axis), true), values, axis);
  result = split_dim(result, axis, selection.packed,
                     {.fill = flat.is_ragged() ? std::optional(0.) : std::nullopt});
  return is_boolean ? cast(result, boolean) : result;
}

/// Returns elements of x if the mask is true, otherwise elements of the backup. If ragged dims of x
/// are slices of the backup's dims, the result's get the lengths of the selected elements.
Tensor with_backup(const Tensor& mask, const Tensor& x, const Tensor& backup,
                   const Tensor& plain_mask) {
  DimChanges of_x, of_backup;
  for (int i = 0; i < backup.rank() && x.type().is_ragged(); ++i) {
    const Dim& whole = dim_at(backup.type(), i);
    const int place = has_its_lengths(backup.type(), i) ? find_axis(x.dims(), whole) : -1;
    if (place < 0 || contains(x.dims(), whole) || !runs_along(x.type(), place, plain_mask.dims()))
      continue;
    const Dim& mine = dim_at(x.type(), place);
    const Tensor lengths = computed_plainly([&] {
      return where(plain_mask, resized(mine.lengths(), of_x(mine.length_dims())),
                   resized(whole.lengths(), of_backup(whole.length_dims())));
    });
    SliceKey key = key_along("unpack", {mine});
    add_value(key, plain_mask);
    const Dim both = slice_of_dim(whole, lengths, key);
    of_x.add(mine, both);
    of_backup.add(whole, both);
  }
  return where(mask, resized(x, of_x(x.dims())), resized(backup, of_backup(backup.dims())));
}

Tensor unpack_by(const Tensor& x, const Axis& packed, const Tensor& mask, MaskKind kind,
                 const Axes& axes, const Arg& backup) {
  check_defined("unpack", mask);
  if (!backup.is_number()) check_defined("unpack", backup.tensor());
  const int axis = packed.in(x, "unpack");
  if (x.type().is_named() != mask.type().is_named())
    throw ShapeError(str("unpack: ", x.type(), " and the mask ", mask.type(),
                         " must both have named dims, or both plain sizes"));
  const Selection selection = select("unpack", mask, axes);
  check_unpack(x.type(), mask.type(), selection, backup);
  const Dim dim = dim_at(x.type(), axis);
  const auto take = [&](const Tensor& of, int axis) { return unpacked_axis(of, axis, selection); };
  const auto key = [&] {
    SliceKey key = key_along("unpack", {dim});
    for (const Dim& of : canonical(selection.packed)) key.dim(of);
    add_value(key, mask);
    return key;
  };
  const auto undoes = [&] { return key_of(selection.packed, mask, kind, dim); };
  const bool has_lengths = has_lengths_along(x.type(), axis);
  const Tensor result = has_lengths ? AlongAxis({dim}, take,
                                                {.keeps_axis = contains(selection.packed, dim),
                                                 .key = key,
                                                 .undoes = undoes,
                                                 .entries = with_entries_of({dim}),
                                                 .makes_places = true})(x, axis)
                                    : with_original_dims(take(x, axis), undoes);
  if (backup.is_number())
    return backup.number() == 0 ? result
                                : where(in_place(mask, axes, result, axis), result, backup);
  const Tensor in_result = in_place(mask, axes, result, axis);
  return has_lengths ? with_backup(in_result, result, backup.tensor(), mask)
                     : where(in_result, result, backup);
}

}  // namespace

Tensor unpack(const Tensor& x, const Axis& packed, const Tensor& mask, const Axes& axes,
              const Arg& backup) {
  return unpack_by(x, packed, mask, MaskKind::given, axes, backup);
}

Tensor unpack(const Tensor& x, const Axis& packed, const Tensor& mask) {
  return unpack(x, packed, mask, all_axes("unpack", mask));
}
Tensor unpack(const Tensor& x, const Axis& packed, const Tensor& mask, const Tensor& backup) {
  return unpack(x, packed, mask, all_axes("unpack", mask), backup);
}

Tensor unpack(const Tensor& x, const Axis& packed, const Dims& dims, const Arg& backup) {
  return unpack_by(x, packed, valid_mask("unpack", dims, x.type()), MaskKind::valid, dims, backup);
}

namespace {
const Op* const kPackOps[] = {&true_positions_op};
}
std::span<const Op* const> pack_ops() { return kPackOps; }

}  // namespace reel
