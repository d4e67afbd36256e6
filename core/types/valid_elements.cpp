#include "reel/core/types/valid_elements.h"

#include <algorithm>

namespace reel {
namespace {

std::int64_t offset(std::span<const std::int64_t> index, const std::vector<std::int64_t>& strides) {
  std::int64_t result = 0;
  for (std::size_t i = 0; i < index.size(); ++i) result += index[i] * strides[i];
  return result;
}

}  // namespace

ValidElements::ValidElements(const TensorType& type, std::span<const Tensor> running) {
  add_ragged_axes(type);
  for (const Tensor& mask : running) add_mask(type, mask);
}

void ValidElements::add_ragged_axes(const TensorType& type) {
  for (std::size_t axis = 0; axis < type.dims().size(); ++axis) {
    const Dim& dim = type.dims()[axis];
    if (!dim.is_ragged() || dim.node()->is_full || !dim.node()->lengths) continue;
    RaggedAxis ragged{axis, static_cast<const std::int32_t*>(dim.node()->lengths->data), {}};
    ragged.strides.resize(type.dims().size());
    std::int64_t stride = 1;
    bool has_all = true;
    const Dims& of = dim.length_dims();
    for (std::size_t i = of.size(); i-- > 0;) {
      const int position = find(type.dims(), of[i]);
      has_all = has_all && position >= 0;
      if (has_all) ragged.strides[static_cast<std::size_t>(position)] = stride;
      stride *= of[i].raw_size();
    }
    if (has_all) ragged_.push_back(std::move(ragged));
  }
}

void ValidElements::add_mask(const TensorType& type, const Tensor& mask) {
  const std::vector<std::int64_t>& sizes = mask.type().sizes();
  RunningMask made{{}, std::vector<std::int64_t>(type.dims().size())};
  std::vector<std::int64_t> strides(sizes.size());  // of the values, by axes of the mask
  std::int64_t count = 1;
  bool is_shared = true;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    const int position = find(type.dims(), mask.dims()[i]);
    if (position < 0) continue;
    is_shared = false;
    made.strides[static_cast<std::size_t>(position)] = strides[i] = count;
    count *= sizes[i];
  }
  if (is_shared) return;
  made.values.resize(static_cast<std::size_t>(count));
  const bool* const values = mask.data<bool>();
  for (std::int64_t at = 0; at < mask.type().numel(); ++at) {
    std::int64_t rest = at, to = 0;
    for (std::size_t i = sizes.size(); i-- > 0; rest /= sizes[i])
      to += rest % sizes[i] * strides[i];
    made.values[static_cast<std::size_t>(to)] |= values[at];
  }
  running_.push_back(std::move(made));
}

bool ValidElements::operator()(std::span<const std::int64_t> index) const {
  for (const RaggedAxis& ragged : ragged_)
    if (index[ragged.axis] >= ragged.lengths[offset(index, ragged.strides)]) return false;
  return std::all_of(running_.begin(), running_.end(), [&](const RunningMask& mask) {
    return mask.values[static_cast<std::size_t>(offset(index, mask.strides))];
  });
}

}  // namespace reel
