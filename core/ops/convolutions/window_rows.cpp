#include "reel/core/ops/convolutions/window_rows.h"

#include <algorithm>

#include "reel/core/types/tensor.h"

namespace reel {

UnpaddedPositions::UnpaddedPositions(const TensorType& type, int first, int count)
    : count_(static_cast<std::size_t>(count)) {
  std::int64_t entries = 1;
  for (int axis = 0; axis < first; ++axis) entries *= type.sizes()[static_cast<std::size_t>(axis)];
  counts_.resize(static_cast<std::size_t>(entries) * count_);
  for (std::size_t i = 0; i < count_; ++i) {
    const Dim& dim = type.dims()[static_cast<std::size_t>(first) + i];
    for (std::int64_t entry = 0; entry < entries; ++entry)
      counts_[static_cast<std::size_t>(entry) * count_ + i] =
          type.sizes()[static_cast<std::size_t>(first) + i];
    if (!dim.is_ragged() || dim.node()->is_full || !dim.node()->lengths) continue;
    // The place of an entry's length: steps by axis, 0 for axes that lengths do not run over.
    std::vector<std::int64_t> steps(static_cast<std::size_t>(first), 0);
    std::int64_t step = 1;
    bool has_all = true;
    for (std::size_t over = dim.length_dims().size(); over-- > 0;) {
      const int axis = find(type.dims(), dim.length_dims()[over]);
      has_all = has_all && axis >= 0 && axis < first;
      if (has_all) steps[static_cast<std::size_t>(axis)] = step;
      step *= dim.length_dims()[over].size();
    }
    if (!has_all) continue;
    const Tensor lengths(dim.node()->lengths);
    for (std::int64_t entry = 0; entry < entries; ++entry) {
      std::int64_t place = 0, rest = entry;
      for (std::size_t axis = static_cast<std::size_t>(first); axis-- > 0;) {
        place += rest % type.sizes()[axis] * steps[axis];
        rest /= type.sizes()[axis];
      }
      std::int64_t& positions = counts_[static_cast<std::size_t>(entry) * count_ + i];
      const std::int64_t length = lengths.data<std::int32_t>()[place];
      has_padding_ = has_padding_ || length < positions;
      positions = std::min(positions, length);
    }
  }
}

}  // namespace reel
