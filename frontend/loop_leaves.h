// frontend/loop_leaves.h — while_loop, scan and cond on leaves: the work behind their templates.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reel/core/checkpoint_policy.h"
#include "reel/core/leaf.h"
#include "reel/core/partial_shape.h"
#include "reel/frontend/leaves.h"
#include "reel/frontend/loop_state.h"
#include "reel/frontend/tree.h"

namespace reel {

/// A count that is a C++ number (the largest i64 where it is larger) or an integer tensor.
class IterationCount {
 public:
  template <std::integral I>
  IterationCount(I number)
      : number_(std::in_range<std::int64_t>(number) ? static_cast<std::int64_t>(number)
                                                    : std::numeric_limits<std::int64_t>::max()) {}
  IterationCount(const Tensor& tensor) : tensor_(tensor) {}

  bool is_number() const { return !tensor_; }
  std::int64_t number() const { return number_; }
  /// As an i32 or i64 tensor. Throws ArgumentError for an empty Tensor, DTypeError for other
  /// dtypes; `what` names the option.
  Tensor tensor(const std::string& what) const;

 private:
  std::int64_t number_ = 0;
  std::optional<Tensor> tensor_;
};

/// What cond returned: a C++ bool, or a tensor.
struct LoopCondition {
  std::optional<bool> fixed;
  Tensor tensor;
};

struct WhileSpec {
  std::string name;
  std::function<LoopCondition(const TreeLeaves&)> cond;
  std::function<TreeLeaves(const TreeLeaves&)> body;
  TreeLeaves initial;
  PathsFn paths;
  PathsFn returned_paths;  ///< of a state that body returned with another structure
  std::vector<std::optional<PartialShape>> shape_invariants;
  int parallel_iterations = 10;
  bool back_prop = true;
  Checkpoint checkpoint;
  SwapMemory swap_memory;
  std::optional<IterationCount> maximum_iterations;
};
TreeLeaves while_loop_leaves(const WhileSpec& spec);

/// What a call of scan's body gives.
struct ScanStep {
  TreeLeaves y, state;
};
struct ScanSpec {
  const char* function = "scan";  ///< that was called, for errors
  std::string name;
  std::optional<Dim> spatial_dim;
  std::optional<Dims> cond_dims;
  bool cond_before_body = true;
  TreeLeaves initial, xs;
  /// Of the tensors in `initial`; empty: all keep their shapes.
  std::vector<std::optional<PartialShape>> shape_invariants;
  PathsFn state_paths, xs_paths;
  PathsFn returned_paths;  ///< of a state that body returned with another structure
  bool has_ys = true;      ///< false: y is None, so that a body that never runs need not be asked
  PathsFn first_y_paths, y_paths;
  /// The template: what each leaf of y must be, None where that is none; and its paths.
  std::optional<std::vector<std::optional<TensorType>>> ys_types;
  PathsFn ys_paths;
  std::function<LoopCondition(const TreeLeaves& state)> cond;  ///< may be absent
  std::function<ScanStep(const TreeLeaves& x, const TreeLeaves& state)> body;
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

/// Runs one of two branches, or records both. Throws StructureError, DTypeError or ShapeError where
/// they differ. The paths are those of what the branches returned.
TreeLeaves cond_leaves(const LoopCondition& pred, const std::function<TreeLeaves()>& on_true,
                       const std::function<TreeLeaves()>& on_false, const PathsFn& true_paths,
                       const PathsFn& false_paths);

namespace detail {
/// The leaves of a state that a body returned; its paths, if its structure is not that of `like`.
template <class T>
TreeLeaves flatten_returned(const T& state, const TreeLeaves& like,
                            std::vector<std::string>& paths) {
  TreeLeaves leaves = flatten(state);
  if (!same_structure(leaves, like)) paths = leaf_paths(state, "state");
  return leaves;
}
}  // namespace detail

}  // namespace reel
