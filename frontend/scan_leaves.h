// frontend/scan_leaves.h — what the eager and the traced form of scan share.
#pragma once

#include <optional>
#include <string>

#include "reel/core/ops.h"
#include "reel/frontend/loop_leaves.h"
#include "reel/frontend/loop_recording.h"

namespace reel {

/// The arguments of a scan, checked and in one form.
struct ScanPlan {
  std::string what;             ///< scan "name", or map "name", for errors
  std::optional<Dim> dim = {};  ///< what it runs along, where that is known before
  bool is_named = false;
  Tensors xs = {};           ///< the scanned axis in front
  Tensor bound = {};         ///< iterations at most (i64), where there is a bound for all
  Tensor lengths = {};       ///< and for each entry (i32)
  Dims entry_dims = {};      ///< entries end one by one over these
  bool makes_dim = false;    ///< the loop finds out how long the result is
  std::string new_dim = {};  ///< the name of that dim; empty for a plain one
  bool ys_name_it = false;   ///< nothing but y says which
};
ScanPlan make_plan(const ScanSpec& spec);
/// The largest length of the plan's dim (i64).
Tensor extent_of(const ScanPlan& plan);

/// What cond returned, over the plan's entry dims. Throws DTypeError, ShapeError, TraceError.
Tensor checked_entry_condition(const ScanSpec& spec, const ScanPlan& plan,
                               const LoopCondition& condition);
/// y as the template, or the first iteration (`before`), has it: a static dim that is made in the
/// body is the one of the first iteration. Throws StructureError, DTypeError or ShapeError.
TreeLeaves checked_ys(const ScanSpec& spec, const ScanPlan& plan, TreeLeaves ys,
                      const TreeLeaves* before);
/// Whether a piece of `truncate` steps begins before the step at a position (i64), counted as the
/// loop runs. Throws ArgumentError if the number of steps is not known.
Tensor begins_piece(const ScanSpec& spec, const ScanPlan& plan, const Tensor& position);
/// The name of the dim that a loop with such ys makes; empty for a plain one.
std::string name_of_made_dim(const ScanPlan& plan, const TreeLeaves& ys);
/// The types of y where no iteration ran: those of the template, or of a recorded body that is
/// thrown away.
TreeLeaves abstract_ys(const ScanSpec& spec, const ScanPlan& plan, const StateRule& rule);
/// ys are stacked along dims that are the same in every iteration: this one is not.
[[noreturn]] void refuse_dim_of_body(const ScanPlan& plan, const TensorType& y, const Dim& dim);
/// Of the elements of arrays in a state: entries share these, so that ended ones see them as they
/// are.
Dims dims_of_arrays(const TreeLeaves& state);
Tensor transpose_to(const Tensor& x, const Dims& dims);

/// The scan itself: in the form of the mode.
ScanResult run_plan(const ScanSpec& spec, const ScanPlan& plan);
/// Step by step, as a C++ loop.
ScanResult run_scan(const ScanSpec& spec, const ScanPlan& plan);
/// As one record of the graph that is traced.
ScanResult record_scan(const ScanSpec& spec, const ScanPlan& plan);

}  // namespace reel
