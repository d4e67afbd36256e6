#include "reel/frontend/pictures/graph_drawer.h"

#include <algorithm>

#include "reel/core/base/source_lines.h"
#include "reel/core/base/str.h"
#include "reel/core/base/update_mark.h"
#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/fused.h"
#include "reel/frontend/pictures/update_boxes.h"
#include "reel/trace/inspection.h"

namespace reel {
namespace {

/// Returns for example "mul, add, 2 x tanh".
std::string ops_in(const Graph& graph) {
  std::vector<std::pair<std::string_view, int>> counts;
  for (const OpRecord& record : graph.records) {
    const auto found = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& c) { return c.first == record.op->name; });
    if (found == counts.end())
      counts.emplace_back(record.op->name, 1);
    else
      ++found->second;
  }
  std::vector<std::string> texts;
  for (const auto& [name, count] : counts)
    texts.push_back(count > 1 ? str(count, " x ", name) : std::string(name));
  return join(texts);
}

/// Returns the type of a capture inside the branch that reads it.
TensorType type_inside(const CondAttrs& attrs, std::size_t capture) {
  const auto find = [&](const SubGraph& sub, const std::vector<int>& captures) {
    const auto found = std::find(captures.begin(), captures.end(), static_cast<int>(capture));
    const auto place = static_cast<std::size_t>(found - captures.begin());
    return found == captures.end() ? std::optional<TensorType>()
                                   : std::optional(sub.graph->types[sub.graph->inputs[place]]);
  };
  const auto of_true = find(attrs.on_true, attrs.true_captures);
  const auto of_false = of_true ? of_true : find(attrs.on_false, attrs.false_captures);
  return of_false ? *of_false : TensorType(DType::boolean, {});
}

/// Returns which values only ops of updates read and make, such as the moments of an optimiser.
/// values: the inputs or the outputs of the graph. None if there are few.
std::vector<bool> ends_of_updates(const Graph& graph, const std::vector<ValueId>& values) {
  constexpr int kLeastBundled = 4;
  std::vector<bool> of_update(graph.types.size(), false), of_others(graph.types.size(), false);
  for (const OpRecord& record : graph.records) {
    std::vector<bool>& of = update_of(record.source).empty() ? of_others : of_update;
    for (const ValueId v : graph.inputs_of(record)) of[v] = true;
    for (const ValueId v : graph.outputs_of(record)) of[v] = true;
  }
  std::vector<bool> result;
  for (const ValueId v : values) result.push_back(of_update[v] && !of_others[v]);
  if (std::count(result.begin(), result.end(), true) < kLeastBundled)
    result.assign(values.size(), false);
  return result;
}

}  // namespace

GraphDrawer::End GraphDrawer::add_to_bundle(int& bundle, Kind kind, const std::string& name,
                                            const TensorType& type) {
  const bool is_input = kind == Kind::input;
  if (bundle < 0) bundle = add(kind, -1, is_input ? Role::argument : Role::result, "", {});
  at(bundle).attributes.emplace_back(name, str(type));
  const auto count = static_cast<int>(at(bundle).attributes.size());
  at(bundle).label = str(count, is_input ? " arguments" : " results", " of updates");
  return {bundle, count - 1};
}

void GraphDrawer::draw_whole(const Graph& graph, const Profile* profile) {
  const EndNames names = names_of_ends(graph);
  const std::vector<bool> in_bundle = ends_of_updates(graph, graph.inputs);
  int bundle = -1;
  Ends inputs;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const TensorType& type = graph.types[graph.inputs[i]];
    const Role role = i < graph.formal_count ? Role::argument : Role::capture;
    if (in_bundle[i])
      inputs.push_back(add_to_bundle(bundle, Kind::input, names.inputs[i], type));
    else
      inputs.push_back({add(Kind::input, -1, role, names.inputs[i], {type}), 0});
  }
  const Ends outputs = draw(graph, -1, inputs, profile ? Profiles{{profile}} : Profiles{});
  const std::vector<bool> out_bundle = ends_of_updates(graph, graph.outputs);
  bundle = -1;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorType& type = graph.types[graph.outputs[i]];
    if (is_dim_token(type)) continue;
    const End to = out_bundle[i] ? add_to_bundle(bundle, Kind::output, names.outputs[i], type)
                                 : End{add(Kind::output, -1, Role::result, names.outputs[i], {})};
    connect(outputs[i], to.node, to.output, -1);
  }
  number_iterations();
}

std::optional<PictureNode::Count> GraphDrawer::count_of(const Profiles& profiles, std::size_t r) {
  if (profiles.empty()) return std::nullopt;
  PictureNode::Count result;
  for (const auto& [profile, counter] : profiles) {
    if (r >= profile->records.size()) continue;
    result.calls += profile->records[r].calls;
    result.nanoseconds += profile->records[r].nanoseconds;
  }
  return result;
}

GraphDrawer::Profiles GraphDrawer::children_of(const Profiles& profiles, std::size_t i) {
  Profiles result;
  for (const Counted& counted : profiles)
    if (const Profile* child = counted.profile->find_child(i)) result.push_back({child});
  return result;
}

GraphDrawer::Profiles GraphDrawer::parts_of(const Profiles& loop, std::size_t part) {
  Profiles result = children_of(loop, part);
  for (const Counted& counted : loop)
    LoopProfile::for_each_block(*counted.profile, [&](const Profile& block) {
      if (const Profile* found = block.find_child(part)) result.push_back({found});
    });
  return result;
}

GraphDrawer::Profiles GraphDrawer::profiles_of_body(const Profiles& around, std::size_t r) {
  Profiles result;
  for (const Counted& counted : around) {
    const Profile* loop = counted.profile->find_child(r);
    if (!loop) continue;
    std::vector<std::int64_t> runs;
    for (const Profile::Event& event : counted.profile->events)
      if (event.record == r) runs.push_back(event.begin);
    // The loop's own plans share a counter: each of them runs some of the iterations.
    const auto take = [&](const Profile& planned) {
      counters_.push_back({runs, {}});
      for (const std::size_t part : {LoopProfile::kBody, LoopProfile::kFinished})
        if (const Profile* body = planned.find_child(part))
          result.push_back({body, static_cast<int>(counters_.size()) - 1});
    };
    LoopProfile::for_each_run(*loop, take);
  }
  return result;
}

void GraphDrawer::take_spans(const Profiles& profiles, int box, const std::vector<int>& node_of) {
  for (const auto& [profile, counter] : profiles) {
    for (const Profile::Event& event : profile->events) {
      const bool is_whole = event.record == Profile::Event::kWhole;
      if (is_whole && counter >= 0)
        counters_[static_cast<std::size_t>(counter)].spans.push_back(picture_.spans.size());
      picture_.spans.push_back(
          {is_whole ? box : node_of[event.record], {}, event.thread, event.begin, event.end});
    }
    picture_.spans_left_out += profile->left_out;
  }
}

void GraphDrawer::number_iterations() {
  for (IterationCounter& counter : counters_) {
    const auto begin = [&](std::size_t span) { return picture_.spans[span].begin; };
    std::sort(counter.spans.begin(), counter.spans.end(),
              [&](std::size_t a, std::size_t b) { return begin(a) < begin(b); });
    auto next_run = counter.runs.begin();
    std::int64_t number = 0;
    for (const std::size_t span : counter.spans) {
      for (; next_run != counter.runs.end() && *next_run <= begin(span); ++next_run) number = 0;
      picture_.spans[span].iteration = number++;
    }
  }
}

int GraphDrawer::add(Kind kind, int parent, Role role, std::string label,
                     const std::vector<TensorType>& types) {
  PictureNode node{kind, parent, role, std::move(label), {}, {}, {}, {}, {}};
  for (const TensorType& type : types) node.types.push_back(str(type));
  return picture_.add(std::move(node));
}

void GraphDrawer::connect(End from, int to, int input, int box, PictureEdge::Kind kind) {
  if (from.node < 0) return;  // passes have removed the op that made the value
  const auto is_capture = [&](int node) { return at(node).role == Role::capture; };
  if (kind == PictureEdge::Kind::data && (is_capture(from.node) || is_capture(to)))
    kind = PictureEdge::Kind::capture;
  picture_.edges.push_back({from.node, from.output, to, input, box, kind});
}

GraphDrawer::End GraphDrawer::enter(int box, Role role, std::string label, const TensorType& type,
                                    End from, int around) {
  const int node = add(Kind::input, box, role, std::move(label), {type});
  connect(from, node, 0, around);
  return {node, 0};
}

GraphDrawer::End GraphDrawer::leave(int box, Role role, std::string label, const TensorType& type,
                                    End from) {
  const int node = add(Kind::output, box, role, std::move(label), {type});
  connect(from, node, 0, box);
  return {node, 0};
}

GraphDrawer::Ends GraphDrawer::draw(const Graph& graph, int box, const Ends& inputs,
                                    const Profiles& profiles) {
  UpdateBoxes updates(*this, graph, box, inputs);
  std::vector<int> node_of(graph.records.size(), -1);
  for (std::size_t r = 0; r < graph.records.size(); ++r) {
    const OpRecord& record = graph.records[r];
    const int own = updates.box_of(record);
    Ends in;
    for (const ValueId v : graph.inputs_of(record)) in.push_back(updates.end_in(v, own));
    const auto made = graph.outputs_of(record);
    node_of[r] = static_cast<int>(picture_.nodes.size());
    const Ends out = draw_record(graph, r, own, in, profiles);
    for (std::size_t k = 0; k < made.size(); ++k) updates.set_end(made[k], own, out[k]);
    at(node_of[r]).count = count_of(profiles, r);
    at(node_of[r]).source = source_text(record.source);
    updates.add_count(own, at(node_of[r]).count);
  }
  take_spans(profiles, box, node_of);
  Ends outputs;
  for (const ValueId v : graph.outputs) outputs.push_back(updates.end_in(v, box));
  return outputs;
}

GraphDrawer::Ends GraphDrawer::draw_record(const Graph& graph, std::size_t r, int box,
                                           const Ends& in, const Profiles& around) {
  const OpRecord& record = graph.records[r];
  const auto types = graph.types_of(graph.outputs_of(record));
  if (record.op == &loop_op) return draw_loop(graph, r, types, box, in, around);
  if (record.op == &cond_op) return draw_cond(record, types, box, in, children_of(around, r));
  if (record.op == &fused_op)
    return draw_group(record, get<FusedAttrs>(record.attrs.get()).body, types, box, in);
  if (record.op == &checkpointed_op)
    return draw_group(record, get<CheckpointedAttrs>(record.attrs.get()).body, types, box, in);
  const int node = add(Kind::op, box, Role::plain, std::string(record.op->name), types);
  describe(at(node), record);
  for (std::size_t k = 0; k < in.size(); ++k) connect(in[k], node, static_cast<int>(k), box);
  Ends out;
  for (std::size_t k = 0; k < types.size(); ++k) out.push_back({node, static_cast<int>(k)});
  return out;
}

GraphDrawer::Ends GraphDrawer::draw_group(const OpRecord& record, const SubGraph& sub,
                                          const std::vector<TensorType>& types, int around,
                                          const Ends& in) {
  const Graph& graph = *sub.graph;
  const int box = add(Kind::box, around, Role::group, std::string(record.op->name), types);
  at(box).attributes.emplace_back("does", ops_in(graph));
  Ends inside, out;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    inside.push_back(enter(box, Role::argument, str("in ", i), graph.types[graph.inputs[i]],
                           i < in.size() ? in[i] : End{}, around));
  const Ends made = draw(graph, box, inside, {});
  for (std::size_t k = 0; k < types.size(); ++k)
    out.push_back(leave(box, Role::result, str("out ", k), types[k], made[k]));
  return out;
}

GraphDrawer::Ends GraphDrawer::draw_part(const Graph& graph, const std::string& label, int around,
                                         const Ends& inputs, const std::vector<Role>& roles,
                                         const Profiles& profiles) {
  const int box = add(Kind::box, around, Role::part, label, {});
  std::vector<std::uint8_t> is_read(graph.types.size(), 0);
  for (const ValueId v : graph.operands) is_read[v] = 1;
  for (const ValueId v : graph.outputs) is_read[v] = 1;
  Ends inside;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const ValueId v = graph.inputs[i];
    const std::string name = inputs[i].node < 0 ? "step" : at(inputs[i].node).label;
    inside.push_back(is_read[v] ? enter(box, roles[i], name, graph.types[v], inputs[i], around)
                                : End{});
  }
  const Ends made = draw(graph, box, inside, profiles);
  Ends out;
  for (std::size_t k = 0; k < made.size(); ++k)
    out.push_back(leave(box, Role::result, made.size() > 1 ? str("result ", k) : "result",
                        graph.types[graph.outputs[k]], made[k]));
  return out;
}

GraphDrawer::Ends GraphDrawer::draw_cond(const OpRecord& record,
                                         const std::vector<TensorType>& types, int around,
                                         const Ends& in, const Profiles& profiles) {
  const CondAttrs& attrs = get<CondAttrs>(record.attrs.get());
  const int box = add(Kind::box, around, Role::cond, "cond", types);
  Ends inputs;
  inputs.push_back(
      enter(box, Role::argument, "predicate", TensorType(DType::boolean, {}), in[0], around));
  for (std::size_t i = 1; i < in.size(); ++i)
    inputs.push_back(enter(box, Role::capture, str("capture ", i - 1), type_inside(attrs, i - 1),
                           in[i], around));
  std::vector<Ends> results;
  const auto draw_branch = [&](const SubGraph& sub, const std::vector<int>& captures,
                               const char* label, std::size_t child) {
    Ends taken;
    for (const int i : captures) taken.push_back(inputs[static_cast<std::size_t>(i) + 1]);
    results.push_back(draw_part(*sub.graph, label, box, taken,
                                std::vector<Role>(taken.size(), Role::capture),
                                children_of(profiles, child)));
  };
  draw_branch(attrs.on_true, attrs.true_captures, "if true", 1);
  draw_branch(attrs.on_false, attrs.false_captures, "if false", 0);
  Ends out;
  for (std::size_t k = 0; k < types.size(); ++k) {
    out.push_back(leave(box, Role::result, str("result ", k), types[k], results[0][k]));
    connect(results[1][k], out.back().node, 1, box);
  }
  return out;
}

}  // namespace reel
