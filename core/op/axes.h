// core/op/axes.h — AxisFactors, what an op does along the axes of its operands.
#pragma once

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/op/attrs.h"
#include "reel/core/types/tensor_type.h"

REEL_API_BEGIN
namespace reel {

/// One application of an op, as far as types and attributes tell it.
struct OpCall {
  const Op& op;
  const Attrs* attrs;
  std::span<const TensorType> in, out;
  template <class T>
  const T& attr() const {
    return get<T>(attrs);
  }
};

/// How the results depend on the elements along a factor.
enum class Role : std::uint8_t {
  mapped,     ///< an element of the results depends only on the elements of operands with its index
  drawn,      ///< as mapped, and each element draws its own numbers. Lengths of all rows number the
              ///< elements of a ragged result
  repeated,   ///< all elements of the results over it are equal
  summed,     ///< the results are sums over it
  unordered,  ///< the results depend on all of its elements, in whatever order, as maxima do
};

/// The indices over which an op runs, its factors, as the letters of an Einstein sum: axes of
/// operands and results with the same factor are one index. After the sharding rules of Shardy
/// (OpenXLA).
///
/// A number from 0 on is a mapped factor: by default, the axis of the first result. kWhole marks an
/// axis on which the results may depend as a whole, in its order.
class AxisFactors {
 public:
  static constexpr int kWhole = -1;

  /// Begins with kWhole for all axes of operands, and with the axis itself for axes of results.
  explicit AxisFactors(const OpCall& call);

  /// Return the factor of an axis of operand i, or of result k.
  int& in(std::size_t i, int axis) { return factors_[first(i) + axis]; }
  int& out(std::size_t k, int axis) { return factors_[first(operands_ + k) + axis]; }
  int in(std::size_t i, int axis) const { return factors_[first(i) + axis]; }
  int out(std::size_t k, int axis) const { return factors_[first(operands_ + k) + axis]; }
  /// Returns a new factor of this role.
  int add(Role role);
  Role role(int factor) const;

  /// Tells if an element of the results has the same bits, whether a mapped factor has `count`
  /// elements or as many as in the call. Requires known sizes.
  using AreAlike = bool (*)(const OpCall& call, std::int64_t count);
  /// Sets the rule of a factor, for kernels that choose the order of a sum by sizes, or compute
  /// adjacent elements together. Without a rule, all elements are alike in any number.
  void set_alike(int factor, AreAlike rule);
  /// Returns the answer of the factor's rule, true without a rule. call: has these factors.
  bool are_alike(const OpCall& call, int factor, std::int64_t count) const;

  /// Returns true if an axis of an operand has a factor of this role.
  bool has(Role role) const { return std::ranges::count(added_, role) != 0; }

  /// Returns the axis of operand i, or of result k, with this factor; -1 if it has none.
  int axis_in(std::size_t i, int factor) const { return axis_of(i, factor); }
  int axis_out(std::size_t k, int factor) const { return axis_of(operands_ + k, factor); }

 private:
  std::size_t first(std::size_t value) const { return first_[value]; }
  int axis_of(std::size_t value, int factor) const;

  std::size_t operands_;
  // Plans ask this of every op of a loop's body whenever the loop has new sizes, so that it takes
  // no memory for ops of a few operands.
  boost::container::small_vector<std::size_t, 8> first_;  ///< by operand, then by result, the end
  boost::container::small_vector<int, 24> factors_;
  boost::container::small_vector<Role, 4> added_;                      ///< of factors -2, -3, …
  boost::container::small_vector<std::pair<int, AreAlike>, 4> alike_;  ///< by factor
};

/// Returns the factors of the op's axes. If the op has no `axes` and is not pointwise, all axes of
/// its operands are kWhole.
AxisFactors axis_factors(const OpCall& call);

// ---- Factors that several ops have --------------------------------------------------------------

/// Operands are broadcast: named dims meet the same dims, plain axes meet from the last one on.
void broadcast_axes(const OpCall& call, AxisFactors& f);
/// Every axis of an operand is that axis of the results.
void same_axes(const OpCall& call, AxisFactors& f);
/// Every axis of operand i but `worked` is that axis of the results.
void axes_beside(int worked, std::size_t i, const OpCall& call, AxisFactors& f);
/// As axes_beside() for all operands of the first one's rank; `worked` is the attribute `axis`.
template <class Attrs>
void axes_beside_worked(const OpCall& call, AxisFactors& f) {
  for (std::size_t i = 0; i < call.in.size(); ++i)
    if (call.in[i].rank() == call.in[0].rank()) axes_beside(call.attr<Attrs>().axis, i, call, f);
}
/// A rule of AxisFactors::set_alike(): the number of elements may change the bits of each.
bool never_alike(const OpCall& call, std::int64_t count);
/// `count` axes of the first operand from `axis` on become `made` axes, which depend on all of
/// them. The other axes stay, in their order.
void axes_around(int axis, int count, int made, const OpCall& call, AxisFactors& f);

}  // namespace reel
REEL_API_END
