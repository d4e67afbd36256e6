// frontend/loops/loop_leaves.h — while_loop, scan and cond on leaves, behind their templates.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/options/checkpoint_policy.h"
#include "reel/core/types/leaf.h"
#include "reel/core/types/partial_shape.h"
#include "reel/frontend/loops/state/loop_state.h"
#include "reel/frontend/tree/leaves.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

/// A count: a C++ number (saturated to i64) or an integer tensor.
class IterationCount {
 public:
  template <std::integral I>
  IterationCount(I number)
      : number_(std::in_range<std::int64_t>(number) ? static_cast<std::int64_t>(number)
                                                    : std::numeric_limits<std::int64_t>::max()) {}
  IterationCount(const Tensor& tensor) : tensor_(tensor) {}

  bool is_number() const { return !tensor_; }
  std::int64_t number() const { return number_; }
  /// Returns the count as an i32 or i64 tensor. Throws ArgumentError for an empty Tensor,
  /// DTypeError for other dtypes; `what` names the option in the message.
  Tensor tensor(const std::string& what) const;

 private:
  std::int64_t number_ = 0;
  std::optional<Tensor> tensor_;
};

/// The result of cond: a C++ bool (`fixed`), or a tensor.
struct LoopCondition {
  std::optional<bool> fixed;
  Tensor tensor;
};

struct WhileSpec {
  std::string name;
  std::function<LoopCondition(const TreeLeaves&)> cond;
  std::function<TreeLeaves(TreeLeaves state)> body;
  TreeLeaves initial;
  PathsFn paths;
  PathsFn returned_paths;  ///< of the state that body returned, if its structure differs
  std::vector<std::optional<PartialShape>> shape_invariants;
  int parallel_iterations = 10;
  bool back_prop = true;
  Checkpoint checkpoint;
  SwapMemory swap_memory;
  std::optional<IterationCount> maximum_iterations;
};
TreeLeaves while_loop_leaves(const WhileSpec& spec);

/// The result of one call of scan's body.
struct ScanStep {
  TreeLeaves y, state;
};
struct ScanSpec {
  const char* function = "scan";  ///< the public function that was called, for errors
  std::string name;
  std::optional<Dim> spatial_dim;
  std::optional<Dims> cond_dims;
  bool cond_before_body = true;
  TreeLeaves initial, xs;
  /// One per tensor in `initial`; empty: all keep their shapes.
  std::vector<std::optional<PartialShape>> shape_invariants;
  PathsFn state_paths, xs_paths;
  PathsFn returned_paths;  ///< of the state that body returned, if its structure differs
  bool has_ys = true;  ///< false: y is None, so the types of a body that never runs are not needed
  PathsFn first_y_paths, y_paths;
  /// The template: the type that each leaf of y must have, nullopt for None; and its paths.
  std::optional<std::vector<std::optional<TensorType>>> ys_types;
  PathsFn ys_paths;
  std::function<LoopCondition(const TreeLeaves& state)> cond;  ///< may be empty
  /// The state is the body's own, so that ops may write to its memory.
  std::function<ScanStep(const TreeLeaves& x, TreeLeaves state)> body;
  /// In place of body: a body that takes the index of x along the scanned dim.
  std::function<ScanStep(const Tensor& index, const TreeLeaves& x, TreeLeaves state)> indexed_body;
  std::optional<IterationCount> max_seq_len;
  bool return_tensor_arrays = false;
  bool is_reverse = false;
  Checkpoint checkpoint;
  SwapMemory swap_memory;
  std::int64_t truncate = 0;
};
struct ScanResult {
  TreeLeaves ys, state;
  Dim dim{0};
};
ScanResult scan_leaves(const ScanSpec& spec);
/// Returns the leaves of xs as the first iteration of this scan takes them. Reads the spec's
/// function, name, spatial_dim, xs and is_reverse. Throws as scan_leaves, and ArgumentError if xs
/// have no elements.
TreeLeaves initial_slice_leaves(const ScanSpec& spec);

/// Names of two branches and of the function that the user called, for errors.
struct BranchNames {
  std::string function = "cond";
  std::string true_branch = "the true branch", false_branch = "the false branch";
  std::string on_true = "if true", on_false = "if false";
};

/// Runs the selected branch in eager mode, or records both in a trace. Throws StructureError,
/// DTypeError or ShapeError if the recorded branches differ. true_paths, false_paths: the paths of
/// the results of the branches.
TreeLeaves cond_leaves(const LoopCondition& pred, const std::function<TreeLeaves()>& on_true,
                       const std::function<TreeLeaves()>& on_false, const PathsFn& true_paths,
                       const PathsFn& false_paths, const BranchNames& names = {});

namespace detail {
/// Returns the leaves of a state that body returned; sets `paths` if its structure differs from
/// `like`.
TreeLeaves flatten_returned(const TreeRef& state, const TreeLeaves& like,
                            std::vector<std::string>& paths);
}  // namespace detail

}  // namespace reel
REEL_API_END
