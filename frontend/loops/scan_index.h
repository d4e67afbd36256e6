// frontend/loops/scan_index.h — scans with a body that takes the index of x, made of plain scans.
#pragma once

#include "reel/frontend/loops/loop_leaves.h"

namespace reel {

/// Runs or records such a scan. Along a dim, the index (i32) is one more of xs: the position of x,
/// also in reverse. Without one it is the number of the iteration, a carry.
ScanResult scan_with_index(const ScanSpec& spec);

}  // namespace reel
