// frontend/pictures/update_boxes.h — UpdateBoxes, boxes around the ops of an optimiser's update.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "reel/frontend/pictures/graph_drawer.h"

namespace reel {

/// Puts the records of each update of an optimiser into a box, and knows where values are in each
/// box.
///
/// A box is complete as soon as an op outside of it reads a value of it. Later ops begin another
/// box, so that no box waits for itself.
class GraphDrawer::UpdateBoxes {
 public:
  /// around: the box of the graph.
  UpdateBoxes(GraphDrawer& drawer, const Graph& graph, int around, const Ends& inputs);

  /// Returns the box in which a record is drawn; adds it at its first record.
  int box_of(const OpRecord& record);
  /// Returns the end of a value in a box; adds inputs and outputs to borders on the way.
  End end_in(ValueId value, int box);
  void set_end(ValueId value, int box, End end) { values_[value] = {box, end, {}}; }
  /// Adds the count of a record to its box.
  void add_count(int box, const std::optional<PictureNode::Count>& count);

 private:
  struct Value {
    int box;
    End end;
    End left;  ///< its output on the border of the box, once something outside reads it
  };

  GraphDrawer& drawer_;
  const Graph& graph_;
  int around_;
  std::vector<Value> values_;
  std::map<SourceId, int> open_;                    ///< boxes that get more ops
  std::map<std::pair<ValueId, int>, End> entered_;  ///< inputs on the borders of boxes
  std::map<int, int> inputs_, outputs_;             ///< by box: their number
};

}  // namespace reel
