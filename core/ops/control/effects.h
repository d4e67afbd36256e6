// core/ops/control/effects.h — which records and graphs have effects, loops, or outputs in files.
#pragma once

#include <cstddef>

#include "reel/core/graph/graph.h"

namespace reel {

/// True if running the record, or a record inside its sub-graphs, has an effect besides its
/// outputs.
bool has_effects(const OpRecord& record);
bool has_effects(const Graph& graph);
/// True if running the record checks values (check_numerics, assert_that).
bool has_checks(const OpRecord& record);
/// True if the graph has an effect besides checks of values, so that it must not run again after an
/// error.
bool has_lasting_effects(const Graph& graph);

/// True if the op has an effect and computes its result from values outside of the program: a
/// collective of several ranks. A second run must run it again, since it alone gives the result.
/// print is no collective: its result is its input, so a second run leaves it out.
bool is_collective(const Op& op);
/// True if the record, or a record inside its sub-graphs, is a collective.
bool has_collectives(const OpRecord& record);
bool has_collectives(const Graph& graph);

/// True if some record is a loop; looks into branches too.
bool has_loops(const Graph& graph);

/// True if the output is a loop's stack that may lie in a file. The loop then creates the storage.
bool is_spilled_output(const OpRecord& record, std::size_t output);
/// True if the output is a loop's stack of checkpoints, or of the checkpoints of an inner loop.
bool is_checkpoint_output(const OpRecord& record, std::size_t output);

}  // namespace reel
