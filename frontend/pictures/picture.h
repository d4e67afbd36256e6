// frontend/pictures/picture.h — Picture, a graph as boxes and lines: what dot files and pages are
// written from.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reel/core/graph.h"

namespace reel {

/// A thing that is drawn. A loop, a branch or a frame is a box: the nodes in it name it as their
/// parent, and its inputs and outputs, which stand on its border, do too.
struct PictureNode {
  enum class Kind { op, box, input, output };
  /// What a node is beyond that; the page has a colour or a line for each.
  enum class Role {
    plain,
    constant,  ///< the same number in every place
    loop,
    cond,
    part,      ///< of a loop or cond: its condition, a branch
    group,     ///< ops that are done as one
    frame,     ///< of a lowered loop
    argument,  ///< an input that is handed in
    capture,   ///< an input held by reference, the same in every iteration
    carry,     ///< handed from iteration to iteration
    slice,     ///< of which every iteration sees its part
    stack,     ///< an output with a part of every iteration
    sum,       ///< an output that iterations add to
    result,    ///< another output
    control,   ///< of a lowered loop: Enter, Merge, Switch, ...
  };
  /// What all runs took together that were counted.
  struct Count {
    std::int64_t calls = 0, nanoseconds = 0;
  };

  Kind kind;
  int parent = -1;  ///< a box; -1: the picture itself
  Role role = Role::plain;
  std::string label;
  std::string list_name = {};           ///< in lists and time lines, where not the label
  std::string note = {};                ///< in small beside the label: of a loop, how long it is
  std::vector<std::string> types = {};  ///< of what it gives, by output
  std::vector<std::pair<std::string, std::string>> attributes = {};  ///< name, value
  std::string source = {};  ///< where it comes from; empty: not known
  std::optional<Count> count = {};
};

/// A value on its way. Both ends are in `box`, or on its border, or on that of a box in it.
struct PictureEdge {
  enum class Kind {
    data,
    capture,  ///< the same for every iteration
    back,     ///< to the next iteration
    order,    ///< no value: one waits for the other
  };
  int from, output;
  int to, input;
  int box = -1;
  Kind kind = Kind::data;
};

/// A time in which a node ran, of the last run that was counted.
struct PictureSpan {
  int node;                                    ///< -1: all of it
  std::optional<std::int64_t> iteration = {};  ///< of a loop: this one only; they run from 0 on
  unsigned row = 0;                 ///< of the time line; spans of a row lie in each other or apart
  std::int64_t begin = 0, end = 0;  ///< nanoseconds, from no particular beginning
  /// By tokens, of an iteration, and of an op the one it is in: behind those of loops around: 3.0.
  std::string in_iteration = {};
};

struct Picture {
  std::string name;
  std::vector<PictureNode> nodes;  ///< boxes before what is in them
  std::vector<PictureEdge> edges;
  std::vector<PictureSpan> spans;
  std::int64_t spans_left_out = 0;
  std::map<unsigned, std::string> rows;  ///< of the time line, those that are no threads
  std::int64_t runs = 0;                 ///< that were counted
  std::int64_t nanoseconds = 0;          ///< that these took together
  std::string failure = {};  ///< why the last call was left to the interpreter; empty: it was not
  /// Which runs were counted, where these are not all but the first.
  enum class Runs { all_but_first, first, last } which_runs = Runs::all_but_first;

  int add(PictureNode node) {
    nodes.push_back(std::move(node));
    return static_cast<int>(nodes.size()) - 1;
  }
};

/// In a list or a time line, the same whichever executor ran it.
const std::string& list_name_of(const PictureNode& node);

/// fori_loop "fori_loop" -> fori_loop: a loop without a name has that of its function.
std::string title_of_loop(const std::string& name);

class Profile;  // trace/executors/plan/profile.h

/// What people know the inputs and outputs of a graph as, by place.
struct EndNames {
  std::vector<std::string> inputs, outputs;
};
EndNames names_of_ends(const Graph& graph);

/// A recorded graph; loops, conds and what else has graphs in it are boxes.
Picture picture_of(const Graph& graph);
/// The same of a graph that a plan runs, with what its instructions took; profile may be null.
Picture picture_of(const Graph& graph, const Profile* profile);

/// Whether a value hands a dim from graph to graph (core/ops/dims.h): nothing that is computed.
bool is_dim_token(const TensorType& type);
/// Says of an op that is drawn which constant it makes, or what its attributes are.
void describe(PictureNode& drawn, const OpRecord& record);

/// In Graphviz's language: boxes are clusters.
std::string dot_of(const Picture& picture);

const char* name_of(PictureNode::Kind kind);
const char* name_of(PictureNode::Role role);
const char* name_of(PictureEdge::Kind kind);

}  // namespace reel
