// Draws loops as boxes: inputs and outputs on their borders, and carries back to the next
// iteration.
#include <algorithm>

#include "reel/core/base/quantities.h"
#include "reel/core/base/str.h"
#include "reel/frontend/pictures/graph_drawer.h"
#include "reel/trace/executors/checkpoints/known_steps.h"
#include "reel/trace/executors/plan/loop/planned_loop.h"

namespace reel {
namespace {

/// Returns the attributes of a loop that help a reader.
std::vector<std::pair<std::string, std::string>> attributes_of(const LoopAttrs& loop) {
  std::vector<std::pair<std::string, std::string>> result;
  const auto say = [&](const char* name, const std::string& value) {
    result.emplace_back(name, value);
  };
  say("direction", loop.is_reverse ? "from the last step to the first" : "from the first step on");
  const char* ends = loop.has_bound && !(loop.is_full && loop.slices)
                         ? loop.cond ? "a bound, or its condition" : "a bound"
                     : loop.is_full ? "the length of what it slices and stacks"
                                    : "its condition";
  say("ends by", ends);
  if (loop.cond && loop.is_scan)
    say("condition", loop.cond_before_body ? "asked before the first step and after every one"
                                           : "asked after every step");
  if (!loop.entry_dims.empty()) say("entries end one by one", join(loop.entry_dims, ", "));
  if (loop.over_chunks)
    say("chunks", loop.chunk_steps ? str(loop.chunk_steps, " steps in an iteration")
                                   : "many steps in an iteration");
  if (loop.has_checkpoints())
    say("checkpoint", loop.checkpoint_steps ? str("every ", loop.checkpoint_steps, " steps")
                                            : str("within ", loop.checkpoint_bytes, " B"));
  if (loop.swaps) say("swap_memory", "what its gradient needs lies in a file");
  return result;
}

/// Returns the types of a loop's inputs inside its body or condition, if they have them.
std::vector<std::optional<TensorType>> types_inside(const LoopAttrs& loop, std::size_t inputs) {
  std::vector<std::optional<TensorType>> result(inputs);
  const Graph& body = *loop.body.graph;
  const std::size_t own = static_cast<std::size_t>(loop.carries + loop.slices);
  for (std::size_t i = 0; i + 1 < body.inputs.size(); ++i) {
    const std::size_t place =
        i < own ? loop.first_carry() + i
                : loop.first_capture() + static_cast<std::size_t>(loop.body_captures[i - own]);
    result[place] = body.types[body.inputs[i + 1]];
  }
  if (!loop.cond) return result;
  const Graph& cond = *loop.cond.graph;
  const auto carries = static_cast<std::size_t>(loop.carries);
  for (std::size_t i = 0; i + 1 + carries < cond.inputs.size(); ++i)
    result[loop.first_capture() + static_cast<std::size_t>(loop.cond_captures[i])] =
        cond.types[cond.inputs[i + 1 + carries]];
  return result;
}

std::pair<std::string, PictureNode::Role> name_and_role(const LoopAttrs& loop, std::size_t i) {
  using Role = PictureNode::Role;
  if (i >= loop.first_capture()) return {str("capture ", i - loop.first_capture()), Role::capture};
  if (i >= loop.first_slice()) return {str("slice ", i - loop.first_slice()), Role::slice};
  if (i >= loop.first_carry()) return {str("carry ", i - loop.first_carry()), Role::carry};
  if (loop.has_bound && i == 0) return {"bound", Role::argument};
  if (loop.within_chunk && i == loop.chunk_input()) return {"chunk", Role::argument};
  return {"lengths", Role::argument};
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
    at(box).note = str(counted(*steps, "step"), loop.over_chunks ? " in chunks" : "");

  const Ends inputs = enter_loop(loop, box, around, in);
  const Graph& body = *loop.body.graph;
  Ends inside{End{}};
  if (is_read(body, body.inputs[0]))
    inside[0] = {add(Kind::input, box, Role::argument, "position", {body.types[body.inputs[0]]}),
                 0};
  const std::size_t own = static_cast<std::size_t>(loop.carries + loop.slices);
  for (std::size_t i = 0; i < own; ++i) inside.push_back(inputs[loop.first_carry() + i]);
  for (const int c : loop.body_captures)
    inside.push_back(inputs[loop.first_capture() + static_cast<std::size_t>(c)]);
  if (loop.cond)
    draw_condition(loop, box, inputs, parts_of(children_of(profiles, r), PlannedLoop::kCond));
  const Ends made = draw(body, box, inside, profiles_of_body(profiles, r));
  return leave_loop(loop, types, box, inputs, made);
}

GraphDrawer::Ends GraphDrawer::enter_loop(const LoopAttrs& loop, int box, int around,
                                          const Ends& in) {
  const auto types = types_inside(loop, in.size());
  Ends inputs;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto [label, role] = name_and_role(loop, i);
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
  for (int i = 0; i < loop.carries; ++i) {
    asked.push_back(inputs[loop.first_carry() + static_cast<std::size_t>(i)]);
    roles.push_back(Role::carry);
  }
  for (const int c : loop.cond_captures) {
    asked.push_back(inputs[loop.first_capture() + static_cast<std::size_t>(c)]);
    roles.push_back(Role::capture);
  }
  draw_part(*loop.cond.graph, "condition", box, asked, roles, profiles);
}

GraphDrawer::Ends GraphDrawer::leave_loop(const LoopAttrs& loop,
                                          const std::vector<TensorType>& types, int box,
                                          const Ends& inputs, const Ends& made) {
  Ends out;
  const auto carries = static_cast<std::size_t>(loop.carries);
  for (std::size_t k = 0; k < types.size(); ++k) {
    if (k < loop.first_sum() + static_cast<std::size_t>(loop.sums)) {
      const auto [label, role] = k < carries ? std::pair{str("carry ", k), Role::carry}
                                 : k < loop.first_sum()
                                     ? std::pair{str("stack ", k - carries), Role::stack}
                                     : std::pair{str("sum ", k - loop.first_sum()), Role::sum};
      out.push_back(leave(box, role, label, types[k], made[k]));
      if (k < carries)
        connect(out.back(), inputs[loop.first_carry() + k].node, 0, box, PictureEdge::Kind::back);
    } else {
      const char* label = k == loop.trips_output()                             ? "trips"
                          : loop.makes_lengths() && k == loop.lengths_output() ? "lengths"
                                                                               : "new dim";
      out.push_back({add(Kind::output, box, Role::result, label, {types[k]}), 0});
    }
  }
  return out;
}

}  // namespace reel
