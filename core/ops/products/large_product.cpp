#include "reel/core/ops/products/large_product.h"

#include <optional>

#include "reel/core/ops/products/scratch.h"

namespace reel {

void run_packed(PackedProduct kernel, const MatrixSizes& s, const float* a, const float* b,
                float* c) {
  std::optional<Scratch<float>> room;  // the products of loops copy nothing
  if (!s.b_panel || s.a_step != 1) room.emplace(kPackedRoom);
  kernel(s, a, b, c, room ? room->get() : nullptr);
}

}  // namespace reel
