// core/types/dim.h — Dim, the name and size of an axis.
#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <type_traits>
#include <vector>

#include "reel/core/base/ref.h"
#include "reel/core/base/visibility.h"
#include "reel/core/types/dim_node.h"

REEL_API_BEGIN
namespace reel {

class Tensor;

/// The dims of a tensor, in order.
using Dims = std::vector<Dim>;

/// A plain size that is not known: in PartialShape{unknown, 2} and TensorType{f32, {unknown, 4}}.
struct Unknown {};
/// The size that is not known, in a list of dims.
inline constexpr Unknown unknown{};

/// One axis: a plain size, or a named identity by which axes are matched.
///
/// Plain dims (made from an integer) are equal if their sizes are. Named dims are equal only to
/// themselves and their copies, whatever their name and size. A named dim is one of
/// - *static*: one size;
/// - *dynamic*: one size, which a trace does not know;
/// - *ragged*: a length for every entry of other dims; its extent is the longest;
/// - *undefined*: a name only.
///
/// Dims are immutable and cheap to copy. Const members are thread-safe.
class Dim {
 public:
  /// Makes an empty Dim, with neither name nor size, to assign to. Tensors refuse it.
  Dim() = default;
  /// Makes a plain size. Throws ArgumentError if size is negative.
  template <std::integral I>
  requires(!std::is_same_v<I, bool>) Dim(I size)
      : size_(checked_size(static_cast<std::int64_t>(size))) {}
  Dim(Unknown) { *this = unknown(); }
  /// Makes an undefined dim: a name for a dim that a function will make.
  explicit Dim(std::string name);
  /// Makes a static named dim. Throws ArgumentError if size is negative.
  Dim(std::string name, std::int64_t size);
  /// Makes a dim from lengths: dynamic for a scalar, ragged for a tensor over {batch, ...}.
  ///
  /// lengths: i32 or i64, not negative. Throws DTypeError for other dtypes, ArgumentError for
  /// negative lengths, ShapeError if the dims of lengths are unnamed.
  Dim(std::string name, const Tensor& lengths);

  /// Returns a new plain axis; a trace does not know its size.
  static Dim unknown();

  /// Returns true for all but plain sizes.
  bool is_named() const;
  /// Returns true if the dim has a length for every entry of other dims.
  bool is_ragged() const;
  /// Returns true if the dim has a name without a size.
  bool is_undefined() const;
  /// Returns false for undefined dims, and while tracing for sizes that are known only at run time.
  bool has_size() const { return size_ >= 0; }
  /// Returns the name; empty for a plain size.
  const std::string& name() const;
  /// Returns the extent. Throws ArgumentError for an undefined dim, TraceError if it is known
  /// only when the graph runs.
  std::int64_t size() const;
  /// Returns the length of every entry (i32); a scalar unless the dim is ragged. Throws
  /// ArgumentError for an undefined dim.
  Tensor lengths() const;
  /// Returns the dims of a ragged dim's lengths; empty for other dims.
  const Dims& length_dims() const;

  bool operator==(const Dim& other) const;

  // Below: for the library itself.
  const DimNode* node() const { return node_.get(); }
  std::int64_t raw_size() const { return size_; }
  /// Returns true if the dim belongs to a trace: made in one, or standing for an argument's dim.
  bool is_symbol() const;
  std::size_t hash() const;
  /// Returns a number that no other Dim of the process ever has; 0 for plain sizes. For keys of
  /// tables: a freed node's address may belong to another Dim while an entry lives.
  std::uint64_t serial() const;
  static Dim of_node(Ref<const DimNode> node);

 private:
  static std::int64_t checked_size(std::int64_t size);

  Ref<const DimNode> node_;  // null for a plain size
  std::int64_t size_ = -1;
};

/// Prints time[batch] for a ragged dim, batch=3 for a static one, 3 for a plain one, ? for an
/// unknown size, and the expression for a computed one: time+1[batch].
std::ostream& operator<<(std::ostream& out, const Dim& dim);
std::ostream& operator<<(std::ostream& out, const Dims& dims);

/// Returns the position of a dim in a list, or -1.
int find(const Dims& dims, const Dim& dim);
/// Returns true if the list has the dim.
bool contains(const Dims& dims, const Dim& dim);

}  // namespace reel
REEL_API_END
