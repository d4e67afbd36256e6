// frontend/scan_slices.h — scans whose slices, or whose way, are made of ordinary ops around them.
#pragma once

#include "reel/frontend/scan_leaves.h"

namespace reel {

/// True if slices of xs have ragged dims with lengths of their own: those of a word's letters.
bool has_sliced_dims(const ScanPlan& plan);
/// The scan with such slices: the body gets dims with the lengths of the slice, and y has the whole
/// dims again when it is stacked.
ScanResult scan_sliced_dims(const ScanSpec& spec, const ScanPlan& plan);

/// A reverse scan along a ragged dim: the forward scan over the reversed entries, whose ys are
/// reversed again. Iteration k takes element length - 1 - k of each entry, so that no entry sees
/// how long others are.
ScanResult scan_reversed_entries(const ScanSpec& spec, const ScanPlan& plan);

}  // namespace reel
