// core/graph/passes/merge_equal.h — merges records that compute the same values.
#pragma once

#include <vector>

#include "reel/core/graph/graph.h"

namespace reel {

/// Merges records that apply the same op with equal attributes to the same values.
///
///   Before: %1 = mul(%0, %0); %2 = mul(%0, %0); return %1, %2
///   After:  %1 = mul(%0, %0); return %1, %1
///
/// Two loops that run the same recorded body on the same inputs become one loop with the outputs of
/// both. A vjp adds a forward loop that also saves residuals; so it merges with the recorded loop
/// (autodiff/loop_vjp.cpp). Bodies and branches are not rewritten otherwise.
///
/// values: if given, receives the new number of each value.
/// boundary: if given, a number of records; set to the number of records that replace the first
/// `boundary` ones.
/// same_program_from: records with an effect are merged only from this index on. These records
/// repeat the same program, as in the bodies of merged loops.
///
/// Preserves: bits.   Runs: in optimise(), behind fold_constants() and before the passes on loops;
/// also in reverse_graph(), on the forward and backward records together.
Ref<Graph> merge_equal(const Graph& graph, std::vector<ValueId>* values = nullptr,
                       std::size_t* boundary = nullptr,
                       std::size_t same_program_from = ~std::size_t{0});

}  // namespace reel
