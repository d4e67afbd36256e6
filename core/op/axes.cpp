#include "reel/core/op/axes.h"

#include <algorithm>

#include "reel/core/op/op.h"
#include "reel/core/types/sizes.h"

namespace reel {

AxisFactors::AxisFactors(const OpCall& call) : operands_(call.in.size()) {
  first_.reserve(call.in.size() + call.out.size() + 1);
  for (const TensorType& type : call.in) {
    first_.push_back(factors_.size());
    factors_.resize(factors_.size() + static_cast<std::size_t>(type.rank()), kWhole);
  }
  for (const TensorType& type : call.out) {
    first_.push_back(factors_.size());
    for (int axis = 0; axis < type.rank(); ++axis) factors_.push_back(axis);
  }
  first_.push_back(factors_.size());
}

int AxisFactors::add(Role role) {
  added_.push_back(role);
  return kWhole - static_cast<int>(added_.size());
}

Role AxisFactors::role(int factor) const {
  return factor >= 0 ? Role::mapped : added_[static_cast<std::size_t>(kWhole - 1 - factor)];
}

void AxisFactors::set_alike(int factor, AreAlike rule) {
  const auto known = std::ranges::find(alike_, factor, &std::pair<int, AreAlike>::first);
  if (known == alike_.end())
    alike_.emplace_back(factor, rule);
  else
    known->second = rule;
}

bool AxisFactors::are_alike(const OpCall& call, int factor, std::int64_t count) const {
  const auto known = std::ranges::find(alike_, factor, &std::pair<int, AreAlike>::first);
  return known == alike_.end() || known->second(call, count);
}

bool never_alike(const OpCall&, std::int64_t) { return false; }

int AxisFactors::axis_of(std::size_t value, int factor) const {
  const auto begin = factors_.begin() + static_cast<std::ptrdiff_t>(first(value)),
             end = factors_.begin() + static_cast<std::ptrdiff_t>(first(value + 1)),
             found = std::find(begin, end, factor);
  return found == end ? -1 : static_cast<int>(found - begin);
}

AxisFactors axis_factors(const OpCall& call) {
  AxisFactors result(call);
  if (call.op.axes)
    call.op.axes(call, result);
  else if (call.op.pointwise)
    broadcast_axes(call, result);
  return result;
}

void broadcast_axes(const OpCall& call, AxisFactors& f) {
  const TensorType& result = call.out[0];
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    const TensorType& type = call.in[i];
    for (int axis = 0; axis < type.rank(); ++axis) {
      const Dim& dim = type.dims()[static_cast<std::size_t>(axis)];
      const int place =
          result.is_named() ? find(result.dims(), dim) : axis + result.rank() - type.rank();
      // A plain axis of size 1 meets an axis of any size.
      const bool is_repeated = !result.is_named() && place >= 0 && dim.raw_size() == 1 &&
                               result.dims()[static_cast<std::size_t>(place)].raw_size() != 1;
      if (place >= 0 && !is_repeated) f.in(i, axis) = place;
    }
  }
}

void same_axes(const OpCall& call, AxisFactors& f) {
  for (std::size_t i = 0; i < call.in.size(); ++i)
    for (int axis = 0; axis < call.in[i].rank(); ++axis) f.in(i, axis) = axis;
}

void axes_beside(int worked, std::size_t i, const OpCall& call, AxisFactors& f) {
  for (int axis = 0; axis < call.in[i].rank(); ++axis)
    if (axis != worked) f.in(i, axis) = axis;
}

void axes_around(int axis, int count, int made, const OpCall& call, AxisFactors& f) {
  for (int k = 0; k < call.in[0].rank(); ++k) {
    if (k < axis) f.in(0, k) = k;
    if (k >= axis + count) f.in(0, k) = k - count + made;
  }
}

}  // namespace reel
