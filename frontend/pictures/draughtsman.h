// frontend/pictures/draughtsman.h — Draughtsman, which draws recorded graphs and what a plan took
// for them into a picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reel/core/ops/loop.h"
#include "reel/frontend/pictures/picture.h"
#include "reel/trace/executors/plan/profile.h"

namespace reel {

/// Draws graphs into a picture, each into a box.
class Draughtsman {
 public:
  explicit Draughtsman(Picture& picture) : picture_(picture) {}

  /// profile: of a plan of the graph, or null.
  void draw_whole(const Graph& graph, const Profile* profile);

 private:
  using Kind = PictureNode::Kind;
  using Role = PictureNode::Role;

  /// Where a value comes from.
  struct End {
    int node = -1, output = 0;
  };
  using Ends = std::vector<End>;

  /// A profile of a plan of the graph that is drawn: several where a loop is cut into blocks of
  /// rows. Of a loop's body, whose runs are its iterations: counter counts them.
  struct Counted {
    const Profile* profile;
    int counter = -1;
  };
  using Profiles = std::vector<Counted>;

  /// Iterations of one loop, or of one block of its rows, which come one after the other.
  struct IterationCounter {
    std::vector<std::int64_t> runs;  ///< when runs of the loop began
    std::vector<std::size_t> spans;  ///< of iterations
  };

  /// Of record r of the graph that is drawn.
  static std::optional<PictureNode::Count> count_of(const Profiles& profiles, std::size_t r);
  static Profiles children_of(const Profiles& profiles, std::size_t i);
  /// The profiles of a loop's own plan `part`, and those of its blocks. loop: those of the loop.
  static Profiles parts_of(const Profiles& loop, std::size_t part);
  /// The profiles of record r of a graph, which is a loop, for its body.
  Profiles profiles_of_body(const Profiles& around, std::size_t r);
  void take_spans(const Profiles& profiles, int box, const std::vector<int>& node_of);
  void number_iterations();

  int add(Kind kind, int parent, Role role, std::string label,
          const std::vector<TensorType>& types);
  PictureNode& at(int node) { return picture_.nodes[static_cast<std::size_t>(node)]; }
  void connect(End from, int to, int input, int box,
               PictureEdge::Kind kind = PictureEdge::Kind::data);
  /// An input on the border of a box, fed from around it.
  End enter(int box, Role role, std::string label, const TensorType& type, End from, int around);
  /// An output on the border of a box, fed from inside.
  End leave(int box, Role role, std::string label, const TensorType& type, End from);

  /// Draws the records of a graph into a box -> where its outputs come from.
  Ends draw(const Graph& graph, int box, const Ends& inputs, const Profiles& profiles);
  Ends draw_record(const Graph& graph, std::size_t r, int box, const Ends& in,
                   const Profiles& around);
  /// A graph whose inputs are the record's, and whose outputs too.
  Ends draw_group(const OpRecord& record, const SubGraph& sub, const std::vector<TensorType>& types,
                  int around, const Ends& in);
  /// A condition or branch, whose inputs are some that the box around it has.
  Ends draw_part(const Graph& graph, const std::string& label, int around, const Ends& inputs,
                 const std::vector<Role>& roles, const Profiles& profiles);
  Ends draw_cond(const OpRecord& record, const std::vector<TensorType>& types, int around,
                 const Ends& in, const Profiles& profiles);

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
