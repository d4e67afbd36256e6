// Draws loops as boxes: inputs and outputs on their borders, and carries back to the next
// iteration.
#include <algorithm>

#include "reel/core/base/quantities.h"
#include "reel/core/base/str.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/frontend/pictures/graph_drawer.h"
#include "reel/trace/inspection.h"

namespace reel {
namespace {

/// Returns the attributes of a loop that help a reader.
std::vector<std::pair<std::string, std::string>> attributes_of(const LoopAttrs& loop) {
  std::vector<std::pair<std::string, std::string>> result;
  const auto say = [&](const char* name, const std::string& value) {
    result.emplace_back(name, value);
  };
  say("direction", loop.trips.is_reverse ? "from the last iteration to the first"
                                         : "from the first iteration to the last");
  const char* ends = loop.trips.has_bound && !(loop.trips.is_full && !loop.slices.empty())
                         ? loop.cond ? "a bound, or its condition" : "a bound"
                     : loop.trips.is_full ? "the length of its slices and stacks"
                                          : "its condition";
  say("ends by", ends);
  if (loop.cond && loop.trips.is_scan)
    say("condition", loop.trips.cond_before_body
                         ? "evaluated before the first iteration and after each"
                         : "evaluated after each iteration");
  if (loop.has_entries()) say("entries finish one by one", join(loop.entries.dims, ", "));
  if (loop.chunking.over_chunks)
    say("chunks", loop.chunking.steps ? str(loop.chunking.steps, " iterations in a chunk")
                                      : "many iterations in a chunk");
  if (loop.policy.has_checkpoints())
    say("checkpoint", loop.policy.steps ? str("every ", loop.policy.steps, " steps")
                                        : str("within ", loop.policy.bytes, " B"));
  if (loop.policy.swaps) say("swap_memory", "residuals are in a file");
  return result;
}

/// Returns the types of a loop's operands inside its body or condition, if they have them.
std::vector<std::optional<TensorType>> types_inside(const LoopAttrs& loop) {
  std::vector<std::optional<TensorType>> result(operand_count(loop));
  const auto operands = operands_of(loop, result);
  const auto set = [](const Graph& graph, std::span<const ValueId> values,
                      std::span<std::optional<TensorType>> types) {
    for (std::size_t i = 0; i < values.size(); ++i) types[i] = graph.types[values[i]];
  };
  const auto set_captures = [&](const Graph& graph, std::span<const ValueId> values,
                                const std::vector<int>& captures) {
    for (std::size_t i = 0; i < values.size(); ++i)
      operands.captures[static_cast<std::size_t>(captures[i])] = graph.types[values[i]];
  };
  const auto inputs = body_inputs(loop);
  set(*loop.body.graph, inputs.carries, operands.carries);
  set(*loop.body.graph, inputs.slices, operands.slices);
  set_captures(*loop.body.graph, inputs.captures, loop.body_captures);
  if (loop.cond) set_captures(*loop.cond.graph, cond_inputs(loop).captures, loop.cond_captures);
  return result;
}

std::pair<std::string, PictureNode::Role> name_and_role(LoopLeaf leaf) {
  using Role = PictureNode::Role;
  switch (leaf.kind) {
    case LeafKind::carry:
      return {str("carry ", leaf.index), Role::carry};
    case LeafKind::slice:
      return {str("slice ", leaf.index), Role::slice};
    case LeafKind::capture:
      return {str("capture ", leaf.index), Role::capture};
    case LeafKind::stack:
      return {str("stack ", leaf.index), Role::stack};
    case LeafKind::sum:
      return {str("sum ", leaf.index), Role::sum};
    case LeafKind::bound:
      return {"bound", Role::argument};
    case LeafKind::chunk:
      return {"chunk", Role::argument};
    case LeafKind::lengths:
      return {"lengths", Role::argument};
    case LeafKind::trips:
      return {"trips", Role::result};
    case LeafKind::token:
      return {"new dim", Role::result};
    default:
      return {"position", Role::argument};
  }
}

bool is_read(const Graph& graph, ValueId v) {
  const auto is_in = [&](const std::vector<ValueId>& values) {
    return std::find(values.begin(), values.end(), v) != values.end();
  };
  return is_in(graph.operands) || is_in(graph.outputs);
}

}  // namespace

GraphDrawer::Ends GraphDrawer::draw_loop(const Graph& graph, std::size_t r,
                                         const std::vector<TensorType>& types, int around,
                                         const Ends& in, const Profiles& profiles) {
  const OpRecord& record = graph.records[r];
  const LoopAttrs& loop = get<LoopAttrs>(record.attrs.get());
  const int box = add(Kind::box, around, Role::loop, title_of_loop(loop.name), types);
  at(box).attributes = attributes_of(loop);
  if (const auto steps = known_steps(graph, record, graph.types))
    at(box).note = str(counted(*steps, "iteration"), loop.chunking.over_chunks ? " in chunks" : "");

  const Ends inputs = enter_loop(loop, box, around, in);
  const Graph& body = *loop.body.graph;
  Ends inside{End{}};
  if (is_read(body, body.inputs[0]))
    inside[0] = {add(Kind::input, box, Role::argument, "position", {body.types[body.inputs[0]]}),
                 0};
  const auto given = operands_of(loop, inputs);
  for (const auto& own : {given.carries, given.slices})
    inside.insert(inside.end(), own.begin(), own.end());
  for (const int c : loop.body_captures)
    inside.push_back(given.captures[static_cast<std::size_t>(c)]);
  if (loop.cond)
    draw_condition(loop, box, inputs, parts_of(children_of(profiles, r), LoopProfile::kCond));
  const Ends made = draw(body, box, inside, profiles_of_body(profiles, r));
  return leave_loop(loop, types, box, inputs, made);
}

GraphDrawer::Ends GraphDrawer::enter_loop(const LoopAttrs& loop, int box, int around,
                                          const Ends& in) {
  const auto types = types_inside(loop);
  Ends inputs;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto [label, role] = name_and_role(operand_at(loop, i));
    const int pill = add(Kind::input, box, role, label, {});
    if (types[i]) at(pill).types = {str(*types[i])};
    connect(in[i], pill, 0, around);
    inputs.push_back({pill, 0});
  }
  return inputs;
}

void GraphDrawer::draw_condition(const LoopAttrs& loop, int box, const Ends& inputs,
                                 const Profiles& profiles) {
  Ends asked{End{}};
  std::vector<Role> roles{Role::argument};
  const auto given = operands_of(loop, inputs);
  asked.insert(asked.end(), given.carries.begin(), given.carries.end());
  roles.insert(roles.end(), given.carries.size(), Role::carry);
  for (const int c : loop.cond_captures) {
    asked.push_back(given.captures[static_cast<std::size_t>(c)]);
    roles.push_back(Role::capture);
  }
  draw_part(*loop.cond.graph, "condition", box, asked, roles, profiles);
}

GraphDrawer::Ends GraphDrawer::leave_loop(const LoopAttrs& loop,
                                          const std::vector<TensorType>& types, int box,
                                          const Ends& inputs, const Ends& made) {
  Ends out;
  const auto carries = operands_of(loop, inputs).carries;
  for (std::size_t k = 0; k < types.size(); ++k) {
    const LoopLeaf leaf = result_at(loop, k);
    auto [label, role] = name_and_role(leaf);
    if (k < made.size()) {
      out.push_back(leave(box, role, label, types[k], made[k]));
      if (leaf.is(LeafKind::carry))
        connect(out.back(), carries[leaf.index].node, 0, box, PictureEdge::Kind::back);
    } else {
      out.push_back({add(Kind::output, box, Role::result, label, {types[k]}), 0});
    }
  }
  return out;
}

}  // namespace reel
