// core/ops.h — the functions on tensors that users call. Each works in eager mode, in a trace and
// on a tape.
//
// Shapes: "x: any" means any dims; where two operands meet, named dims are matched by identity and
// missing ones are broadcast if one operand has all dims of the result, plain dims follow NumPy.
// Errors: ShapeError where dims do not fit, DTypeError where dtypes do not, and never a silent
// conversion.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "reel/core/axis.h"
#include "reel/core/op.h"
#include "reel/core/tensor.h"

namespace reel {

// ---- Operands
// ------------------------------------------------------------------------------------------------------

/// A tensor or a C++ number; a number takes the other operand's dtype (a fraction with integers is
/// a DTypeError).
class Arg {
 public:
  Arg(const Tensor& tensor) : tensor_(&tensor) {}
  Arg(Tensor&& tensor) : tensor_(&tensor), temporary_(true) {}
  template <class N>
  requires std::is_arithmetic_v<N> Arg(N number)
      : number_(static_cast<double>(number)),
        integer_(static_cast<std::int64_t>(number)),
        is_floating_(std::is_floating_point_v<N>) {}

  bool is_number() const { return !tensor_; }
  bool is_floating() const { return is_floating_; }
  double number() const { return number_; }
  std::int64_t integer() const { return integer_; }
  OpInput input() const {
    OpInput result(*tensor_);
    result.temporary = temporary_;
    return result;
  }
  const Tensor& tensor() const { return *tensor_; }

 private:
  const Tensor* tensor_ = nullptr;
  bool temporary_ = false;
  double number_ = 0;
  std::int64_t integer_ = 0;
  bool is_floating_ = false;
};

// ---- Making tensors
// ------------------------------------------------------------------------------------------------

/// What tensor() takes: numbers, booleans, and nested lists of them.
///
/// Numbers are kept exactly (integers as 64 bits, others in double) until the dtype is known.
class NestedList {
 public:
  template <class N>
  requires std::is_arithmetic_v<N> NestedList(N number)
      : kind_(std::is_same_v<N, bool>       ? boolean
              : std::is_floating_point_v<N> ? f64
                                            : i64),
        number_(static_cast<double>(number)),
        integer_(static_cast<std::int64_t>(number)) {}
  NestedList(std::initializer_list<NestedList> items) : items_(items), is_list_(true) {}

  bool is_list() const { return is_list_; }
  DType kind() const { return kind_; }
  double number() const { return number_; }
  std::int64_t integer() const { return integer_; }
  const std::vector<NestedList>& items() const { return items_; }

 private:
  DType kind_ = i64;
  double number_ = 0;
  std::int64_t integer_ = 0;
  std::vector<NestedList> items_;
  bool is_list_ = false;
};

/// From nested lists. dims: those of the result, or none for plain sizes read off the lists; a flat
/// list fills any dims in row-major order. dtype: boolean, i32, or f32 after what the numbers are,
/// unless given. Throws ShapeError when the lists are uneven or the count differs, DTypeError when
/// a fraction becomes an integer.
Tensor tensor(std::initializer_list<NestedList> values, const Dims& dims = {},
              std::optional<DType> dtype = {});
/// From a vector, which keeps its own element type unless dtype says otherwise.
template <class T>
Tensor tensor(const std::vector<T>& values, const Dims& dims = {}, std::optional<DType> dtype = {});
/// A tensor without dims; an integer becomes i32, a fraction f32, unless dtype is given.
Tensor scalar(const NestedList& value, std::optional<DType> dtype = {});

Tensor zeros(const Dims& dims, DType dtype = f32);
Tensor ones(const Dims& dims, DType dtype = f32);
Tensor full(const Dims& dims, const NestedList& value, DType dtype = f32);
Tensor zeros(const TensorType& type);
/// Zeros with the type of x; of x only the shape is read.
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
/// 0, 1, ... size-1 along one dim.
Tensor range(std::int64_t size, DType dtype = i32);
Tensor range(const Dim& dim, DType dtype = i32);
/// 1 where indices equals the position along `classes`, which becomes the last dim. indices:
/// integers.
Tensor one_hot(const Tensor& indices, const Dim& classes, DType dtype = f32);

// ---- Element-wise
// --------------------------------------------------------------------------------------------------

Tensor neg(const Arg& x);
Tensor abs(const Arg& x);
Tensor exp(const Arg& x);
Tensor log(const Arg& x);
Tensor sqrt(const Arg& x);
Tensor square(const Arg& x);
Tensor tanh(const Arg& x);
Tensor sigmoid(const Arg& x);
Tensor relu(const Arg& x);
Tensor logical_not(const Arg& x);

Tensor add(const Arg& a, const Arg& b);
Tensor sub(const Arg& a, const Arg& b);
Tensor mul(const Arg& a, const Arg& b);
/// Integers divide as in C++ (towards zero); a zero divisor gives 0.
Tensor div(const Arg& a, const Arg& b);
/// The remainder of div, as C++'s %.
Tensor remainder(const Arg& a, const Arg& b);
/// Integers only, as NumPy: towards minus infinity, and the remainder that goes with it; a zero
/// divisor gives 0.
Tensor floor_divide(const Arg& a, const Arg& b);
Tensor mod(const Arg& a, const Arg& b);
Tensor pow(const Arg& a, const Arg& b);
Tensor maximum(const Arg& a, const Arg& b);
Tensor minimum(const Arg& a, const Arg& b);

/// Comparisons give booleans.
Tensor equal(const Arg& a, const Arg& b);
Tensor not_equal(const Arg& a, const Arg& b);
Tensor less(const Arg& a, const Arg& b);
Tensor less_equal(const Arg& a, const Arg& b);
Tensor greater(const Arg& a, const Arg& b);
Tensor greater_equal(const Arg& a, const Arg& b);
Tensor logical_and(const Arg& a, const Arg& b);
Tensor logical_or(const Arg& a, const Arg& b);

/// a where condition holds, else b. The result has the dims of all three, of which one operand must
/// have all.
Tensor where(const Arg& condition, const Arg& a, const Arg& b);
Tensor cast(const Tensor& x, DType dtype);

inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator-(Tensor&& x) { return neg(std::move(x)); }
inline Tensor operator!(const Tensor& x) { return logical_not(x); }
Tensor operator+(const Arg& a, const Arg& b);
Tensor operator-(const Arg& a, const Arg& b);
Tensor operator*(const Arg& a, const Arg& b);
Tensor operator/(const Arg& a, const Arg& b);
Tensor operator%(const Arg& a, const Arg& b);
Tensor operator==(const Arg& a, const Arg& b);
Tensor operator!=(const Arg& a, const Arg& b);
Tensor operator<(const Arg& a, const Arg& b);
Tensor operator<=(const Arg& a, const Arg& b);
Tensor operator>(const Arg& a, const Arg& b);
Tensor operator>=(const Arg& a, const Arg& b);
Tensor operator&&(const Arg& a, const Arg& b);
Tensor operator||(const Arg& a, const Arg& b);

// ---- Reductions
// ----------------------------------------------------------------------------------------------------
// Over the given axes, or over all. Padding of ragged dims never counts, neither along the dim
// itself nor along a dim that its lengths run over. Over nothing: sum 0, mean 0, max and logsumexp
// -inf (integers: the smallest), any false, all true, argmax 0; with zero gradient.

Tensor sum(const Tensor& x, const Axes& axes);
Tensor sum(const Tensor& x);
Tensor mean(const Tensor& x, const Axes& axes);
Tensor mean(const Tensor& x);
/// The largest element; its gradient is shared equally among ties.
Tensor max(const Tensor& x, const Axes& axes);
Tensor max(const Tensor& x);
Tensor any(const Tensor& x, const Axes& axes);
Tensor any(const Tensor& x);
Tensor all(const Tensor& x, const Axes& axes);
Tensor all(const Tensor& x);
/// The position (i32) of the largest element, the first of equal ones.
Tensor argmax(const Tensor& x, const Axis& axis);
Tensor logsumexp(const Tensor& x, const Axes& axes);
/// Along the axes; padding gets 0, and so does a row without any valid entry.
Tensor softmax(const Tensor& x, const Axes& axes);
/// Padding gets 0 here too, so that products with it are harmless.
Tensor log_softmax(const Tensor& x, const Axes& axes);

// ---- Products
// ------------------------------------------------------------------------------------------------------

/// Matrix product over the named dims: a: [..., contracted], b: [contracted, ...] -> dims of both,
/// without them.
///
/// Other dims that both have are batch dims; they come first in the result, then a's, then b's.
/// Padding of contracted ragged dims does not count. Throws ShapeError when an operand lacks a
/// contracted dim, DTypeError when dtypes differ. Cost: 2·(product of all sizes) flop.
Tensor matmul(const Tensor& a, const Tensor& b, const Dims& contracted);
inline Tensor matmul(const Tensor& a, const Tensor& b, const Dim& contracted) {
  return matmul(a, b, Dims{contracted});
}
/// Plain dims, by NumPy's rules: a: [..., M, K], b: [..., K, N] -> [..., M, N]; vectors drop their
/// dim. Throws ShapeError when K differs.
Tensor matmul(const Tensor& a, const Tensor& b);

// ---- Shape
// ---------------------------------------------------------------------------------------------------------

/// The axes in another order; all of them are listed.
Tensor transpose(const Tensor& x, const Axes& order);
/// The same elements in row-major order with other dims. One plain size may be -1.
Tensor reshape(const Tensor& x, const std::vector<std::int64_t>& sizes);
inline Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> sizes) {
  return reshape(x, std::vector<std::int64_t>(sizes));
}
Tensor reshape(const Tensor& x, const Dims& dims);
/// The axis `from` is called `to`, which must have its size. Shares storage.
Tensor rename(const Tensor& x, const Axis& from, const Dim& to);
/// x repeated along `dims` that it lacks; the result has exactly these dims, in this order.
Tensor expand(const Tensor& x, const Dims& dims);
/// Tensors one behind another along an axis. Named dims: `to` is the new dim, by default made fresh
/// under the same name.
Tensor concat(const Tensors& tensors, const Axis& axis, std::optional<Dim> to = {});
/// Tensors of one type side by side along a new leading dim (or a new axis at a position).
Tensor stack(const Tensors& tensors, const Dim& dim);
Tensor stack(const Tensors& tensors, int axis = 0);
/// The slices along an axis, which is removed; inverse of stack. The size must be known.
Tensors unstack(const Tensor& x, const Axis& axis = 0);
/// Equal parts along an axis; with named dims each part has `part` there.
Tensors split(const Tensor& x, const Axis& axis, int parts, std::optional<Dim> part = {});
template <std::size_t N>
std::array<Tensor, N> split(const Tensor& x, const Axis& axis, std::optional<Dim> part = {}) {
  Tensors parts = split(x, axis, static_cast<int>(N), std::move(part));
  std::array<Tensor, N> result;
  for (std::size_t i = 0; i < N; ++i) result[i] = std::move(parts[i]);
  return result;
}
/// Elements begin, begin+1, ... end-1 along an axis; negative positions count from the end, as in
/// Python. Named dims: `to` is the dim of what is left, by default made fresh under the same name.
Tensor slice(const Tensor& x, const Axis& axis, std::int64_t begin,
             std::optional<std::int64_t> end = {}, std::optional<Dim> to = {});
/// `before` and `after` more elements of `value` along an axis. Named dims: `to` as for slice.
Tensor pad(const Tensor& x, const Axis& axis, std::int64_t before, std::int64_t after,
           double value = 0, std::optional<Dim> to = {});
/// Backwards along an axis; along a ragged dim each entry within its own length.
Tensor reverse(const Tensor& x, const Axis& axis);

// ---- Indices
// -------------------------------------------------------------------------------------------------------

/// Elements at `indices` along an axis, whose place the dims of the indices take (dims that x has
/// too are matched entry by entry; a scalar index drops the axis). Negative indices count from the
/// end; IndexError out of range.
Tensor gather(const Tensor& x, const Tensor& indices, const Axis& axis);
/// `like` zeros, to which updates are added at indices along the axis: the gradient of gather.
Tensor scatter_add(const Tensor& zeros, const Tensor& indices, const Tensor& updates,
                   const Axis& axis);

// ---- Dims
// ----------------------------------------------------------------------------------------------------------

/// position < length: boolean over the dims of the lengths, and the dim.
Tensor mask(const Dim& dim);
/// x with zeros (or `value`) in its padding.
Tensor mask_padding(const Tensor& x, double value = 0);

// ---- Random numbers
// ------------------------------------------------------------------------------------------------
// Drawn from the active scope of keys (core/random.h): the same eagerly, traced, and when
// recomputed.

/// Starts the stream of this thread afresh.
void manual_seed(std::uint64_t seed);
Tensor random_normal(const Dims& dims, DType dtype = f32);
/// In [low, high).
Tensor random_uniform(const Dims& dims, double low = 0, double high = 1, DType dtype = f32);
/// Indices (i32) along an axis, drawn with probabilities softmax(logits); the axis is dropped.
Tensor categorical(const Tensor& logits, const Axis& axis);

// ---- Others
// --------------------------------------------------------------------------------------------------------

/// x, printed on standard output when it is computed: every time, and in program order.
Tensor print(const Tensor& x, const std::string& label = "");
/// x as it is, as a value of its own.
Tensor identity(const Tensor& x);
/// x as it is, without gradient.
Tensor stop_gradient(const Tensor& x);

}  // namespace reel
