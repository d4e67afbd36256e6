// trace/executors/plan/loop/choose_row_blocks.h — choose_row_blocks, the number of rows of each
// block of a cut loop.
#pragma once

#include <span>
#include <string>

#include "reel/trace/executors/plan/loop/row_cut.h"

namespace reel {

class RowAxes;
struct PlannedTypes;

/// Sets blocks, work_of_row and can_join of a cut whose other members are set. Returns false, and
/// sets `why`, unless it is null, to the reason, if the rows are too few or have too little work.
///
/// inputs: types of the op's inputs. types: of the body's values.
bool choose_row_blocks(RowCut& cut, const LoopAttrs& attrs, std::span<const TensorType> inputs,
                       const PlannedTypes& types, const RowAxes& axes, const Passes& passes,
                       std::string* why);

}  // namespace reel
