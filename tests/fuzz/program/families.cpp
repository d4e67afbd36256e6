#include "reel/tests/fuzz/program/families.h"

namespace reel::fuzz {

const Rules& all_rules() {
  static const Rules rules = [] {
    Rules all;
    for (const auto family :
         {elementwise_rules, integer_rules,  reduction_rules, recurrence_rules,    shape_rules,
          index_rules,       update_rules,   array_rules,     random_rules,        loss_rules,
          attention_rules,   check_rules,    loop_rules,      branch_rules,        scan_rules,
          checkpoint_rules,  sparse_rules,   growing_rules,   derivative_rules,    vmap_rules,
          generic_rules,     tree_rules,     packing_rules,   alignment_rules,     layer_rules,
          optimiser_rules,   jacobian_rules, fold_rules,      sparse_matrix_rules, resizing_rules,
          window_rules})
      for (const Rule* rule : family()) all.push_back(rule);
    return all;
  }();
  return rules;
}

}  // namespace reel::fuzz
