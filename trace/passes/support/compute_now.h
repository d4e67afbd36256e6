// trace/passes/support/compute_now.h — computes an op while a pass runs.
#pragma once

#include <utility>
#include <vector>

#include "reel/core/graph/graph.h"
#include "reel/core/op/bind.h"
#include "reel/core/runtime/detect_nan.h"
#include "reel/core/types/mode.h"

namespace reel {

/// Returns the result of a record's op for these inputs, by the eager kernels, outside of every
/// tape and trace. attrs: of the record, for the dims of the inputs. Throws the errors of the op,
/// and NumericsError for a NaN or an overflow: the op then stays in the graph, where DetectNan
/// finds it.
inline Tensor compute_now(const OpRecord& record, const std::vector<OpInput>& inputs,
                          AttrsRef attrs) {
  const ModeScope plain({});
  constexpr DetectNanOptions kAll;
  const detail::NanCheckScope checks(&kAll);
  return reel::bind(*record.op, inputs, std::move(attrs));
}

}  // namespace reel
