// frontend/transforms/row_scan.h — loops over rows without a state, as map records them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "reel/core/types/tensor.h"
#include "reel/frontend/loops/loop_leaves.h"

namespace reel {

/// Returns a scan over the rows of xs, without paths of xs and ys and without a body. function:
/// must outlive the scan.
ScanSpec row_scan(const char* function, std::string name, const Dim& rows, const Tensors& xs);

/// Returns the results of `of_row` for each row, stacked along the rows. results: their number, of
/// which none is None.
Tensors map_rows(ScanSpec scan, std::size_t results,
                 const std::function<Tensors(const Tensors& row)>& of_row);

}  // namespace reel
