// core/ops/new_dims.h — the dims that shape, join and index ops give to the axes they make.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reel/core/mode.h"
#include "reel/core/tensor.h"

namespace reel {

/// The dim itself, or what stands for it: while tracing its symbol (attributes hold symbols), among
/// ended entries of a scan the dim that they show.
Dim canonical(const Dim& dim);
Dims canonical(const Dims& dims);

inline const Dim& dim_at(const TensorType& type, int axis) {
  return type.dims()[static_cast<std::size_t>(axis)];
}
/// The same as an attribute of the op that makes such an axis: nothing for a plain one.
inline std::optional<Dim> named_dim(const TensorType& type, int axis) {
  const Dim& dim = dim_at(type, axis);
  return dim.is_named() ? std::optional(canonical(dim)) : std::nullopt;
}

/// The dims, with another one at an axis, with one more in front of it, or without it.
Dims with_dim(Dims dims, int axis, const Dim& dim);
Dims insert_dim(Dims dims, int axis, const Dim& dim);
Dims without_dim(Dims dims, int axis);

/// Some plain axis has a size that only a run knows: only a tensor of that type can tell it.
bool has_unknown_size(const TensorType& type);

/// fn() where no tape listens: for arithmetic on lengths, which is part of none.
template <class Fn>
Tensor computed_plainly(Fn&& fn) {
  ModeScope scope({thread_mode.builder, nullptr, thread_mode.entries});
  return fn();
}

/// What an op that changes the size of an axis calls the result: `to` if it is a dim, for a named
/// axis else a fresh dim of that size (of `to`'s name, if `to` is a name only); nothing for a plain
/// axis.
///
/// size: -1 where only a run knows it, or for a ragged axis; lengths() then says it as a tensor.
template <class Lengths>
std::optional<Dim> changed_dim(const Dim& axis, const std::optional<Dim>& to, std::int64_t size,
                               Lengths&& lengths) {
  if (to && !to->is_undefined()) return canonical(*to);
  if (!to && !axis.is_named()) return std::nullopt;
  const std::string& name = to ? to->name() : axis.name();
  if (size >= 0) return Dim(name, size);
  return Dim(name, computed_plainly(lengths));
}
[[noreturn]] void refuse_size(std::string_view op, const Dim& to, std::int64_t size,
                              const std::string& what);
/// For type rules: the dim of the result, `to` or a plain size; an unknown one for size -1. A `to`
/// of another size is a ShapeError: "op: dim to has size 3, but `what()` has size 4".
template <class What>
Dim checked_dim(std::string_view op, const std::optional<Dim>& to, std::int64_t size, What&& what) {
  if (!to) return size < 0 ? Dim::unknown() : Dim(size);
  if (size >= 0 && to->has_size() && to->raw_size() != size) refuse_size(op, *to, size, what());
  return *to;
}

/// The cotangent g of a result whose dim at `axis` the op made: with zeros in what is padding
/// there, but need not be where the cotangent goes to.
Tensor without_padding(const Tensor& g, int axis);

/// For functions that take an axis away, or give its places to other elements: x with `value` in
/// its padding where lengths run over the axis, because those of the result do not tell any more
/// what is padding.
Tensor clear_padding(const Tensor& x, int axis, double value = 0);
/// The same where the axis becomes `to`, if that is a dim: with `value` in the axis' own padding
/// too, because the caller's dim may be longer.
Tensor clear_padding(const Tensor& x, int axis, const std::optional<Dim>& to, double value = 0);

/// For samples of ops: batch=2, time[batch] with lengths 3 and 1, feature=2.
const Dims& sample_dims();

}  // namespace reel
