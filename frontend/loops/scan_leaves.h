// frontend/loops/scan_leaves.h — helpers of the eager and the traced form of scan.
#pragma once

#include <optional>
#include <string>

#include "reel/core/ops.h"
#include "reel/frontend/loops/loop_leaves.h"
#include "reel/frontend/loops/loop_recording.h"

namespace reel {

/// The arguments of a scan, checked and normalised.
struct ScanPlan {
  std::string what;             ///< scan "name", or map "name", for errors
  std::optional<Dim> dim = {};  ///< the scanned dim, if known before the loop
  bool is_named = false;
  Tensors xs = {};         ///< with the scanned axis in front
  Tensor bound = {};       ///< upper bound of the trip count (i64), if there is one for all entries
  Tensor lengths = {};     ///< upper bounds for each entry (i32)
  Dims entry_dims = {};    ///< the dims of the entries, which finish one by one
  bool makes_dim = false;  ///< true: the length of the result is known only after the loop
  std::string new_dim = {};  ///< the name of the result's dim; empty for a plain one
  bool ys_name_it = false;   ///< true: only y tells if the result's dim is named
};
ScanPlan make_plan(const ScanSpec& spec);
/// Returns the largest length of the plan's dim (i64); an empty Tensor for a plain unknown size.
Tensor extent_of(const ScanPlan& plan);

/// Returns the result of cond over the plan's entry dims. Throws ArgumentError, StructureError,
/// DTypeError, ShapeError or TraceError.
Tensor checked_entry_condition(const ScanSpec& spec, const ScanPlan& plan,
                               const LoopCondition& condition);
/// Returns y in the form of the template or of the first iteration (`before`). A static dim that is
/// made in the body becomes the first iteration's. Throws StructureError, DTypeError or ShapeError.
TreeLeaves checked_ys(const ScanSpec& spec, const ScanPlan& plan, TreeLeaves ys,
                      const TreeLeaves* before);
/// Returns a boolean: true if a segment of `truncate` iterations begins at a position (i64).
/// Positions count in the order of the loop. Throws ArgumentError if a reversed loop has an unknown
/// trip count.
Tensor truncates_at(const ScanSpec& spec, const ScanPlan& plan, const Tensor& position);
/// Gives each Dim among ys the dim of the stack whose element has it. of_body: the ys of one
/// iteration; a Dim that no tensor of it has stays.
void follow_stacks(const TreeLeaves& of_body, TreeLeaves& ys);
/// Returns the name of the dim that a loop with these ys makes; empty for a plain one.
std::string name_of_made_dim(const ScanPlan& plan, const TreeLeaves& ys);
/// A leaf of y, and its axes with dims that an iteration makes (varying_ys.h).
struct VaryingY {
  std::size_t leaf;
  std::vector<int> axes;
};
using VaryingYs = std::vector<VaryingY>;

/// Returns the types of y if no iteration ran: the template's, or the types of a body that is
/// recorded and discarded. varying: receives the leaves with dims that an iteration makes, unless
/// null.
TreeLeaves abstract_ys(const ScanSpec& spec, const ScanPlan& plan, const StateRule& rule,
                       VaryingYs* varying = nullptr);
/// Throws because ys have a dim that differs between iterations and cannot be stacked.
[[noreturn]] void refuse_dim_of_body(const ScanPlan& plan, const TensorType& y, const Dim& dim);
/// Returns the dims of the elements of arrays in a state. Entries share the elements, so finished
/// entries see them unchanged.
Dims dims_of_arrays(const TreeLeaves& state);
Tensor transpose_to(const Tensor& x, const Dims& dims);

/// Runs the scan: records it in a trace, otherwise runs it eagerly.
ScanResult run_plan(const ScanSpec& spec, const ScanPlan& plan);
/// Runs the scan eagerly, as a C++ loop.
ScanResult run_scan(const ScanSpec& spec, const ScanPlan& plan);
/// Records the scan as one record of the traced graph.
ScanResult record_scan(const ScanSpec& spec, const ScanPlan& plan);

}  // namespace reel
