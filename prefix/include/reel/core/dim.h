// core/dim.h — Dim, the name and size of an axis.
#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <type_traits>
#include <vector>

#include "reel/core/dim_node.h"
#include "reel/core/ref.h"

namespace reel {

class Tensor;

using Dims = std::vector<Dim>;

/// A plain size that may be anything: in PartialShape{unknown, 2} and TensorType{f32, {unknown,
/// 4}}.
struct Unknown {};
inline constexpr Unknown unknown{};

/// One axis: a plain size, or an identity with a name by which axes are matched.
///
/// Plain dims (made from an integer) are equal when their sizes are. Named dims are equal only to
/// themselves and their copies, whatever their name and size. A named dim is *static* (one size),
/// *dynamic* (one size that a trace does not know), *ragged* (a length for every entry of other
/// dims; its extent is the longest), or *undefined* (a name only). Dims are immutable and cheap to
/// copy; const members may be called from several threads at once.
class Dim {
 public:
  /// Neither a name nor a size: something to assign to. Tensors refuse it.
  Dim() = default;
  /// A plain size.
  template <std::integral I>
  requires(!std::is_same_v<I, bool>) Dim(I size)
      : size_(checked_size(static_cast<std::int64_t>(size))) {}
  Dim(Unknown) { *this = unknown(); }
  /// An undefined dim: a name to give to what a loop makes.
  explicit Dim(std::string name);
  /// A static named dim. Throws ArgumentError when size is negative.
  Dim(std::string name, std::int64_t size);
  /// From lengths: a scalar gives a dynamic dim, a tensor over {batch, ...} a ragged one.
  ///
  /// lengths: i32 or i64, nowhere negative. Throws DTypeError, ArgumentError, or ShapeError when
  /// its dims are unnamed.
  Dim(std::string name, const Tensor& lengths);

  /// A plain axis whose size a trace does not know.
  static Dim unknown();

  bool is_named() const;
  bool is_ragged() const;
  /// A name without a size.
  bool is_undefined() const;
  /// Has a size: false for undefined dims, and while tracing for dims whose size only a run knows.
  bool has_size() const { return size_ >= 0; }
  const std::string& name() const;
  /// The extent. Throws ArgumentError for an undefined dim, TraceError where only a run of the
  /// graph knows it.
  std::int64_t size() const;
  /// The length of every entry (i32): a scalar unless the dim is ragged.
  Tensor lengths() const;
  /// The dims that a ragged dim's lengths run over; empty for others.
  const Dims& length_dims() const;

  bool operator==(const Dim& other) const;

  // Below: for the library itself.
  const DimNode* node() const { return node_.get(); }
  std::int64_t raw_size() const { return size_; }
  /// Belongs to a trace: made in one, or standing for the dim of an argument.
  bool is_symbol() const;
  std::size_t hash() const;
  static Dim of_node(Ref<const DimNode> node);

 private:
  static std::int64_t checked_size(std::int64_t size);

  Ref<const DimNode> node_;  // null for a plain size
  std::int64_t size_ = -1;
};

/// A ragged dim prints as time[batch], a static one as batch=3, a plain one as 3, an unknown size
/// as ?, and one that was computed as its expression, time+1[batch].
std::ostream& operator<<(std::ostream& out, const Dim& dim);
std::ostream& operator<<(std::ostream& out, const Dims& dims);

/// The position of a dim in a list, or -1.
int find(const Dims& dims, const Dim& dim);
bool contains(const Dims& dims, const Dim& dim);

}  // namespace reel
