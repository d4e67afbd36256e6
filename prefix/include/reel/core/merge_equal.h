// core/merge_equal.h — the pass that computes equal things once.
#pragma once

#include <vector>

#include "reel/core/graph.h"

namespace reel {

/// A graph in which no two records apply one op with equal attributes to the same values:
///
///   %1 = mul(%0, %0); %2 = mul(%0, %0); return %1, %2      becomes      %1 = mul(%0, %0); return
///   %1, %1
///
/// Two loops that run the same recorded body on the same inputs become one with the outputs of
/// both. That is how the forward loop that a vjp asks for, which is the recorded one with more to
/// save, and the recorded one become the same (autodiff/loop_vjp.cpp); so this pass stands first in
/// the pipeline, and reverse_graph() uses it on what it cuts. Records with an effect are merged
/// only as part of such loops, whose bodies are the same program recorded once: those from
/// `same_program_from` on. Bodies and branches are not entered otherwise.
///
/// `values`, if given, receives the new number of each value. `boundary`, if given, is a count of
/// records: it becomes how many records stand for the first so many.
Ref<Graph> merge_equal(const Graph& graph, std::vector<ValueId>* values = nullptr,
                       std::size_t* boundary = nullptr,
                       std::size_t same_program_from = ~std::size_t{0});

}  // namespace reel
