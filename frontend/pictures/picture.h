// frontend/pictures/picture.h — Picture, a graph as boxes and edges; the source of dot files and
// pages.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reel/core/graph/graph.h"

namespace reel {

/// A drawn node. A loop, a branch or a frame is a box: it is the parent of the nodes in it, and of
/// its inputs and outputs, which are on its border.
struct PictureNode {
  enum class Kind { op, box, input, output };
  /// The role of a node; the page has a colour or a line style for each.
  enum class Role {
    plain,
    constant,  ///< the same number in every element
    loop,
    cond,
    part,      ///< condition of a loop, or branch of a cond
    group,     ///< ops that run as one
    update,    ///< ops of an optimiser's update
    frame,     ///< of a lowered loop
    argument,  ///< an argument of the graph
    capture,   ///< an input held by reference, the same in every iteration
    carry,     ///< passed from iteration to iteration
    slice,     ///< an input; every iteration gets a slice of it
    stack,     ///< an output with a slice from every iteration
    sum,       ///< an output that iterations add to
    result,    ///< another output
    control,   ///< of a lowered loop: Enter, Merge, Switch, ...
  };
  /// The sum over all counted runs.
  struct Count {
    std::int64_t calls = 0, nanoseconds = 0;
  };

  Kind kind;
  int parent = -1;  ///< a box; -1: the picture itself
  Role role = Role::plain;
  std::string label;
  std::string list_name = {};           ///< name in lists and time lines, if not the label
  std::string note = {};                ///< small text beside the label: for a loop, its trip count
  std::vector<std::string> types = {};  ///< of its outputs
  std::vector<std::pair<std::string, std::string>> attributes = {};  ///< name, value
  std::string source = {};  ///< source location; empty: unknown
  std::optional<Count> count = {};
};

/// A value between two nodes. Both ends are in `box`, on its border, or on the border of a box in
/// it.
struct PictureEdge {
  enum class Kind {
    data,
    capture,  ///< the same for every iteration
    back,     ///< to the next iteration
    order,    ///< no value: one node waits for the other
  };
  int from, output;
  int to, input;
  int box = -1;
  Kind kind = Kind::data;
};

/// A time span in which a node ran, in the last counted run.
struct PictureSpan {
  int node;                                    ///< -1: the whole run
  std::optional<std::int64_t> iteration = {};  ///< for a loop: one iteration, counted from 0
  unsigned row = 0;                 ///< of the time line; spans of a row are nested or disjoint
  std::int64_t begin = 0, end = 0;  ///< nanoseconds from an arbitrary origin
  /// Dataflow: the iteration, or an op's iteration, after the outer loops' numbers: 3.0.
  std::string in_iteration = {};
};

struct Picture {
  std::string name;
  std::vector<PictureNode> nodes;  ///< boxes before the nodes in them
  std::vector<PictureEdge> edges;
  std::vector<PictureSpan> spans;
  std::int64_t spans_left_out = 0;
  std::map<unsigned, std::string> rows;  ///< rows of the time line that are not threads
  std::int64_t runs = 0;                 ///< number of counted runs
  std::int64_t nanoseconds = 0;          ///< total time of the counted runs
  std::string failure = {};  ///< why the last call ran in the interpreter; empty: it did not
  /// The counted runs.
  enum class Runs { all_but_first, first, last } which_runs = Runs::all_but_first;

  int add(PictureNode node) {
    nodes.push_back(std::move(node));
    return static_cast<int>(nodes.size()) - 1;
  }
};

/// Returns the node's name in lists and time lines, the same for every executor.
const std::string& list_name_of(const PictureNode& node);

/// Returns the title of a loop: fori_loop "fori_loop" becomes fori_loop, since an unnamed loop has
/// the name of its function.
std::string title_of_loop(const std::string& name);

class Profile;  // trace/inspection.h

/// The names of a graph's inputs and outputs as users know them, by place.
struct EndNames {
  std::vector<std::string> inputs, outputs;
};
EndNames names_of_ends(const Graph& graph);

/// Returns the picture of a recorded graph; loops, conds and other ops with graphs are boxes.
Picture picture_of(const Graph& graph);
/// Returns the picture of a graph that a plan runs, with the times of its instructions; profile may
/// be null.
Picture picture_of(const Graph& graph, const Profile* profile);

/// True for the type of a dim token, which passes a dim between graphs (core/ops/shape/dims.h) and
/// is not computed.
bool is_dim_token(const TensorType& type);
/// Adds the constant or the attributes of an op to its drawn node.
void describe(PictureNode& drawn, const OpRecord& record);

/// Returns the picture in Graphviz's language: boxes are clusters.
std::string dot_of(const Picture& picture);

const char* name_of(PictureNode::Kind kind);
const char* name_of(PictureNode::Role role);
const char* name_of(PictureEdge::Kind kind);

}  // namespace reel
