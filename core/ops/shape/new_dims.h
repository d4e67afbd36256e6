// core/ops/shape/new_dims.h — dims of the axes that shape, join and index ops create.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "reel/core/base/visibility.h"
#include "reel/core/types/mode.h"
#include "reel/core/types/sizes.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Returns the dim at an axis. Throws ShapeError if there is no such axis.
inline const Dim& dim_at(const TensorType& type, int axis) {
  check_axis(type, axis);
  return type.dims()[static_cast<std::size_t>(axis)];
}
/// Returns the dim at an axis for an attribute of the op that creates it; nullopt for a plain one.
inline std::optional<Dim> named_dim(const TensorType& type, int axis) {
  const Dim& dim = dim_at(type, axis);
  return dim.is_named() ? std::optional(canonical(dim)) : std::nullopt;
}

/// Return the dims with `dim` at an axis, with `dim` inserted before an axis, or without the axis.
Dims with_dim(Dims dims, int axis, const Dim& dim);
Dims insert_dim(Dims dims, int axis, const Dim& dim);
Dims without_dim(Dims dims, int axis);

/// Returns true for a plain dim of unknown size: only a run determines it.
inline bool is_unknown(const Dim& dim) { return !dim.is_named() && !dim.has_size(); }
/// True if some plain axis has a size that only a run determines, and that can be read only from a
/// tensor of the type.
REEL_API bool has_unknown_size(const TensorType& type);

/// Runs fn() without a tape: for arithmetic on lengths, which is never differentiated.
template <class Fn>
Tensor computed_plainly(Fn&& fn) {
  ModeScope scope({thread_mode.builder, nullptr, thread_mode.entries});
  return fn();
}

/// Return a new dim of a size or of lengths, which is static if and only if all dims of `from` are.
/// If a trace does not know whether the dims of `from` are static, the run decides.
Dim dim_like(std::span<const Dim> from, const std::string& name, std::int64_t size);
Dim dim_like(std::span<const Dim> from, const std::string& name, const Tensor& lengths);

/// Returns the new dim of an axis after an op changed its size: `to` if that is a dim. If `to` is
/// only a name, or is absent and the axis is named, returns a fresh dim with the name of `to` or of
/// the axis. Returns nullopt for a plain axis without `to`.
///
/// from: the dims from which the size is computed. The fresh dim has a fixed size if all of these
/// have one, otherwise lengths; without any, lengths. If a trace does not know whether they have
/// one, the run decides it.
/// size: -1 if only a run determines it, or for a ragged axis; lengths() must then return it as a
/// tensor.
template <class Lengths>
std::optional<Dim> changed_dim(const Dim& axis, const std::optional<Dim>& to,
                               std::span<const Dim> from, std::int64_t size, Lengths&& lengths) {
  if (to && !to->is_undefined()) return canonical(*to);
  if (!to && !axis.is_named()) return std::nullopt;
  const std::string& name = to ? to->name() : axis.name();
  if (size >= 0) return dim_like(from, name, size);
  return dim_like(from, name, computed_plainly(lengths));
}
[[noreturn]] void refuse_size(std::string_view op, const Dim& to, std::int64_t size,
                              const std::string& what);
/// Returns true for a ragged dim without entries: its size is 0, whatever is added to its lengths.
bool has_no_entry(const Dim& dim);
/// For type rules: returns the dim of the result, `to` or a plain size; an unknown dim for size -1.
/// Throws ShapeError if `to` has another size: "op: dim to has size 3, but `what()` has size 4". A
/// dim without entries fits any size.
template <class What>
Dim checked_dim(std::string_view op, const std::optional<Dim>& to, std::int64_t size, What&& what) {
  if (!to) return size < 0 ? Dim::unknown() : Dim(size);
  if (size >= 0 && to->has_size() && to->raw_size() != size && !has_no_entry(*to))
    refuse_size(op, *to, size, what());
  return *to;
}

/// Returns the cotangent g of a result, with zeros in the padding of the dim at `axis`. Requires
/// that the op created that dim: its padding may be valid elements of the input.
Tensor without_padding(const Tensor& g, int axis);

/// For functions that remove an axis or move its elements. Returns x with `value` in its padding if
/// lengths run over the axis: the lengths of the result no longer mark that padding.
Tensor clear_padding(const Tensor& x, int axis, double value = 0);
/// Overload for an axis that becomes `to`. If `to` is a dim, also writes `value` into the axis' own
/// padding, because the caller's dim may be longer.
Tensor clear_padding(const Tensor& x, int axis, const std::optional<Dim>& to, double value = 0);

/// Returns dims as an argument in code: "{batch, time}".
std::string names_of(const Dims& dims);
/// Throws ShapeError: padding of the ragged dim at `axis` would become elements. packed: the dims
/// along which pack() gives the valid elements.
[[noreturn]] void refuse_padding(std::string_view op, const TensorType& x, int axis,
                                 const Dims& packed);

/// Dims for samples of ops: batch=2, time[batch] with lengths 3 and 1, feature=2.
const Dims& sample_dims();

}  // namespace reel
