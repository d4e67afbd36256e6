// tests/fuzz/program/families.h — the rules by family; all_rules() returns all of them.
#pragma once

#include "reel/tests/fuzz/rules/rule.h"

namespace reel::fuzz {

Rules elementwise_rules();
Rules integer_rules();
Rules reduction_rules();
Rules recurrence_rules();
Rules shape_rules();
Rules index_rules();
Rules update_rules();
Rules window_rules();
Rules array_rules();
Rules random_rules();
Rules loss_rules();
Rules attention_rules();
Rules check_rules();
Rules loop_rules();
Rules branch_rules();
Rules scan_rules();
Rules checkpoint_rules();
Rules sparse_rules();
Rules growing_rules();
Rules derivative_rules();
Rules vmap_rules();
Rules generic_rules();
Rules tree_rules();
Rules packing_rules();
Rules fold_rules();
Rules sparse_matrix_rules();
Rules alignment_rules();
Rules layer_rules();
Rules optimiser_rules();
Rules jacobian_rules();
Rules resizing_rules();

/// True if the instruction calls a pullback in a branch that a sum over all axes selects.
bool is_pullback_in_branch(const Instruction& in);

}  // namespace reel::fuzz
