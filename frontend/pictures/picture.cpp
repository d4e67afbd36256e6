#include "reel/frontend/pictures/picture.h"

#include <algorithm>

#include "reel/core/ops/checkpointed.h"
#include "reel/core/ops/creation.h"
#include "reel/core/ops/dims.h"
#include "reel/core/ops/fused.h"
#include "reel/core/ops/loop.h"
#include "reel/core/str.h"
#include "reel/frontend/pictures/source_lines.h"
#include "reel/trace/executors/plan/plan_times.h"
#include "reel/trace/executors/plan/planned_loop.h"
#include "reel/trace/executors/plan/profile.h"
#include "reel/trace/executors/plan/words.h"

namespace reel {
namespace {

using Kind = PictureNode::Kind;
using Role = PictureNode::Role;

/// Where a value comes from.
struct End {
  int node = -1, output = 0;
};
using Ends = std::vector<End>;

std::optional<PictureNode::Count> count_of(const Profiles& profiles, std::size_t record) {
  if (profiles.empty()) return std::nullopt;
  PictureNode::Count result;
  for (const Profile* profile : profiles) {
    if (record >= profile->records.size()) continue;
    result.calls += profile->records[record].calls;
    result.nanoseconds += profile->records[record].nanoseconds;
  }
  return result;
}

/// "mul, add, 2 x tanh"
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

/// Draws graphs into a picture, each into a box.
class Draughtsman {
 public:
  explicit Draughtsman(Picture& picture) : picture_(picture) {}

  void draw_whole(const Graph& graph, const Profiles& profiles) {
    Ends inputs;
    int arguments = 0, captures = 0, results = 0;  // dims are not counted
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const TensorType& type = graph.types[graph.inputs[i]];
      const bool is_capture = i >= graph.formal_count;
      const std::string label =
          is_capture ? str("capture ", captures) : str("argument ", arguments);
      if (!is_dim_token(type)) ++(is_capture ? captures : arguments);
      inputs.push_back(
          {add(Kind::input, -1, is_capture ? Role::capture : Role::argument, label, {type}), 0});
    }
    const Ends outputs = draw(graph, -1, inputs, profiles);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (is_dim_token(graph.types[graph.outputs[i]])) continue;
      const int result = add(Kind::output, -1, Role::result, str("result ", results++), {});
      connect(outputs[i], result, 0, -1);
    }
  }

 private:
  int add(Kind kind, int parent, Role role, std::string label,
          const std::vector<TensorType>& types) {
    PictureNode node{kind, parent, role, std::move(label), {}, {}, {}, {}, {}};
    for (const TensorType& type : types) node.types.push_back(str(type));
    return picture_.add(std::move(node));
  }

  void connect(End from, int to, int input, int box,
               PictureEdge::Kind kind = PictureEdge::Kind::data) {
    if (from.node < 0) return;  // passes have left the value without maker
    const auto is_capture = [&](int node) {
      return picture_.nodes[static_cast<std::size_t>(node)].role == Role::capture;
    };
    if (kind == PictureEdge::Kind::data && (is_capture(from.node) || is_capture(to)))
      kind = PictureEdge::Kind::capture;
    picture_.edges.push_back({from.node, from.output, to, input, box, kind});
  }

  /// Draws the records of a graph into a box -> where its outputs come from.
  Ends draw(const Graph& graph, int box, const Ends& inputs, const Profiles& profiles) {
    Ends ends(graph.types.size());
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) ends[graph.inputs[i]] = inputs[i];
    std::vector<int> node_of(graph.records.size(), -1);
    for (std::size_t r = 0; r < graph.records.size(); ++r) {
      const OpRecord& record = graph.records[r];
      Ends in;
      for (const ValueId v : graph.inputs_of(record)) in.push_back(ends[v]);
      const auto made = graph.outputs_of(record);
      const std::size_t first = picture_.nodes.size();
      const Ends out = draw_record(graph, r, box, in, children_of(profiles, r));
      for (std::size_t k = 0; k < made.size(); ++k) ends[made[k]] = out[k];
      node_of[r] = static_cast<int>(first);
      PictureNode& node = picture_.nodes[first];
      node.count = count_of(profiles, r);
      node.source = source_text(record.source);
    }
    for (const Profile* profile : profiles) {
      for (const Profile::Event& event : profile->events) {
        const bool is_whole = event.record == Profile::Event::kWhole;
        picture_.spans.push_back({is_whole ? box : node_of[event.record], is_whole, event.thread,
                                  event.begin, event.end});
      }
      picture_.spans_left_out += profile->left_out;
    }
    Ends outputs;
    for (const ValueId v : graph.outputs) outputs.push_back(ends[v]);
    return outputs;
  }

  Ends draw_record(const Graph& graph, std::size_t r, int box, const Ends& in,
                   const Profiles& children) {
    const OpRecord& record = graph.records[r];
    const auto types = graph.types_of(graph.outputs_of(record));
    if (record.op == &loop_op) return draw_loop(graph, record, types, box, in, children);
    if (record.op == &cond_op) return draw_cond(record, types, box, in, children);
    if (record.op == &fused_op)
      return draw_group(record, get<FusedAttrs>(record.attrs.get()).body, types, box, in);
    if (record.op == &checkpointed_op)
      return draw_group(record, get<CheckpointedAttrs>(record.attrs.get()).body, types, box, in);
    const int node = add(Kind::op, box, Role::plain, std::string(record.op->name), types);
    if (record.op == &full_op) {
      picture_.nodes[static_cast<std::size_t>(node)].role = Role::constant;
      picture_.nodes[static_cast<std::size_t>(node)].label = constant_text(record);
    }
    if (record.attrs) {
      std::ostringstream text;
      record.attrs->print(text);
      if (!text.str().empty())
        picture_.nodes[static_cast<std::size_t>(node)].attributes.emplace_back("attributes",
                                                                               text.str());
    }
    for (std::size_t k = 0; k < in.size(); ++k) connect(in[k], node, static_cast<int>(k), box);
    Ends out;
    for (std::size_t k = 0; k < types.size(); ++k) out.push_back({node, static_cast<int>(k)});
    return out;
  }

  /// An input on the border of a box, fed from around it.
  End enter(int box, Role role, std::string label, const TensorType& type, End from, int around) {
    const int node = add(Kind::input, box, role, std::move(label), {type});
    if (from.node >= 0) connect(from, node, 0, around);
    return {node, 0};
  }
  /// An output on the border of a box, fed from inside.
  End leave(int box, Role role, std::string label, const TensorType& type, End from) {
    const int node = add(Kind::output, box, role, std::move(label), {type});
    connect(from, node, 0, box);
    return {node, 0};
  }

  /// A graph whose inputs are the record's, and whose outputs too.
  Ends draw_group(const OpRecord& record, const SubGraph& sub, const std::vector<TensorType>& types,
                  int around, const Ends& in) {
    const Graph& graph = *sub.graph;
    const int box = add(Kind::box, around, Role::group, std::string(record.op->name), types);
    picture_.nodes[static_cast<std::size_t>(box)].attributes.emplace_back("does", ops_in(graph));
    Ends inside, out;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i)
      inside.push_back(enter(box, Role::argument, str("in ", i), graph.types[graph.inputs[i]],
                             i < in.size() ? in[i] : End{}, around));
    const Ends made = draw(graph, box, inside, {});
    for (std::size_t k = 0; k < types.size(); ++k)
      out.push_back(leave(box, Role::result, str("out ", k), types[k], made[k]));
    return out;
  }

  /// A condition or branch, whose inputs are some that the box around it has.
  Ends draw_part(const Graph& graph, const std::string& label, int around, const Ends& inputs,
                 const std::vector<Role>& roles, const Profiles& profiles) {
    const int box = add(Kind::box, around, Role::part, label, {});
    std::vector<std::uint8_t> is_read(graph.types.size(), 0);
    for (const ValueId v : graph.operands) is_read[v] = 1;
    for (const ValueId v : graph.outputs) is_read[v] = 1;
    Ends inside;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const ValueId v = graph.inputs[i];
      inside.push_back(is_read[v] ? enter(box, roles[i], name_of_input(inputs[i]), graph.types[v],
                                          inputs[i], around)
                                  : End{});
    }
    const Ends made = draw(graph, box, inside, profiles);
    Ends out;
    for (std::size_t k = 0; k < made.size(); ++k)
      out.push_back(leave(box, Role::result, made.size() > 1 ? str("result ", k) : "result",
                          graph.types[graph.outputs[k]], made[k]));
    return out;
  }
  std::string name_of_input(End from) const {
    return from.node < 0 ? "step" : picture_.nodes[static_cast<std::size_t>(from.node)].label;
  }

  Ends draw_cond(const OpRecord& record, const std::vector<TensorType>& types, int around,
                 const Ends& in, const Profiles& children) {
    const CondAttrs& attrs = get<CondAttrs>(record.attrs.get());
    const int box = add(Kind::box, around, Role::cond, "cond", types);
    const auto type_of = [&](std::size_t i) { return type_inside(attrs, i); };
    Ends inputs;
    inputs.push_back(
        enter(box, Role::argument, "predicate", TensorType(DType::boolean, {}), in[0], around));
    for (std::size_t i = 1; i < in.size(); ++i)
      inputs.push_back(
          enter(box, Role::capture, str("capture ", i - 1), type_of(i - 1), in[i], around));
    std::vector<Ends> results;
    const auto draw_branch = [&](const SubGraph& sub, const std::vector<int>& captures,
                                 const char* label, std::size_t child) {
      Ends taken;
      for (const int i : captures) taken.push_back(inputs[static_cast<std::size_t>(i) + 1]);
      results.push_back(draw_part(*sub.graph, label, box, taken,
                                  std::vector<Role>(taken.size(), Role::capture),
                                  children_of(children, child)));
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
  /// The type of a capture as the branch has it that takes it.
  static TensorType type_inside(const CondAttrs& attrs, std::size_t capture) {
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

  Ends draw_loop(const Graph& graph, const OpRecord& record, const std::vector<TensorType>& types,
                 int around, const Ends& in, const Profiles& children);

  Picture& picture_;
};

/// fori_loop "fori_loop" -> fori_loop: a loop without a name has that of its function.
std::string title_of(const std::string& name) {
  const std::size_t blank = name.find(' ');
  if (blank == std::string::npos) return name;
  const std::string function = name.substr(0, blank), twice = str(function, " \"", function, '"');
  return name.starts_with(twice) ? function + name.substr(twice.size()) : name;
}

/// The number at an input, where a constant of the same graph is there.
std::optional<std::int64_t> constant_at(const Graph& graph, ValueId value) {
  for (const OpRecord& record : graph.records)
    for (const ValueId made : graph.outputs_of(record))
      if (made == value && record.op == &full_op) return get<FullAttrs>(record.attrs.get()).integer;
  return std::nullopt;
}

/// What attributes say that a reader may want to know.
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
  if (loop.in_chunks)
    say("chunks", loop.chunk_steps ? str(loop.chunk_steps, " steps in an iteration")
                                   : "many steps in an iteration");
  if (loop.has_checkpoints())
    say("checkpoint", loop.checkpoint_steps ? str("every ", loop.checkpoint_steps, " steps")
                                            : str("within ", loop.checkpoint_bytes, " B"));
  if (loop.swaps) say("swap_memory", "what its gradient needs lies in a file");
  return result;
}

Ends Draughtsman::draw_loop(const Graph& graph, const OpRecord& record,
                            const std::vector<TensorType>& types, int around, const Ends& in,
                            const Profiles& children) {
  const LoopAttrs& loop = get<LoopAttrs>(record.attrs.get());
  const Graph& body = *loop.body.graph;
  const int box = add(Kind::box, around, Role::loop, title_of(loop.name), types);
  PictureNode& node = picture_.nodes[static_cast<std::size_t>(box)];
  node.attributes = attributes_of(loop);
  auto steps = steps_of(loop, graph.types_of(graph.inputs_of(record)));
  if (!steps && loop.has_bound && !loop.cond)
    steps = constant_at(graph, graph.inputs_of(record)[0]);
  if (steps) node.note = str(*steps, loop.in_chunks ? " chunks" : *steps == 1 ? " step" : " steps");

  // What is at the op's inputs, and the body's types of it where the body takes it.
  std::vector<std::optional<TensorType>> type_of(in.size());
  const std::size_t own = static_cast<std::size_t>(loop.carries + loop.slices);
  for (std::size_t i = 0; i < body.inputs.size() - 1; ++i) {
    const std::size_t place =
        i < own ? loop.first_carry() + i
                : loop.first_capture() + static_cast<std::size_t>(loop.body_captures[i - own]);
    type_of[place] = body.types[body.inputs[i + 1]];
  }
  if (loop.cond) {
    const Graph& cond = *loop.cond.graph;
    const auto carries = static_cast<std::size_t>(loop.carries);
    for (std::size_t i = 0; i + 1 + carries < cond.inputs.size(); ++i)
      type_of[loop.first_capture() + static_cast<std::size_t>(loop.cond_captures[i])] =
          cond.types[cond.inputs[i + 1 + carries]];
  }
  const auto name_and_role = [&](std::size_t i) -> std::pair<std::string, Role> {
    if (i >= loop.first_capture())
      return {str("capture ", i - loop.first_capture()), Role::capture};
    if (i >= loop.first_slice()) return {str("slice ", i - loop.first_slice()), Role::slice};
    if (i >= loop.first_carry()) return {str("carry ", i - loop.first_carry()), Role::carry};
    if (loop.has_bound && i == 0) return {"bound", Role::argument};
    if (loop.has_chunk && i == loop.chunk_input()) return {"chunk", Role::argument};
    return {"lengths", Role::argument};
  };
  Ends inputs;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto [label, role] = name_and_role(i);
    const int pill = add(Kind::input, box, role, label, {});
    if (type_of[i]) picture_.nodes[static_cast<std::size_t>(pill)].types = {str(*type_of[i])};
    connect(in[i], pill, 0, around);
    inputs.push_back({pill, 0});
  }

  Ends inside{End{}};
  const auto is_read = [](const Graph& graph, ValueId v) {
    return std::count(graph.operands.begin(), graph.operands.end(), v) +
               std::count(graph.outputs.begin(), graph.outputs.end(), v) >
           0;
  };
  if (is_read(body, body.inputs[0]))
    inside[0] = {add(Kind::input, box, Role::argument, "position", {body.types[body.inputs[0]]}),
                 0};
  for (std::size_t i = 0; i < own; ++i) inside.push_back(inputs[loop.first_carry() + i]);
  for (const int c : loop.body_captures)
    inside.push_back(inputs[loop.first_capture() + static_cast<std::size_t>(c)]);

  if (loop.cond) {
    const Graph& cond = *loop.cond.graph;
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
    Profiles of_cond;
    for (const Profile* profile : children_of(children, PlannedLoop::kCond))
      of_cond.push_back(profile);
    draw_part(cond, "condition", box, asked, roles, of_cond);
  }
  const Ends made = draw(body, box, inside, profiles_of_body(children));

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

/// Inputs and outputs that nobody reads or feeds, such as a loop's count of trips, and what a trace
/// is handed beyond tensors (dims, the stream of random numbers) where it does not ask for it.
void drop_unconnected(Picture& picture) {
  std::vector<std::uint8_t> keeps(picture.nodes.size(), 0);
  for (std::size_t i = 0; i < picture.nodes.size(); ++i)
    keeps[i] = picture.nodes[i].kind == Kind::box ||
               (picture.nodes[i].kind == Kind::op && picture.nodes[i].label != "dim_token");
  for (const PictureEdge& edge : picture.edges)
    keeps[static_cast<std::size_t>(edge.from)] = keeps[static_cast<std::size_t>(edge.to)] = 1;
  std::vector<int> place(picture.nodes.size(), -1);
  std::vector<PictureNode> nodes;
  for (std::size_t i = 0; i < picture.nodes.size(); ++i) {
    if (!keeps[i]) continue;
    place[i] = static_cast<int>(nodes.size());
    nodes.push_back(std::move(picture.nodes[i]));
  }
  const auto move = [&](int& node) {
    if (node >= 0) node = place[static_cast<std::size_t>(node)];
  };
  for (PictureNode& node : nodes) move(node.parent);
  std::vector<PictureSpan> spans;
  for (PictureSpan span : picture.spans) {
    const bool is_whole = span.node < 0;
    move(span.node);
    if (is_whole || span.node >= 0) spans.push_back(span);
  }
  picture.spans = std::move(spans);
  for (PictureEdge& edge : picture.edges) {
    move(edge.from);
    move(edge.to);
    move(edge.box);
  }
  picture.nodes = std::move(nodes);
}

}  // namespace

bool is_dim_token(const TensorType& type) {
  return !type.is_list() && type.rank() == 2 && type.dtype() == boolean &&
         type == token_type(type.dims()[1]);
}

std::string constant_text(const OpRecord& record) {
  const FullAttrs& attrs = get<FullAttrs>(record.attrs.get());
  const DType dtype = attrs.type.dtype();
  if (is_float(dtype)) return str(attrs.number);
  if (dtype == DType::boolean) return attrs.number != 0 || attrs.integer != 0 ? "true" : "false";
  return str(attrs.integer);
}

Picture picture_of(const Graph& graph, const Profile* profile) {
  Picture picture;
  picture.name = graph.name;
  if (profile) {
    picture.runs = profile->runs;
    picture.is_first_run = profile->is_first;
  }
  Draughtsman(picture).draw_whole(graph, profile ? Profiles{profile} : Profiles{});
  drop_unconnected(picture);
  return picture;
}
Picture picture_of(const Graph& graph) { return picture_of(graph, nullptr); }

const char* name_of(PictureNode::Kind kind) {
  constexpr const char* kNames[] = {"op", "box", "input", "output"};
  return kNames[static_cast<int>(kind)];
}
const char* name_of(PictureNode::Role role) {
  constexpr const char* kNames[] = {"plain", "constant", "loop",     "cond",    "part",
                                    "group", "frame",    "argument", "capture", "carry",
                                    "slice", "stack",    "sum",      "result",  "control"};
  return kNames[static_cast<int>(role)];
}
const char* name_of(PictureEdge::Kind kind) {
  constexpr const char* kNames[] = {"data", "capture", "back", "order"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace reel
