// The kernel of gather, and the places that indices mean.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "reel/core/base/str.h"
#include "reel/core/dims/dim_facts.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops/indexing/index.h"
#include "reel/core/ops/shape/padding_runs.h"
#include "reel/core/ops/shape/sliced_dims.h"
#include "reel/core/ops/shape/strided.h"

namespace reel {

std::string place_of_element(std::int64_t flat, const TensorType& type) {
  if (!type.rank()) return "";
  std::vector<std::int64_t> at(type.sizes().size());
  for (std::size_t i = at.size(); i-- > 0; flat /= type.sizes()[i]) at[i] = flat % type.sizes()[i];
  return str(" at [", join(at, ","), "] of ", type);
}

namespace {

/// Repeats the numbers (i32, over some dims of the type) for every element of the type.
std::vector<std::int32_t> repeat_over(const TensorType& type, const Tensor& numbers) {
  const Steps to = steps_of(type), from = steps_of(numbers.type());
  StridedAxes axes;
  for (int i = 0; i < type.rank(); ++i) {
    const auto axis = static_cast<std::size_t>(i);
    const int at = find(numbers.dims(), dim_at(type, i));
    axes.push_back({type.sizes()[axis], to[axis], at < 0 ? 0 : from[static_cast<std::size_t>(at)]});
  }
  std::vector<std::int32_t> result(static_cast<std::size_t>(type.numel()));
  copy_strided(sizeof(std::int32_t), axes, result.data(), numbers.data<void>());
  return result;
}

/// Returns the position that an index means along `length` of the `size` positions of an axis.
/// Returns less than kNoPlace if it is out of range.
std::int64_t place_of(std::int64_t index, std::int64_t size, std::int64_t length, bool may_be_none,
                      IndexRule rule) {
  constexpr std::int64_t kOutOfRange = kNoPlace - 1;
  if (rule == IndexRule::clip) {
    if (length > 0) return std::clamp<std::int64_t>(index, 0, length - 1);
    return may_be_none ? kNoPlace : kOutOfRange;
  }
  if (index >= 0) return index < size ? index : kOutOfRange;
  if (rule == IndexRule::from_end && index >= -length) return index + length;
  return rule == IndexRule::optional ? kNoPlace : kOutOfRange;
}

}  // namespace

Places places_of(std::string_view op, const Tensor& indices, const TensorType& x,
                 const GatherAttrs& attrs) {
  const TensorType& type = indices.type();
  const std::int64_t count = type.numel();
  std::int64_t size = 1;
  for (int i = attrs.axis; i < attrs.axis + attrs.count; ++i)
    size *= x.sizes()[static_cast<std::size_t>(i)];
  Places places(static_cast<std::size_t>(count));
  visit(type.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::copy_n(indices.data<T>(), count, places.begin());
  });
  std::vector<char> is_padding(type.is_ragged() ? static_cast<std::size_t>(count) : 0);
  for_each_padding(type, [&](std::int64_t first, std::int64_t run) {
    std::fill_n(is_padding.begin() + first, run, true);
  });
  const bool has_lengths = (attrs.rule == IndexRule::from_end || attrs.rule == IndexRule::clip) &&
                           is_masked(x, attrs.axis);
  std::vector<std::int32_t> lengths;
  if (has_lengths) lengths = repeat_over(type, Tensor(dim_at(x, attrs.axis).node()->lengths));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const std::int64_t index = places[k];
    if (!is_padding.empty() && is_padding[k]) {
      places[k] = kNoPlace;
      continue;
    }
    const std::int64_t length = has_lengths ? lengths[k] : size;
    places[k] =
        place_of(index, size, length, is_made_from_lengths(dim_at(x, attrs.axis)), attrs.rule);
    if (places[k] < kNoPlace)
      throw IndexError(
          str(op, ": index ", index, place_of_element(i, type), " is out of range for ",
              axis_name(x, attrs.axis),
              has_lengths && index < 0 ? ", where the entry has length " : ", which has size ",
              has_lengths && index < 0 ? length : size));
  }
  return places;
}

GatherWalk::GatherWalk(const TensorType& x, const TensorType& indices, const GatherAttrs& attrs) {
  const Steps in_x = steps_of(x), in_indices = steps_of(indices);
  axis_step_ = in_x[static_cast<std::size_t>(attrs.axis + attrs.count - 1)];
  for (int i = 0; i < x.rank(); ++i) {
    if (attrs.is_indexed(i)) {
      for (std::size_t k = 0; i == attrs.axis && k < attrs.matched.size(); ++k)
        if (attrs.matched[k] < 0) push({indices.sizes()[k], 0, in_indices[k]});
      continue;
    }
    const auto found = std::find(attrs.matched.begin(), attrs.matched.end(), i);
    const auto k = static_cast<std::size_t>(found - attrs.matched.begin());
    push({x.sizes()[static_cast<std::size_t>(i)], in_x[static_cast<std::size_t>(i)],
          found == attrs.matched.end() ? 0 : in_indices[k]});
  }
  if (!axes_.empty() && axes_.back().in_x == 1 && axes_.back().in_indices == 0) {
    run_ = axes_.back().size;
    axes_.pop_back();
  }
}

void GatherWalk::push(const Axis& axis) {
  if (axis.size == 1) return;
  if (!axes_.empty()) {
    Axis& before = axes_.back();
    if (before.in_x == axis.in_x * axis.size && before.in_indices == axis.in_indices * axis.size) {
      before = {before.size * axis.size, axis.in_x, axis.in_indices};
      return;
    }
  }
  axes_.push_back(axis);
}

namespace {

template <std::size_t kBytes>
using RunSize = std::integral_constant<std::size_t, kBytes>;

/// Calls fn with the bytes of a run as a constant, or with 0 if the number is rare: a copy of few
/// bytes, if their number is known at compile time, is one load and one store.
template <class Fn>
void with_run_size(std::size_t bytes, const Fn& fn) {
  switch (bytes) {
    case 4:
      return fn(RunSize<4>());
    case 8:
      return fn(RunSize<8>());
    case 16:
      return fn(RunSize<16>());
    case 32:
      return fn(RunSize<32>());
    case 64:
      return fn(RunSize<64>());
    case 128:
      return fn(RunSize<128>());
    default:
      return fn(RunSize<0>());
  }
}

/// Copies runs of elements to the places that indices mean. kBytes: as in with_run_size().
template <std::size_t kBytes>
void gather_runs(const GatherWalk& walk, const Places& places, std::size_t item, const char* x,
                 char* out) {
  const std::size_t bytes = kBytes ? kBytes : static_cast<std::size_t>(walk.run()) * item;
  walk.each(places, [&](std::int64_t from) {
    if (from == kNoPlace)
      std::memset(out, 0, bytes);
    else
      std::memcpy(out, x + static_cast<std::size_t>(from) * item, bytes);
    out += bytes;
  });
}

/// True if all of `count` numbers are at least 0 and below `size`. Faster than find_bounds(): the
/// first version of x86-64 has no minimum of integers.
template <class T>
__attribute__((optimize("O3"))) bool are_below(const T* numbers, std::int64_t count,
                                               std::int64_t size) {
  using U = std::make_unsigned_t<T>;
  constexpr auto kMaxIndex = std::int64_t{std::numeric_limits<T>::max()};
  const U last = static_cast<U>(std::min(size - 1, kMaxIndex));
  U signs = 0;  // a negative number has the highest bit, as the difference of a larger one has
  for (std::int64_t i = 0; i < count; ++i) {
    const U number = static_cast<U>(numbers[i]);
    signs |= number | (last - number);
  }
  return size > 0 && signs <= static_cast<U>(kMaxIndex);
}

/// Sets the least and the largest of `count` numbers.
template <class T>
__attribute__((optimize("O3"))) void find_bounds(const T* numbers, std::int64_t count, T& least,
                                                 T& largest) {
  T low = numbers[0], high = numbers[0];
  for (std::int64_t i = 1; i < count; ++i) {
    low = std::min(low, numbers[i]);
    high = std::max(high, numbers[i]);
  }
  least = low;
  largest = high;
}

/// Elements of any type of this size.
typedef std::uint32_t Item4 __attribute__((may_alias));
typedef std::uint64_t Item8 __attribute__((may_alias));

/// Copies elements at indices. offset: added to negative ones; 0 if there are none.
template <class Index, class Item>
void gather_items(const GatherWalk& walk, const Index* indices, std::int64_t offset, const Item* x,
                  Item* out) {
  const std::int64_t step = walk.axis_step();
  const auto take = [&](const Item* from, const Index* at, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = from[at[i]];
  };
  walk.each_line([&](const GatherWalk::Axis& axis, std::int64_t in_x, std::int64_t at) {
    const auto copy = [&](std::int64_t x_step, std::int64_t index_step) {
      for (std::int64_t i = 0; i < axis.size; ++i) {
        const auto index = static_cast<std::int64_t>(indices[at + i * index_step]);
        out[i] = x[in_x + i * x_step + (index < 0 ? index + offset : index) * step];
      }
    };
    if (axis.in_indices == 1 && axis.in_x == 0 && step == 1 && !offset)
      take(x + in_x, indices + at, axis.size);
    else if (axis.in_indices == 1)
      copy(axis.in_x, 1);
    else
      copy(axis.in_x, axis.in_indices);
    out += axis.size;
  });
}

/// Copies runs of elements instead. kBytes: as in with_run_size().
template <std::size_t kBytes, class Index>
void gather_runs_at(const GatherWalk& walk, const Index* indices, std::int64_t offset,
                    std::size_t item, const char* x, char* out) {
  const std::size_t bytes = kBytes ? kBytes : static_cast<std::size_t>(walk.run()) * item;
  const std::int64_t step = walk.axis_step();
  walk.each_line([&](const GatherWalk::Axis& axis, std::int64_t in_x, std::int64_t at) {
    constexpr std::int64_t kAhead = 8;  // runs that are fetched before they are copied
    const auto place = [&](std::int64_t i) {
      const auto index = static_cast<std::int64_t>(indices[at + i * axis.in_indices]);
      return in_x + i * axis.in_x + (index < 0 ? index + offset : index) * step;
    };
    for (std::int64_t i = 0; i < axis.size; ++i) {
      if (i + kAhead < axis.size)
        __builtin_prefetch(x + static_cast<std::size_t>(place(i + kAhead)) * item);
      const std::int64_t from = place(i);
      std::memcpy(out, x + static_cast<std::size_t>(from) * item, bytes);
      out += bytes;
    }
  });
}

/// Gathers if each index is the place of an element, counted from the front or the end. Returns
/// false if padding, lengths or a rule need places_of(), or if an index is out of range.
template <class Index>
bool gather_directly(KernelArgs& a, const Index* indices) {
  const GatherAttrs& attrs = a.attr<GatherAttrs>();
  const Tensor& x = a.input(0);
  const TensorType& type = a.input(1).type();
  const bool counts_from_end = attrs.rule == IndexRule::from_end;
  if ((!counts_from_end && attrs.rule != IndexRule::strict) || type.is_ragged() ||
      (counts_from_end && is_masked(x.type(), attrs.axis)) || !type.numel())
    return false;
  std::int64_t size = 1;
  for (int i = attrs.axis; i < attrs.axis + attrs.count; ++i)
    size *= x.type().sizes()[static_cast<std::size_t>(i)];
  Index least = 0, largest = 0;
  if (!are_below(indices, type.numel(), size)) {
    find_bounds(indices, type.numel(), least, largest);
    if (static_cast<std::int64_t>(least) < (counts_from_end ? -size : 0) ||
        static_cast<std::int64_t>(largest) >= size)
      return false;
  }
  const Tensor& out = a.make();
  if (out.type().numel() == 0) return true;
  const GatherWalk walk(x.type(), type, attrs);
  const std::size_t item = size_of(x.dtype());
  const auto items = [&]<class Item>(Item) {
    gather_items(walk, indices, least < 0 ? size : 0, x.data<Item>(), out.data<Item>());
  };
  const auto runs = [&]<std::size_t kBytes>(RunSize<kBytes>) {
    gather_runs_at<kBytes>(walk, indices, size, item, x.data<char>(), out.data<char>());
  };
  if (walk.run() == 1 && item == 4)
    items(Item4{});
  else if (walk.run() == 1 && item == 8)
    items(Item8{});
  else
    with_run_size(static_cast<std::size_t>(walk.run()) * item, runs);
  return true;
}

}  // namespace

void gather_kernel(KernelArgs& a) {
  const GatherAttrs& attrs = a.attr<GatherAttrs>();
  const Tensor &x = a.input(0), &indices = a.input(1);
  if (indices.dtype() == i32 ? gather_directly(a, indices.data<std::int32_t>())
                             : gather_directly(a, indices.data<std::int64_t>()))
    return;
  const Places places = places_of(attrs.function, indices, x.type(), attrs);
  const Tensor& out = a.make();
  if (out.type().numel() == 0) return;
  const GatherWalk walk(x.type(), indices.type(), attrs);
  const std::size_t item = size_of(x.dtype());
  with_run_size(static_cast<std::size_t>(walk.run()) * item,
                [&]<std::size_t kBytes>(RunSize<kBytes>) {
                  gather_runs<kBytes>(walk, places, item, x.data<char>(), out.data<char>());
                });
}

}  // namespace reel
