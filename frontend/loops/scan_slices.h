// frontend/loops/scan_slices.h — scans over ragged slices and reverse scans over ragged dims, made
// of plain scans.
#pragma once

#include "reel/frontend/loops/scan_leaves.h"

namespace reel {

/// Returns the dims of xs with lengths over the first axis, or over another dim of the result,
/// which is listed first.
Dims dims_with_lengths_along(const Tensors& xs);
/// Returns the lengths of a dim, with the dim `along` in front if they run over it.
Tensor lengths_along(const Dim& dim, const Dim& along);
/// True if slices of xs have ragged dims with lengths of their own, as words have letters.
bool has_sliced_dims(const ScanPlan& plan);
/// Runs or records such a scan. The body gets Dims with the lengths of its slice; ys get the whole
/// dims.
ScanResult scan_sliced_dims(const ScanSpec& spec, const ScanPlan& plan);

/// Runs or records a reverse scan along a ragged dim, or with cond or max_seq_len, as a forward
/// scan over reversed entries. Iteration k takes element length - 1 - k of each entry, so no entry
/// depends on the lengths of others. The ys of an entry are in the order of x: with cond or
/// max_seq_len they belong to its last elements, and lie along the new dim from 0 on.
ScanResult scan_reversed_entries(const ScanSpec& spec, const ScanPlan& plan);

/// Returns the slices of the first iteration: the first elements, or the last of each entry if
/// `from_end`. Along a dim with lengths, entries without elements get zeros. A slice that lacks
/// dims of its lengths gets the dims of the others, as in the body.
///
/// xs: with the axis of the plan's dim in front. Throws ArgumentError if a size without lengths is
/// 0: "scan: xs have no elements`why`".
Tensors initial_slices(const ScanPlan& plan, bool from_end, const char* why);

}  // namespace reel
