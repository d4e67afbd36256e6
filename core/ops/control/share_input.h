// core/ops/control/share_input.h — the kernel of ops that return their first input.
#pragma once

#include "reel/core/op/op.h"
#include "reel/core/ops/list/list_data.h"

namespace reel {

/// Makes the result share the storage of the first input, a tensor or a list, under a new identity:
/// a tape must see another value than the input.
inline void share_input(KernelArgs& a) {
  if (a.input(0).block()->kind == BlockKind::list)
    a.out[0] = Tensor(allocate_list(a.types[0], a.input(0).block()->attachment));
  else
    a.alias(0, 0);
}

}  // namespace reel
