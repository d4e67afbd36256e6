// bench/models/ragged_attention.h — a loop over ragged time that attends to ragged keys.
#pragma once

#include "model.h"

namespace reel::bench {

enum class Order { mixed, shortest_first, longest_first };

struct RaggedAttentionSizes {
  int batch = 64, steps = 40, hidden = 128;
  Order order = Order::mixed;
};

/// In each step, a state attends to keys from outside the loop; with the gradients of keys, xs and
/// weight. Lengths are 1 to `steps`. Its other form, `padded`, has full lengths and masks by hand.
Model ragged_attention(const RaggedAttentionSizes& sizes);

}  // namespace reel::bench
