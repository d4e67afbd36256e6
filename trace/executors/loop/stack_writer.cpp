#include "reel/trace/executors/loop/stack_writer.h"

#include <algorithm>
#include <cstring>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/runtime/memory.h"

namespace reel {

Tensor StackWriter::in_order(Tensor slice) const {
  if (slice.type() == slice_) return slice;
  return transpose(slice, Axes(slice_.dims()));
}

void StackWriter::put(std::int64_t position, Tensor slice) {
  if (is_empty()) {
    slice_ = slice.type();
    first_ = low_ = position;
    if (dim_) {
      Dims dims{*dim_};
      dims.insert(dims.end(), slice_.dims().begin(), slice_.dims().end());
      whole_ = Tensor(allocate_block(slice_.with(dims)));
      count_as(whole_, what_);
    }
  }
  if (slice.type() != slice_ && !slice.type().is_named())
    throw ShapeError(str("the stacked output is ", slice.type(), ", and was ", slice_,
                         " before; every iteration has to give the same type"));
  low_ = std::min(low_, position);
  high_ = std::max(high_, position + 1);
  if (!dim_) {
    count_as_made_since(begin_, slice, what_);
    slices_.push_back(std::move(slice));
    return;
  }
  if (position >= dim_->size())
    throw InternalError(str("a loop stacks slice ", position, " along dim ", *dim_));
  slice = in_order(std::move(slice));
  if (const auto bytes = static_cast<std::size_t>(slice_.bytes()))
    std::memcpy(at(position), slice.data<char>(), bytes);
}

Tensor StackWriter::finish(const Dim& dim) {
  const std::int64_t extent = dim.size();
  if (dim_) {
    const auto clear = [&](std::int64_t from, std::int64_t to) {
      if (const std::int64_t bytes = (to - from) * slice_.bytes())
        std::memset(at(from), 0, static_cast<std::size_t>(bytes));
    };
    clear(0, low_);
    clear(high_, extent);
    return std::move(whole_);
  }
  if (first_ != low_) std::reverse(slices_.begin(), slices_.end());
  Tensor nothing;
  while (static_cast<std::int64_t>(slices_.size()) < extent) {
    if (!nothing.is_defined()) nothing = zeros(slice_);
    slices_.push_back(nothing);
  }
  Tensor all = stack(slices_, dim);
  count_as(all, what_);
  return all;
}

}  // namespace reel
