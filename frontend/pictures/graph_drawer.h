// frontend/pictures/graph_drawer.h — GraphDrawer, which draws recorded graphs and a plan's profile.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reel/core/ops/loop/loop.h"
#include "reel/frontend/pictures/picture.h"
#include "reel/trace/inspection.h"

namespace reel {

/// Draws graphs into a picture, nested graphs into boxes.
class GraphDrawer {
 public:
  explicit GraphDrawer(Picture& picture) : picture_(picture) {}

  /// profile: the profile of a plan of the graph, or null.
  void draw_whole(const Graph& graph, const Profile* profile);

 private:
  using Kind = PictureNode::Kind;
  using Role = PictureNode::Role;

  /// The node and output that make a value.
  struct End {
    int node = -1, output = 0;
  };
  using Ends = std::vector<End>;

  /// A profile of a plan of the graph that is drawn. There are several if a loop is cut into row
  /// blocks. counter: for the body of a loop, its IterationCounter, since each run is an iteration.
  struct Counted {
    const Profile* profile;
    int counter = -1;
  };
  using Profiles = std::vector<Counted>;

  /// Counts the iterations of one loop, or of a row block. They run one after the other.
  struct IterationCounter {
    std::vector<std::int64_t> runs;  ///< begin times of the loop's runs
    std::vector<std::size_t> spans;  ///< spans of iterations
  };

  /// Returns the count of record r of the graph that is drawn.
  static std::optional<PictureNode::Count> count_of(const Profiles& profiles, std::size_t r);
  static Profiles children_of(const Profiles& profiles, std::size_t i);
  /// Returns the profiles of a loop's own plan `part` and of its row blocks. loop: profiles of the
  /// loop.
  static Profiles parts_of(const Profiles& loop, std::size_t part);
  /// Returns the profiles of the body of the loop in record r of a graph.
  Profiles profiles_of_body(const Profiles& around, std::size_t r);
  void take_spans(const Profiles& profiles, int box, const std::vector<int>& node_of);
  void number_iterations();

  int add(Kind kind, int parent, Role role, std::string label,
          const std::vector<TensorType>& types);
  PictureNode& at(int node) { return picture_.nodes[static_cast<std::size_t>(node)]; }
  void connect(End from, int to, int input, int box,
               PictureEdge::Kind kind = PictureEdge::Kind::data);
  /// Adds an input or output of the graph to the one node of all those that only updates use. Makes
  /// the node if bundle is -1.
  End add_to_bundle(int& bundle, Kind kind, const std::string& name, const TensorType& type);
  /// Adds an input on the border of a box, with an edge from outside.
  End enter(int box, Role role, std::string label, const TensorType& type, End from, int around);
  /// Adds an output on the border of a box, with an edge from inside.
  End leave(int box, Role role, std::string label, const TensorType& type, End from);

  /// Draws the records of a graph into a box and returns the ends of the graph's outputs.
  Ends draw(const Graph& graph, int box, const Ends& inputs, const Profiles& profiles);
  Ends draw_record(const Graph& graph, std::size_t r, int box, const Ends& in,
                   const Profiles& around);
  /// Draws a graph that has the inputs and outputs of its record.
  Ends draw_group(const OpRecord& record, const SubGraph& sub, const std::vector<TensorType>& types,
                  int around, const Ends& in);
  /// Draws a condition or branch. Its inputs are a subset of the inputs of the box around it.
  Ends draw_part(const Graph& graph, const std::string& label, int around, const Ends& inputs,
                 const std::vector<Role>& roles, const Profiles& profiles);
  Ends draw_cond(const OpRecord& record, const std::vector<TensorType>& types, int around,
                 const Ends& in, const Profiles& profiles);

  class UpdateBoxes;  // update_boxes.h

  // draw_loop.cpp
  Ends draw_loop(const Graph& graph, std::size_t r, const std::vector<TensorType>& types,
                 int around, const Ends& in, const Profiles& profiles);
  Ends enter_loop(const LoopAttrs& loop, int box, int around, const Ends& in);
  void draw_condition(const LoopAttrs& loop, int box, const Ends& inputs, const Profiles& profiles);
  Ends leave_loop(const LoopAttrs& loop, const std::vector<TensorType>& types, int box,
                  const Ends& inputs, const Ends& made);

  Picture& picture_;
  std::vector<IterationCounter> counters_;
};

}  // namespace reel
