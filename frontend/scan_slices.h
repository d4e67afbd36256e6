// frontend/scan_slices.h — scans over words of letters, and reverse scans, made of a plain scan.
#pragma once

#include "reel/frontend/scan_leaves.h"

namespace reel {

/// True if slices of xs have ragged dims with lengths of their own.
bool has_sliced_dims(const ScanPlan& plan);
/// Runs or records such a scan: the body gets Dims with the lengths of its slice, and ys have the
/// whole dims.
ScanResult scan_sliced_dims(const ScanSpec& spec, const ScanPlan& plan);

/// Runs or records a reverse scan along a ragged dim, as the forward scan over reversed entries.
/// Iteration k takes element length - 1 - k of each entry: no entry depends on other lengths.
ScanResult scan_reversed_entries(const ScanSpec& spec, const ScanPlan& plan);

}  // namespace reel
