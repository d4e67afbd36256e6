// frontend/optimisers/optimiser_leaves.h — the step of an optimiser on leaves, behind the
// templates.
#pragma once

#include <vector>

#include "reel/frontend/optimisers/optimiser.h"

namespace reel::detail {

/// One moment of an optimiser for each parameter, as leaves, with its name in errors.
struct MomentLeaves {
  const char* name;
  TreeLeaves leaves;
  PathsFn paths;
};

/// The gradient of a table leaf, if it is rows.
struct LeafRows {
  std::size_t leaf;
  EmbeddingTable rows;
};

/// The trees of one step, as leaves. If the gradient of a table is rows, the gradient's leaf has
/// the table's type and is not read.
struct OptimiserLeaves {
  TreeLeaves parameters, gradient;
  PathsFn parameter_paths, gradient_paths;
  std::vector<MomentLeaves> moments;
  std::vector<LeafRows> rows = {};
};

/// The results of the rule for one leaf and its moments: whole tensors, or rows to be written into
/// them.
struct NewValues {
  std::size_t leaf;
  Tensor numbers;  ///< of the rows; empty for whole tensors
  Tensor parameter;
  Tensors moments;

  bool are_rows() const { return numbers.is_defined(); }
};

/// Applies the rule to every floating tensor that is not frozen. If the gradient of a table is
/// rows, applies it to these rows of the table and its moments. All indices are checked before the
/// first step, so that a plan can update arguments in place. clip_norm: as for apply_rule. Returns
/// the results and changes no leaf. Throws if the trees differ in structure or types.
std::vector<NewValues> optimise(const char* optimiser, OptimiserLeaves& leaves,
                                const UpdateRule& rule, const GroupOptions& options,
                                double clip_norm);
/// Writes new values into the leaves; rows in place if the leaf holds the only reference to its
/// table. Changes all leaves or, if it throws, none.
void put_new_values(OptimiserLeaves& leaves, std::vector<NewValues> values);

}  // namespace reel::detail
