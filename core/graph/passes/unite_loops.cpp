#include "reel/core/graph/passes/unite_loops.h"

#include <algorithm>
#include <utility>

#include "reel/core/graph/graph_rewriter.h"

namespace reel {
namespace {

/// Returns both bodies as one merged body. The first body's outputs stand before the second
/// body's.
Ref<Graph> united_body(const Graph& left, const Graph& right, const MergeRecords& merge) {
  Graph both(left);
  const std::vector<ValueId> made = inline_graph(both, right, left.inputs);
  both.outputs.insert(both.outputs.end(), made.begin(), made.end());
  both.seal();
  return merge(both, left.records.size());
}

/// Adds the leaves of the second loop that the first loop lacks, with their terms. Returns the
/// places of all leaves of the second loop.
template <class Leaf>
std::vector<std::size_t> add_leaves(std::vector<Leaf>& leaves, std::vector<ValueId>& terms,
                                    const std::vector<Leaf>& more, std::span<const ValueId> of) {
  std::vector<std::size_t> places;
  for (std::size_t j = 0; j < more.size(); ++j) {
    std::size_t at = 0;
    while (at < terms.size() && (terms[at] != of[j] || !attr::same(leaves[at], more[j]))) ++at;
    if (at == terms.size()) {
      terms.push_back(of[j]);
      leaves.push_back(more[j]);
    }
    places.push_back(at);
  }
  return places;
}

}  // namespace

UnitedLoops unite_loops(const LoopAttrs& a, const LoopAttrs& b, const MergeRecords& merge) {
  const Graph& left = *a.body.graph;
  const Ref<Graph> body = united_body(left, *b.body.graph, merge);
  const std::vector<ValueId> outs = body->outputs;
  const auto of_a = body_outputs_of(a, std::span(outs).first(left.outputs.size())),
             of_b = body_outputs_of(b, std::span(outs).subspan(left.outputs.size()));
  UnitedLoops result{a, {}, {}};
  // One value may be stacked along two dims: the dim of xs, and a shorter one that the loop makes.
  std::vector<LoopStack> more = b.stacks;
  if (a.trips.makes_dim)
    for (LoopStack& stack : more) stack.dim = Dim();
  std::vector<ValueId> stacks(of_a.stacks.begin(), of_a.stacks.end()),
      sums(of_a.sums.begin(), of_a.sums.end());
  result.stack_places = add_leaves(result.attrs.stacks, stacks, more, of_b.stacks);
  result.sum_places = add_leaves(result.attrs.sums, sums, b.sums, of_b.sums);
  body->outputs.assign(of_a.carries.begin(), of_a.carries.end());
  body->outputs.insert(body->outputs.end(), stacks.begin(), stacks.end());
  body->outputs.insert(body->outputs.end(), sums.begin(), sums.end());
  body->name = left.name;
  body->seal();
  DimEnv names = a.body.env();
  for (const auto& [symbol, actual] : b.body.bindings) names.bind(symbol, actual);
  result.attrs.body = make_sub_graph(body, names);
  return result;
}

}  // namespace reel
